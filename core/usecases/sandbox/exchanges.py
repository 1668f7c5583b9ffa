"""Simulation of an exchange's client, chain and bank in test mode (docs/sandbox.md "The calls")."""

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from ....ports.bank import InvoiceStatus
from ....ports.bank_simulator import BankSimulator, Simulation
from ....ports.bundle import Ports
from ....ports.deposits import DepositSimulator
from ....ports.faults import NotConfigured, Refused
from ....ports.payouts import SenderSimulator, TransferState
from ....ports.remittances import RemittanceSimulator, RemittanceStatus
from ....ports.storage import Unit
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.exchanges.exchanges import AWAITING, Exchange, ExchangeStatus, invoice_operation
from ...domain.exchanges.money import depositable
from ...domain.exchanges.payouts import PartStatus, next_part
from ...domain.money import Rub, Usdt
from ...domain.tron import tron_address
from ..common.units import retrying
from ..exchanges.exchanges import cancel_any_exchange, get_exchange
from ..exchanges.progress import poll_funds, progress
from ..exchanges.return_progress import carry
from ..exchanges.returns import return_money
from ..exchanges.sending import SENT
from ..exchanges.steps import RACES, WATCH_EXCHANGE, fail, read_exchange
from ..signed_transfers.engine import refuse

_S = ExchangeStatus
Money = TypeVar("Money", Rub, Usdt)

OUTCOMES = ("usdt_received", "rub_received", "rub_taken_back", "completed", "failed", "cancelled", "returned")
"""Outcomes of docs/sandbox.md "The calls": actions of the client, the chain and the banks, and the operator's
cancellation and return of suspended money.
"""
FAILED_BY_SANDBOX = "failed in the sandbox"

_ROUNDS = 100
"""More than the steps and parts of any exchange."""


class ExchangeSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/exchanges/{id}/simulate."""

    outcome: Annotated[str, shared.OUTCOME]
    amount_usdt: Annotated[
        shared.UsdtText | None, Meta(description="With `usdt_received`: the amount; the missing amount if absent")
    ] = None
    amount_rub: Annotated[
        shared.RubText | None, Meta(description="With `rub_received`: the amount; the missing amount if absent")
    ] = None
    address: Annotated[str | None, Meta(description="With `returned`: address to which the USDT are returned")] = None
    """With `returned`: the address that receives USDT; a made-up one if absent."""


async def simulate_exchange(
    ports: Ports, caller: Caller, exchange_id: str, read_wish: Callable[[], ExchangeSimulation]
) -> Exchange:
    """Bring the exchange to `outcome`, and return it as saved. An exchange that has the outcome already stays
    unchanged.

    Raises: Refusal EXCHANGE_NOT_FOUND, VALIDATION_ERROR, INVALID_AMOUNT; INVALID_STATE if the outcome cannot be
    reached; PROVIDER_UNAVAILABLE while the bank does not know the exchange.
    """
    exchange = await get_exchange(ports, caller, exchange_id)
    wish = read_wish()
    usdt, rub = _amounts(wish)
    if exchange.is_final and exchange.status.value == wish.outcome:
        return exchange
    if wish.outcome == "usdt_received":
        return await _deposit(ports, exchange, usdt)
    if wish.outcome in ("rub_received", "rub_taken_back"):
        return await _paid(ports, exchange, rub, taken_back=wish.outcome == "rub_taken_back")
    if wish.outcome == "cancelled":
        return await cancel_any_exchange(ports, exchange.id)
    if wish.outcome == "returned":
        return await _returned(ports, exchange, wish.address)
    if wish.outcome == "completed":
        return await _complete(ports, exchange)
    return await _fail(ports, exchange)


def _amounts(wish: ExchangeSimulation) -> tuple[Usdt | None, Rub | None]:
    if wish.outcome not in OUTCOMES:
        raise shape_error("outcome", f"must be one of: {', '.join(OUTCOMES)}")
    usdt = _amount("amount_usdt", wish.amount_usdt, Usdt)
    return usdt, _amount("amount_rub", wish.amount_rub, Rub)


def _amount(name: str, text: str | None, kind: type[Money]) -> Money | None:
    if text is None:
        return None
    try:
        amount = kind.parse(text)
    except ValueError as error:
        raise shape_error(name, str(error)) from None
    if amount <= kind(0):
        raise Refusal("INVALID_AMOUNT", f"{name} must be above zero")
    return amount


async def _deposit(ports: Ports, exchange: Exchange, amount: Usdt | None) -> Exchange:
    """Simulate a deposit of USDT by the client, and poll for it. The watch does the rest."""
    watcher = None if exchange.watcher is None else _wired(lambda: ports.deposits.named(exchange.watcher or ""))
    address = exchange.crypto_deposit_address
    if address is None or not isinstance(watcher, DepositSimulator):
        raise _no_way(exchange, _S.USDT_RECEIVED)
    if amount is None and exchange.status not in AWAITING:
        raise _no_way(exchange, _S.USDT_RECEIVED)
    missing = exchange.amount_usdt - exchange.amount_usdt_received
    sent = depositable(missing) if amount is None else amount
    await watcher.simulate_deposit(address, sent.units)
    return await _seen(ports, exchange)


async def _seen(ports: Ports, exchange: Exchange) -> Exchange:
    seen = await poll_funds(ports, exchange)
    await retrying(ports.storage, lambda unit: WATCH_EXCHANGE.hurry(unit, exchange.id, ports.clock.now()))
    return seen


async def _paid(ports: Ports, exchange: Exchange, amount: Rub | None, *, taken_back: bool) -> Exchange:
    """Simulate the client's payment of the invoice, or its revocation by the client's bank, and poll for it."""
    bank = _wired(lambda: ports.banks.named(exchange.bank or ""))
    wanted = (_S.RUB_RECEIVED, _S.PARTIAL) if taken_back else AWAITING
    is_possible = exchange.status in wanted or (amount is not None and not taken_back)
    if exchange.invoice_reference is None or not isinstance(bank, BankSimulator) or not is_possible:
        raise _no_way(exchange, _S.PARTIAL if taken_back else _S.RUB_RECEIVED)
    missing = exchange.amount_rub - exchange.amount_rub_received
    kopecks = None if taken_back else (amount or missing).kopecks
    simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks, again=True, taken_back=taken_back)
    try:
        await bank.simulate(invoice_operation(exchange.id), simulation, reference=exchange.invoice_reference)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no invoice of this exchange", retry_after=10) from None
    return await _seen(ports, exchange)


async def _returned(ports: Ports, exchange: Exchange, address: str | None) -> Exchange:
    """Return the suspended money of a finished exchange as an operator would, and simulate its arrival."""
    if exchange.takes_usdt and address is None:
        address = made_up_wallet(exchange.id)
    for transfer in await return_money(ports, exchange.id, address):
        carried = await carry(ports, transfer)
        back = carried.sent_back
        if back is not None and back.tx_hash is not None:
            await _on_chain(ports, back.sender, back.tx_hash, TransferState.FINAL)
            await carry(ports, carried)
    return exchange


def made_up_wallet(seed: str) -> str:
    """Return an address for a client's wallet that has no owner."""
    return tron_address(sha256(f"client of {seed}".encode()).digest()[:20])


async def _complete(ports: Ports, exchange: Exchange) -> Exchange:
    if not exchange.takes_usdt:
        return await _complete_rub(ports, exchange)
    if exchange.status in AWAITING:
        exchange = await _deposit(ports, exchange, None)
    for _ in range(_ROUNDS):
        if exchange.is_final or exchange.status in AWAITING:
            break
        exchange = await _at_bank(ports, exchange, RemittanceStatus.DONE)
    if exchange.status is not _S.COMPLETED:
        raise _no_way(exchange, _S.COMPLETED)
    return exchange


async def _complete_rub(ports: Ports, exchange: Exchange) -> Exchange:
    """Complete an exchange of RUB to USDT: the client pays, the hold ends at once, and the transfer is final."""
    bank = _wired(lambda: ports.banks.named(exchange.bank or ""))
    if exchange.status in AWAITING and isinstance(bank, BankSimulator):
        exchange = await _paid(ports, exchange, None, taken_back=False)

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        if present.status is not _S.RUB_RECEIVED:
            return present
        return unit[Exchange].save(msgspec.structs.replace(present, hold_until=ports.clock.now()))

    exchange = await retrying(ports.storage, work)
    paying = await progress(ports, exchange)
    exchange = exchange if paying is None else paying.exchange
    if exchange.tx_hash is not None and not exchange.is_final:
        await _on_chain(ports, exchange.sender, exchange.tx_hash, TransferState.FINAL)
        paying = await progress(ports, exchange)
        exchange = exchange if paying is None else paying.exchange
    if exchange.status is not _S.COMPLETED:
        raise _no_way(exchange, _S.COMPLETED)
    return exchange


async def _on_chain(ports: Ports, sender_name: str | None, tx_hash: str, state: TransferState) -> None:
    sender = _wired(lambda: ports.senders.named(sender_name or ""))
    if isinstance(sender, SenderSimulator):
        await sender.simulate(tx_hash, state)


async def _fail(ports: Ports, exchange: Exchange) -> Exchange:
    """Simulate a technical error before the payout, or a refusal by the bank or the wallet."""
    if exchange.status is _S.RUB_SENDING:
        exchange = await _at_bank(ports, exchange, RemittanceStatus.FAILED)
    elif exchange.status is _S.USDT_SENDING:
        exchange = await _refused_by_the_wallet(ports, exchange)
    elif not exchange.is_final:

        async def work(unit: Unit) -> Exchange:
            present = await unit[Exchange].get(exchange.id)
            if present is None or present.is_final or present.status in (_S.RUB_SENDING, _S.USDT_SENDING):
                raise _no_way(present or exchange, _S.FAILED)
            return await fail(ports, unit, present, FAILED_BY_SANDBOX)

        exchange = await retrying(ports.storage, work, again_on=RACES)
    if exchange.status is not _S.FAILED:
        raise _no_way(exchange, _S.FAILED)
    return exchange


async def _refused_by_the_wallet(ports: Ports, exchange: Exchange) -> Exchange:
    """Let the network drop the sent transfer, so that it must be signed again, and let the wallet refuse to sign."""
    if exchange.tx_hash is not None:
        await _on_chain(ports, exchange.sender, exchange.tx_hash, TransferState.FAILED)
        paying = await progress(ports, exchange)
        exchange = exchange if paying is None else paying.exchange
    return await refuse(SENT, ports, exchange, FAILED_BY_SANDBOX)


async def _at_bank(ports: Ports, exchange: Exchange, status: RemittanceStatus) -> Exchange:
    """Advance the exchange, and let the simulated bank give the current part this outcome."""
    paying = await progress(ports, exchange)
    exchange = exchange if paying is None else paying.exchange
    part = None if exchange.is_final else next_part(exchange.parts)
    bank = None if exchange.bank is None else _wired(lambda: ports.banks.named(exchange.bank or ""))
    if part is None or part.status is not PartStatus.SENT or not isinstance(bank, RemittanceSimulator):
        return exchange
    try:
        await bank.simulate_remittance(part.operation, status)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no such payout yet", retry_after=10) from None
    paying = await progress(ports, exchange)
    return exchange if paying is None else paying.exchange


def _wired(find: Callable[[], object]) -> object:
    try:
        return find()
    except NotConfigured:
        return None


def _no_way(exchange: Exchange, outcome: ExchangeStatus) -> Refusal:
    return Refusal("INVALID_STATE", f"The exchange is {exchange.status}; it cannot become {outcome} from there")
