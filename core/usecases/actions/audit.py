"""Audit log: each action of an operator adds its row in the unit that does the work.

`acting` returns ports whose storage adds the row to the first unit that writes anything. So no use case knows of the
log, none can forget it, and an action without its row cannot happen, because both are one commit. Merchants use other
ports; their requests are not audited here.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Generic, Protocol

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Stale
from ....ports.forwarding import ForwardingRepository, ForwardingStorage
from ....ports.notes import ProviderNote
from ....ports.storage import Below, R, Record, Repository, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account
from ...domain.chains import ChainHead
from ...domain.errors import Refusal
from ...domain.operators.audit import ABSENT, SAFE, AuditEntry, OperatorAction, changes, checked
from ...domain.settlement.rates import KnownRate
from ...domain.webhooks.events import Delivery
from ..common.chains import HEAD_RULE, begin_chains
from .decisions import Undeclared, Written

PREFIX = "aud_"

INCIDENTAL = (KnownRate, ProviderNote)
"""Records that a use case may write before its action. A unit of only these is not the action."""


class Gate(Protocol):
    """Called before each writing unit of an action commits, with the records it writes. It may refuse the unit or add
    to it."""

    @property
    def once(self) -> bool:
        """Return whether the gate is finished after the first commit."""
        ...

    async def __call__(self, unit: Unit, written: Written, /) -> None: ...


NOBODY = OperatorAction(operator="", name="")
"""Action without an operator's name. It leaves no row."""


def acting(ports: Ports, action: OperatorAction, gate: Gate | None = None, *, approval: Gate | None = None) -> Ports:
    """Return the ports by which an operator or a person does `action`, once. `approval`: the gate of a second person,
    which comes before that of a second operator. Raises: Refusal VALIDATION_ERROR for an invalid name or reason."""
    return behind(ports, checked(action), gate, approval=approval)


def behind(ports: Ports, action: OperatorAction, gate: Gate | None, *, approval: Gate | None = None) -> Ports:
    """Return such ports for an action that was already checked. Without a gate, they refuse decisions that need two
    operators."""
    plain = unaudited(ports)
    if gate is None and ports.four_eyes.actions:
        gate = Undeclared(plain)
    return msgspec.structs.replace(ports, storage=AuditedStorage(plain, action, gate, approval))


def unaudited(ports: Ports) -> Ports:
    """Return the ports without the audit. Use them for consequences of an action."""
    inner = ports.storage.inner if isinstance(ports.storage, AuditedStorage) else ports.storage
    return msgspec.structs.replace(ports, storage=inner)


def on(ports: Ports, object_id: str | None) -> Ports:
    """Return ports for the same action on another object, for actions on several objects. Ports without an audit are
    returned unchanged."""
    if not isinstance(ports.storage, AuditedStorage):
        return ports
    return acting(ports, msgspec.structs.replace(ports.storage.action, object_id=object_id))


def has_written(ports: Ports) -> bool:
    """Return whether the action of these ports has written anything, including its row."""
    return isinstance(ports.storage, AuditedStorage) and ports.storage.noted


async def note(ports: Ports, action: OperatorAction, *, account_id: str | None = None) -> None:
    """Write the row of an action that changes nothing, such as reading personal data. Raises: Refusal VALIDATION_ERROR;
    Unavailable."""
    async with ports.storage.unit() as unit:
        add_row(ports, unit, checked(action), account_id=account_id)
        await unit.commit()


async def note_outside(ports: Ports, object_id: str) -> None:
    """Write the row of the ports' action before it changes something outside the database. Raises: Unavailable."""
    if isinstance(ports.storage, AuditedStorage):
        await note(unaudited(ports), msgspec.structs.replace(ports.storage.action, object_id=object_id))


def add_row(ports: Ports, unit: Unit, action: OperatorAction, *, account_id: str | None, after: str = "") -> None:
    """Add an action's row to the unit that does it, for actions without ports of their own. `action` was checked."""
    unit[AuditEntry].add(_entry(ports, action, ports.clock.now(), account_id, "", after))


async def list_audit(
    ports: Ports, *, operator: str | None = None, object_id: str | None = None, before: str | None = None, limit: int
) -> list[AuditEntry]:
    """Return the newest rows, or those before the row `before`."""
    wanted: dict[str, Any] = {"operator": operator, "object_id": object_id}
    criteria = {name: value for name, value in wanted.items() if value is not None}
    if before is not None:
        criteria["id"] = Below(before)
    async with ports.storage.unit() as unit:
        return await unit[AuditEntry].find(order="-id", limit=limit, **criteria)


async def list_account_audit(
    ports: Ports, account_id: str, *, before: str | None = None, limit: int
) -> list[AuditEntry]:
    """Return the newest rows about an account, or those before the row `before`."""
    criteria: dict[str, Any] = {"account_id": account_id}
    if before is not None:
        criteria["id"] = Below(before)
    async with ports.storage.unit() as unit:
        return await unit[AuditEntry].find(order="-id", limit=limit, **criteria)


def _entry(
    ports: Ports, action: OperatorAction, at: datetime, account_id: str | None, before: str, after: str
) -> AuditEntry:
    return AuditEntry(
        id=ids.prefixed(PREFIX, ports.ids.uuid()),
        at=at,
        operator=action.operator,
        action=action.name,
        object_id=action.object_id,
        account_id=account_id,
        reason=action.reason,
        before=before,
        after=after,
    )


class AuditedStorage(ForwardingStorage):
    """A Storage (ports/storage.py) for one action. It passes everything through except the first writing unit."""

    def __init__(
        self, ports: Ports, action: OperatorAction, gate: Gate | None = None, approval: Gate | None = None
    ) -> None:
        super().__init__(ports.storage)
        self.action = action
        self.gate = gate
        self.approval = approval
        self.noted = False
        self.ports = ports
        # Take the time before the use case enters a test account's time.
        self._began = ports.clock.now()

    @asynccontextmanager
    async def _unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:
            yield _AuditedUnit(self, unit)

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """Return a unit that adds the row, unless an earlier one did."""
        is_passed = self.gate is None or (self.noted and self.gate.once)
        return self.inner.unit() if self.noted and is_passed else self._unit()

    async def entry(self, unit: Unit, written: Written) -> AuditEntry:
        """Return the row for the records in `written`. This reads the stored records again; if the writer had read
        other versions, the commit goes stale. Raises: Refusal INVALID_STATE if the operator saw another version."""
        subject = min(written, key=self._distance, default=None)
        if subject is None:
            return _entry(self.ports, self.action, self._began, None, "", "")
        kind, after = subject
        present = await unit[kind].get(after.id)
        seen = self.action.seen_version
        stands = ABSENT if present is None else present.version
        if seen is not None and after.id == self.action.object_id and stands != seen:
            raise Refusal("INVALID_STATE", "The object was changed meanwhile, so nothing was done. Read it again")
        before, becomes = changes(present, after)
        # The id of a membership begins with its account's, too.
        account_id = after.id if isinstance(after, Account) else getattr(after, "account_id", None)
        action = msgspec.structs.replace(self.action, object_id=self.action.object_id or after.id)
        return _entry(self.ports, action, self._began, account_id, before, becomes)

    def _distance(self, written: tuple[type[Any], Any]) -> int:
        """Rank a record by how likely it is the action's object. The lowest rank is the object. A delivery of a webhook
        about it ranks last."""
        kind, record = written
        return 0 if record.id == self.action.object_id else 2 if issubclass(kind, Delivery) else 1


class _AuditedUnit:
    """A Unit whose commit includes the action's row."""

    def __init__(self, audited: AuditedStorage, inner: Unit) -> None:
        self._audited = audited
        self._inner = inner
        self.wrote = False
        self.begins = False
        """The use case begins the chains itself."""
        self.written: list[tuple[type[Any], Any]] = []
        """Added and saved records that an audit row may describe."""

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        return _NotedRepository(self._inner[kind], kind, self)

    def note(self, kind: type[Any], record: Record | None = None) -> None:
        """Note a write."""
        self.wrote = self.wrote or kind not in INCIDENTAL
        self.begins = self.begins or kind is ChainHead
        if record is not None and kind in SAFE:
            self.written.append((kind, record))

    async def commit(self, *, durable: bool = True) -> None:
        """Commit the inner unit with the row. After a failed commit the row is missing or its state is unknown, so the
        next writing unit adds one. A duplicate row is better than none."""
        audited, noting = self._audited, self.wrote and not self._audited.noted
        entry = await audited.entry(self._inner, self.written) if noting else None
        if noting and audited.approval is not None:
            await audited.approval(self._inner, self.written)
        if audited.gate is not None:
            await audited.gate(self._inner, self.written)
        if entry is not None and audited.action is not NOBODY:
            if not self.begins:
                await begin_chains(audited.ports, self._inner)
            self._inner[AuditEntry].add(entry)
        try:
            await self._inner.commit(durable=durable)
        except Conflict as conflict:
            if self.begins or conflict.rule != HEAD_RULE:
                raise
            raise Stale("another unit began the chains: read again") from conflict
        audited.noted = audited.noted or noting


class _NotedRepository(ForwardingRepository[R], Generic[R], eq=False):
    """A Repository that reports every write to its unit."""

    _kind: type[R]
    _unit: _AuditedUnit

    def add(self, record: R, /) -> R:
        self._unit.note(self._kind, record)
        return self.inner.add(record)

    def save(self, record: R, /) -> R:
        self._unit.note(self._kind, record)
        return self.inner.save(record)

    def change(self, record: R, /, **changes: Any) -> R:
        self._unit.note(self._kind, msgspec.structs.replace(record, **changes))  # type: ignore[type-var]  # see Codec
        return self.inner.change(record, **changes)

    def remove(self, record: R, /) -> None:
        self._unit.note(self._kind)
        self.inner.remove(record)

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        self._unit.note(self._kind)
        self.inner.increase(record_id, field, by)

    def accrue(self, *records: R) -> None:
        self._unit.note(self._kind)
        self.inner.accrue(*records)
