"""What the suites ask of whoever brings an adapter: the adapter, and a hand on the world around it.

A provider's own sandbox, or a small fake of it on a local port, can play most of it. What a bench does not override is
skipped, and the run says so. Make a fresh bench for every test, with nothing in its provider's books.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NoReturn, Protocol

import msgspec
import pytest

from ...adapters.clock import SystemClock
from ...core.domain.tron import tron_address
from ...ports.bank import Bank, Invoice, InvoiceRequest
from ...ports.chain import ChainWatcher, Network, TokenMove, TransactionState
from ...ports.clock import Clock
from ...ports.deposits import DepositWatcher
from ...ports.faults import Fault
from ...ports.files import FileStore
from ...ports.kyc import Document, KycVerifier, Purpose
from ...ports.notices import InboundNotice
from ...ports.notifier import Notifier
from ...ports.payouts import SignedTransfer, UsdtSender
from ...ports.rates import RateSource
from ..fake_provider.faults import ProviderFault
from ..fake_provider.provider import FakeProvider, HeldCall, ProviderRequest, is_read, is_write
from . import uploads
from .receipts import receipted
from .searching import searched


def _unplayed(what: str) -> NoReturn:
    pytest.skip(f"this bench does not play: {what}")


class Named(Protocol):
    """What every adapter but a notifier and a storage has."""

    @property
    def name(self) -> str: ...


def check_name(adapter: Named) -> None:
    """It is stored with what the adapter does, and begins the ids of its notes."""
    name = adapter.name
    assert name == adapter.name, "the name changes: objects that are stored with it would not be found again"
    assert 0 < len(name) <= 64, "the name cannot be stored: 1 to 64 characters"
    assert ":" not in name, "the name has a colon, which ends it in the ids of notes"
    assert name.isprintable(), "the name has characters that nobody can read"


def check_hidden(hidden: Sequence[str], adapter: object, *told: object) -> None:
    """None of these shows in the adapter's repr, nor in what it raised or gave."""
    texts = [repr(adapter), str(adapter)]
    for each in told:
        texts += [str(each), repr(each)]
        if isinstance(each, Fault):
            texts.append(repr(each.__cause__))
    assert not [1 for text in texts for secret in hidden if secret in text], "a credential or a person's data shows"


def forged(notice: InboundNotice, operation: str, other: str) -> InboundNotice:
    """The notice, about another operation; where its body has no id of ours, with one byte more."""
    body = notice.body.replace(operation.encode(), other.encode())
    return msgspec.structs.replace(notice, body=body if body != notice.body else body + b" ")


class BankBench:
    """A bank that is tried, with what payers do to it. Fixture `bank_bench`."""

    secrets: tuple[str, ...] = ()
    """Credentials that it was made with: none may show."""
    clock: Clock = SystemClock()
    LIFETIME = timedelta(minutes=15)
    phone = "+79990000001"
    """Of a person who may be sent money at this bank."""
    bank_id = "bank1"
    """That person's bank."""
    page = 3
    """How many the provider lists at once, where the adapter has to list: the suites make more than two pages."""
    signs_notices = True
    """What its provider posts is signed, so that the adapter itself tells forged ones."""
    asks_to_revoke = True
    """The provider ends a mandate when it is told to; else the adapter remembers it."""
    provider: FakeProvider | None = None
    """The provider that the adapter speaks to, where it is such a fake: it plays all that goes wrong on the wire."""

    @property
    def bank(self) -> Bank:
        """What is tried, asked as the house asks it: by `search_…` where it has that (ports/searching.py), and with
        receipts where it writes any."""
        return self._bank

    @bank.setter
    def bank(self, bank: Bank) -> None:
        self.unaided = bank
        self._bank = self._asked(bank)

    def beside(self) -> Bank:
        """What `another` gives, asked as the house asks it: it searches for what the first one sent, too."""
        return self._asked(self.another())

    def _asked(self, bank: Bank) -> Bank:
        return receipted(searched(bank, lambda: self.clock.now(), self.__dict__.setdefault("_sent", {})))

    def request(self, operation: str, kopecks: int = 100_00) -> InvoiceRequest:
        """An order of an invoice."""
        return InvoiceRequest(
            operation=operation, amount_kopecks=kopecks, purpose="Order 1", expires_at=self.clock.now() + self.LIFETIME
        )

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        """A payer pays so much for the invoice of this operation."""
        _unplayed("a payer")

    async def notice(self, operation: str) -> InboundNotice:
        """What the provider posts when something happened to this operation, as it arrives."""
        _unplayed("notices")

    def is_write(self, request: ProviderRequest) -> bool:
        """Whether this changes anything at the provider; override it where reads are POSTs, too."""
        return is_write(request)

    def forge(self, notice: InboundNotice, operation: str, other: str) -> InboundNotice:
        """The notice of this operation, changed so that it would be about something else, under the signature that it
        has. Override it where the body has no id of ours, and not all of the body is signed."""
        return forged(notice, operation, other)

    async def outlast_lost_calls(self) -> None:
        """So much time passes that no call whose answer was lost can still arrive. Only an adapter whose provider knows
        no keys has to wait for it before it repeats anything."""

    async def spoil_write(self, fault: ProviderFault, *, retry_after: int | datetime | None = None) -> None:
        """The next writing call meets this fault, and is carried out if `fault.done`."""
        self._fake("faults of writing calls").next(fault, matching=self.is_write, retry_after=retry_after)

    async def spoil_reads(self, fault: ProviderFault) -> None:
        """All reading calls meet this fault, until `recover`."""
        provider = self._fake("faults of reading calls")
        provider.next(fault, matching=lambda request: not self.is_write(request), always=True)

    async def recover(self) -> None:
        """No call meets a fault any more."""
        self._fake("faults that end").recover()

    async def hold_next_write(self, *, done: bool) -> HeldCall:
        """The next writing call gets no answer before it is released; it is carried out before (`done`) or after it."""
        return self._fake("answers that are slow").hold_next(matching=self.is_write, done=done)

    def another(self) -> Bank:
        """Another adapter of the same name, over the same storage, as the next process has it."""
        _unplayed("a second process")

    def _fake(self, what: str) -> FakeProvider:
        if self.provider is None:
            _unplayed(what)
        return self.provider

    async def lose_next_answer(self, *, done: bool) -> None:
        """The next writing call gets no answer; `done`: the bank has carried it out all the same."""
        lost = ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE
        self._fake("answers that are lost").next(lost, matching=self.is_write)

    async def be_away(self) -> None:
        """No connection to the bank can be made from now on."""
        self._fake("a bank that is away").be_away()

    async def refuse_credentials(self) -> None:
        """The bank does not take the adapter's credentials from now on."""
        self._fake("credentials that are refused").next(ProviderFault.UNAUTHORIZED, always=True)

    async def forget(self) -> None:
        """What the adapter has noted in our storage is lost, as where a database was restored from an older backup; the
        provider forgets nothing."""
        _unplayed("notes that are lost")

    async def pass_time(self, span: timedelta) -> None:
        """So much time passes at the provider: keys that it does not keep for ever are forgotten there."""
        _unplayed("the provider's clock")

    async def finish_refunds(self) -> None:
        """Whatever refund is in processing comes to a good end."""

    async def fail_next_refund(self) -> None:
        """The next refund fails at the bank, or at the payer's, for good, after it was taken."""
        _unplayed("a refund that fails")

    async def confirm(self, operation: str) -> None:
        """The payer confirms the binding of this operation, and its first charge comes, where it has one."""
        _unplayed("a payer who confirms a binding")

    async def refuse(self, operation: str) -> None:
        """The payer refuses the binding of this operation."""
        _unplayed("a payer who refuses a binding")

    async def lose_mandate(self, operation: str) -> None:
        """The payer's bank no longer accepts the token of this binding operation."""
        _unplayed("a mandate that is lost")

    async def restore_mandate(self, operation: str) -> None:
        """It accepts the token again."""
        _unplayed("a mandate that is valid again")

    async def finish_charges(self) -> None:
        """Whatever charge is in processing is paid."""

    async def fail_next_charge(self) -> None:
        """The next charge of any mandate fails at the payer's bank for want of money."""
        _unplayed("a charge that fails")

    async def finish_remittances(self) -> None:
        """Whatever remittance is in processing is done."""

    async def remitted(self) -> int:
        """How many kopecks the bank has sent, or is about to send, to people."""
        _unplayed("what people got")


class RatesBench:
    """A source of rates that is tried. Fixture `rates_bench`."""

    source: RateSource
    secrets: tuple[str, ...] = ()
    clock: Clock = SystemClock()

    async def say(self, rate: str) -> None:
        """The market says so from now on: RUB for 1 USDT, as its text has it."""
        _unplayed("a market")

    async def be_silent(self) -> None:
        """The market does not answer, or answers with a failure, from now on."""
        _unplayed("a market that is silent")

    async def say_nonsense(self, text: str) -> None:
        """Where the rate should stand, the market's answer has this text from now on: JSON, but no rate."""
        _unplayed("a market that talks nonsense")

    async def refuse_key(self) -> None:
        """The market does not take the credentials from now on."""
        _unplayed("a market that refuses credentials")

    def is_now(self, moment: datetime) -> bool:
        """Whether a quote of this moment is of now."""
        return abs((moment - self.clock.now()).total_seconds()) < 60

    def is_same(self, quoted: Decimal, rate: str) -> bool:
        """Whether the quote is what the market said; override it for a source that has fewer digits."""
        return quoted == Decimal(rate)


class KycBench:
    """A verifier that is tried, with the people it checks. Fixture `kyc_bench`."""

    verifier: KycVerifier
    secrets: tuple[str, ...] = ()
    takes_documents = True
    """It checks people by documents that were uploaded."""
    takes_forms = True
    """It checks people by a form of its own (the redirect flow)."""
    phone = "+79001234567"
    email = "person@example.com"
    user_type = "individual"
    signs_notices = True
    """What the verifier posts is signed, so that the adapter itself tells forged ones."""
    documents: tuple[Document, ...] = (
        Document(purpose=Purpose.SELFIE, key="selfie", content_type="image/jpeg"),
        Document(purpose=Purpose.DOCUMENT, key="document", content_type="image/png"),
    )
    """A selfie and a document. A verifier that reads them needs keys of files that are there."""

    def forge(self, notice: InboundNotice, operation: str, other: str) -> InboundNotice:
        """As `BankBench.forge`."""
        return forged(notice, operation, other)

    async def verify(self, operation: str) -> None:
        """The check of this operation ends well."""
        _unplayed("a person who is verified")

    async def fail(self, operation: str) -> None:
        """The check of this operation ends badly."""
        _unplayed("a person who is refused")

    async def notice(self, operation: str) -> InboundNotice:
        """What the verifier posts when something happened to the check of this operation, as it arrives."""
        _unplayed("notices")

    async def lose_next_answer(self, *, done: bool) -> None:
        """The next registration gets no answer; `done`: the verifier has begun the check all the same."""
        _unplayed("answers that are lost")

    async def be_silent(self) -> None:
        """The verifier is reached and does not answer reads from now on."""
        _unplayed("a verifier that is silent")

    async def be_away(self) -> None:
        """No connection to the verifier can be made from now on."""
        _unplayed("a verifier that is away")


class ChainBench:
    """A chain watcher that is tried, with what is on the chains. Fixture `chain_bench`."""

    watcher: ChainWatcher
    secrets: tuple[str, ...] = ()
    networks: tuple[Network, ...] = tuple(Network)
    """Those that it is wired for."""

    async def show(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """The transaction stands so on the network from now on, and moves this."""
        _unplayed("transactions on a chain")

    async def be_away(self) -> None:
        """No node of a network can be reached from now on."""
        _unplayed("a chain that is away")


class DepositsBench:
    """A watcher of deposits that is tried, with those who send USDT. Fixture `deposits_bench`."""

    watcher: DepositWatcher
    secrets: tuple[str, ...] = ()

    def restarted(self) -> DepositWatcher:
        """The watcher as another process would make it."""
        _unplayed("a restart")

    async def send(self, address: str, *units: int, genuine: bool = True, final: bool = True) -> str:
        """One transaction moves these units to the address, and its hash is returned. Not `genuine`: another token that
        is named USDT. Not `final`: its block may still be taken back."""
        _unplayed("people who send USDT")

    async def drop(self, address: str, tx_hash: str) -> None:
        """The block that this transaction stands in is taken back."""
        _unplayed("blocks that are taken back")

    async def be_away(self) -> None:
        """No node of the network can be reached from now on."""
        _unplayed("a chain that is away")


class PayoutsBench:
    """A wallet that is tried, with the network it pays on. Fixture `payouts_bench`."""

    sender: UsdtSender
    secrets: tuple[str, ...] = ()
    address = tron_address(bytes(range(20)))
    """Somebody's, on the wallet's network."""
    wrong_addresses: tuple[str, ...] = ("", "T" + "0" * 33, "0x" + "a" * 40)
    """What is no address of that network."""

    def restarted(self) -> UsdtSender:
        """The wallet as another process would make it."""
        _unplayed("a restart")

    async def forget(self) -> None:
        """What the wallet has noted in our storage is lost, as where a database was restored from an older backup; the
        network forgets nothing, nor do books of the wallet's own."""
        _unplayed("notes that are lost")

    async def make_final(self, signed: SignedTransfer) -> None:
        """The block that this transfer stands in becomes final."""
        _unplayed("blocks that become final")

    async def outlive(self, signed: SignedTransfer) -> None:
        """Time passes until a final block is past `expires_at` of this transfer."""
        _unplayed("time that passes")

    async def moved(self) -> int:
        """How many units the network has moved out of the wallet, whether final or not."""
        _unplayed("the wallet's balance")

    async def lose_next_answer(self, *, done: bool) -> None:
        """The next broadcast gets no answer; `done`: the network has the transfer all the same."""
        _unplayed("answers that are lost")

    async def be_away(self) -> None:
        """No node of the network can be reached from now on."""
        _unplayed("a network that is away")


class NotifierBench:
    """A notifier that is tried. Fixture `notifier_bench`."""

    notifier: Notifier
    url: str = "https://merchant.example/hook"
    """Where webhooks go."""

    async def received(self) -> list[bytes]:
        """The bodies that arrived, in order."""
        _unplayed("a receiver")

    async def answer(self, status: int) -> None:
        """The receiver answers so from now on. For notifiers of another kind: what stands for a good answer (200) and a
        bad one (500)."""
        _unplayed("answers of a receiver")

    async def be_away(self) -> None:
        """Nobody can be reached from now on."""
        _unplayed("a receiver that is away")


class FilesBench:
    """A store of documents that is tried, with browsers that upload to it. Fixture `files_bench`."""

    files: FileStore
    secrets: tuple[str, ...] = ()
    clock: Clock = SystemClock()
    provider: FakeProvider | None = None
    """The server that the adapter speaks to, where it is such a fake."""
    keeps_the_first = True
    """A second upload to the same key is refused."""
    minds_the_type = True
    """Another Content-Type than granted is refused."""
    unsigned: tuple[str, ...] = ()
    """Of an address' query: what says nothing of the permission, so that it may be anything."""

    async def put(self, address: str, content_type: str, content: bytes) -> bool:
        """A browser PUTs this to the address, as the hosted page does: with this header alone. Whether it was taken."""
        return await uploads.put(self.files, address, content_type, content)

    async def break_off(self, address: str, content_type: str, content: bytes) -> None:
        """The browser is gone in the middle of it."""
        await uploads.put(self.files, address, content_type, content, breaks_off=True)

    async def pass_time(self, span: timedelta) -> None:
        """So much time passes for the store."""
        _unplayed("the store's clock")

    def spoil(self, fault: ProviderFault) -> None:
        """All reading calls of the adapter meet this fault, until `recover`."""
        self._fake("faults of reading calls").next(fault, matching=is_read, always=True)

    def recover(self) -> None:
        """No call meets a fault any more."""
        self._fake("faults that end").recover()

    async def be_away(self) -> None:
        """The store cannot be reached from now on."""
        self._fake("a store that is away").be_away()

    async def refuse_credentials(self) -> None:
        """The store does not take the adapter's credentials from now on."""
        self._fake("credentials that are refused").next(ProviderFault.FORBIDDEN, always=True)

    def _fake(self, what: str) -> FakeProvider:
        if self.provider is None:
            _unplayed(what)
        return self.provider
