"""Time limit for repeating an operation. Many banks recognise an operation by its id for a day only, and take a later
repeat for another one (docs/adapters.md "Finding and repeating").
"""

from datetime import datetime

from ....ports.bundle import Ports


def repeats_until(ports: Ports, bank: str | None, sent_at: datetime | None) -> datetime | None:
    """Return the moment until which a bank recognises a repeat of an operation first sent at `sent_at`; None if without
    limit or never sent.
    """
    known = ports.banks.capabilities_of(bank)
    if known is None or known.repeat_window is None or sent_at is None:
        return None
    return sent_at + known.repeat_window


def may_repeat(ports: Ports, bank: str | None, sent_at: datetime) -> bool:
    """Return whether a repeat is still the same operation to the bank."""
    until = repeats_until(ports, bank, sent_at)
    return until is None or ports.clock.now() < until
