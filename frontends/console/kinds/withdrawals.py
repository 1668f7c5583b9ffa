"""Payouts to merchants: list, detail and actions."""

from collections.abc import Mapping
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.ledger import BalanceType
from ....core.domain.settlement.withdrawals import WITHDRAWAL_MOVES, Withdrawal, WithdrawalStatus
from ....core.usecases.browse.browse import browse
from ....core.usecases.settlement.withdrawals import cancel_withdrawal, hurry_withdrawal, pay_out_now
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Entry, Filter, Kind, Part, Told, Wish, by_id, story
from .stakes import left_in, of_payout, of_record
from .wishes import DATES, by_status, wanted

_POLLS = 8
_PAUSE = 1.0
"""Number of polls of a payout's status, and seconds between them."""


async def _read(ports: Ports, wish: Wish, after: Withdrawal | None, limit: int) -> list[Withdrawal]:
    asked = wanted(wish)
    return await browse(
        ports, Withdrawal, asked, after, limit, statuses=WithdrawalStatus, **by_status(asked, WithdrawalStatus)
    )


_get = by_id(Withdrawal)


def _facts(each: Withdrawal) -> list[tuple[str, Any]]:
    return [
        ("status", each.status),
        ("amount", f"{each.amount} USDT"),
        ("wallet", each.wallet),
        ("network", each.network),
        ("sender", each.sender),
        ("transaction", each.tx_hash),
        ("failure", each.failure),
        ("settlement", each.settlement_id),
        ("mode", each.mode),
        ("account", each.account_id),
        ("created", each.created_at),
        ("signed until", each.signed_until),
        ("sent", each.sent_at),
        ("ended", each.completed_at),
    ]


async def _cancel(doing: Doing) -> str:
    await cancel_withdrawal(doing.ports, doing.record.id, doing.given["reason"])
    return "Called off: the amount is available again."


async def _follow(doing: Doing, withdrawal_id: str, since: WithdrawalStatus) -> str:
    """Report the payout's progress for a few seconds. The service continues it in any case."""
    for _ in range(_POLLS):
        present = await _get(doing.ports, withdrawal_id)
        if present is None:
            break
        if WITHDRAWAL_MOVES.is_final(present.status) or present.status is not since:
            return f"{present.id} is {present.status}{f': {present.failure}' if present.failure else ''}."
        doing.tell(f"{present.id} is {present.status}…")
        await doing.ports.clock.sleep(_PAUSE)
    return f"{withdrawal_id}: the service goes on with it; see its timeline."


async def pay_out_and_follow(doing: Doing, account_id: str, mode: Mode) -> str:
    """Pay out the available balance of an account, and report its progress."""
    made = await pay_out_now(doing.ports, account_id, mode)
    return f"{made.amount} USDT. {await _follow(doing, made.id, made.status)}"


async def _now(doing: Doing) -> str:
    return await pay_out_and_follow(doing, doing.given["account"], Mode(doing.given["mode"]))


async def _again(doing: Doing) -> str:
    return await pay_out_and_follow(doing, doing.record.account_id, doing.record.mode)


async def _retry(doing: Doing) -> str:
    before = await hurry_withdrawal(doing.ports, doing.record.id)
    return await _follow(doing, before.id, before.status)


async def _cancelling(ports: Ports, each: Withdrawal, given: Mapping[str, str]) -> Told:
    left = await left_in(ports, each.account_id, each.mode, BalanceType.AVAILABLE, each.amount.units)
    return [*await of_record(ports, each, given), *left, ("does not go to", each.wallet)]


async def _asked_for(ports: Ports, _none: None, given: Mapping[str, str]) -> Told:
    return await of_payout(ports, given["account"], Mode(given["mode"])) if given.get("account") else []


WITHDRAWALS = Kind(
    name="withdrawal",
    title="Payouts",
    key="3",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=10),
        Column(title="amount USDT", cell=lambda each: each.amount, width=18, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        merchant(14, 16),
        Column(title="payout", cell=lambda each: each.id, width=40, wide=True),
        Column(title="wallet", cell=lambda each: each.wallet, width=36, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(WithdrawalStatus)), ACCOUNT, *DATES),
    timeline=story(lambda each: (each.created_at, "its statement", "settlement", each.settlement_id)),
    parts=(Part(title="Lines", key="l", of="payout line", by="payout"),),
    actions=(
        ConsoleAction(
            name="payout.cancel",
            title="Call off",
            key="c",
            ends=True,
            allowed=lambda each: each.status is WithdrawalStatus.PENDING,
            changes=lambda each: [
                Change("status", each.status, WithdrawalStatus.CANCELLED),
                Change("available", "-", f"+{each.amount} USDT"),
            ],
            run=_cancel,
            tells=_cancelling,
        ),
        ConsoleAction(
            name="payout.retry",
            title="Try now",
            key="t",
            allowed=lambda each: not WITHDRAWAL_MOVES.is_final(each.status),
            changes=lambda each: [
                Change("status", each.status, "as signer and network say"),
                Change("next turn", "later", "now; it is never signed twice"),
            ],
            run=_retry,
            tells=of_record,
            guarded=False,
        ),
        ConsoleAction(
            name="payout.now",
            title="Pay again",
            key="a",
            allowed=lambda each: each.status in (WithdrawalStatus.FAILED, WithdrawalStatus.CANCELLED),
            changes=lambda each: [
                Change("this payout", each.status, f"stays {each.status}"),
                Change("available USDT", "all that the network can move", "0, in a new payout"),
            ],
            run=_again,
            tells=lambda ports, each, _: of_payout(ports, each.account_id, each.mode),
            guarded=False,
        ),
    ),
    list_actions=(
        ConsoleAction(
            name="payout.now",
            title="Pay out now",
            key="n",
            entries=(
                Entry(name="account", label="Account", accounts=True, needed=True),
                Entry(name="mode", label="Mode", choices=tuple(Mode), default=Mode.TEST),
            ),
            changes=lambda _: [Change("available USDT", "all that the network can move", "0, in a new payout")],
            run=_now,
            tells=_asked_for,
            guarded=False,
        ),
    ),
)
