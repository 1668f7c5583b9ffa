"""Payouts to merchants: their list, detail and acts."""

from typing import Any

from ...core.domain import ids
from ...core.domain.withdrawals import Withdrawal, WithdrawalStatus
from ...core.usecases.browse import browse
from ...core.usecases.withdrawals import cancel_withdrawal
from ...ports.bundle import Ports
from .kind_payments import wanted
from .kinds import ACCOUNT, MODE, Change, Column, ConsoleAct, Doing, Filter, Kind, Wish


async def _read(ports: Ports, wish: Wish, after: Withdrawal | None, limit: int) -> list[Withdrawal]:
    asked = wanted(wish)
    named = {} if asked.status is None else {"status": WithdrawalStatus(asked.status)}
    return await browse(ports, Withdrawal, asked, after, limit, **named)


async def _get(ports: Ports, withdrawal_id: str) -> Withdrawal | None:
    async with ports.storage.unit() as unit:
        return await unit[Withdrawal].get(withdrawal_id) if ids.is_prefixed(ids.WITHDRAWAL, withdrawal_id) else None


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


WITHDRAWALS = Kind(
    name="withdrawal",
    title="Payouts",
    key="3",
    columns=(
        Column(title="created", cell=lambda each: each.created_at, width=19),
        Column(title="status", cell=lambda each: each.status, width=10),
        Column(title="amount USDT", cell=lambda each: each.amount, width=18, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="network", cell=lambda each: each.network, width=7),
        Column(title="payout", cell=lambda each: each.id, width=40, wide=True),
        Column(title="wallet", cell=lambda each: each.wallet, width=36, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(WithdrawalStatus)), ACCOUNT),
    acts=(
        ConsoleAct(
            name="payout.cancel",
            title="Call off",
            key="x",
            allowed=lambda each: each.status is WithdrawalStatus.PENDING,
            changes=lambda each: [
                Change("status", each.status, WithdrawalStatus.CANCELLED),
                Change("available", "-", f"+{each.amount} USDT"),
            ],
            run=_cancel,
        ),
    ),
)
