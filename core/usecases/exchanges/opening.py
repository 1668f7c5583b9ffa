"""From a written exchange to the address or invoice to which its client sends money (docs/exchanges.md "Rules").

The exchange is committed before a provider is called, and the operation id is derived from its own id. After a crash,
any process that continues gets the same address or invoice.
"""

from ....ports.bank import InvoiceRequest
from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Refused, Unavailable
from ....ports.storage import Unit
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger, invoice_operation
from ..common.encrypted import with_deposit
from ..common.units import retrying, unit_of_work
from ..gateways.watch import watched
from .steps import WATCH_EXCHANGE, fail, move

_S = ExchangeStatus
_RETRY_AFTER = 30

PURPOSE = "Exchange"
"""Purpose that the client's bank shows for the invoice."""
NO_WAY_TO_PAY_IN = "no place for the client's money was obtained in time"


async def open_new(ports: Ports, exchange: Exchange) -> Exchange | None:
    """Return the exchange with its deposit address; None when another request with its key took it back.

    When the watcher is unavailable, the exchange is removed and its key is free, because no caller has seen it yet.

    Raises: Refusal PROVIDER_UNAVAILABLE, PROVIDER_NOT_CONFIGURED.
    """
    try:
        return await open_address(ports, exchange)
    except Unavailable as fault:
        wait = _RETRY_AFTER if fault.retry_after is None else max(1, round(fault.retry_after))
        refusal = Refusal("PROVIDER_UNAVAILABLE", "No deposit address at the moment; try again", retry_after=wait)
    except NotConfigured:
        refusal = Refusal("PROVIDER_NOT_CONFIGURED", "No deposit addresses are given out at present")
    present = await _take_back(ports, exchange.id)
    if present is not None:
        return present
    raise refusal


async def open_address(ports: Ports, exchange: Exchange) -> Exchange | None:
    """Obtain the deposit address of a pending exchange; repeated calls return the same one. Return the exchange as
    saved; None when it is gone. Raises: Unavailable, NotConfigured.
    """
    watcher = ports.deposits.named(exchange.watcher or "")
    address = await watcher.address(exchange.id)

    async def work(unit: Unit) -> Exchange | None:
        present = await unit[Exchange].get(exchange.id)
        if present is None or present.status is not _S.PENDING:
            return present
        opened = with_deposit(ports.vault, present, crypto_deposit_address=address)
        return await move(ports, unit, opened, ExchangeTrigger.ADDRESS_GIVEN)

    return await retrying(ports.storage, work)


async def open_invoice(ports: Ports, exchange: Exchange) -> Exchange | None:
    """Obtain the invoice of a pending exchange of RUB; repeated calls return the same one. A bank's final refusal ends
    the exchange. Raises: Unavailable, OutcomeUnknown, NotConfigured, which leave the exchange unchanged.
    """
    bank = ports.banks.named(exchange.bank or "")
    request = InvoiceRequest(
        operation=invoice_operation(exchange.id),
        amount_kopecks=exchange.amount_rub.kopecks,
        purpose=PURPOSE,
        expires_at=exchange.expires_at,
        account=exchange.account_id,
    )
    invoice, failure = None, "unknown"
    try:
        async with watched(ports, exchange.mode, bank.name):
            invoice = await bank.create_invoice(request)
    except Refused as fault:
        failure = fault.reason

    async def work(unit: Unit) -> Exchange | None:
        present = await unit[Exchange].get(exchange.id)
        if present is None or present.status is not _S.PENDING:
            return present
        if invoice is None:
            return await fail(ports, unit, present, failure)
        opened = with_deposit(
            ports.vault,
            present,
            invoice_reference=invoice.reference,
            invoice_payload=invoice.payload or invoice.link,
            expires_at=min(present.expires_at, invoice.expires_at or present.expires_at),
        )
        return await move(ports, unit, opened, ExchangeTrigger.INVOICE_MADE)

    return await retrying(ports.storage, work)


@unit_of_work()
async def _take_back(_: Ports, unit: Unit, exchange_id: str) -> Exchange | None:
    """Remove the exchange and its key, unless another request obtained the address after all; then return the
    exchange.
    """
    present = await unit[Exchange].get(exchange_id)
    if present is None or present.status is not _S.PENDING:
        return present
    key = None if present.key_id is None else await unit[IdempotencyKey].get(present.key_id)
    unit[Exchange].remove(present)
    if key is not None:
        unit[IdempotencyKey].remove(key)
    await WATCH_EXCHANGE.drop(unit, exchange_id)
    return None


@unit_of_work()
async def give_up(ports: Ports, unit: Unit, exchange_id: str) -> Exchange | None:
    """Fail a pending exchange whose time is over. Its client never got an address or invoice."""
    present = await unit[Exchange].get(exchange_id)
    if present is None or present.status is not _S.PENDING or ports.clock.now() < present.expires_at:
        return present
    return await fail(ports, unit, present, NO_WAY_TO_PAY_IN)
