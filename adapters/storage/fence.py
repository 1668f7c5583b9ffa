"""Storage of a cell: it commits nothing of an account that is being moved to another cell (docs/cells.md).

Every process reads the leaving accounts twice a second, in its own commits. So a second and a half after a move began,
no process changes the account's rows any more, whatever it was doing.
"""

from collections.abc import Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from ...core.domain.cells import AccountMove, Stage
from ...core.domain.errors import Refusal
from ...ports.clock import Clock
from ...ports.forwarding import ForwardingStorage
from ...ports.storage import R, Repository, Storage, Unit
from .table.unit import WorkUnit
from .table.writes import Increase, Remove, Save, Write

FRESH = 0.5
"""Seconds for which a process relies on its list of leaving accounts."""
SETTLED = 1.5
"""Seconds after which no process changes an account any more: the list's age, and the time of one commit."""
RETRY_AFTER = 2
_MOST = 1000
"""More accounts than anybody moves at once."""

_LOOSE = frozenset(
    ("jobs", "audit", "sessions", "exports", "export_chunks", "notifications", "notification_queues", "account_moves")
) | frozenset(("request_batches", "request_firsts", "request_counts", "written_bytes", "departures"))
"""Tables that may change meanwhile. Their rows stay here, or are copied at the very end, or only count requests."""
_SEEN = frozenset(("seen_at", "version"))


class Fence(ForwardingStorage):
    """A Storage (ports/storage.py) around another one."""

    def __init__(self, inner: Storage, clock: Clock) -> None:
        super().__init__(inner)
        self._clock = clock
        self._read_at = -FRESH
        self.leaving: frozenset[str] = frozenset()

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return _Unit(self.inner.unit(), self)

    async def refresh(self) -> None:
        """Read the leaving accounts, if the list is old. Raises: Unavailable."""
        began = self._clock.monotonic()
        if began - self._read_at < FRESH:
            return
        async with self.inner.unit() as unit:
            found = await unit[AccountMove].find(stage=Stage.LEAVING, limit=_MOST)
        self.leaving = frozenset(each.id for each in found)
        self._read_at = began

    def is_fresh(self) -> bool:
        """Return whether the list is recent enough to commit by it."""
        return self._clock.monotonic() - self._read_at < FRESH


class _Unit(msgspec.Struct, eq=False):
    """Forwards to a unit, and looks at its writes before they are committed."""

    _opening: AbstractAsyncContextManager[Unit]
    _fence: Fence
    _unit: Unit = msgspec.UNSET  # type: ignore[assignment]  # until it is entered

    async def __aenter__(self) -> Self:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, fault, trace)

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        return self._unit[kind]

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        """Commit as the inner unit does. Raises: Refusal ACCOUNT_MOVING as well; then nothing is written."""
        if self._fence.is_fresh() and not self._fence.leaving:
            return self._unit.commit(durable=durable)
        return self._judged(durable=durable)

    async def _judged(self, *, durable: bool) -> None:
        await self._fence.refresh()
        if self._fence.leaving:
            pending = cast("WorkUnit", self._unit)._pending  # noqa: SLF001 - the writes have no other reader
            refuse(self._fence.leaving, pending.all_writes())
        await self._unit.commit(durable=durable)


def refuse(leaving: frozenset[str], writes: Iterable[Write]) -> None:
    """Raise Refusal ACCOUNT_MOVING if a write concerns one of these accounts."""
    if any(_owner(write) in leaving for write in writes if write.mapped.name not in _LOOSE):
        raise Refusal(
            "ACCOUNT_MOVING", "The account is being moved to other servers; repeat it", retry_after=RETRY_AFTER
        )


def _owner(write: Write) -> str | None:
    """Return the account of a write. None: it concerns no account, or changes only what each cell has of its own."""
    if isinstance(write, Remove | Increase):
        return _of_id(write.id)
    if isinstance(write, Save) and (
        write.mapped.name == "journal" or (write.changed and _SEEN.issuperset(write.changed))
    ):
        return None
    index = write.mapped.codec.index.get("account_id")
    owner = None if index is None else write.row[index]
    return owner if isinstance(owner, str) else _of_id(write.id)


def _of_id(record_id: str) -> str | None:
    """Return the account with which an id begins (`acc_…`, `acc_…:live:…`, `acc_…/…`)."""
    return record_id[:_ACCOUNT] if record_id.startswith("acc_") else None


_ACCOUNT = len("acc_") + 36
