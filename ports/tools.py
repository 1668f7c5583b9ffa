"""What an adapter from elsewhere is made with: the house's storage, time, chance and files."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from .clock import Clock, Ids
from .files import FileStore
from .jobs import Job
from .notebook import Notebook, NumberedOperations, P
from .storage import Storage

Kick = Callable[[Sequence[Job]], Awaitable[None]]
"""Wakes the workers: called with the jobs of every commit that wrote some."""


class FileTools(msgspec.Struct, frozen=True, kw_only=True):
    """Given to the factory of a file store; of every other adapter `Tools`. Credentials are the adapter's own matter:
    it reads its own environment variables, whose names should not begin with CAMBIST_."""

    storage: Storage
    """For ProviderNote records (ports/notes.py), and nothing else: `notebook` keeps them."""
    clock: Clock
    """Also to sleep by."""
    ids: Ids
    base_url: str
    """Where the API is reached from outside, no slash at the end: for the notices of a provider."""


class Tools(FileTools, frozen=True, kw_only=True):
    """Given to the factory that an entry point names."""

    mode: str
    """`live` or `test`: the mode that the adapter is made for."""
    files: FileStore
    """What merchants uploaded, to be read by its key: the documents of a check (ports/kyc.py)."""

    def notebook(self, name: str, page: type[P]) -> Notebook[P]:
        """What the adapter of this name remembers of its operations, each a `page`, a struct or dict
        (docs/adapters.md "What an adapter remembers")."""
        return Notebook(name, page, self.storage, self.clock)

    def counter(self, name: str, what: str) -> NumberedOperations:
        """Numbers of its own that the adapter of this name gives to operations; `what` they count. Make it once."""
        return NumberedOperations(name, what, self.storage, self.clock)


class StorageTools(msgspec.Struct, frozen=True, kw_only=True):
    """Given to the function that opens a storage from elsewhere. Its repr hides the URL, which may hold a password."""

    url: str
    """As the setting `database_url` says it; its scheme is the entry point's name."""
    clock: Clock
    """For a storage that has no clock of its own: due times and leases are judged by it (`Storage.now`)."""
    kick: Kick
    """To be called after each commit that added, saved or accrued jobs, with these; a failure of it fails no commit."""

    def __repr__(self) -> str:
        return "<StorageTools>"
