"""A merchant's balance, from the ledger's running balances (docs/settlement.md "The balance")."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.ledger import BalanceType
from ...domain.money import Rub, Usdt
from .ledger import balance_types


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """Balance of a merchant (docs/settlement.md "The balance"). At any moment, all USDT that the merchant ever received
    are available, reserved, withdrawn, or taken by refunds after settlement."""

    available: Usdt
    reserved: Usdt
    pending: Rub
    settled: Usdt
    withdrawn: Usdt
    at: datetime


async def read_balance(ports: Ports, caller: Caller) -> Balance:
    """Return the balance of the caller's account and mode. One query reads all its parts, so they agree."""
    async with ports.storage.unit() as unit:
        found = await balance_types(unit, caller.account_id, caller.mode)
    available, reserved, withdrawn, refunded = (
        Usdt(found.get(balance_type, 0))
        for balance_type in (
            BalanceType.AVAILABLE,
            BalanceType.RESERVED,
            BalanceType.PAID_OUT,
            BalanceType.REFUNDED_USDT,
        )
    )
    return Balance(
        available=available,
        reserved=reserved,
        pending=Rub(found.get(BalanceType.PENDING, 0)),
        settled=available + reserved + withdrawn + refunded,
        withdrawn=withdrawn,
        at=ports.clock.now(),
    )
