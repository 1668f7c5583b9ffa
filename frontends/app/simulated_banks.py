"""Simulated banks of an app: the built-in ones, and additional ones given at opening."""

from datetime import timedelta

import msgspec

from ...adapters.bank.simulator.simulator import REMITTANCE_MOST, SimulatedBank
from ...adapters.script import Script
from ...core.domain.accounts.accounts import Mode
from ...ports.bank import Bank, BankCapabilities
from ...ports.tools import Tools

_LINKS = "https://qr.nspk.example"
"""Domain reserved for examples, so that a simulated QR code never leads to a real page."""

_SIMULATORS = {"simulator": False, "simulator-asked": True}
"""Built-in simulated banks, and whether the service requests each invoice separately."""

_REFUNDS_HOLD = {Mode.LIVE: timedelta(0), Mode.TEST: timedelta(seconds=5)}
"""How long the simulated bank keeps a refund in processing: in test mode long enough to simulate another outcome."""

_LIVE_BANK = BankCapabilities(
    own_lifetime=True,
    direct_link=True,
    simulated=True,
    sends_notifications=True,
    mandates=True,
    mandate_charges=False,
    remittances=True,
    remittance_max_kopecks=REMITTANCE_MOST,
)
"""Live mandates cannot be charged at present (docs/subscriptions.md "When a charge is refused",
PROVIDER_NOT_CONFIGURED); in test mode they can."""


class FurtherBank(msgspec.Struct, frozen=True, kw_only=True):
    """An additional simulated bank of a mode, tried after the banks before it."""

    name: str
    mode: Mode = Mode.TEST
    script: Script | None = None
    capabilities: BankCapabilities | None = None
    asked: bool = False
    """Whether the bank issues an invoice only on request."""


def built_in(name: str, mode: Mode, script: Script | None) -> FurtherBank | None:
    """Return the simulated bank of this name in the settings; None for another name."""
    if name not in _SIMULATORS:
        return None
    can = _LIVE_BANK if mode is Mode.LIVE else None
    return FurtherBank(name=f"{name}-{mode}", mode=mode, script=script, capabilities=can, asked=_SIMULATORS[name])


def simulated_bank(tools: Tools, bank: FurtherBank) -> Bank:
    """Make a simulated bank."""
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
