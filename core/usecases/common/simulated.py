"""Objects of simulated providers while a sandbox clock is being advanced (docs/sandbox.md "The clock").

Real providers are polled in case a notification was lost. A simulated provider changes only by a call that notifies, or
a second after one, before the first poll. So during an advance only the polls at deadlines remain. All others would be
most of the cost of a year, for nothing.
"""

from ....ports.bundle import Ports
from ....ports.deposits import DepositSimulator
from ....ports.faults import NotConfigured


def is_advanced_over(ports: Ports, bank: str | None) -> bool:
    """Return whether the clock is being advanced over an object of a simulated bank."""
    return _is_advanced(ports) and is_simulated(ports, bank)


def is_simulated(ports: Ports, bank: str | None) -> bool:
    """Return whether the bank is a simulator. A bank that is no longer wired is not."""
    known = ports.banks.capabilities_of(bank)
    return known is not None and known.simulated


def is_advanced_over_on_chain(ports: Ports, watcher: str | None) -> bool:
    """Return whether the clock is being advanced over an address of a simulated chain."""
    if not _is_advanced(ports) or watcher is None:
        return False
    try:
        return isinstance(ports.deposits.named(watcher), DepositSimulator)
    except NotConfigured:
        return False


def _is_advanced(ports: Ports) -> bool:
    test_clock = ports.clock.test_clock
    return test_clock is not None and test_clock.is_advancing
