"""Facts that dialogs show before money moves: amount, merchant, and remaining balance."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.ledger import BalanceType, Currency
from ....core.domain.money import Usdt
from ....core.domain.refunds.refunds import Refund
from ....core.usecases.browse.browse import account_names
from ....core.usecases.browse.timeline import amount
from ....core.usecases.operators.dashboard import about_usdt
from ....core.usecases.operators.foresight import (
    Held,
    foresee_balance_type,
    foresee_payout,
    foresee_refund,
    foresee_settlement,
)
from ....ports.bundle import Ports
from ..texts import many
from .kinds import Told

_HELD: Mapping[BalanceType, str] = {
    BalanceType.PENDING: "waits for settlement",
    BalanceType.AVAILABLE: "available",
    BalanceType.SUSPENSE: "merchant's suspense",
    BalanceType.SUSPENSE_USDT: "merchant's suspense",
}


async def whose(ports: Ports, account_id: str | None, mode: Mode | None) -> Told:
    """Return the merchant's name."""
    name = (await account_names(ports, [account_id])).get(account_id, account_id) if account_id else "all"
    return [("merchant", f"{name} · {mode or 'both modes'}")]


async def of_record(ports: Ports, record: Any, _given: Mapping[str, str]) -> Told:
    """Return the merchant of a record, and its amount if it has one."""
    much = getattr(record, "amount", None)
    coin = Currency.USDT if isinstance(much, Usdt) else Currency.RUB
    told: Told = [] if much is None else [("amount", f"{much} {coin}")]
    return [*told, *await whose(ports, record.account_id, record.mode)]


async def left_in(ports: Ports, account_id: str, mode: Mode, balance_type: BalanceType, adds: int) -> Told:
    """Return the balance of a ledger account before and after this amount is added."""
    return _left(await foresee_balance_type(ports, account_id, mode, balance_type, adds))


def _left(held: Held) -> Told:
    before = amount(held.holds, held.currency)
    if not held.is_covered:
        return [(_HELD[held.balance_type], f"{before} of {amount(-held.adds, held.currency)}: it waits for money")]
    if not held.adds:
        return [(_HELD[held.balance_type], f"{before}, as before")]
    return [(_HELD[held.balance_type], f"{before} → {amount(held.holds + held.adds, held.currency)}")]


async def of_refund(ports: Ports, refund: Refund, given: Mapping[str, str]) -> Told:
    """Return the facts of a refund to be sent: its payment, and its effect on the merchant's balance."""
    payment, held = await foresee_refund(ports, refund)
    told = await of_record(ports, refund, given)
    if payment is None or held is None:
        return told
    came = payment.actual_amount or payment.amount
    left = came - payment.refund_taken - refund.amount
    told.append(("of the payment", f"{came} RUB, order {payment.external_id or '-'}; {left} RUB stay"))
    return [*told, *_left(held)]


async def of_payout(ports: Ports, account_id: str, mode: Mode) -> Told:
    """Return what a payout requested now would send."""
    due = await foresee_payout(ports, account_id, mode)
    kept = f" ({due.kept} kept for refunds)" if due.kept.units > 0 else ""
    return [
        ("amount", f"{due.amount} USDT" if due.amount.units else "nothing that the network can move"),
        *await whose(ports, account_id, mode),
        ("available", f"{due.available} USDT → {due.available - due.amount} USDT{kept}"),
        ("goes to", due.wallet or "no wallet: set payout_wallet first"),
    ]


async def of_settlement(ports: Ports, modes: tuple[Mode, ...], *, whole: bool) -> Told:
    """Return what a settlement requested now would include in each mode: all paid payments (`whole`), or those already
    due."""
    told: Told = []
    for mode in modes:
        due = await foresee_settlement(ports, mode, ports.clock.now() + timedelta(microseconds=1) if whole else None)
        told.append(
            (f"{mode}", f"{many(due.payments, 'payment')} of {many(due.merchants, 'merchant')}, {due.amount} RUB")
        )
        about = "no rate is known yet; the settlement asks for its own"
        if due.rate is not None:
            about = f"last {due.rate}: about {about_usdt(due.amount, due.rate)} USDT before fees"
        told.append((f"{mode} rate", about))
    return told
