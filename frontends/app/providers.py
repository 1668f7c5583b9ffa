"""Composition root's part for providers: chooses the adapters for banks, chains, verifier and markets of each mode.
These are simulators unless the settings or the opener of the app name others."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

import msgspec

from ...adapters.alarms.settings import TELEGRAM_API
from ...adapters.chain.simulator import SimulatedChain
from ...adapters.deposits.simulator import SimulatedDeposits
from ...adapters.kyc.simulator import SimulatedVerifier
from ...adapters.payouts.simulator import SimulatedSender
from ...adapters.rates.shared import SharedSource
from ...adapters.rates.simulator import SimulatedRates
from ...adapters.receipts.simulator import SimulatedRegister
from ...adapters.script import Script
from ...core.domain.accounts.accounts import Mode
from ...core.domain.tron import tron_address
from ...ports.alarms import AlarmChannels, Alarms
from ...ports.bank import Bank
from ...ports.bank_routes import BankRoutes
from ...ports.chain import ChainWatcher, Network
from ...ports.clock import Clock
from ...ports.deposits import DepositWatcher, DepositWatchers
from ...ports.faults import NotConfigured
from ...ports.files import FileStore
from ...ports.kyc import KycVerifier, SandboxVerifier
from ...ports.mailer import Mailer
from ...ports.messenger import Messenger
from ...ports.notifier import Notifier
from ...ports.payouts import Senders, UsdtSender
from ...ports.rates import RateSource, RateSources
from ...ports.receipts import ReceiptRegister
from ...ports.tools import FileTools, Tools
from ..layers.wrapping import OPERATIONS, Call, wrapped
from ..settings.plugins import KINDS, NotInstalled, PluginError, made, needing
from ..settings.settings import Settings
from .own_adapters import Adapters
from .simulated_banks import FurtherBank, built_in, simulated_bank
from .stopping import closed_soon

log = logging.getLogger("cambist.providers")

T = TypeVar("T")


class Providers:
    """Makes an app's provider adapters, and closes them."""

    def __init__(
        self, settings: Settings, adapters: Adapters, tools: FileTools, clock: Clock, local_files: FileStore
    ) -> None:
        """Prepare the factory. `tools` are the app's. `clock` is the machine's, for adapters that call external
        services. `local_files` is the built-in file store. Raises: PluginError."""
        self._settings = settings
        self._adapters = adapters
        self._clock = clock
        self._made: list[Any] = []
        self.files: FileStore = self._one("files", adapters.files, lambda: local_files, tools)
        self._tools = Tools(mode=Mode.LIVE.value, files=self.files, **msgspec.structs.asdict(tools))
        self.live_simulators: list[str] = []
        """Simulators of live mode, used or refused: the setting and the adapter's name."""
        self.mailer: Mailer | None = None
        """An alarm channel that also sends letters to people."""
        self.has_verifier = True
        """Whether the verifier of live mode may verify people."""

    async def close(self) -> None:
        """Close the adapters made here that have a `close`."""
        for adapter in reversed(self._made):
            close = getattr(adapter, "close", None)
            if close is None:
                continue
            try:
                await closed_soon(type(adapter).__name__, close)
            except Exception:
                # An external adapter that cannot be closed must not keep the storage open.
                log.exception("%s could not be closed", type(adapter).__name__)

    def banks(self, script: Script | None, further: Sequence[FurtherBank]) -> BankRoutes:
        """Return the banks of both modes. Raises: PluginError."""
        settings = self._settings
        named = {Mode.LIVE: settings.banks, Mode.TEST: settings.test_banks}
        banks: dict[str, Bank] = {}
        order: dict[str, tuple[str, ...]] = {}
        for mode in Mode:
            given = self._adapters.banks_of(mode)
            wired = [self._bank(name, mode, script) for name in named[mode]] if given is None else list(given)
            wired += [simulated_bank(self._tools, bank) for bank in further if bank.mode is mode]
            if mode is Mode.LIVE:
                wired = [
                    bank for bank in wired if not bank.capabilities.simulated or self._may_simulate("banks", bank.name)
                ]
            for bank in wired:
                if bank.name in banks:
                    raise PluginError(f"two banks are named {bank.name!r}: payments are stored with the name")
                banks[bank.name] = bank
            order[mode.value] = tuple(bank.name for bank in wired)
        return BankRoutes(banks=banks, order=order)

    def _bank(self, name: str, mode: Mode, script: Script | None) -> Bank:
        bank = built_in(name, mode, script)
        return cast("Bank", self._plugin("bank", name, mode)) if bank is None else simulated_bank(self._tools, bank)

    def _may_simulate(self, setting: str, name: str) -> bool:
        """Return whether this simulator of live mode may be used. If not, a stored object of it finds no provider of
        its name, as if the adapter were gone: nothing moves it, and its payer gets no panel."""
        self.live_simulators.append(f"{setting}: {name}")
        return bool(self._settings.allow_live_simulators)

    def rates(self) -> RateSources:
        """Return the rate sources. Test mode has only its simulator, so that merchants' tests depend on no external
        service. Raises: PluginError."""
        tools = self._tools
        simulated = {mode: SimulatedRates(f"simulator-rates-{mode}", tools.storage, tools.clock) for mode in Mode}
        live: list[RateSource] = []
        if self._adapters.rates is not None:
            live += [SharedSource(source, self._clock) for source in self._adapters.rates]
        else:
            for name in self._settings.rate_sources:
                if name != "simulator":
                    live.append(SharedSource(self._real_rates(name), self._clock))
                elif self._may_simulate("rate_sources", simulated[Mode.LIVE].name):
                    live.append(simulated[Mode.LIVE])
        return RateSources(sources={Mode.LIVE.value: tuple(live), Mode.TEST.value: (simulated[Mode.TEST],)})

    def _real_rates(self, name: str) -> RateSource:
        tools = msgspec.structs.replace(self._tools, clock=self._clock)
        return cast("RateSource", self._kept(made("rates", name, tools, self._settings.providers)))

    def kyc(self) -> KycVerifier:
        """Return the verifier of live mode; test mode has none. Sets `has_verifier`. Raises: PluginError."""
        given = self._adapters.kyc
        simulated = len(self.live_simulators)
        verifier = self._verifier(self._settings.kyc if given is None else given)
        self.has_verifier = len(self.live_simulators) == simulated or bool(self._settings.allow_live_simulators)
        return verifier

    def former_kyc(self) -> Mapping[str, KycVerifier]:
        """Return the former verifiers by name. Raises: PluginError, also when one of them is the present verifier."""
        given, named = self._adapters.kyc, self._settings.kyc_former
        found = {verifier.name: verifier for verifier in map(self._verifier, named)}
        if len(found) < len(named) or (self._settings.kyc if given is None else given.name) in found:
            raise PluginError("kyc_former names verifiers of before, each once, and not the one of kyc")
        return found

    def _verifier(self, of: str | KycVerifier) -> KycVerifier:
        if not isinstance(of, str):
            verifier = of
        elif of in KINDS["kyc"].built_in:
            simulated: KycVerifier = SimulatedVerifier(of, self._tools.storage, self._tools.clock)
            return self._unless_refused("kyc", simulated)
        else:
            verifier = cast("KycVerifier", self._kept(made("kyc", of, self._tools, self._settings.providers)))
        if isinstance(verifier, SandboxVerifier) and verifier.is_sandbox:
            return self._unless_refused("kyc", verifier, f"{verifier.name}, a sandbox")
        return verifier

    def chain(self) -> ChainWatcher:
        """Return the chain watcher of live mode; test mode has none. Raises: PluginError."""
        tools = self._tools

        def simulated() -> ChainWatcher:
            return self._unless_refused("chain", SimulatedChain(tools.storage, tools.clock))

        return cast("ChainWatcher", self._one("chain", self._adapters.chain, simulated))

    def _unless_refused(self, kind: str, simulator: T, name: str = "simulator") -> T:
        """Return the simulator, or a substitute that raises NotConfigured if live mode may not use simulators."""
        if self._may_simulate(kind, name):
            return simulator

        def refuse(operation: str, _: Call) -> Call:
            async def refused(*_: Any, **__: Any) -> Any:
                raise NotConfigured(
                    f"{kind} {operation}: live mode has only a simulator, or a sandbox, and may not use it"
                )

            return refused

        return wrapped(simulator, OPERATIONS[kind], refuse)

    def deposits(self) -> DepositWatchers:
        """Return the deposit watchers. Test mode has its simulator. Raises: PluginError."""
        tools = self._tools

        def simulated(mode: Mode) -> SimulatedDeposits:
            name = f"simulator-deposits-{mode}"
            return SimulatedDeposits(name, tools.storage, tools.clock, tools.ids, spell=tron_address)

        both: dict[str, DepositWatcher] = {Mode.TEST.value: simulated(Mode.TEST)}
        live: DepositWatcher = self._one("deposits", self._adapters.deposits, lambda: simulated(Mode.LIVE))
        if not isinstance(live, SimulatedDeposits) or self._may_simulate("deposits", live.name):
            both[Mode.LIVE.value] = live
        return DepositWatchers(
            watchers={watcher.name: watcher for watcher in both.values()},
            modes={mode: watcher.name for mode, watcher in both.items()},
        )

    def senders(self) -> Senders:
        """Return the senders. Test mode has its simulator. Raises: PluginError."""
        tools = self._tools

        def simulated(mode: Mode, network: Network = Network.TRON) -> SimulatedSender:
            name = f"simulator-chain-{mode}"
            return SimulatedSender(name, tools.storage, tools.clock, tools.ids, network=network)

        live: UsdtSender = self._one("payouts", self._adapters.payouts, lambda: simulated(Mode.LIVE))
        # A merchant has one payout_wallet for both modes, and it is on one network.
        both: dict[str, UsdtSender] = {Mode.TEST.value: simulated(Mode.TEST, live.capabilities.network)}
        if not live.capabilities.simulated or self._may_simulate("payouts", live.name):
            both[Mode.LIVE.value] = live
        return Senders(
            senders={wallet.name: wallet for wallet in both.values()},
            modes={mode: wallet.name for mode, wallet in both.items()},
        )

    def register(self) -> ReceiptRegister | None:
        """Return the cash register of live mode; None if there is none. In test mode the simulated banks write
        receipts. Raises: PluginError."""
        given, tools = self._adapters.receipts, self._tools
        if given is None and self._settings.receipts == "none":
            return None

        def simulated() -> ReceiptRegister:
            return self._unless_refused("receipts", SimulatedRegister("simulator-receipts", tools.storage, tools.clock))

        return cast("ReceiptRegister", self._one("receipts", given, simulated))

    def notifier(self) -> Notifier:
        """Return the notifier. Raises: PluginError."""
        loopback = bool(self._settings.allow_loopback_webhooks)
        made = self._one(
            "notifier", self._adapters.notifier, lambda: self._kept(http_notifier(self._clock, loopback=loopback))
        )
        return cast("Notifier", made)

    def alarms(self) -> AlarmChannels:
        """Return the alarm channels. Raises: PluginError."""
        given, settings = self._adapters.alarms, self._settings
        if given is None:
            found = [self._kept(made("alarms", name, self._tools, settings.providers)) for name in settings.alarms]
        else:
            found = list(given)
        channels: dict[str, Alarms] = {each.name: each for each in found}
        if len(channels) < len(found) or any("/" in name for name in channels):
            raise PluginError("alarm channels need names of their own, without a slash: what was told is kept by them")
        self.mailer = next((each for each in found if isinstance(each, Mailer)), None)
        hours = settings.alarm_backup_hours
        return AlarmChannels(
            channels=channels,
            quiet=settings.alarm_quiet_hours,
            gathering=timedelta(minutes=settings.alarm_digest_minutes),
            backup_age=timedelta(hours=hours) if hours else None,
        )

    def messenger(self) -> Messenger | None:
        """Return the bot of notifications; None if none is set."""
        token, url = self._settings.notifications_telegram_token, self._settings.notifications_telegram_url
        if token is None:
            return None
        from ...adapters.alarms.telegram_chats import TelegramChats

        return self._kept(TelegramChats(token, base_url=url or TELEGRAM_API))

    def _one(self, kind: str, given: Any, built_in: Callable[[], Any], tools: FileTools | None = None) -> Any:
        """Return the given adapter, or else the one in the setting named like the kind."""
        if given is not None:
            return given
        name = getattr(self._settings, kind)
        if name in KINDS[kind].built_in:
            return built_in()
        return self._kept(made(kind, name, tools or self._tools, self._settings.providers))

    def _plugin(self, kind: str, name: str, mode: Mode) -> Any:
        tools = msgspec.structs.replace(self._tools, mode=mode.value)
        return self._kept(made(kind, name, tools, self._settings.providers))

    def _kept(self, adapter: T) -> T:
        self._made.append(adapter)
        return adapter


def http_notifier(clock: Clock, *, loopback: bool) -> Notifier:
    """Return the notifier that posts webhooks; with `loopback`, webhooks of test mode also to this machine.

    Its library is imported only when a webhook is really sent, because a test's app then opens twice as fast. Without
    the library, return a notifier that answers with the extra to install.
    """
    try:
        with needing("http", "posting webhooks"):
            from ...adapters.notifier.http import HttpNotifier
    except NotInstalled as missing:
        from ...adapters.notifier.absent import AbsentNotifier

        return AbsentNotifier(str(missing))
    return HttpNotifier(clock, loopback=loopback)
