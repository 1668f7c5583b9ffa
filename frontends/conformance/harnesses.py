"""Test harnesses: each suite gets the adapter and control over its simulated environment from a harness
(bank_harness.py has the one for banks).

A provider's own sandbox, or a small fake of it on a local port, can do most of it. Tests that need a method the harness
does not override are skipped, and the run says so. Create a fresh harness for every test, with no records at its
provider.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from ...core.domain.tron import tron_address
from ...ports.alarms import Alarms
from ...ports.chain import ChainWatcher, Network, TokenMove, TransactionState
from ...ports.deposits import DepositWatcher
from ...ports.files import FileStore
from ...ports.kyc import Document, KycVerifier, Purpose
from ...ports.notifications import InboundNotification
from ...ports.notifier import Notifier
from ...ports.payouts import SignedTransfer, UsdtSender
from ...ports.rates import RateSource
from ...ports.receipts import ReceiptKind, ReceiptRegister
from . import uploads
from .hidden import check_hidden as check_hidden
from .hidden import check_name as check_name
from .hidden import unplayed
from .problem import ProviderHarness
from .searching import searched


class AlarmsHarness(ProviderHarness):
    """Harness of an alarm channel, with the messages that arrive through it. Fixture `alarms_harness`."""

    channel: Alarms

    async def arrived(self) -> Sequence[str]:
        """Return one text for each accepted message, unescaped and including its subject, if there is one."""
        raise NotImplementedError

    async def reached(self) -> Sequence[str]:
        """Return the addresses of merchants that received a message."""
        unplayed("merchants' addresses")


class RatesHarness(ProviderHarness):
    """Harness of a rate source. Fixture `rates_harness`."""

    source: RateSource

    async def say(self, rate: str) -> None:
        """Set the market's rate from now on: RUB for 1 USDT, in the text that the market sends."""
        unplayed("a market")

    async def be_silent(self) -> None:
        """Let the market not answer, or answer with a failure, from now on."""
        unplayed("a market that is silent")

    async def say_garbage(self, text: str) -> None:
        """Let the market answer from now on with this JSON text in place of the rate."""
        unplayed("a market that talks garbage")

    async def refuse_key(self) -> None:
        """Let the market reject the credentials from now on."""
        unplayed("a market that refuses credentials")

    async def say_old(self, rate: str, age: timedelta) -> None:
        """Set the market's rate from now on, with a moment that lies back by this span, in whole seconds."""
        unplayed("a market that states the moment of its rate")

    def is_now(self, moment: datetime) -> bool:
        """Return whether a quote of this moment counts as current."""
        return abs((moment - self.clock.now()).total_seconds()) < 60

    def is_same(self, quoted: Decimal, rate: str) -> bool:
        """Return whether the quote equals the market's rate. Override it for a source with fewer digits."""
        return quoted == Decimal(rate)


class AskedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The verifier's record of a check. Leave out the fields that its records do not keep."""

    phone: str | msgspec.UnsetType = msgspec.UNSET
    purposes: Sequence[Purpose] | msgspec.UnsetType = msgspec.UNSET
    """Purposes of the uploaded documents, sorted."""
    email: str | msgspec.UnsetType | None = msgspec.UNSET
    user_type: str | msgspec.UnsetType | None = msgspec.UNSET


class KycHarness(ProviderHarness):
    """Harness of a KYC verifier, with the people it checks. Fixture `kyc_harness`."""

    takes_documents = True
    """The verifier checks people by uploaded documents."""
    registers_in_one_call = True
    """A check starts with a single writing call. If false, a half-started check may exist."""
    takes_forms = True
    """The verifier checks people with its own form (the redirect flow)."""
    phone = "+79001234567"
    email = "person@example.com"
    user_type = "individual"
    signs_notifications = True
    """The verifier signs its notifications, so the adapter can detect forgeries."""
    documents: tuple[Document, ...] = (
        Document(purpose=Purpose.SELFIE, key="selfie", content_type="image/jpeg"),
        Document(purpose=Purpose.DOCUMENT, key="document", content_type="image/png"),
    )
    """A selfie and a document. A verifier that reads them needs the keys of existing files."""

    @property
    def verifier(self) -> KycVerifier:
        """The verifier under test, wrapped as the service uses it: it searches with `search_check` if the verifier has
        it (ports/searching.py)."""
        return self._verifier

    @verifier.setter
    def verifier(self, verifier: KycVerifier) -> None:
        self._verifier = searched(verifier, lambda: self.clock.now(), self.__dict__.setdefault("_sent", {}))

    def another(self) -> KycVerifier:
        """Return another adapter of the same name on the same storage, as a second process would have it."""
        unplayed("a second process")

    async def verify(self, operation: str) -> None:
        """Let the check of this operation succeed."""
        unplayed("a person who is verified")

    async def fail(self, operation: str) -> None:
        """Let the check of this operation fail."""
        unplayed("a person who is refused")

    async def withdraw(self, operation: str) -> None:
        """Let the verifier refuse the person whose check succeeded before."""
        unplayed("a verdict that is withdrawn")

    async def asked(self, operation: str) -> AskedCheck:
        """Return the verifier's record of this operation."""
        unplayed("the verifier's records")

    async def notification(self, operation: str) -> InboundNotification:
        """Return the notification that the verifier posts about the check of this operation, as it arrives."""
        unplayed("notifications")

    async def be_silent(self) -> None:
        """Let the verifier accept connections but not answer reads, from now on."""
        unplayed("a verifier that is silent")


class AskedReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The register's record of a receipt. Leave out the fields that its records do not keep."""

    kind: ReceiptKind
    total_kopecks: int
    prepaid_kopecks: int | msgspec.UnsetType = msgspec.UNSET
    """Part of the total that is reported as prepaid (tag 1215)."""
    items: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    """Names of the items, in order."""
    email: str | None | msgspec.UnsetType = msgspec.UNSET


class RegisterHarness(ProviderHarness):
    """Harness of a cash register. Fixture `register_harness`."""

    register: ReceiptRegister
    corrects = frozenset({ReceiptKind.SALE_CORRECTION, ReceiptKind.REFUND_CORRECTION})
    """Corrections that the register writes. For the others it raises NotSupported."""
    finds_lost = True
    """`find_receipt` finds a receipt whose answer was lost. If false, it may return None, and a repeat finds it."""
    signs_notifications = True
    """The register signs its notifications, so the adapter can detect forgeries."""

    def another(self) -> ReceiptRegister:
        """Return another adapter of the same name on the same storage, as a second process would have it."""
        unplayed("a second process")

    async def write(self, operation: str) -> None:
        """Let the register write the receipt of this operation."""
        unplayed("a receipt that is written")

    async def reject(self, operation: str, quoted: str) -> None:
        """Let the register reject the receipt of this operation, with a reason that quotes this text if its reasons are
        free texts."""
        unplayed("a receipt that is rejected")

    async def asked(self, operation: str) -> Sequence[AskedReceipt]:
        """Return all receipts of this operation that the register has, whatever their state."""
        unplayed("the register's records")

    async def notification(self, operation: str) -> InboundNotification:
        """Return the notification that the register posts about the receipt of this operation, as it arrives."""
        unplayed("notifications")


class ChainHarness(ProviderHarness):
    """Harness of a chain watcher, with the transactions on the chains. Fixture `chain_harness`."""

    watcher: ChainWatcher
    networks: tuple[Network, ...] = tuple(Network)
    """Networks that the watcher is configured for."""
    page = 3
    """Page size of the node's lists, for adapters that read them. The suite makes more than two pages."""

    async def show(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """Set the state of a transaction on the network from now on, and the token movements in it."""
        unplayed("transactions on a chain")

    async def parties(self, network: Network, tx_hash: str) -> Sequence[tuple[str, str]]:
        """Return sender and recipient of each movement of genuine USDT that `show` made, in the network's usual
        spelling."""
        unplayed("senders and recipients")


class DepositsHarness(ProviderHarness):
    """Harness of a deposit watcher, with people who send USDT. Fixture `deposits_harness`."""

    watcher: DepositWatcher
    page = 3
    """Page size of the node's lists, for adapters that read them. The suite makes more than two pages."""

    def is_now(self, moment: datetime) -> bool:
        """Return whether a deposit that was just sent may be of this moment."""
        return abs((moment - self.clock.now()).total_seconds()) < 3600

    def restarted(self) -> DepositWatcher:
        """Return the watcher as another process would create it."""
        unplayed("a restart")

    async def send(self, address: str, *units: int, genuine: bool = True, final: bool = True) -> str:
        """Send these amounts to the address in one transaction and return its hash. With `genuine` false, send another
        token named USDT. With `final` false, the block may still be reverted."""
        unplayed("people who send USDT")

    async def drop(self, address: str, tx_hash: str) -> None:
        """Revert the block that contains this transaction."""
        unplayed("blocks that are taken back")

    async def make_final(self, address: str, tx_hash: str) -> None:
        """Make the block final that contains this transaction, which was sent with `final` false."""
        unplayed("blocks that become final")

    async def spend(self, address: str, units: int) -> None:
        """Send USDT from the address elsewhere, as the owner of the wallet does."""
        unplayed("money that leaves an address")


class PayoutsHarness(ProviderHarness):
    """Harness of a payout wallet, with its network. Fixture `payouts_harness`."""

    sender: UsdtSender
    address = tron_address(bytes(range(20)))
    """A valid address on the wallet's network."""
    wrong_addresses: tuple[str, ...] = ("", "T" + "0" * 33, "0x" + "a" * 40)
    """Strings that are not addresses of that network."""
    page = 3
    """Page size of the provider's lists, for wallets that read them. The suite makes more than two pages."""
    final_at_once = False
    """Blocks of the network are final as soon as they exist."""

    def restarted(self) -> UsdtSender:
        """Return the wallet as another process would create it."""
        unplayed("a restart")

    async def forget(self) -> None:
        """Delete the notes that the wallet stored with us, as restoring an older backup would. Neither the network nor
        the wallet's own records forget anything."""
        unplayed("notes that are lost")

    async def make_final(self, signed: SignedTransfer) -> None:
        """Make the block that contains this transfer final."""
        unplayed("blocks that become final")

    async def outlive(self, signed: SignedTransfer) -> None:
        """Let time pass until a final block is past `expires_at` of this transfer. If transfers never expire and this
        one is in no block, finalize another transaction of the wallet that replaces it."""
        unplayed("time that passes")

    async def revert(self, signed: SignedTransfer) -> None:
        """Let the contract refuse this transfer, which was sent: its transaction is final and moved nothing."""
        unplayed("transfers that the contract refuses")

    async def take_back(self, signed: SignedTransfer) -> None:
        """Revert the block that contains this transfer. The network forgets the transaction."""
        unplayed("blocks that are taken back")

    async def paid(self, address: str) -> int:
        """Return how many units came to this address from the wallet."""
        unplayed("the balance of an address")

    async def moved(self) -> int:
        """Return how many units the network has moved out of the wallet, whether final or not."""
        unplayed("the wallet's balance")


class NotifierHarness:
    """Harness of a notifier. Fixture `notifier_harness`."""

    notifier: Notifier
    url: str = "https://merchant.example/hook"
    """Destination of the webhooks."""

    async def received(self) -> list[bytes]:
        """Return the bodies that arrived, in order."""
        unplayed("a receiver")

    async def answer(self, status: int) -> None:
        """Set the receiver's answer from now on. Notifiers without HTTP statuses map 200 to a good answer and 500 to a
        bad one."""
        unplayed("answers of a receiver")

    async def be_away(self) -> None:
        """Let no receiver be reachable from now on."""
        unplayed("a receiver that is away")

    async def be_silent(self) -> None:
        """Let the receiver accept connections but not answer, from now on. Give the notifier a short limit for it."""
        unplayed("a receiver that is silent")

    async def received_headers(self) -> Sequence[Mapping[str, str]]:
        """Return the headers of each webhook that arrived, in order."""
        unplayed("headers of webhooks")

    async def redirect(self) -> None:
        """Let the receiver answer with a redirect from now on, to an address that would answer 200."""
        unplayed("a receiver that redirects")

    async def ask_for_pause(self, seconds: int) -> None:
        """Let the receiver answer from now on that it is busy for so many seconds (Retry-After)."""
        unplayed("a receiver that asks for a pause")


class FilesHarness(ProviderHarness):
    """Harness of a document store, with browsers that upload to it. Fixture `files_harness`."""

    files: FileStore
    keeps_the_first = True
    """The store refuses a second upload to the same key."""
    minds_the_type = True
    """The store refuses a Content-Type other than the granted one."""
    unsigned: tuple[str, ...] = ()
    """Query parameters of the URL that are not part of the permission, so that any value is accepted."""

    async def put(self, address: str, content_type: str, content: bytes) -> bool:
        """PUT the content to the URL as the hosted page's browser does, with this Content-Type and the store's
        `upload_headers`, if it has them. Return whether the store accepted it."""
        return await uploads.put(self.files, address, content_type, content)

    async def break_off(self, address: str, content_type: str, content: bytes) -> None:
        """Upload the content, and let the browser disconnect halfway."""
        await uploads.put(self.files, address, content_type, content, breaks_off=True)

    async def pass_time(self, span: timedelta) -> None:
        """Let time pass for the store."""
        unplayed("the store's clock")
