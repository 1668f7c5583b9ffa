"""Whether a subscription may be charged now: the pure function `decide_charge` guards charges, and `charge_window`
shows its result to merchants (docs/subscriptions.md "Periods and attempts", "Charging")."""

from datetime import datetime

import msgspec

from ..accounts.accounts import Scheme
from .periods import Period, Terms, calendar_period, window_number, window_period


class Attempts(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts at the period that was charged last. If neither pending nor paid, the last one failed."""

    period: Period
    used: int
    first_at: datetime
    payment_id: str
    """Id of the last attempt's payment."""
    external_id: str | None = None
    """External id of the last attempt; null for the binding's charge."""
    pending: bool = False
    """The last attempt has no outcome yet."""
    paid: bool = False
    """An attempt succeeded."""
    announced: bool = False
    """Whether the event about the exhausted budget was sent, once for the period."""


class ChargeState(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a decision besides the terms."""

    anchor: datetime | None
    """Time of the last successful payment; null before the binding. Only successful payments change it."""
    attempts: Attempts | None


class Exhaustion(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of a period is used up: content of `subscription.charge_exhausted`."""

    period_ref: str
    retries_used: int
    retries_max: int
    retry_window_hours: int
    next_allowed_at: datetime
    """The start of the next period."""


class ChargeDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the five decisions below. With each of them, the unit that made the decision must also send `announce`:
    the exhaustion of a period that was not reported yet, even of a past one."""

    period: Period
    """The period of the decision."""
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
    """Window scheme: the last attempt is pending and is the answer to every new one. Its period may be over by now."""

    payment_id: str


class Occupied(ChargeDecision, frozen=True, kw_only=True):
    """Calendar scheme: the period already has its charge, pending or paid, which is the answer to every new one."""

    payment_id: str
    external_id: str | None


def decide_charge(terms: Terms, state: ChargeState, now: datetime) -> ChargeDecision:
    """Decide about a charge that is requested now.

    A period that passes unpaid does not change the anchor: the next one is counted from it, too. Raises: ValueError in
    the window scheme before the binding.
    """
    if state.attempts is not None:
        # Another process's clock may be behind at a period's edge; without this an attempt would be overlooked.
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
    # Period 0 is paid with the anchor. A later one is paid if a charge for it succeeded.
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
    """Return when the budget of these attempts ends. None: never, because the period ends first or has no budget."""
    budget = terms.budget
    if budget is None:
        return None
    if attempts.used >= budget.attempts:
        return attempts.first_at
    ends_at = attempts.first_at + budget.window
    return ends_at if ends_at < attempts.period.closes_at else None


def exhaustion_due_at(terms: Terms, state: ChargeState) -> datetime | None:
    """Return when to check for an exhaustion that no request would reveal; possibly in the past. None: none will occur
    in the present state; if a pending attempt fails, ask again."""
    attempts = state.attempts
    if attempts is None or attempts.pending or attempts.paid or attempts.announced:
        return None
    return _exhausted_since(terms, attempts)


def exhaustion(terms: Terms, state: ChargeState, now: datetime) -> Exhaustion | None:
    """Return the exhaustion to announce now; None if there is none, or it was announced.

    A late check finds it after the period's end, too: the event is sent once for each period whose budget was used up.
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
    """Content of `GET /subscriptions/{id}/charge-window`: the period that a charge would be for, and whether one may be
    made now."""

    period_ref: str | None = None
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    attempts_used: int = 0
    attempts_max: int | None = None
    """Null in the calendar scheme, which has no budget."""
    window_ends_at: datetime | None = None
    """End of the budget's hours, or of the period if that is earlier; null before the first attempt."""
    can_charge: bool = False
    reason: str | None = None
    """Why not: the error code that a charge would get, or CHARGE_PENDING."""
    next_allowed_at: datetime | None = None
    """From when on a charge may be made; null if one may be made now, or if waiting will not help."""


CHARGE_PENDING = "CHARGE_PENDING"


def charge_window(terms: Terms, state: ChargeState, now: datetime) -> ChargeWindow:
    """Return the result of `decide_charge` in the form for merchants. Raises: ValueError as there."""
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
