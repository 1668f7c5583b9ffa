"""Suspense: money received for payments and exchanges that could not be applied, and sending it back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....core.domain.exchanges.funds import ExchangeTransfer, returnable
from ....core.domain.exchanges.returns import ReturnStatus
from ....core.domain.ledger import BalanceType, Currency, currency_of
from ....core.domain.operators.guarded import Guarded
from ....core.domain.payments.suspense import RETURN_ENDED, Suspense
from ....core.domain.refunds.suspense_returns import present_operation
from ....core.usecases.accounts.accounts import storable
from ....core.usecases.browse.suspense import Suspended, browse_suspense, find_suspended
from ....core.usecases.browse.timeline import Moment, amount, read_timeline
from ....core.usecases.exchanges.returns import return_money
from ....core.usecases.refunds.suspense_return import return_suspense
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .ending import ending
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Entry, Filter, Kind, Told, Wish
from .stakes import left_in, whose
from .wishes import wanted

_RETURNED = "sent back"


async def _read(ports: Ports, wish: Wish, after: Suspended | None, limit: int) -> list[Suspended]:
    asked = msgspec.structs.replace(wanted(wish), newest_first=wish.order == "newest")
    return await browse_suspense(ports, asked, after, limit, returned=wish.of("state") == _RETURNED)


async def _get(ports: Ports, record_id: str) -> Suspended | None:
    return await find_suspended(ports, record_id) if storable(record_id) else None


def _amount(each: Suspended) -> str:
    if isinstance(each, Suspense):
        return f"{each.amount} RUB"
    return amount(each.suspended, each.currency)


def _of(each: Suspended) -> str:
    return each.payment_id if isinstance(each, Suspense) else each.exchange_id


def _facts(each: Suspended) -> list[tuple[str, Any]]:
    back = None if isinstance(each, Suspense) else each.sent_back
    return [
        ("suspended", _amount(each)),
        ("why", each.reason),
        ("state", "waits" if each.resolved_at is None else _RETURNED),
        ("payment" if isinstance(each, Suspense) else "exchange", _of(each)),
        ("received", each.received_at),
        ("sent back", each.resolved_at),
        ("attempt", each.attempt if isinstance(each, Suspense) else None if back is None else back.number),
        ("on its way", None if back is None else back.status),
        ("goes to", None if back is None else back.address),
        ("transaction", None if back is None else back.tx_hash),
        ("failure", None if back is None else back.failure),
        ("mode", each.mode),
        ("account", each.account_id),
        ("id", each.id),
    ]


async def _timeline(ports: Ports, each: Suspended) -> list[Moment]:
    """Return a link to the payment or exchange, and the entry's own events."""
    kind = "payment" if isinstance(each, Suspense) else "exchange"
    came = Moment(
        at=each.received_at, source=kind, text="what it came for", detail=_of(each), of=kind, object_id=_of(each)
    )
    return sorted([came, *await read_timeline(ports, each)], key=lambda moment: moment.at)


def _may_return(each: Suspended) -> bool:
    return each.resolved_at is None if isinstance(each, Suspense) else returnable(each) > 0


def _takes_address(each: Suspended) -> bool:
    return isinstance(each, ExchangeTransfer) and each.currency is Currency.USDT


def _operation(each: Suspended) -> str | None:
    """Return the operation of the return that a bank may be processing now."""
    if isinstance(each, Suspense):
        is_sent = each.sending_since is not None and each.resolved_at is None and each.reason not in RETURN_ENDED
        return present_operation(each) if is_sent else None
    back = each.sent_back
    is_at_bank = back is not None and back.status is ReturnStatus.SENDING and each.currency is Currency.RUB
    return back.operation if back is not None and is_at_bank else None


async def _ending(ports: Ports, each: Suspended, _given: Mapping[str, str]) -> Told:
    return [("suspended", _amount(each)), *await whose(ports, each.account_id, each.mode), ("came for", _of(each))]


async def _return(doing: Doing) -> str:
    if isinstance(doing.record, Suspense):
        await return_suspense(doing.ports, doing.record.id)
    else:
        await return_money(doing.ports, doing.record.id, doing.given["address"].strip() or None)
    return f"{_amount(doing.record)} go back; the service sends them."


async def _returning(ports: Ports, each: Suspended, _given: Mapping[str, str]) -> Told:
    balance_type, units = BalanceType.SUSPENSE, each.amount.kopecks if isinstance(each, Suspense) else returnable(each)
    if _takes_address(each):
        balance_type = BalanceType.SUSPENSE_USDT
    return [
        ("goes back", amount(units, currency_of(balance_type))),
        *await whose(ports, each.account_id, each.mode),
        *await left_in(ports, each.account_id, each.mode, balance_type, -units),
        ("came for", _of(each)),
    ]


SUSPENSE = Kind(
    name="suspense",
    title="Suspense",
    key="S",
    columns=(
        when("received", lambda each: each.received_at),
        Column(title="suspended", cell=_amount, width=20, right=True),
        Column(title="why", cell=lambda each: each.reason, width=18),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        merchant(11, 16),
        Column(title="sent back", cell=lambda each: each.resolved_at, width=19, wide=True),
        Column(title="of", cell=_of, width=41, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(Filter(name="state", choices=(_RETURNED,)), MODE, ACCOUNT),
    orders=("oldest", "newest"),
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="suspense.return",
            title="Return to the payer",
            key="t",
            ends=True,
            allowed=_may_return,
            entries=(Entry(name="address", label="TRON address", needed=True, wanted=_takes_address),),
            changes=lambda each: [
                Change("suspended", _amount(each), "on its way back"),
                Change("goes to", "-", "the address below" if _takes_address(each) else "who paid it"),
            ],
            run=_return,
            tells=_returning,
            by_two=lambda *_: Guarded.SUSPENSE,
        ),
        ending(_operation, _ending),
    ),
)
