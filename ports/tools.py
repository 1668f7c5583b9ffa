"""Tools for the factory of an adapter from another package: storage, time, randomness and files of the app."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from .clock import Clock, Ids
from .files import FileStore
from .jobs import Job
from .operation_log import NumberedOperations, OperationLog, P
from .storage import Storage

WakeUp = Callable[[Sequence[Job]], Awaitable[None]]
"""Wakes the workers: called with the jobs of every commit that wrote some."""


class FileTools(msgspec.Struct, frozen=True, kw_only=True):
    """Tools for the factory of a file store; all other adapters get `Tools`. Credentials are settings of the adapter
    (ports/settings.py)."""

    storage: Storage
    """Only for ProviderNote records (ports/notes.py), which `operation_log` manages."""
    clock: Clock
    """Also used to sleep."""
    ids: Ids
    base_url: str
    """Public base URL of the API, without a slash at the end: for a provider's notifications."""


class Tools(FileTools, frozen=True, kw_only=True):
    """Tools for the factory that an entry point names."""

    mode: str
    """`live` or `test`: the mode for which the adapter is created."""
    files: FileStore
    """Merchants' uploads, read by key: the documents of a check (ports/kyc.py)."""

    def operation_log(self, name: str, page: type[P]) -> OperationLog[P]:
        """Return the operation log of the adapter with this name; each `page` is a struct or dict
        (docs/adapters.md "Notes of an adapter")."""
        return OperationLog(name, page, self.storage, self.clock)

    def counter(self, name: str, what: str) -> NumberedOperations:
        """Return a numbering for operations of the adapter with this name; `what` names the counted things. Create it
        once."""
        return NumberedOperations(name, what, self.storage, self.clock)


class StorageTools(msgspec.Struct, frozen=True, kw_only=True):
    """Tools for the function that opens a storage from another package. Its repr hides the URL, which may contain a
    password."""

    url: str
    """Value of the setting `database_url`; its scheme is the entry point's name."""
    clock: Clock
    """For a storage without its own clock: it judges due times and leases (`Storage.now`)."""
    wake_up: WakeUp
    """Call it after each commit that added, saved or accrued jobs, with these jobs; if it fails, the commit still
    stands."""

    def __repr__(self) -> str:
        return "<StorageTools>"
