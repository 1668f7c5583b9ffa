"""Whether a subscription may be charged now: one pure function, `decide_charge`, that guards charges and is shown to
merchants by `charge_window` (docs/subscriptions.md "Periods and attempts", "Charging")."""

from datetime import datetime

import msgspec

from ..accounts.accounts import Scheme
from .periods import Period, Terms, calendar_period, window_number, window_period


class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts at the period that was tried last. Neither pending nor paid: the last one failed."""

    period: Period
    used: int
    first_at: datetime
    payment_id: str
    """Of the last attempt."""
    external_id: str | None = None
    """Of the last attempt; null for the binding's charge."""
    pending: bool = False
    """The last attempt has no outcome yet."""
    paid: bool = False
    """An attempt succeeded."""
    announced: bool = False
    """That the budget is exhausted was told, once for the period."""


class ChargeState(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision looks at beside the terms."""

    anchor: datetime | None
    """When the last successful payment was made; null before the binding. Only successes move it."""
    attempts: Attempts | None


class Exhaustion(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of a period is used up: what `subscription.charge_exhausted` says."""

    period_ref: str
    retries_used: int
    retries_max: int
    retry_window_hours: int
    next_allowed_at: datetime
    """The start of the next period."""


class ChargeDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One of the five below. `announce` is due with any of them, in the unit that looked: the exhaustion of a period
    that was not told yet, even one that is over."""

    period: Period
    """The period it speaks of."""
    announce: Exhaustion | None = None


class MayCharge(ChargeDecision, frozen=True, kw_only=True):
    """A charge may be made, as attempt number `attempt` of the period."""

    attempt: int


class TooEarly(ChargeDecision, frozen=True, kw_only=True):
    """The present period is paid; `period` is the next one."""

    next_allowed_at: datetime


class Exhausted(ChargeDecision, frozen=True, kw_only=True):
    """The attempts or the hours of the period's budget are used up."""

    next_allowed_at: datetime


class Blocked(ChargeDecision, frozen=True, kw_only=True):
    """Window scheme: the last attempt is pending, and answers for every new one. Its period may be over by now."""

    payment_id: str


class Occupied(ChargeDecision, frozen=True, kw_only=True):
    """Calendar scheme: the period has its charge, pending or paid, which answers for every new one."""

    payment_id: str
    external_id: str | None


def decide_charge(terms: Terms, state: ChargeState, now: datetime) -> ChargeDecision:
    """What becomes of a charge that is asked for now.

    A period that passes unpaid leaves the anchor where it is: the next one is counted from it as well.

    Raises: ValueError in the window scheme before the binding.
    """
    if state.attempts is not None:
        # No attempt is forgotten because another process's clock is behind at a period's edge.
        now = max(now, state.attempts.first_at)
    announce = exhaustion(terms, state, now)
    if terms.scheme is Scheme.CALENDAR:
        return _in_calendar(terms, state, now)
    if state.anchor is None:
        raise ValueError("before the binding there is no anchor to count from")
    return msgspec.structs.replace(_in_window(terms, state, state.anchor, now), announce=announce)


def _in_calendar(terms: Terms, state: ChargeState, now: datetime) -> ChargeDecision:
    period = calendar_period(terms.interval, now)
    attempts = _attempts_at(state, period)
    if attempts is not None and (attempts.pending or attempts.paid):
        return Occupied(period=period, payment_id=attempts.payment_id, external_id=attempts.external_id)
    return MayCharge(period=period, attempt=_used(attempts) + 1)


def _in_window(terms: Terms, state: ChargeState, anchor: datetime, now: datetime) -> ChargeDecision:
    if state.attempts is not None and state.attempts.pending:
        return Blocked(period=state.attempts.period, payment_id=state.attempts.payment_id)
    number = window_number(terms, anchor, now)
    period = window_period(terms, anchor, number)
    attempts = _attempts_at(state, period)
    if number == 0 or (attempts is not None and attempts.paid):
        following = window_period(terms, anchor, number + 1)
        return TooEarly(period=following, next_allowed_at=following.opens_at)
    if attempts is not None:
        since = _exhausted_since(terms, attempts)
        if since is not None and now >= since:
            return Exhausted(period=period, next_allowed_at=period.closes_at)
    return MayCharge(period=period, attempt=_used(attempts) + 1)


def _attempts_at(state: ChargeState, period: Period) -> Attempts | None:
    attempts = state.attempts
    return attempts if attempts is not None and attempts.period.ref == period.ref else None


def _used(attempts: Attempts | None) -> int:
    return 0 if attempts is None else attempts.used


def _exhausted_since(terms: Terms, attempts: Attempts) -> datetime | None:
    """When the budget ends that these attempts draw on. None: never, for the period ends first, or has no budget."""
    budget = terms.budget
    if budget is None:
        return None
    if attempts.used >= budget.attempts:
        return attempts.first_at
    ends_at = attempts.first_at + budget.window
    return ends_at if ends_at < attempts.period.closes_at else None


def exhaustion_due_at(terms: Terms, state: ChargeState) -> datetime | None:
    """When to look for an exhaustion that no request brings to light; maybe past. None: there is none to come as
    things stand; a pending attempt that fails brings it back."""
    attempts = state.attempts
    if attempts is None or attempts.pending or attempts.paid or attempts.announced:
        return None
    return _exhausted_since(terms, attempts)


def exhaustion(terms: Terms, state: ChargeState, now: datetime) -> Exhaustion | None:
    """The exhaustion that is to be announced now; None when there is none, or it was announced.

    A late look finds it, too, after the period's end: it is sent once for each period whose budget was used up.
    """
    attempts, budget, due_at = state.attempts, terms.budget, exhaustion_due_at(terms, state)
    if attempts is None or budget is None or due_at is None or now < due_at:
        return None
    return Exhaustion(
        period_ref=attempts.period.ref,
        retries_used=attempts.used,
        retries_max=budget.attempts,
        retry_window_hours=budget.hours,
        next_allowed_at=attempts.period.closes_at,
    )


class ChargeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """What `GET /subscriptions/{id}/charge-window` shows: the period that a charge would be for, and whether one may
    be made now."""

    period_ref: str | None = None
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    attempts_used: int = 0
    attempts_max: int | None = None
    """Null in the calendar scheme, which has no budget."""
    window_ends_at: datetime | None = None
    """When the budget's hours end, or the period where it ends first; null before the first attempt."""
    can_charge: bool = False
    reason: str | None = None
    """Why not: the code that a charge would be refused with, or CHARGE_PENDING."""
    next_allowed_at: datetime | None = None
    """From when on a charge may be made; null when one may be made now, and when time alone will not help."""


CHARGE_PENDING = "CHARGE_PENDING"


def charge_window(terms: Terms, state: ChargeState, now: datetime) -> ChargeWindow:
    """The answer of `decide_charge` as a merchant reads it. Raises: ValueError as there."""
    decision = decide_charge(terms, state, now)
    reason, next_allowed_at = _shown(decision)
    attempts, budget = _attempts_at(state, decision.period), terms.budget
    ends_at = None
    if attempts is not None and budget is not None:
        ends_at = min(attempts.first_at + budget.window, attempts.period.closes_at)
    return ChargeWindow(
        period_ref=decision.period.ref,
        opens_at=decision.period.opens_at,
        closes_at=decision.period.closes_at,
        attempts_used=_used(attempts),
        attempts_max=None if budget is None else budget.attempts,
        window_ends_at=ends_at,
        can_charge=reason is None,
        reason=reason,
        next_allowed_at=next_allowed_at,
    )


def _shown(decision: ChargeDecision) -> tuple[str | None, datetime | None]:
    match decision:
        case TooEarly():
            return "CHARGE_BEFORE_WINDOW", decision.next_allowed_at
        case Exhausted():
            return "RECURRING_CHARGE_EXHAUSTED", decision.next_allowed_at
        case Blocked():
            return CHARGE_PENDING, None
        case Occupied():
            return "CHARGE_PERIOD_OCCUPIED", decision.period.closes_at
        case _:
            return None, None
