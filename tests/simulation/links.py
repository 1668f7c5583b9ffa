"""Links replace the adapters of a process: they connect it to the outside world, and lose calls and answers.

A link implements the port of a provider. The provider itself is plain code in the world (outside.py), which continues
when the calling process dies.
"""

from asyncio import CancelledError, sleep
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from cambist.ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    Notification,
    RefundRequest,
    RefundState,
    SentRefund,
)
from cambist.ports.chain import Network, Sighting
from cambist.ports.deposits import Deposit
from cambist.ports.faults import Forged, OutcomeUnknown, Unavailable
from cambist.ports.kyc import Check, CheckNotification, CheckRequest
from cambist.ports.kyc import NoAnswer as VerifierSilent
from cambist.ports.mandates import Binding, BindingRequest, ChargeRequest, ChargeState, MandateState
from cambist.ports.notifications import InboundNotification, Received
from cambist.ports.notifier import DeliveryResult, WebhookRequest
from cambist.ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from cambist.ports.rates import RateQuote
from cambist.ports.remittances import RemittanceRequest, RemittanceState
from tests.simulation.deposits import OwnDeposits
from tests.simulation.explorer import OwnExplorer
from tests.simulation.outside import OwnChain, OwnMarket
from tests.simulation.remittances import RemittingBank
from tests.simulation.verifier import OwnVerifier

T = TypeVar("T")


class Way(Protocol):
    """The network between one process and the world."""

    async def ask(self, whom: str, what: str, call: Callable[[], T], *, writes: bool) -> T:
        """Call the world. Raises: the errors of the call; Unavailable or OutcomeUnknown if the network fails."""
        ...

    async def post(self, webhook: WebhookRequest) -> DeliveryResult:
        """Bring a webhook to its receiver."""
        ...


class BankLink:
    """Fills the ports ListingBank, CancellingBank, MandateBank, RemittanceBank and Notifications."""

    def __init__(self, bank: RemittingBank, way: Way) -> None:
        self._bank = bank
        self._way = way

    @property
    def name(self) -> str:
        return self._bank.name

    @property
    def capabilities(self) -> BankCapabilities:
        return self._bank.capabilities

    @property
    def notification_networks(self) -> Sequence[str]:
        return ()

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        ask = self._bank.asked_for(request.operation)
        try:
            return await self._ask("create_invoice", lambda: self._bank.create_invoice(request), writes=True)
        except (OutcomeUnknown, CancelledError):
            self._bank.gave_up(ask)
            raise

    async def find_invoice(self, operation: str) -> Invoice | None:
        return await self._ask("find_invoice", lambda: self._bank.find_invoice(operation))

    async def invoice_state(self, reference: str) -> InvoiceState:
        state = await self._ask("invoice_state", lambda: self._bank.invoice_state(reference))
        if reference in self._bank.late_answers:
            self._bank.late_answers.discard(reference)
            await sleep(1.0)
        return state

    async def cancel_invoice(self, reference: str) -> None:
        await self._ask("cancel_invoice", lambda: self._bank.cancel_invoice(reference), writes=True)

    async def refund(self, request: RefundRequest) -> RefundState:
        return await self._ask("refund", lambda: self._bank.refund(request), writes=True)

    async def find_refund(self, operation: str) -> RefundState | None:
        return await self._ask("find_refund", lambda: self._bank.find_refund(operation))

    async def refunds_since(self, moment: datetime) -> list[SentRefund]:
        return await self._ask("refunds_since", lambda: self._bank.refunds_since(moment))

    async def bind(self, request: BindingRequest) -> Binding:
        return await self._ask("bind", lambda: self._bank.bind(request), writes=True)

    async def find_binding(self, operation: str) -> Binding | None:
        return await self._ask("find_binding", lambda: self._bank.find_binding(operation))

    async def mandate_state(self, reference: str) -> MandateState:
        return await self._ask("mandate_state", lambda: self._bank.mandate_state(reference))

    async def charge(self, request: ChargeRequest) -> ChargeState:
        return await self._ask("charge", lambda: self._bank.charge(request), writes=True)

    async def find_charge(self, operation: str) -> ChargeState | None:
        return await self._ask("find_charge", lambda: self._bank.find_charge(operation))

    async def revoke(self, reference: str) -> None:
        await self._ask("revoke", lambda: self._bank.revoke(reference), writes=True)

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        return await self._ask("remit", lambda: self._bank.remit(request), writes=True)

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        return await self._ask("find_remittance", lambda: self._bank.find_remittance(operation))

    async def receive(self, notification: InboundNotification) -> Received:
        return Received(notifications=(Notification(operation=_named(notification)),), body=b"OK")

    async def _ask(self, what: str, call: Callable[[], T], *, writes: bool = False) -> T:
        return await self._way.ask(self._bank.name, what, call, writes=writes)


def _named(notification: InboundNotification) -> str:
    """The operation that a notification is about. Raises: Forged."""
    try:
        return msgspec.json.decode(notification.body, type=str)
    except msgspec.DecodeError:
        raise Forged("it is no notification") from None


class VerifierLink:
    """Fills the ports KycVerifier and Notifications."""

    notification_networks: Sequence[str] = ()

    def __init__(self, verifier: OwnVerifier, way: Way) -> None:
        self._verifier = verifier
        self._way = way

    @property
    def name(self) -> str:
        return self._verifier.name

    async def register(self, request: CheckRequest) -> Check:
        return await self._way.ask(self.name, "register", lambda: self._verifier.register(request), writes=True)

    async def find_check(self, operation: str) -> Check | None:
        return await self._read("find_check", lambda: self._verifier.find_check(operation))

    async def check_state(self, reference: str) -> Check:
        return await self._read("check_state", lambda: self._verifier.check_state(reference))

    async def receive(self, notification: InboundNotification) -> Received:
        return Received(notifications=(CheckNotification(operation=_named(notification)),), body=b"OK")

    async def _read(self, what: str, call: Callable[[], T]) -> T:
        try:
            return await self._way.ask(self.name, what, call, writes=False)
        except Unavailable as fault:
            raise (VerifierSilent(str(fault)) if fault.args[0].endswith("answer") else fault) from None


class DepositsLink:
    """Fills the port DepositWatcher."""

    def __init__(self, deposits: OwnDeposits, way: Way) -> None:
        self._deposits = deposits
        self._way = way

    @property
    def name(self) -> str:
        return self._deposits.name

    @property
    def network(self) -> Network:
        return self._deposits.network

    async def address(self, operation: str) -> str:
        return await self._way.ask(self.name, "address", lambda: self._deposits.address(operation), writes=False)

    async def deposits(self, address: str) -> Sequence[Deposit]:
        return await self._way.ask(self.name, "deposits", lambda: self._deposits.deposits(address), writes=False)


class ExplorerLink:
    """Fills the port ChainWatcher."""

    def __init__(self, explorer: OwnExplorer, way: Way) -> None:
        self._explorer = explorer
        self._way = way

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        return await self._way.ask(
            self._explorer.name, "lookup", lambda: self._explorer.lookup(network, tx_hash), writes=False
        )


class WalletLink:
    """Implements UsdtSender: a wallet that cannot list its transfers."""

    def __init__(self, chain: OwnChain, way: Way) -> None:
        self._chain = chain
        self._way = way

    @property
    def name(self) -> str:
        return self._chain.name

    @property
    def capabilities(self) -> SenderCapabilities:
        return self._chain.capabilities

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        await sleep(self._chain.pause_to_sign())
        return await self._ask("sign", lambda: self._chain.sign(operation, address, units))

    async def broadcast(self, signed: SignedTransfer) -> None:
        await self._ask("broadcast", lambda: self._chain.broadcast(signed), writes=True)

    async def state(self, signed: SignedTransfer) -> TransferState:
        return await self._ask("state", lambda: self._chain.state(signed))

    async def _ask(self, what: str, call: Callable[[], T], *, writes: bool = False) -> T:
        return await self._way.ask(self._chain.name, what, call, writes=writes)


class FindingWalletLink(WalletLink):
    """Fills the port ListingSender."""

    async def find(self, operation: str) -> SentTransfer | None:
        return await self._ask("find", lambda: self._chain.find(operation))

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        return await self._ask("sent_since", lambda: self._chain.sent_since(moment))


class MarketLink:
    """Fills the port RateSource."""

    def __init__(self, market: OwnMarket, way: Way) -> None:
        self._market = market
        self._way = way

    @property
    def name(self) -> str:
        return self._market.name

    async def quote(self) -> RateQuote:
        return await self._way.ask(self.name, "quote", self._market.quote, writes=False)


class PostLink:
    """Fills the port Notifier."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        return await self._way.post(webhook)

    async def close(self) -> None:
        """Do nothing: there are no connections."""
