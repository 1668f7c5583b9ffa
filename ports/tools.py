"""What an adapter from elsewhere is made with: the house's storage, time and chance."""

import msgspec

from .clock import Clock, Ids
from .storage import Storage


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """Given to the factory that an entry point names. Credentials are the adapter's own matter: it reads its own
    environment variables, whose names should not begin with CAMBIST_."""

    mode: str
    """`live` or `test`: the mode that the adapter is made for."""
    storage: Storage
    """For ProviderNote records (ports/notes.py), and nothing else."""
    clock: Clock
    """Also to sleep by."""
    ids: Ids
    base_url: str
    """Where the API is reached from outside, no slash at the end: for the notices of a provider."""
