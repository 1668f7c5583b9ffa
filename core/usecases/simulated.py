"""Objects of simulated providers while a sandbox clock is advanced over them (docs/sandbox.md "The clock").

A provider is looked at now and then in case a notice of it was lost. At a simulated one nothing happens but by a call,
which tells of it, or a second after one, before the first look. So while a clock is advanced only the looks at
deadlines are left: all others would be most of what a year costs, for nothing.
"""

from ...ports.bundle import Ports
from ...ports.deposits import DepositSimulator
from ...ports.faults import NotConfigured


def is_advanced_over(ports: Ports, bank: str | None) -> bool:
    """Whether the clock is being advanced over an object of a simulated bank."""
    return _is_advanced(ports) and is_simulated(ports, bank)


def is_simulated(ports: Ports, bank: str | None) -> bool:
    """Whether the bank is a simulator. One that is not wired any more is none."""
    known = ports.banks.capabilities_of(bank)
    return known is not None and known.simulated


def is_advanced_over_on_chain(ports: Ports, watcher: str | None) -> bool:
    """The same for an address at a simulated chain."""
    if not _is_advanced(ports) or watcher is None:
        return False
    try:
        return isinstance(ports.deposits.named(watcher), DepositSimulator)
    except NotConfigured:
        return False


def _is_advanced(ports: Ports) -> bool:
    test_clock = ports.clock.test_clock
    return test_clock is not None and test_clock.is_advancing
