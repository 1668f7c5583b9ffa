"""Until when an operation may be sent again: many banks know one by its id for a day only, and take a later repeat for
another (docs/adapters.md "Finding and repeating")."""

from datetime import datetime

from ....ports.bundle import Ports


def repeats_until(ports: Ports, bank: str | None, sent_at: datetime | None) -> datetime | None:
    """Until when a bank knows a repeat of what was first sent at `sent_at`. None: for ever, or it was never sent."""
    known = ports.banks.capabilities_of(bank)
    if known is None or known.repeat_window is None or sent_at is None:
        return None
    return sent_at + known.repeat_window


def may_repeat(ports: Ports, bank: str | None, sent_at: datetime) -> bool:
    """Whether a repeat is still the same operation to the bank."""
    until = repeats_until(ports, bank, sent_at)
    return until is None or ports.clock.now() < until
