"""The simulated banks of a house: the built-in ones, and those that it is opened with beside them."""

from datetime import timedelta

import msgspec

from ..adapters.bank.simulator import REMITTANCE_MOST, SimulatedBank
from ..adapters.script import Script
from ..core.domain.accounts.accounts import Mode
from ..ports.bank import Bank, BankCapabilities
from ..ports.tools import Tools

_LINKS = "https://qr.nspk.example"
"""Reserved for examples, so that a simulated QR never leads to a real one."""

_SIMULATORS = {"simulator": False, "simulator-asked": True}
"""The built-in banks that are simulated: whether each is asked for its invoices."""

_REFUNDS_HOLD = {Mode.LIVE: timedelta(0), Mode.TEST: timedelta(seconds=5)}
"""How long the simulated bank keeps a refund in processing by itself: in test mode long enough to be told otherwise."""

_LIVE_BANK = BankCapabilities(
    own_lifetime=True,
    direct_link=True,
    simulated=True,
    sends_notices=True,
    mandates=True,
    mandate_charges=False,
    remittances=True,
    remittance_max_kopecks=REMITTANCE_MOST,
)
"""Live mandates cannot be charged at present (docs/subscriptions.md "When a charge is refused",
PROVIDER_NOT_CONFIGURED); in test mode they can."""


class FurtherBank(msgspec.Struct, frozen=True, kw_only=True):
    """One more simulated bank of a mode, tried after those before it."""

    name: str
    mode: Mode = Mode.TEST
    script: Script | None = None
    capabilities: BankCapabilities | None = None
    asked: bool = False
    """It draws no invoices: it is asked for each."""


def built_in(name: str, mode: Mode, script: Script | None) -> FurtherBank | None:
    """The simulated bank of this name in the settings; None where it names another."""
    if name not in _SIMULATORS:
        return None
    can = _LIVE_BANK if mode is Mode.LIVE else None
    return FurtherBank(name=f"{name}-{mode}", mode=mode, script=script, capabilities=can, asked=_SIMULATORS[name])


def simulated_bank(tools: Tools, bank: FurtherBank) -> Bank:
    """Make one."""
    return SimulatedBank(
        bank.name,
        tools.storage,
        tools.clock,
        tools.ids,
        link_base=_LINKS,
        script=bank.script,
        capabilities=bank.capabilities,
        refunds_hold=_REFUNDS_HOLD[bank.mode],
        asked=bank.asked,
    )
