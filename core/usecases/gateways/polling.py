"""Polls banks by schedule: when an open payment or binding is polled next, and how many polls a bank gets in a minute
from all processes together (docs/adapters.md "How often a provider is asked").
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from ....ports.bank import InvoiceState
from ....ports.bundle import Ports
from ....ports.counters import Counter
from ....ports.faults import NO_ANSWER, Fault, Unavailable
from ....ports.jobs import Job
from ....ports.mandates import MandateState
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.rate_limit import WINDOW
from ...domain.gateways.polling import Slot, backup_poll_age, late_poll_pause, poll_pause, slot_at
from ...domain.notifications import NotificationAddress
from ...domain.payments.payments import LATE_WINDOW, LIFETIME, WAITING, Payment, PaymentStatus
from ..common.schedule import FollowUp, hinted, next_late_status_poll
from ..common.simulated import is_advanced_over, is_simulated
from ..common.units import retrying

log = logging.getLogger("cambist.gateways")

S = TypeVar("S", InvoiceState, MandateState)

LATE_POLLS = (timedelta(minutes=30), timedelta(hours=2), LATE_WINDOW)
"""Ages at which an expired payment is polled, for late money whose notification was lost."""

_UNHEARD, _UNHEARD_FOR = timedelta(minutes=10), timedelta(days=1)
"""Interval at which the last of these polls is repeated while the bank does not answer, and the age at which that
ends.
"""

_FAILED_MOST = timedelta(minutes=1)
"""The longest pause after a poll that failed, while a payer waits."""

_PAGES = 60
"""Polls per minute that define the slots for pages: ten seconds each."""
_PAGE_SHARE = 5
"""Divisor of a bank's polls: one in five may be triggered by pages, so programs that open links cannot use up the
rest.
"""
_PAGE_FROM = timedelta(seconds=10)
"""Age from which a page triggers polls. A payer who opens it at once has not paid yet."""
_PAGE_RUNS = 150
"""Polls of one payment after which its page triggers no more. The schedule alone takes 90 at most."""

_PROOF_RECENT = 60.0
"""Seconds after which a process notifications that a bank's first notification was verified."""

_WAITED_FOR = timedelta(minutes=5)
"""Age up to which the payer is assumed to be present."""

_OVER = (PaymentStatus.EXPIRED, PaymentStatus.FAILED, PaymentStatus.CANCELLED)


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a poll, as far as it affects the time of the next one."""

    check_after: float | None = None
    """Pause in seconds that the bank suggests, if any."""
    turn: datetime | None = None
    """Time of the next attempt, if the bank's polls of this slot were used up."""
    is_received: bool = True
    """Whether the bank answered."""
    is_proven: bool = True
    """Whether a notification of the bank was verified before."""

    @property
    def has_hint(self) -> bool:
        """Return whether the bank, or its budget, determines the time of the next poll."""
        return self.turn is not None or self.check_after is not None


async def poll(
    ports: Ports, payment: Payment, ask: Callable[[Ports, Payment], Awaitable[S]]
) -> tuple[S | None, Looked]:
    """Poll the bank of a payment or binding with `ask`, within the bank's budget. Return the bank's state, or None
    without an answer, and the result that decides the next poll.
    """
    turn = await turned_away(ports, payment)
    if turn is not None:
        return None, Looked(turn=turn, is_received=False)
    is_proven = await _has_notified(ports, payment.bank)
    try:
        state = await ask(ports, payment)
    except NO_ANSWER as fault:
        wait = fault.retry_after if isinstance(fault, Unavailable) else None
        return None, Looked(check_after=wait, is_received=False, is_proven=is_proven)
    return state, Looked(check_after=state.check_after, is_proven=is_proven)


async def _has_notified(ports: Ports, bank: str | None) -> bool:
    """Return whether a notification of the bank was ever verified. Until then our address may not be configured
    there.
    """
    if not is_backed_up(ports, bank):
        return True
    address = await ports.storage.recent(NotificationAddress, bank or "", within=_PROOF_RECENT)
    return address is not None and address.received_at is not None


def is_backed_up(ports: Ports, bank: str | None) -> bool:
    """Return whether the bank sends notifications and is polled as a backup for lost ones. Simulators lose none."""
    known = ports.banks.capabilities_of(bank)
    return known is not None and known.sends_notifications and not known.simulated


def next_poll(ports: Ports, payment: Payment, looked: Looked) -> datetime | None:
    """Return when to poll the bank of a payment or binding next, without its deadlines.

    None means that this schedule has no further poll: at simulated banks; and at banks that send notifications, after
    the deadline or, for a binding whose link lives long, after its first minutes.
    """
    if looked.turn is not None:
        return looked.turn
    now = ports.clock.now()
    at = _scheduled(ports, payment, now, is_proven=looked.is_proven)
    if looked.check_after is not None:
        at = now + hinted(looked.check_after)
    if at is None or looked.is_received or payment.status not in WAITING:
        return at
    return min(at, now + _FAILED_MOST)


def _scheduled(ports: Ports, payment: Payment, now: datetime, *, is_proven: bool) -> datetime | None:
    known = ports.banks.capabilities_of(payment.bank)
    if known is None or known.simulated:
        return None
    age, is_open = now - payment.created_at, now < payment.expires_at
    if not known.sends_notifications:
        return now + (poll_pause(age) if is_open else late_poll_pause(age))
    if not is_open or payment.status in _OVER or (payment.binding is not None and age >= LIFETIME):
        return None
    return payment.created_at + backup_poll_age(age, is_proven=is_proven)


def next_late_poll(ports: Ports, payment: Payment, looked: Looked) -> datetime | None:
    """Return when to poll the bank of an expired payment next, for a late payer: following its schedule, and at the
    ages of `LATE_POLLS`, because a notification may be lost. The last poll is repeated for a day until the bank answers
    it.
    """
    now, at = ports.clock.now(), next_poll(ports, payment, looked)
    last = next_late_status_poll(LATE_POLLS, payment.created_at, now, advanced=is_advanced_over(ports, payment.bank))
    if last is not None:
        return last if at is None else min(at, last)
    if looked.is_received or now >= payment.created_at + _UNHEARD_FOR:
        return None
    return at if looked.has_hint else now + _UNHEARD


async def turned_away(ports: Ports, payment: Payment) -> datetime | None:
    """Use one of the polls that the payment's bank may get. Return None when the bank may be polled now, or the time of
    the next attempt.

    Some polls are reserved for payments whose payer waits and for those at their deadline. Only live mode is counted,
    because test accounts have clocks of their own.
    """
    known = ports.banks.capabilities_of(payment.bank)
    if known is None or known.simulated or payment.mode is not Mode.LIVE:
        return None
    now = ports.clock.now()
    slot = slot_at(now, known.polls_per_minute)
    is_new, is_due = now < payment.created_at + _WAITED_FOR, now >= payment.expires_at
    is_kept_for = payment.status is not PaymentStatus.EXPIRED and (is_new or is_due)
    if is_kept_for and await _take(ports, slot, f"polls:{payment.bank}:kept", slot.kept) <= slot.kept:
        return None
    number = await _take(ports, slot, f"polls:{payment.bank}:common", slot.common)
    return None if number <= slot.common else slot.turn_after(number)


async def hurry_poll(ports: Ports, watch: FollowUp, payment: Payment) -> None:
    """Poll the bank of an open payment soon, through the job that follows it, because a payer opened its page or
    returned to it from the bank's app.

    Limits: one poll in ten seconds and `_PAGE_RUNS` polls for a payment; one in `_PAGE_SHARE` of a bank's polls for all
    pages. Simulated banks are not polled. A fault of the storage is logged, and the page is shown anyway.
    """
    now, known = ports.clock.now(), ports.banks.capabilities_of(payment.bank)
    if payment.mode is not Mode.LIVE or payment.bank_reference is None or is_simulated(ports, payment.bank):
        return
    if known is None or now < payment.created_at + _PAGE_FROM:
        return
    if await _take(ports, slot_at(now, _PAGES), f"page:{payment.id}", 1) > 1:
        return
    slot = slot_at(now, known.polls_per_minute)
    share = max((slot.kept + slot.common) // _PAGE_SHARE, 1)
    if await _take(ports, slot, f"polls:{payment.bank}:pages", share) > share:
        return

    async def work(unit: Unit) -> None:
        job = await unit[Job].get(watch.id_of(payment.id))
        if job is not None and job.leased_until is None and job.attempts < _PAGE_RUNS:
            unit[Job].change(job, due=now)

    try:
        await retrying(ports.storage, work)
    except Fault:
        log.warning("the bank of %s could not be polled when its page was opened", payment.id)


async def _take(ports: Ports, slot: Slot, name: str, limit: int) -> int:
    window = int(slot.begin.timestamp()) // WINDOW
    [number] = await ports.counters.count(window, [Counter(f"{name}:{slot.begin.second}", limit)])
    return number
