"""Operations that are never repeated because their bank has forgotten them. An operator finds out at the bank what
happened to each, and records it (docs/operations.md "What needs a person")."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ....ports.bank import RefundState, RefundStatus
from ....ports.bundle import Ports
from ....ports.remittances import RemittanceState, RemittanceStatus
from ....ports.storage import AtMost, OneOf, Unit
from ...domain.accounts.accounts import Mode, Owned
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal, shape_error
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from ...domain.exchanges.payouts import next_part
from ...domain.operators.guarded import word_on_operation
from ...domain.payments.suspense import Suspense
from ...domain.refunds.refunds import Refund
from ...domain.refunds.refunds import RefundStatus as Status
from ..accounts.accounts import storable
from ..actions.four_eyes import gated
from ..common.account_time import living_with
from ..exchanges.remittances import REMITTANCES
from ..exchanges.rub_return import RUB_RETURNS
from ..operations.engine import is_too_old_to_repeat, look_up, settle
from ..operations.operation import Operation, Standing, Want
from ..refunds.progress import REFUNDS
from ..refunds.suspense_progress import SUSPENSE_RETURNS

OUTCOMES = ("done", "failed")

_REFUNDED: Mapping[str, Any] = {
    "done": RefundState(status=RefundStatus.DONE),
    "failed": RefundState(status=RefundStatus.FAILED, failure="unknown"),
}
_REMITTED: Mapping[str, Any] = {
    "done": RemittanceState(status=RemittanceStatus.DONE),
    "failed": RemittanceState(status=RemittanceStatus.FAILED, failure="unknown"),
}


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """An operation whose bank did not report an outcome while the operation could still be repeated."""

    operation: str
    """The operation id that was sent to the bank."""
    of: str
    """The kind of object: `refund`, `suspense`, `exchange`."""
    object_id: str
    account_id: str
    mode: Mode
    until: datetime
    """Moment from which the bank no longer recognises a repeat."""


async def _refunds(unit: Unit, sent: AtMost, limit: int) -> list[str]:
    found = await unit[Refund].find(
        status=Status.PROCESSING, created_at=sent, order="created_at", limit=limit, readable=True
    )
    return [refund.id for refund in found]


async def _suspense(unit: Unit, sent: AtMost, limit: int) -> list[str]:
    found = await unit[Suspense].find(
        resolved_at=None, received_at=sent, order="received_at", limit=limit, readable=True
    )
    return [suspense.id for suspense in found if suspense.sending_since is not None]


async def _transfers(unit: Unit, sent: AtMost, limit: int) -> list[str]:
    found = await unit[ExchangeTransfer].find(
        resolved_at=None,
        reason=OneOf(SUSPENDED_FOR),
        received_at=sent,
        order="received_at",
        limit=limit,
        readable=True,
    )
    return [transfer.id for transfer in found if transfer.sent_back is not None]


async def _parts(unit: Unit, sent: AtMost, limit: int) -> list[str]:
    found = await unit[Exchange].find(
        status=ExchangeStatus.RUB_SENDING, created_at=sent, order="created_at", limit=limit, readable=True
    )
    parts = [next_part(exchange.parts) for exchange in found]
    return [part.operation for part in parts if part is not None]


class _Kind(NamedTuple):
    of: str
    row: Operation[Any, Any, Any]
    words: Mapping[str, Any]
    """Provider state for each outcome that an operator may give."""
    candidates: Callable[[Unit, AtMost, int], Awaitable[list[str]]]
    """Returns the ids of candidates, as `load` expects them, oldest first."""


_KINDS = (
    _Kind("refund", REFUNDS, _REFUNDED, _refunds),
    _Kind("suspense", SUSPENSE_RETURNS, _REFUNDED, _suspense),
    _Kind("suspense", RUB_RETURNS, _REFUNDED, _transfers),
    _Kind("exchange", REMITTANCES, _REMITTED, _parts),
)
"""Every kind of operation that sends money, except charges, which end without an operator (charge_reports.py)."""


async def list_unanswered(ports: Ports, *, limit: int = 1000) -> list[Unanswered]:
    """Return the operations that wait for an operator's decision, oldest first. Reads up to `limit` candidates of each
    kind."""
    async with ports.storage.unit() as unit:
        return await find_unanswered(ports, unit, limit)


async def find_unanswered(ports: Ports, unit: Unit, limit: int) -> list[Unanswered]:
    """Do the same in the caller's unit of work. If every bank recognises repeats forever, this reads nothing."""
    windows = [bank.capabilities.repeat_window for bank in ports.banks.banks.values()]
    shortest = min((window for window in windows if window is not None), default=None)
    if shortest is None:
        return []
    found: list[Unanswered] = []
    for kind in _KINDS:
        for object_id in await kind.candidates(unit, AtMost(ports.clock.now() - shortest), limit):
            subject = await kind.row.load(ports, unit, object_id)
            if subject is not None and _waits(ports, kind, subject):
                found.append(_told(ports, kind, subject))
    return sorted(found, key=lambda each: (each.until, each.operation))


async def end_unanswered(ports: Ports, operation: str, outcome: str) -> Unanswered:
    """End an operation by an operator's decision: the money was sent (`done`), or never will be (`failed`). First query
    the bank once more. If it reports an outcome, that outcome takes effect instead of the decision.

    Raises: Refusal NOT_FOUND; INVALID_STATE when the operation is over, may still be sent, or the bank reports its
    state; Waits when a second operator has to confirm.
    """
    if outcome not in OUTCOMES:
        raise shape_error("outcome", f"must be one of: {', '.join(OUTCOMES)}")
    kind, subject = await _found(ports, operation)
    async with living_with(ports, subject[0].account_id, subject[0].mode):
        if not _waits(ports, kind, subject) or kind.row.operation(subject) != operation:
            raise Refusal("INVALID_STATE", "The operation has ended, or the service is still working on it")
        told = await look_up(kind.row, ports, subject)
        if told.word is not None:
            await settle(kind.row, ports, told)
            raise Refusal("INVALID_STATE", f"The bank reports its state: {told.word.status}")
        ended = _told(ports, kind, subject)
        declares = word_on_operation(ended.object_id, ended.account_id, ended.mode, operation, outcome)
        ports = gated(ports, "end_unanswered", operation, declares, outcome=outcome)
        await settle(kind.row, ports, Standing(subject, kind.words[outcome]))
        return ended


async def _found(ports: Ports, operation: str) -> tuple[_Kind, Any]:
    """Return the kind and subject of an operation. A subject begins with its record. Raises: Refusal NOT_FOUND."""
    if storable(operation):
        async with ports.storage.unit() as unit:
            for kind in _KINDS:
                subject = await kind.row.of_operation(ports, unit, operation)
                if subject is not None:
                    return kind, subject
    raise Refusal("NOT_FOUND", "No operation of this id")


def _waits(ports: Ports, kind: _Kind, subject: Any) -> bool:
    return kind.row.wants(subject) is Want.SEND and is_too_old_to_repeat(kind.row, ports, subject)


def _told(ports: Ports, kind: _Kind, subject: Any) -> Unanswered:
    record: Owned = subject[0]
    return Unanswered(
        operation=kind.row.operation(subject),
        of=kind.of,
        object_id=record.id,
        account_id=record.account_id,
        mode=record.mode,
        until=kind.row.repeats_until(ports, subject) or LONG_AGO,
    )
