"""Base classes that wrap a storage or repository and forward every call, for wrappers that change one thing. Methods on
the path of every request return the inner coroutine instead of adding one."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from typing import Any, Generic

import msgspec

from .jobs import Job
from .storage import Clocked, Located, Losable, Queueing, R, Repository, Snapshot, Storage, Unit
from .unreadable import Resume, SettingAside


class ForwardingStorage:
    """A wrapper of a Storage (storage.py), including the optional protocols of storages."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        # Checked once: for a stack of wrappers, isinstance of a protocol with a property reads it in every layer, twice
        # each.
        self._clocked = inner if isinstance(inner, Clocked) else None
        self._setting_aside = inner if isinstance(inner, SettingAside) else None
        # Every request makes five such reads, and each layer would add one percent to the cost of a creation.
        self.recent = inner.recent

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return self.inner.unit()

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        return self.inner.get(kind, record_id)

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        return self.inner.snapshot()

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        return await self.inner.claim(limit, lease, kind=kind, but_kind=but_kind)

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        return await self.inner.renew(jobs, lease)

    async def next_due(self) -> datetime | None:
        return await self.inner.next_due()

    async def now(self) -> datetime:
        return await self.inner.now()

    def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        return self.inner.scan(kind, batch=batch, readable=readable, **criteria)

    async def check(self) -> None:
        return await self.inner.check()

    async def close(self) -> None:
        return await self.inner.close()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the inner storage's fair lock; without one, everybody enters at once."""
        return self.inner.turn() if isinstance(self.inner, Queueing) else nullcontext()

    @property
    def by_own_clock(self) -> bool:
        """False for a storage that does not say."""
        return self._clocked is not None and self._clocked.by_own_clock

    def lost(self) -> str | None:
        """Return None for a storage that cannot be lost."""
        return self.inner.lost() if isinstance(self.inner, Losable) else None

    def location(self) -> str | None:
        """Return None for a storage that does not know its location."""
        return self.inner.location() if isinstance(self.inner, Located) else None

    async def take_up(self, resume: Resume, /) -> int:
        """Return 0 for a storage that sets nothing aside."""
        return await self._setting_aside.take_up(resume) if self._setting_aside is not None else 0

    async def count_noted(self) -> int:
        """Return 0 for a storage that sets nothing aside."""
        return await self._setting_aside.count_noted() if self._setting_aside is not None else 0


class ForwardingRepository(msgspec.Struct, Generic[R], eq=False):
    """A wrapper of a Repository (storage.py)."""

    inner: Repository[R]

    async def get(self, record_id: str, /) -> R | None:
        return await self.inner.get(record_id)

    async def find(self, **asked: Any) -> list[R]:
        return await self.inner.find(**asked)

    async def page(self, number: int, size: int, /, **asked: Any) -> list[R]:
        return await self.inner.page(number, size, **asked)

    async def total(self, **criteria: Any) -> int:
        return await self.inner.total(**criteria)

    async def sums(self, field: str, /, **asked: Any) -> dict[Any, int]:
        return await self.inner.sums(field, **asked)

    def add(self, record: R, /) -> R:
        return self.inner.add(record)

    def save(self, record: R, /) -> R:
        return self.inner.save(record)

    def change(self, record: R, /, **changes: Any) -> R:
        return self.inner.change(record, **changes)

    def remove(self, record: R, /) -> None:
        self.inner.remove(record)

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        self.inner.increase(record_id, field, by)

    def accrue(self, *records: R) -> None:
        self.inner.accrue(*records)
