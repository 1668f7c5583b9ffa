"""Operator's returns of money that came for an exchange and could not be used (docs/exchanges.md "Rules"). The decision
is stored together with the job that carries it out: return_progress.py.
"""

from typing import Any

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.storage import OneOf, Unit
from ...domain import ids
from ...domain.errors import Refusal, shape_error
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer, returnable, with_return
from ...domain.tron import is_tron_address
from ...domain.wallets import NOBODYS, is_nobodys
from ..accounts.accounts import find_account
from ..actions.four_eyes import gated
from ..common.account_time import in_test_time
from ..common.encrypted import tag_return
from ..common.own_addresses import refuse_own_address
from ..common.units import retrying
from .return_steps import RETURN_EXCHANGE, RETURN_RACES
from .steps import transfers_of


async def list_suspended(ports: Ports, account_id: str | None = None, *, limit: int = 1000) -> list[ExchangeTransfer]:
    """Return money of exchanges that waits for an operator, oldest first, of one account or of all. Raises: Refusal
    ACCOUNT_NOT_FOUND.
    """
    criteria: dict[str, Any] = {} if account_id is None else {"account_id": account_id}
    async with ports.storage.unit() as unit:
        if account_id is not None:
            await find_account(unit, account_id)
        return await unit[ExchangeTransfer].find(
            order="received_at", limit=limit, resolved_at=None, reason=OneOf(SUSPENDED_FOR), **criteria
        )


async def exchange_money(ports: Ports, exchange_id: str) -> tuple[Exchange, list[ExchangeTransfer]]:
    """Return an exchange and all transfers that came for it, for operators. Raises: Refusal EXCHANGE_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        exchange = await _exchange(unit, exchange_id)
        return exchange, await transfers_of(unit, exchange.id)


@in_test_time(Exchange, ExchangeTransfer)
async def return_money(ports: Ports, object_id: str, address: str | None = None) -> list[ExchangeTransfer]:
    """Decide to return the suspended money of an exchange, or one of its transfers, as an operator; the worker sends
    it. `address` receives USDT; RUB go back to the account that paid them.

    Raises: Refusal EXCHANGE_NOT_FOUND; VALIDATION_ERROR for the address; INVALID_STATE while the exchange is under way,
    when nothing waits, or when its bank returns no money; PROVIDER_NOT_CONFIGURED without a wallet; Waits when two
    operators are needed.
    """
    if address is not None:
        await refuse_own_address(ports, address, "address")
    ports = gated(ports, "return_money", object_id, address=address)
    exchange_id, _, source = object_id.partition(":")

    async def work(unit: Unit) -> list[ExchangeTransfer]:
        exchange = await _exchange(unit, exchange_id)
        if not exchange.is_final:
            raise Refusal(
                "INVALID_STATE", f"The exchange is {exchange.status}: its unapplied money is known only at its end"
            )
        found = await transfers_of(unit, exchange.id)
        waiting = [each for each in found if returnable(each) and (not source or each.id == object_id)]
        if not waiting:
            raise Refusal("INVALID_STATE", "This exchange has no money to send back")
        sender = _checked(ports, exchange, address)
        return [await _planned(ports, unit, each, address, sender) for each in waiting]

    return await retrying(ports.storage, work, again_on=RETURN_RACES)


async def _exchange(unit: Unit, exchange_id: str) -> Exchange:
    found = await unit[Exchange].get(exchange_id) if ids.is_prefixed(ids.EXCHANGE, exchange_id) else None
    if found is None:
        raise Refusal("EXCHANGE_NOT_FOUND", "No exchange of this id")
    return found


def _checked(ports: Ports, exchange: Exchange, address: str | None) -> str | None:
    """Return the name of the wallet that sends USDT back; None for RUB. Raises: Refusal."""
    if not exchange.takes_usdt:
        if address is not None:
            raise shape_error("address", "is for USDT: RUB go back to who paid them")
        bank = ports.banks.capabilities_of(exchange.bank)
        if bank is None or exchange.invoice_reference is None or not bank.refunds:
            raise Refusal("INVALID_STATE", "The bank of this money sends none back")
        return None
    if address is None or not is_tron_address(address) or address == exchange.crypto_deposit_address:
        raise shape_error("address", "must be a TRON address of the client, which the client must name")
    if is_nobodys(address):
        raise shape_error("address", NOBODYS)
    try:
        return ports.senders.on(exchange.mode, exchange.network).name
    except NotConfigured:
        raise Refusal("PROVIDER_NOT_CONFIGURED", "No wallet sends USDT on TRON at present") from None


async def _planned(
    ports: Ports, unit: Unit, transfer: ExchangeTransfer, address: str | None, sender: str | None
) -> ExchangeTransfer:
    now = ports.clock.now()
    await RETURN_EXCHANGE.plan(unit, transfer.id, now, now, anew=True)
    planned = with_return(transfer, now, address=address, sender=sender)
    return unit[ExchangeTransfer].save(tag_return(ports.vault, planned))
