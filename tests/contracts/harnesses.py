"""Harnesses of our own adapters for the suites that are shipped (frontends/conformance): simulators play everything."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from cambist.adapters.bank.simulator.remittances import RemittancePage
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.chain.simulator import SimulatedChain
from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.deposits.simulator import FINALITY as DEPOSIT_FINALITY
from cambist.adapters.deposits.simulator import SimulatedDeposits
from cambist.adapters.files.local import LocalFiles
from cambist.adapters.files.s3 import S3Files
from cambist.adapters.files.sigv4 import Credentials
from cambist.adapters.ids import SeededIds
from cambist.adapters.kyc.simulator import CheckFile, SimulatedVerifier
from cambist.adapters.notifier.http import HttpNotifier
from cambist.adapters.payouts.simulator import FINALITY, SimulatedSender
from cambist.adapters.script import ChainScript, DepositScript, Ending, Twist, VerifierScript
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.days import LONG_AGO
from cambist.core.domain.tron import tron_address
from cambist.frontends.conformance.bank_harness import Asked, BankHarness
from cambist.frontends.conformance.harnesses import (
    AskedCheck,
    ChainHarness,
    DepositsHarness,
    FilesHarness,
    KycHarness,
    NotifierHarness,
    PayoutsHarness,
)
from cambist.frontends.conformance.operation_ids import binding_id
from cambist.ports.bank import (
    Bank,
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
)
from cambist.ports.bank_simulator import Simulation
from cambist.ports.chain import Final, Network, TokenMove, TransactionState
from cambist.ports.faults import NotSupported
from cambist.ports.kyc import Check, CheckRequest, CheckStatus, Verdict
from cambist.ports.mandates import Binding, BindingRequest, ChargeRequest, ChargeState, MandateEvent, MandateSimulation
from cambist.ports.notes import ProviderNote
from cambist.ports.payouts import SignedTransfer
from cambist.ports.remittances import RemittanceRequest, RemittanceState, RemittanceStatus
from tests.contracts import bank_kit, payouts_kit
from tests.fake_s3 import ACCESS, BUCKET, REGION, SECRET, FakeS3
from tests.receivers import Receiver, redirect, reply, silence

_TURNS = 4
"""How many calls find a provider away: more than any test makes."""


class SimulatedHarness(BankHarness):
    """The simulated bank."""

    def __init__(self, capabilities: BankCapabilities | None = None) -> None:
        self.world = bank_kit.World()
        self.clock = self.world.clock
        self._capabilities = capabilities
        self.bank = self.simulated = self.world.bank(capabilities=capabilities)
        script = self.world.script
        script.entries.page = self.page
        # One row of twists for all writing calls: the next one, whichever it is, loses its answer.
        self._writes: deque[Twist] = deque()
        script.create = script.cancel = script.refund = script.bind = script.charge = script.revoke = script.remit = (
            self._writes
        )
        self._fails_remittances = False
        self._end: RefundStatus | None = None
        """Outcome of the refunds that are on hold until `finish_refunds`."""

    def another(self) -> Bank:
        return self.world.bank(capabilities=self._capabilities)

    async def forget(self) -> None:
        """Its notes are the provider's own books."""

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        paid = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks, again=True)
        await self.simulated.simulate(operation, paid, reference=invoice.reference)

    async def decline(self, operation: str, invoice: Invoice) -> None:
        declined = Simulation(status=InvoiceStatus.FAILED)
        await self.simulated.simulate(operation, declined, reference=invoice.reference)

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        await self.pass_time(self.LIFETIME)

    async def lose_next_answer(self, *, done: bool) -> None:
        self._writes.append(Twist(ending=Ending.UNKNOWN_DONE if done else Ending.UNKNOWN_NOT_DONE))

    async def be_away(self) -> None:
        script = self.world.script
        reads = (script.find, script.find_binding, script.mandate_state, script.find_charge, script.find_remittance)
        for calls in (self._writes, *reads, script.refunds_since, script.entries.calls):
            calls.extend(Twist(ending=Ending.UNAVAILABLE) for _ in range(_TURNS))

    async def pass_time(self, span: timedelta) -> None:
        await self.world.clock.advance(span.total_seconds())

    async def asked(self, operation: str) -> Asked:
        bank = self.simulated
        remitted = await bank._remittances.read(operation)
        if remitted is not None:
            return Asked(amount_kopecks=remitted.amount_kopecks, order=operation, bank_id=remitted.bank_id)
        refund = await bank._find_refund(operation)
        if refund is not None:
            return Asked(amount_kopecks=refund.amount_kopecks, order=operation)
        entry = await bank._pages.read(operation)
        assert entry is not None
        return Asked(
            amount_kopecks=entry.amount_kopecks, order=operation, purpose=entry.purpose, expires_at=entry.expires_at
        )

    async def hold_next_refund(self) -> None:
        self.simulated._refunds_hold = None
        self._end = RefundStatus.DONE

    async def reverse_refund(self, operation: str) -> None:
        await self.simulated.simulate_refund(operation, RefundStatus.REVERSED)

    async def take_back(self, operation: str, invoice: Invoice) -> None:
        taken = Simulation(status=InvoiceStatus.PAID, taken_back=True)
        await self.simulated.simulate(operation, taken, reference=invoice.reference)

    async def fail_next_refund(self) -> None:
        self.simulated._refunds_hold = None
        self._end = RefundStatus.FAILED

    async def finish_refunds(self) -> None:
        if self._end is not None:
            for operation, _ in await self.simulated._refund_pages.since(LONG_AGO):
                await self.simulated.simulate_refund(operation, self._end)

    async def confirm(self, operation: str) -> None:
        await self._tell(operation, MandateEvent.CONFIRM)

    async def refuse(self, operation: str) -> None:
        await self._tell(operation, MandateEvent.REFUSE)

    async def lose_mandate(self, operation: str) -> None:
        await self._tell(operation, MandateEvent.MANDATE_LOST)

    async def restore_mandate(self, operation: str) -> None:
        await self._tell(operation, MandateEvent.MANDATE_RESTORED)

    async def fail_next_charge(self) -> None:
        await self.simulated.simulate_next_charge(binding_id(), "insufficient_funds")

    async def hold_next_charge(self) -> None:
        """Every charge takes a second of the bank's clock."""

    async def finish_charges(self) -> None:
        await self.world.clock.advance(1)

    async def hold_next_remittance(self) -> None:
        """Every remittance takes a second of the bank's clock."""

    async def fail_next_remittance(self) -> None:
        self._fails_remittances = True

    async def finish_remittances(self) -> None:
        if self._fails_remittances:
            for operation, _ in await self.simulated._remittances.since(LONG_AGO):
                await self.simulated.simulate_remittance(operation, RemittanceStatus.FAILED)
        await self.world.clock.advance(1)

    async def remitted(self) -> int:
        async with self.world.storage.unit() as unit:
            notes = await unit[ProviderNote].find()
        pages = [msgspec.json.decode(note.body, type=RemittancePage) for note in notes if b'"phone_end"' in note.body]
        return sum(page.amount_kopecks for page in pages if page.status is not RemittanceStatus.FAILED)

    async def _tell(self, operation: str, event: MandateEvent) -> None:
        await self.simulated.simulate_mandate(operation, MandateSimulation(event=event))


class SearchingBank(SimulatedBank):
    """A bank without a query by the caller's ids. It finds an operation by all its search terms and the start time."""

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        self._note(request)
        return await super().create_invoice(request)

    async def refund(self, request: RefundRequest) -> RefundState:
        self._note(request)
        return await super().refund(request)

    async def bind(self, request: BindingRequest) -> Binding:
        self._note(request)
        return await super().bind(request)

    async def charge(self, request: ChargeRequest) -> ChargeState:
        self._note(request)
        return await super().charge(request)

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        self._note(request)
        return await super().remit(request)

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:
        return await super().find_invoice(request.operation) if self._is_seen(request, since) else None

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:
        return await super().find_refund(request.operation) if self._is_seen(request, since) else None

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:
        return await super().find_binding(request.operation) if self._is_seen(request, since) else None

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:
        return await super().find_charge(request.operation) if self._is_seen(request, since) else None

    async def search_remittance(self, request: RemittanceRequest, since: datetime) -> RemittanceState | None:
        return await super().find_remittance(request.operation) if self._is_seen(request, since) else None

    async def find_invoice(self, operation: str) -> Invoice | None:
        raise NotSupported(operation)

    async def find_refund(self, operation: str) -> RefundState | None:
        raise NotSupported(operation)

    async def find_binding(self, operation: str) -> Binding | None:
        raise NotSupported(operation)

    async def find_charge(self, operation: str) -> ChargeState | None:
        raise NotSupported(operation)

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        raise NotSupported(operation)

    def _note(self, request: Any) -> None:
        self.__dict__.setdefault("sent", {}).setdefault(request.operation, (request, self._clock.now()))

    def _is_seen(self, request: Any, since: datetime) -> bool:
        first, at = self.__dict__.get("sent", {}).get(request.operation, (request, since))
        return bool(request == first and since <= at)


class SearchingHarness(SimulatedHarness):
    """A simulated bank that has to search (ports/searching.py)."""

    def __init__(self) -> None:
        super().__init__()
        world = self.world
        self.bank = self.simulated = SearchingBank(
            "sim", world.storage, world.clock, SeededIds(), script=world.script, asked=True
        )


class VerifierHarness(KycHarness):
    """The simulated verifier, or a broken one."""

    def __init__(self, verifier: type[SimulatedVerifier] = SimulatedVerifier) -> None:
        clock = VirtualClock()
        self.script = VerifierScript()
        self.requests: dict[str, CheckRequest] = {}
        requests = self.requests

        class Noting(SimulatedVerifier):
            async def _begin(self, request: CheckRequest) -> CheckFile:
                begun = await super()._begin(request)
                requests.setdefault(request.operation, request)
                return begun

        made = type(verifier.__name__, (Noting, verifier), {})
        self.simulated: SimulatedVerifier = made("kyc", MemoryStorage(clock), clock, script=self.script)
        self.verifier = self.simulated

    async def withdraw(self, operation: str) -> None:
        await self.fail(operation)

    async def asked(self, operation: str) -> AskedCheck:
        request = self.requests[operation]
        purposes = tuple(sorted(each.purpose for each in request.documents))
        return AskedCheck(phone=request.phone, purposes=purposes, email=request.email, user_type=request.user_type)

    async def verify(self, operation: str) -> None:
        await self.simulated.simulate(operation, Verdict(status=CheckStatus.VERIFIED))

    async def fail(self, operation: str) -> None:
        await self.simulated.simulate(operation, Verdict(status=CheckStatus.FAILED))

    async def lose_next_answer(self, *, done: bool) -> None:
        ending = Ending.UNKNOWN_DONE if done else Ending.UNKNOWN_NOT_DONE
        self.script.register.append(Twist(ending=ending))

    async def be_silent(self) -> None:
        for calls in (self.script.find, self.script.state):
            calls.extend(Twist(ending=Ending.UNKNOWN_NOT_DONE) for _ in range(_TURNS))

    async def be_away(self) -> None:
        self.simulated.away = True


class SearchingVerifier(SimulatedVerifier):
    """A verifier without a query by the caller's ids. It finds a check by all its search terms."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.asked: dict[str, CheckRequest] = {}

    async def register(self, request: CheckRequest) -> Check:
        self.asked[request.operation] = request
        return await super().register(request)

    async def find_check(self, operation: str) -> Check | None:
        raise AssertionError(f"{operation} cannot be found by its id")

    async def search_check(self, request: CheckRequest, since: datetime) -> Check | None:
        assert since.utcoffset() is not None
        found = await super().find_check(request.operation)
        return found if self.asked.get(request.operation) == request else None


class SearchingVerifierHarness(VerifierHarness):
    """A simulated verifier that has to search (ports/searching.py)."""

    def __init__(self) -> None:
        super().__init__(SearchingVerifier)


class SimulatedChainHarness(ChainHarness):
    """The simulated chains, or a broken watcher of them."""

    def __init__(self, watcher: type[SimulatedChain] = SimulatedChain) -> None:
        clock = VirtualClock()
        self.script = ChainScript()
        self.watcher = self.simulated = watcher(MemoryStorage(clock), clock, script=self.script)

    async def show(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        await self.simulated.simulate(network, tx_hash, state, moves)

    async def parties(self, network: Network, tx_hash: str) -> Sequence[tuple[str, str]]:
        found = await SimulatedChain.lookup(self.simulated, network, tx_hash)
        assert isinstance(found, Final)
        return [(transfer.sender, transfer.recipient) for transfer in found.transfers]

    async def be_away(self) -> None:
        self.script.lookup.extend(Twist(ending=Ending.UNAVAILABLE) for _ in range(_TURNS))


class SimulatedDepositsHarness(DepositsHarness):
    """The simulated watcher of deposits, or a broken one."""

    def __init__(self, watcher: type[SimulatedDeposits] = SimulatedDeposits) -> None:
        self._kind = watcher
        self.clock = self.virtual = VirtualClock()
        self.storage = MemoryStorage(self.clock)
        self.script = DepositScript()
        self.ids = SeededIds()
        self.watcher = self.simulated = self.restarted()

    def restarted(self) -> SimulatedDeposits:
        return self._kind("sim", self.storage, self.clock, self.ids, spell=tron_address, script=self.script)

    async def send(self, address: str, *units: int, genuine: bool = True, final: bool = True) -> str:
        tx_hash: str | None = None
        for amount in units:
            tx_hash = await self.simulated.simulate_deposit(
                address, amount, genuine=genuine, final=final, tx_hash=tx_hash
            )
        assert tx_hash is not None
        return tx_hash

    async def drop(self, address: str, tx_hash: str) -> None:
        await self.simulated.simulate_drop(address, tx_hash)

    async def make_final(self, address: str, tx_hash: str) -> None:
        await self.virtual.advance(DEPOSIT_FINALITY.total_seconds())

    async def spend(self, address: str, units: int) -> None:
        """A deposit elsewhere; the address's own history has it, too."""
        await self.simulated.simulate_deposit(f"{address}-elsewhere", units)

    async def be_away(self) -> None:
        self.script.deposits.extend(Twist(ending=Ending.UNAVAILABLE) for _ in range(_TURNS))


class TransferBody(msgspec.Struct, frozen=True):
    """Content of a blob."""

    address: str
    units: int


class SimulatedPayoutsHarness(PayoutsHarness):
    """The simulated wallet, or a broken one."""

    wrong_addresses = (
        *PayoutsHarness.wrong_addresses,
        PayoutsHarness.address[:-1],
        f"{PayoutsHarness.address}1",
        f"{PayoutsHarness.address}\n",
        f"A{PayoutsHarness.address[1:]}",
    )

    def __init__(self, sender: type[SimulatedSender] | None = None) -> None:
        self._kind = sender
        self.world = payouts_kit.World()
        self.signed: list[SignedTransfer] = []
        self.sender = self.simulated = self.restarted()

    async def forget(self) -> None:
        """Do nothing: the chain replaces its notes."""

    def restarted(self) -> SimulatedSender:
        signed = self.signed

        class Watched(SimulatedSender):
            async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
                made = await super().sign(operation, address, units)
                signed.append(made)
                return made

        world = self.world
        kinds = (Watched,) if self._kind is None else (self._kind, Watched)
        made: SimulatedSender = type("Watched", kinds, {})(
            "sim", world.storage, world.clock, world.ids, script=world.script
        )
        return made

    async def make_final(self, signed: SignedTransfer) -> None:
        await self.world.clock.advance(FINALITY.total_seconds())

    async def outlive(self, signed: SignedTransfer) -> None:
        await self.world.clock.advance(payouts_kit.END)

    async def revert(self, signed: SignedTransfer) -> None:
        await self.simulated.simulate(signed.tx_hash, payouts_kit.FAILED)

    async def take_back(self, signed: SignedTransfer) -> None:
        await self.simulated.simulate(signed.tx_hash, payouts_kit.UNSEEN)

    async def moved(self) -> int:
        return sum([body.units for body in await self._in_blocks()])

    async def paid(self, address: str) -> int:
        return sum([body.units for body in await self._in_blocks() if body.address == address])

    async def _in_blocks(self) -> list[TransferBody]:
        chain = SimulatedSender("sim", self.world.storage, self.world.clock, self.world.ids)
        sent = [each for each in self.signed if await chain.state(each) in (payouts_kit.IN_BLOCK, payouts_kit.FINAL)]
        return [msgspec.json.decode(each.blob, type=TransferBody) for each in sent]

    async def lose_next_answer(self, *, done: bool) -> None:
        ending = Ending.UNKNOWN_DONE if done else Ending.UNKNOWN_NOT_DONE
        self.world.script.broadcast.append(Twist(ending=ending))

    async def be_away(self) -> None:
        for calls in (self.world.script.broadcast, self.world.script.state, self.world.script.find):
            calls.extend(Twist(ending=Ending.UNAVAILABLE) for _ in range(_TURNS))


class LocalFilesHarness(FilesHarness):
    """Files in a folder, which come through our own front end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = self.virtual = VirtualClock()
        self.files = LocalFiles(folder, "https://pay.example", MemoryVault(), self.clock)

    async def pass_time(self, span: timedelta) -> None:
        await self.virtual.advance(span.total_seconds())

    async def be_away(self) -> None:
        self.folder.rename(self.folder.with_suffix(".elsewhere"))
        self.folder.touch()


class S3Harness(FilesHarness):
    """Files in a bucket, which browsers fill themselves."""

    def __init__(self, bucket: FakeS3, clock: VirtualClock, *, single_use: bool) -> None:
        self.clock = self.virtual = clock
        self.provider = bucket
        self.keeps_the_first = single_use
        self.secrets = (SECRET,)
        self.store = self.files = S3Files(
            bucket=BUCKET,
            credentials=Credentials(access_key=ACCESS, secret_key=SECRET, region=REGION),
            clock=clock,
            endpoint=bucket.url,
            prefix="kyc/",
            single_use=single_use,
        )

    async def pass_time(self, span: timedelta) -> None:
        await self.virtual.advance(span.total_seconds())


class PostedHarness(NotifierHarness):
    """The HTTP notifier and a receiver on a real socket."""

    def __init__(self, receiver: Receiver, notifier: HttpNotifier) -> None:
        self.receiver = receiver
        self.notifier = notifier
        self.url = receiver.url

    async def received(self) -> list[bytes]:
        return [request.body for request in self.receiver.requests]

    async def answer(self, status: int) -> None:
        self.receiver.answer_with(status)

    async def be_away(self) -> None:
        await self.receiver.__aexit__(None)

    async def be_silent(self) -> None:
        await self.notifier.close()
        self.notifier = HttpNotifier(SystemClock(), loopback=True, limit=0.2)
        self.receiver.answer_with(silence())

    async def received_headers(self) -> list[Mapping[str, str]]:
        return [request.headers for request in self.receiver.requests]

    async def redirect(self) -> None:
        self.receiver.answer_with(redirect(self.url), 200)

    async def ask_for_pause(self, seconds: int) -> None:
        self.receiver.answer_with(reply(503, headers={"Retry-After": str(seconds)}))
