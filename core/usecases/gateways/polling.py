"""Asking banks by ourselves: how long until the next look at what waits for its payer, and whose turn it is within what
a bank may be asked in a minute, by all processes together (docs/adapters.md "How often a provider is asked")."""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.counters import Counter
from ....ports.faults import Fault
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.quota import WINDOW
from ...domain.gateways.polling import Slot, late_poll_pause, poll_pause, slot_at
from ...domain.payments.payments import LATE_WINDOW, Payment, PaymentStatus
from ..schedule import FollowUp, hinted, next_late_look
from ..simulated import is_advanced_over, is_simulated
from ..units import retrying

log = logging.getLogger("cambist.gateways")

LATE_LOOKS = (timedelta(minutes=30), timedelta(hours=2), LATE_WINDOW)
"""After creation: when one that has lapsed is looked at once more, for late money whose notice was lost."""

_UNHEARD, _UNHEARD_FOR = timedelta(minutes=10), timedelta(days=1)
"""How often the last of these looks is tried at a bank that does not answer, and until when."""

_PAGES = 60
"""Looks a minute by which pages are counted: in slots of ten seconds."""

_WAITED_FOR = timedelta(minutes=5)
"""After creation: as long as a payer is taken to be there."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What a run learned about when to look again."""

    check_after: float | None = None
    """The bank's own word, in seconds."""
    turn: datetime | None = None
    """When to come back, where it was not asked because the bank was asked so often by then."""
    is_heard: bool = True
    """The bank said how it stands."""


def next_poll(ports: Ports, payment: Payment, looked: Looked) -> datetime | None:
    """When the bank of a payment or binding that is open, or was, is asked again before any deadline; None: a bank that
    sends notices, or a simulated one, is not."""
    if looked.turn is not None:
        return looked.turn
    if looked.check_after is not None:
        return ports.clock.now() + hinted(looked.check_after)
    known = ports.banks.capabilities_of(payment.bank)
    if known is None or known.sends_notices or known.simulated:
        return None
    now = ports.clock.now()
    age = now - payment.created_at
    return now + (poll_pause(age) if now < payment.expires_at else late_poll_pause(age))


def next_late_poll(ports: Ports, payment: Payment, looked: Looked) -> datetime | None:
    """When the bank of one that has lapsed is asked once more, for a payer who was late: by the same ladder, and at
    moments of its own in case a notice was lost. The last look is tried for a day, until the bank answers it."""
    now, poll = ports.clock.now(), next_poll(ports, payment, looked)
    last = next_late_look(LATE_LOOKS, payment.created_at, now, advanced=is_advanced_over(ports, payment.bank))
    if last is not None:
        return last if poll is None else min(poll, last)
    if looked.is_heard or now >= payment.created_at + _UNHEARD_FOR:
        return None
    return now + _UNHEARD if looked.turn is None and looked.check_after is None else poll


async def turned_away(ports: Ports, payment: Payment) -> datetime | None:
    """Take one of the looks that the payment's bank may get. None: ask it now; else when to come back.

    Looks are kept for those whose payer waits and those at their deadline. Only live mode is counted: test accounts
    have clocks of their own.
    """
    known = ports.banks.capabilities_of(payment.bank)
    if known is None or known.simulated or payment.mode is not Mode.LIVE:
        return None
    now = ports.clock.now()
    slot = slot_at(now, known.looks_per_minute)
    is_new, is_due = now < payment.created_at + _WAITED_FOR, now >= payment.expires_at
    is_kept_for = payment.status is not PaymentStatus.EXPIRED and (is_new or is_due)
    if is_kept_for and await _take(ports, slot, f"looks:{payment.bank}:kept", slot.kept) <= slot.kept:
        return None
    number = await _take(ports, slot, f"looks:{payment.bank}:common", slot.common)
    return None if number <= slot.common else slot.turn_after(number)


async def hurry_look(ports: Ports, watch: FollowUp, payment: Payment) -> None:
    """A payer's page of something that is open was opened, or is back from the bank's: have the bank asked now, by the
    job that follows it; once in ten seconds, however often that happens, and never at a simulated bank, where nothing
    comes that is not told. Never raises what the storage does: the page is shown all the same."""
    if payment.mode is not Mode.LIVE or payment.bank_reference is None or is_simulated(ports, payment.bank):
        return
    now = ports.clock.now()
    if await _take(ports, slot_at(now, _PAGES), f"page:{payment.id}", 1) > 1:
        return

    async def work(unit: Unit) -> None:
        await watch.hurry(unit, payment.id, now)

    try:
        await retrying(ports.storage, work)
    except Fault:
        log.warning("the bank of %s could not be asked when its page was opened", payment.id)


async def _take(ports: Ports, slot: Slot, name: str, limit: int) -> int:
    window = int(slot.begin.timestamp()) // WINDOW
    [number] = await ports.counters.count(window, [Counter(f"{name}:{slot.begin.second}", limit)])
    return number
