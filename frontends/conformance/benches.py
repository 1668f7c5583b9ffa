"""What the suites ask of whoever brings an adapter: the adapter, and a hand on the world around it (of a bank:
bank_bench.py).

A provider's own sandbox, or a small fake of it on a local port, can play most of it. What a bench does not override is
skipped, and the run says so. Make a fresh bench for every test, with nothing in its provider's books.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from ...core.domain.tron import tron_address
from ...ports.alarms import Alarms
from ...ports.chain import ChainWatcher, Network, TokenMove, TransactionState
from ...ports.deposits import DepositWatcher
from ...ports.files import FileStore
from ...ports.kyc import Document, KycVerifier, Purpose
from ...ports.notices import InboundNotice
from ...ports.notifier import Notifier
from ...ports.payouts import SignedTransfer, UsdtSender
from ...ports.rates import RateSource
from . import uploads
from .hidden import check_hidden as check_hidden
from .hidden import check_name as check_name
from .hidden import unplayed
from .searching import searched
from .trouble import ProviderBench


class AlarmsBench(ProviderBench):
    """A channel of alarms that is tried, with what arrives by it. Fixture `alarms_bench`."""

    channel: Alarms

    async def arrived(self) -> Sequence[str]:
        """What came, a text for each message that was taken: with its subject, where it has one, and unescaped."""
        raise NotImplementedError

    async def reached(self) -> Sequence[str]:
        """The addresses of merchants at which something came."""
        unplayed("merchants' addresses")


class RatesBench(ProviderBench):
    """A source of rates that is tried. Fixture `rates_bench`."""

    source: RateSource

    async def say(self, rate: str) -> None:
        """The market says so from now on: RUB for 1 USDT, as its text has it."""
        unplayed("a market")

    async def be_silent(self) -> None:
        """The market does not answer, or answers with a failure, from now on."""
        unplayed("a market that is silent")

    async def say_nonsense(self, text: str) -> None:
        """Where the rate should stand, the market's answer has this text from now on: JSON, but no rate."""
        unplayed("a market that talks nonsense")

    async def refuse_key(self) -> None:
        """The market does not take the credentials from now on."""
        unplayed("a market that refuses credentials")

    def is_now(self, moment: datetime) -> bool:
        """Whether a quote of this moment is of now."""
        return abs((moment - self.clock.now()).total_seconds()) < 60

    def is_same(self, quoted: Decimal, rate: str) -> bool:
        """Whether the quote is what the market said; override it for a source that has fewer digits."""
        return quoted == Decimal(rate)


class KycBench(ProviderBench):
    """A verifier that is tried, with the people it checks. Fixture `kyc_bench`."""

    takes_documents = True
    """It checks people by documents that were uploaded."""
    registers_in_one_call = True
    """A check begins by one writing call; else one may be begun halfway."""
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

    @property
    def verifier(self) -> KycVerifier:
        """What is tried, asked as the house asks it: by `search_check` where it has that (ports/searching.py)."""
        return self._verifier

    @verifier.setter
    def verifier(self, verifier: KycVerifier) -> None:
        self._verifier = searched(verifier, lambda: self.clock.now(), self.__dict__.setdefault("_sent", {}))

    def another(self) -> KycVerifier:
        """Another adapter of the same name, over the same storage, as the next process has it."""
        unplayed("a second process")

    async def verify(self, operation: str) -> None:
        """The check of this operation ends well."""
        unplayed("a person who is verified")

    async def fail(self, operation: str) -> None:
        """The check of this operation ends badly."""
        unplayed("a person who is refused")

    async def notice(self, operation: str) -> InboundNotice:
        """What the verifier posts when something happened to the check of this operation, as it arrives."""
        unplayed("notices")

    async def be_silent(self) -> None:
        """The verifier is reached and does not answer reads from now on."""
        unplayed("a verifier that is silent")


class ChainBench(ProviderBench):
    """A chain watcher that is tried, with what is on the chains. Fixture `chain_bench`."""

    watcher: ChainWatcher
    networks: tuple[Network, ...] = tuple(Network)
    """Those that it is wired for."""

    async def show(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """The transaction stands so on the network from now on, and moves this."""
        unplayed("transactions on a chain")


class DepositsBench(ProviderBench):
    """A watcher of deposits that is tried, with those who send USDT. Fixture `deposits_bench`."""

    watcher: DepositWatcher

    def restarted(self) -> DepositWatcher:
        """The watcher as another process would make it."""
        unplayed("a restart")

    async def send(self, address: str, *units: int, genuine: bool = True, final: bool = True) -> str:
        """One transaction moves these units to the address, and its hash is returned. Not `genuine`: another token that
        is named USDT. Not `final`: its block may still be taken back."""
        unplayed("people who send USDT")

    async def drop(self, address: str, tx_hash: str) -> None:
        """The block that this transaction stands in is taken back."""
        unplayed("blocks that are taken back")


class PayoutsBench(ProviderBench):
    """A wallet that is tried, with the network it pays on. Fixture `payouts_bench`."""

    sender: UsdtSender
    address = tron_address(bytes(range(20)))
    """Somebody's, on the wallet's network."""
    wrong_addresses: tuple[str, ...] = ("", "T" + "0" * 33, "0x" + "a" * 40)
    """What is no address of that network."""

    def restarted(self) -> UsdtSender:
        """The wallet as another process would make it."""
        unplayed("a restart")

    async def forget(self) -> None:
        """What the wallet has noted in our storage is lost, as where a database was restored from an older backup; the
        network forgets nothing, nor do books of the wallet's own."""
        unplayed("notes that are lost")

    async def make_final(self, signed: SignedTransfer) -> None:
        """The block that this transfer stands in becomes final."""
        unplayed("blocks that become final")

    async def outlive(self, signed: SignedTransfer) -> None:
        """Time passes until a final block is past `expires_at` of this transfer. Where transfers never expire, and this
        one is in no block: another transaction of the wallet in its place becomes final."""
        unplayed("time that passes")

    async def moved(self) -> int:
        """How many units the network has moved out of the wallet, whether final or not."""
        unplayed("the wallet's balance")


class NotifierBench:
    """A notifier that is tried. Fixture `notifier_bench`."""

    notifier: Notifier
    url: str = "https://merchant.example/hook"
    """Where webhooks go."""

    async def received(self) -> list[bytes]:
        """The bodies that arrived, in order."""
        unplayed("a receiver")

    async def answer(self, status: int) -> None:
        """The receiver answers so from now on. For notifiers of another kind: what stands for a good answer (200) and a
        bad one (500)."""
        unplayed("answers of a receiver")

    async def be_away(self) -> None:
        """Nobody can be reached from now on."""
        unplayed("a receiver that is away")


class FilesBench(ProviderBench):
    """A store of documents that is tried, with browsers that upload to it. Fixture `files_bench`."""

    files: FileStore
    keeps_the_first = True
    """A second upload to the same key is refused."""
    minds_the_type = True
    """Another Content-Type than granted is refused."""
    unsigned: tuple[str, ...] = ()
    """Of an address' query: what says nothing of the permission, so that it may be anything."""

    async def put(self, address: str, content_type: str, content: bytes) -> bool:
        """A browser PUTs this to the address, as the hosted page does: with this header, and with those of the store's
        `upload_headers`, where it has such. Whether it was taken."""
        return await uploads.put(self.files, address, content_type, content)

    async def break_off(self, address: str, content_type: str, content: bytes) -> None:
        """The browser is gone in the middle of it."""
        await uploads.put(self.files, address, content_type, content, breaks_off=True)

    async def pass_time(self, span: timedelta) -> None:
        """So much time passes for the store."""
        unplayed("the store's clock")
