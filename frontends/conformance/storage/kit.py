"""Records and helpers for the storage's contract tests.

Sample and Tally are declared beside the real records to cover features that those do not use yet: every field type, a
sum, a partial unique rule.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import TracebackType
from typing import Any

import msgspec

from ....adapters.clock import VirtualClock
from ....adapters.storage.table.catalogue import CATALOGUE, Table, Unique
from ....core.domain.accounts.accounts import Mode
from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.accounts.shops import Shop
from ....core.domain.money import Rub, Usdt
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....ports.faults import Conflict
from ....ports.jobs import Job
from ....ports.storage import R, Storage
from ....ports.tools import WakeUp
from ..expectations import must_raise

START = datetime(2026, 1, 1, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(msgspec.Struct, frozen=True):
    """A structure inside a record."""

    label: str
    price: Rub | None = None
    counts: tuple[int, ...] = ()


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A record with a field of every supported type, each also nullable."""

    id: str
    text: str = ""
    text_or_null: str | None = None
    number: int = 0
    number_or_null: int | None = None
    flag: bool = False
    flag_or_null: bool | None = None
    blob: bytes = b""
    blob_or_null: bytes | None = None
    rub: Rub = Rub(0)
    rub_or_null: Rub | None = None
    usdt: Usdt = Usdt(0)
    usdt_or_null: Usdt | None = None
    moment: datetime = START
    moment_or_null: datetime | None = None
    colour: Colour = Colour.RED
    colour_or_null: Colour | None = None
    part: Part = Part("")
    part_or_null: Part | None = None
    mapping: dict[str, Any] = msgspec.field(default_factory=dict)
    mapping_or_null: dict[str, Any] | None = None
    listed: list[str] = msgspec.field(default_factory=list)
    pair: tuple[int, str] | None = None
    version: int = 0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """A record with sums that every request changes and two unique rules, one of them for open records only."""

    id: str
    owner: str
    label: str | None = None
    open: bool = True
    count: int = 0
    pending: Rub = Rub(0)
    version: int = 0


KIT_CATALOGUE = (
    *CATALOGUE,
    Table(
        Sample,
        "kit_samples",
        indexes=(("text", "-number", "id"),),
        sparse=(("text_or_null", "id"),),
        unset=(("number_or_null", "text", "moment", "id"),),
    ),
    Table(
        Tally,
        "kit_tallies",
        uniques=(
            Unique("kit_tallies_open_owner", ("owner",), where=(("open", True),)),
            Unique("kit_tallies_label", ("owner", "label")),
        ),
        sums=("count", "pending"),
        narrow=True,
    ),
)


class must_conflict(must_raise[Conflict]):  # noqa: N801 - reads as a call
    """Block of calls of a storage that end with a Conflict over this unique rule. Otherwise the test fails with the
    rule of the suite."""

    def __init__(self, rule: str, unique: str) -> None:
        super().__init__(rule, Conflict)
        self._unique = unique

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        __tracebackhide__ = True
        is_conflict = super().__exit__(kind, raised, trace)
        assert self.value.rule == self._unique, f"{self._rule}: it names {self.value.rule}, not {self._unique}"
        return is_conflict


class StorageLocation:
    """One database, or process memory, and the storages opened on it. All share the clock and the list of wake-ups."""

    def __init__(
        self,
        opener: Callable[[VirtualClock, WakeUp], Awaitable[Storage]],
        *,
        is_shared: bool = True,
        where: str = "",
    ) -> None:
        """`opener` opens a storage with KIT_CATALOGUE's tables and that clock. `is_shared`: several storages may be
        open at once, and the data outlives the last of them."""
        self.is_shared = is_shared
        self.where = where
        """The path of the file or the URL of the database."""
        self.clock = VirtualClock(START)
        self.woken_up: list[list[str]] = []
        self.wake_up: WakeUp = self._note
        self._opener = opener
        self._open = AsyncExitStack()

    async def _note(self, jobs: Any) -> None:
        self.woken_up.append([job.id for job in jobs])

    async def open(self) -> Storage:
        """Open a storage that is closed at the end of the test."""

        async def wake_up(jobs: Any) -> None:
            await self.wake_up(jobs)

        storage = await self._opener(self.clock, wake_up)
        self._open.push_async_callback(storage.close)
        return storage

    async def close(self) -> None:
        await self._open.aclose()


def payment(record_id: str, **fields: Any) -> Payment:
    """Return a payment with the minimum of fields."""
    plain: dict[str, Any] = {
        "account_id": "acc_1",
        "mode": Mode.TEST,
        "shop_id": "shop_1",
        "status": PaymentStatus.PENDING,
        "amount": Rub(100_00),
        "payment_method": "sbp",
        "created_at": START,
        "expires_at": START + timedelta(minutes=15),
    }
    return Payment(id=record_id, **(plain | fields))


def shop(record_id: str, name: str, account_id: str = "acc_1") -> Shop:
    """Return a shop of an account."""
    return Shop(id=record_id, account_id=account_id, name=name, name_folded=name.casefold(), created_at=START)


def key(record_id: str, resource_id: str = "pay_1") -> IdempotencyKey:
    """Return the record of an Idempotency-Key."""
    return IdempotencyKey(id=record_id, kind="payment", resource_id=resource_id, created_at=START)


def job(record_id: str, due: float = 0, **fields: Any) -> Job:
    """Return a job that is due this many seconds after the start."""
    plain: dict[str, Any] = {"kind": "watch", "argument": "pay_1", "created_at": START}
    return Job(id=record_id, due=START + timedelta(seconds=due), **(plain | fields))


def only(claimed: list[Job], rule: str) -> Job:
    """Return the job of a claim that must be exactly one."""
    assert len(claimed) == 1, f"{rule}: the claim gave {len(claimed)} jobs"
    return claimed[0]


async def put(storage: Storage, *records: Any) -> None:
    """Add records in one unit."""
    async with storage.unit() as unit:
        for record in records:
            unit[type(record)].add(record)
        await unit.commit()


async def read(storage: Storage, kind: type[R], record_id: str) -> R | None:
    """Return a record, and assert that a new unit and a read without a unit agree on it."""
    must = "a unit and a read without a unit must agree on a record"
    async with storage.unit() as unit:
        found = await unit[kind].get(record_id)
    assert await storage.get(kind, record_id) == found, must
    return found


async def must_read(storage: Storage, kind: type[R], record_id: str) -> R:
    """Return a record that must exist."""
    found = await read(storage, kind, record_id)
    assert found is not None, f"{kind.__name__} {record_id} is gone"
    return found
