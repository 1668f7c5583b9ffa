"""Refunds: list, detail and actions."""

from typing import Any

from ....core.domain.operators.guarded import Guarded
from ....core.domain.refunds.refunds import PendingReason, Refund, RefundStatus, gives_up_at, waits_for_money
from ....core.usecases.browse.browse import browse
from ....core.usecases.refunds.contradictions import contradiction, is_contradicted, settle_contradiction
from ....core.usecases.refunds.refunds import approve_refund, reject_refund, reverse_refund
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .ending import ending
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Filter, Kind, Wish, by_id, story
from .stakes import of_record, of_refund
from .wishes import DATES, ORDER, by_status, wanted


async def _read(ports: Ports, wish: Wish, after: Refund | None, limit: int) -> list[Refund]:
    asked = wanted(wish)
    named = by_status(asked, RefundStatus)
    return await browse(ports, Refund, asked, after, limit, statuses=RefundStatus, **named)


_get = by_id(Refund)


def _facts(refund: Refund) -> list[tuple[str, Any]]:
    return [
        ("status", refund.status),
        ("waits for", refund.pending_reason),
        ("waits until", gives_up_at(refund) if waits_for_money(refund) else None),
        ("amount", f"{refund.amount} RUB"),
        ("payment", refund.payment_id),
        ("external id", refund.external_id),
        ("merchant's reason", refund.reason),
        ("failure", refund.failure_reason),
        ("took RUB", refund.taken_rub),
        ("took USDT", refund.taken_usdt),
        ("mode", refund.mode),
        ("account", refund.account_id),
        ("shop", refund.shop_id),
        ("created", refund.created_at),
        ("approved", refund.approved_at),
        ("at the bank", refund.executing_since),
        ("completed", refund.completed_at),
        ("bank says otherwise", refund.contradicted_at),
        ("settled by hand", refund.contradiction_seen or None),
    ]


def _waits_for(refund: Refund) -> str | None:
    return None if refund.pending_reason is None else _WAITS.get(refund.pending_reason, refund.pending_reason)


_WAITS = {PendingReason.AWAITING_APPROVAL: "approval", PendingReason.INSUFFICIENT_BALANCE: "balance"}


def _is(status: RefundStatus) -> Any:
    return lambda refund: refund.status is status


async def _approve(doing: Doing) -> str:
    await approve_refund(doing.ports, doing.record.id)
    return "Approved: the service sends it to the bank."


async def _reject(doing: Doing) -> str:
    await reject_refund(doing.ports, doing.record.id, doing.given["reason"])
    return "Rejected: no money moves, the merchant is told."


async def _reverse(doing: Doing) -> str:
    await reverse_refund(doing.ports, doing.record.id)
    return "Reversed: the money is the merchant's again."


def _settles(refund: Refund) -> list[Change]:
    have = "neither payer nor merchant has it" if refund.completed_at is not None else "payer and merchant have it"
    return [
        Change("needs an operator", f"yes: it {contradiction(refund)}", "no"),
        Change("money", have, "nothing moves: settle it with bank or merchant first"),
    ]


async def _settled(doing: Doing) -> str:
    await settle_contradiction(doing.ports, doing.record.id)
    return "Noted: it needs nobody any more."


REFUNDS = Kind(
    name="refund",
    title="Refunds",
    key="2",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=10),
        Column(title="amount RUB", cell=lambda each: each.amount, width=12, right=True),
        Column(title="waits for", cell=_waits_for, width=9),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        merchant(14, 16),
        Column(title="refund", cell=lambda each: each.id, width=40, wide=True),
        Column(title="external id", cell=lambda each: each.external_id, width=16, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(RefundStatus)), ACCOUNT, *DATES, ORDER),
    timeline=story(lambda each: (each.created_at, "its payment", "payment", each.payment_id)),
    actions=(
        ConsoleAction(
            name="refund.approve",
            title="Approve",
            key="a",
            allowed=_is(RefundStatus.PENDING),
            changes=lambda each: [
                Change("status", each.status, "processing, once the bank is asked"),
                Change("waits for", str(each.pending_reason or "-"), "-"),
            ],
            run=_approve,
            tells=of_refund,
            by_two=lambda each, _: None if each.approved_at else Guarded.REFUNDS,
            reason_needed=False,
        ),
        ConsoleAction(
            name="refund.reject",
            title="Reject",
            key="j",
            ends=True,
            allowed=_is(RefundStatus.PENDING),
            changes=lambda each: [
                Change("status", each.status, "rejected"),
                Change("told the merchant", "-", "your reason"),
            ],
            run=_reject,
            tells=of_record,
        ),
        ConsoleAction(
            name="refund.reverse",
            title="Reverse",
            key="v",
            ends=True,
            allowed=_is(RefundStatus.COMPLETED),
            changes=lambda each: [
                Change("status", each.status, "reversed"),
                Change("balance", "-", f"+{each.taken_usdt or each.taken_rub or each.amount}"),
            ],
            run=_reverse,
            tells=of_record,
        ),
        ConsoleAction(
            name="refund.settled",
            title="Settled with the bank",
            key="s",
            allowed=is_contradicted,
            changes=_settles,
            run=_settled,
            tells=of_record,
        ),
        ending(lambda each: each.id if each.status is RefundStatus.PROCESSING else None, of_record),
    ),
)
