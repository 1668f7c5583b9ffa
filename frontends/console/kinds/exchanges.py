"""Exchanges of end clients in both directions: money and operator actions."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....core.domain import ids
from ....core.domain.accounts.accounts import Mode
from ....core.domain.exchanges.exchanges import CANCELLABLE, Direction, Exchange, ExchangeStatus
from ....core.domain.exchanges.funds import ExchangeTransfer, returnable
from ....core.domain.exchanges.payouts import PartStatus, next_part
from ....core.domain.ledger import BalanceType, Currency
from ....core.usecases.browse.browse import browse
from ....core.usecases.browse.timeline import Moment, amount, read_timeline
from ....core.usecases.common.encrypted import open_exchange_phone
from ....core.usecases.exchanges.creation import create_rub_usdt
from ....core.usecases.exchanges.exchanges import cancel_any_exchange
from ....core.usecases.exchanges.returns import exchange_money, return_money
from ....ports.bundle import Ports
from ..columns import Column, when
from .ending import ending
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Entry, Filter, Kind, Told, Wish
from .stakes import left_in, whose
from .wishes import DATES, ORDER, by_status, wanted

_ARROWS = {Direction.USDT_TO_RUB: "USDT→RUB", Direction.RUB_TO_USDT: "RUB→USDT"}


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange with all its received transfers."""

    id: str
    version: int
    account_id: str
    exchange: Exchange
    transfers: tuple[ExchangeTransfer, ...]

    @property
    def waiting(self) -> int:
        """Amount that can be sent back now, in the smallest unit of its currency."""
        return sum(map(returnable, self.transfers)) if self.exchange.is_final else 0

    @property
    def currency(self) -> Currency:
        return Currency.USDT if self.exchange.takes_usdt else Currency.RUB


async def _read(ports: Ports, wish: Wish, after: Exchange | None, limit: int) -> list[Exchange]:
    asked, direction = wanted(wish), wish.of("direction")
    named = by_status(asked, ExchangeStatus)
    if direction is not None:
        named["direction"] = Direction(direction)
    return await browse(ports, Exchange, asked, after, limit, statuses=ExchangeStatus, **named)


async def _get(ports: Ports, exchange_id: str) -> _Shown | None:
    found = await ports.storage.get(Exchange, exchange_id) if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
    if found is None:
        return None
    exchange, transfers = await exchange_money(ports, exchange_id)
    return _Shown(
        id=exchange.id,
        version=exchange.version,
        account_id=exchange.account_id,
        exchange=exchange,
        transfers=tuple(transfers),
    )


def _facts(shown: _Shown) -> list[tuple[str, Any]]:
    each = shown.exchange
    suspended = sum(row.suspended for row in shown.transfers if row.resolved_at is None)
    came = f"{each.amount_usdt_received} USDT" if each.takes_usdt else f"{each.amount_rub_received} RUB"
    return [
        ("status", each.status),
        ("direction", _ARROWS[each.direction]),
        ("USDT", each.amount_usdt),
        ("RUB", each.amount_rub),
        ("came in time", came),
        ("suspended", amount(suspended, shown.currency) if suspended else None),
        ("rate", f"{each.rate} (market {each.base_rate}, markup {each.markup_percent} %)"),
        ("failure", each.failure),
        ("deposit to", each.crypto_deposit_address),
        ("invoice", each.invoice_payload),
        ("pays out to", each.client_wallet or each.client_bank_id),
        ("transaction", each.tx_hash),
        ("hold until", each.hold_until),
        ("client", each.client_id),
        ("external id", each.external_id),
        ("mode", each.mode),
        ("account", each.account_id),
        ("bank", each.bank),
        ("wallet", each.sender),
        ("created", each.created_at),
        ("expires", each.expires_at),
        ("ended", each.completed_at),
    ]


def _private(ports: Ports, shown: _Shown) -> dict[str, str]:
    return {"client's phone": open_exchange_phone(ports.vault, shown.exchange)}


async def _timeline(ports: Ports, shown: _Shown) -> list[Moment]:
    """Return the timeline of the exchange, each received transfer with its ledger entries, and the payout parts."""
    found = await read_timeline(ports, shown.exchange)
    for row in shown.transfers:
        text = f"{amount(row.amount, row.currency)} came"
        kept = f", {amount(row.suspended, row.currency)} suspended: {row.reason}" if row.suspended else ""
        came = Moment(
            at=row.received_at, source="transfer", text=f"{text}{kept}", detail=row.id, of="suspense", object_id=row.id
        )
        # The transfer's own events are its ledger entries.
        told = [each for each in await read_timeline(ports, row) if each.source != "object"]
        found += [came, *told]
    found += [
        Moment(
            at=shown.exchange.completed_at or shown.exchange.created_at,
            source="payout",
            text=f"{part.amount} RUB: {part.status}",
            detail=part.failure or part.operation,
        )
        for part in shown.exchange.parts
    ]
    return sorted(found, key=lambda each: each.at)


async def _cancel(doing: Doing) -> str:
    done = await cancel_any_exchange(doing.ports, doing.record.id)
    return f"The exchange is {done.status}; its client may begin another."


async def _return(doing: Doing) -> str:
    rows = await return_money(doing.ports, doing.record.id, doing.given["address"].strip() or None)
    total = sum(row.sent_back.amount for row in rows if row.sent_back is not None)
    return f"{amount(total, doing.record.currency)} go back; the service sends them."


async def _returning(ports: Ports, shown: _Shown, _given: Mapping[str, str]) -> Told:
    balance_type = BalanceType.SUSPENSE_USDT if shown.exchange.takes_usdt else BalanceType.SUSPENSE
    mode = shown.exchange.mode
    return [
        ("goes back", amount(shown.waiting, shown.currency)),
        *await whose(ports, shown.account_id, mode),
        *await left_in(ports, shown.account_id, mode, balance_type, -shown.waiting),
    ]


def _operation(shown: _Shown) -> str | None:
    """Return the payout part that a bank may be processing now."""
    part = next_part(shown.exchange.parts)
    is_sent = (
        shown.exchange.status is ExchangeStatus.RUB_SENDING and part is not None and part.status is PartStatus.SENT
    )
    return part.operation if part is not None and is_sent else None


async def _ending(ports: Ports, shown: _Shown, _given: Mapping[str, str]) -> Told:
    part = next_part(shown.exchange.parts)
    much = [] if part is None else [("part", f"{part.amount} of {shown.exchange.amount_rub} RUB")]
    return [*much, *await whose(ports, shown.account_id, shown.exchange.mode)]


async def _create(doing: Doing) -> str:
    given = doing.given
    made = await create_rub_usdt(
        doing.ports,
        given["account"],
        Mode(given["mode"]),
        amount_rub=given["amount"].strip(),
        client_phone=given["phone"].strip(),
        address=given["address"].strip(),
    )
    told = f"{made.id} is {made.status}: {made.amount_rub} RUB for {made.amount_usdt} USDT at {made.rate}."
    return told if made.invoice_payload is None else f"{told}\nThe client pays {made.invoice_payload}"


EXCHANGES = Kind(
    name="exchange",
    title="Exchanges",
    key="6",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="direction", cell=lambda each: _ARROWS[each.direction], width=9),
        Column(title="status", cell=lambda each: each.status, width=13),
        Column(title="USDT", cell=lambda each: each.amount_usdt, width=13, right=True),
        Column(title="RUB", cell=lambda each: each.amount_rub, width=12, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="merchant", cell=lambda each: each.account_id, width=20, wide=True, names=True),
        Column(title="rate", cell=lambda each: each.rate, width=8, right=True, wide=True),
        Column(title="exchange", cell=lambda each: each.id, width=41, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(
        MODE,
        Filter(name="status", choices=tuple(ExchangeStatus)),
        Filter(name="direction", choices=tuple(Direction)),
        ACCOUNT,
        *DATES,
        ORDER,
    ),
    private=_private,
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="exchange.cancel",
            title="Call off",
            key="c",
            ends=True,
            allowed=lambda each: each.exchange.status in CANCELLABLE,
            changes=lambda each: [
                Change("status", each.exchange.status, ExchangeStatus.CANCELLED),
                Change("what comes later", "counts", "is suspended"),
            ],
            run=_cancel,
        ),
        ConsoleAction(
            name="exchange.return",
            title="Return suspended money",
            key="t",
            allowed=lambda each: each.waiting > 0,
            entries=(
                Entry(name="address", label="TRON address", needed=True, wanted=lambda each: each.exchange.takes_usdt),
            ),
            changes=lambda each: [
                Change("suspended", amount(each.waiting, each.currency), "on its way back"),
                Change("goes to", "-", "the address below" if each.exchange.takes_usdt else "who paid it"),
            ],
            run=_return,
            tells=_returning,
        ),
        ending(_operation, _ending),
    ),
    list_actions=(
        ConsoleAction(
            name="exchange.create-rub-usdt",
            title="New RUB→USDT exchange",
            key="n",
            entries=(
                Entry(name="account", label="Account", accounts=True, needed=True),
                Entry(name="mode", label="Mode", choices=("live", "test"), default="live"),
                Entry(name="amount", label="Amount, RUB", needed=True),
                Entry(name="phone", label="Client's phone", needed=True),
                Entry(name="address", label="TRON address", needed=True),
            ),
            changes=lambda _: [
                Change("exchange", "-", "awaits RUB by SBP for 15 minutes"),
                Change("rate", "-", "of this moment"),
            ],
            run=_create,
        ),
    ),
)
