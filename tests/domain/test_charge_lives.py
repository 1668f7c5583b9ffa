"""Random lives of subscriptions: whatever comes, no period is charged twice, tried too often, or given up unheard
(docs/subscriptions.md "Periods and attempts")."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.subscriptions.charge_decisions import (
    ChargeDecision,
    Exhausted,
    MayCharge,
    Occupied,
    TooEarly,
    decide_charge,
    exhaustion,
)
from cambist.core.domain.subscriptions.charge_moves import (
    charge_failed,
    charge_started,
    charge_succeeded,
    exhaustion_announced,
)
from cambist.core.domain.subscriptions.periods import Interval, Terms, calendar_period, window_period
from cambist.core.domain.subscriptions.subscriptions import Subscription
from tests.domain.subscription_kit import HOUR, MSK, TICK, subscription, terms
from tests.domain.test_periods import ALL_TERMS, ANCHORS

COMMON = [terms(Interval.DAY, 1), terms(Interval.DAY, 3), terms(Interval.WEEK, 1), terms(Interval.WEEK, 2), terms()]
GAPS = st.sampled_from(["edge", "just before the edge", "budget", "just before the budget"])
GAPS_AND_TIMES = GAPS | st.timedeltas(timedelta(0), 4 * HOUR) | st.timedeltas(timedelta(0), timedelta(days=40))
ENDINGS = st.sampled_from(["paid", "failed", "failed", "failed", "pending"])
LAGS = st.sampled_from([timedelta(0), TICK, timedelta(minutes=2), timedelta(days=3)])
ACTIONS = st.lists(st.tuples(GAPS_AND_TIMES, ENDINGS, st.booleans(), LAGS), max_size=60)


class Life:
    """A subscription that is charged at any moments, with any outcomes, and what happened to it."""

    def __init__(self, terms: Terms, anchor: datetime) -> None:
        self.now = anchor
        more: dict[str, Any] = {
            "interval": terms.interval,
            "interval_count": terms.interval_count,
            "scheme": terms.scheme,
        }
        self.it: Subscription = subscription(**more, anchor=anchor)
        self.tried: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.announced: Counter[str] = Counter()
        self.exhausted: set[str] = set()
        self.pending: str | None = None

    def decide(self, now: datetime) -> ChargeDecision:
        return decide_charge(self.it.terms, self.it.charge_state, now)

    def pass_time(self, gap: Any) -> None:
        if isinstance(gap, timedelta):
            self.now += gap
            return
        known = self.it.attempts
        moment = window_period(self.it.terms, self.now).closes_at if known is None else known.period.closes_at
        if "budget" in gap and known is not None and (budget := self.it.terms.budget) is not None:
            moment = known.first_at + budget.window
        self.now = max(self.now, moment - (TICK if "before" in gap else timedelta(0)))

    def announce(self) -> None:
        found = exhaustion(self.it.terms, self.it.charge_state, self.now)
        if found is not None:
            self.announced[found.period_ref] += 1
            self.it = exhaustion_announced(self.it, found, self.now)
            assert exhaustion(self.it.terms, self.it.charge_state, self.now) is None

    def ask(self, ending: str, lag: timedelta) -> ChargeDecision:
        decision = self.decide(self.now)
        assert decision.announce == exhaustion(self.it.terms, self.it.charge_state, self.now)
        self.announce()
        if isinstance(decision, MayCharge):
            ref, payment_id = decision.period.ref, f"pay_{sum(self.tried.values())}"
            self.tried[ref] += 1
            assert decision.attempt == self.tried[ref]
            self.it = charge_started(self.it, decision, payment_id=payment_id, external_id=None, now=self.now)
            self.pending = payment_id
            if ending != "pending":
                self.end(ending, lag)
        elif isinstance(decision, Exhausted):
            self.exhausted.add(decision.period.ref)
        return decision

    def end(self, ending: str, lag: timedelta) -> None:
        """The bank says how the pending attempt ended; its clock may be behind ours by `lag`."""
        assert self.it.attempts is not None
        assert self.pending is not None
        ref, payment_id = self.it.attempts.period.ref, self.pending
        if ending == "paid":
            before = self.it.anchor
            self.paid[ref] += 1
            self.it = charge_succeeded(self.it, payment_id, ref, at=self.now - lag, now=self.now)
            assert before is not None
            assert self.it.anchor is not None
            assert self.it.anchor > before or self.it.scheme is Scheme.CALENDAR
        else:
            before = self.it.anchor
            self.it = charge_failed(self.it, payment_id, self.now)
            assert self.it.anchor == before, "only successes move the anchor"
        self.pending = None

    def live(self, actions: list[Any]) -> None:
        for gap, ending, settles, lag in actions:
            self.pass_time(gap)
            if self.pending is not None and settles:
                self.end("paid" if ending == "paid" else "failed", lag)
            self.check(self.ask(ending, lag))

    def check(self, decision: ChargeDecision) -> None:
        """Check that the decision holds until the moment that it names, and not at that moment."""
        if isinstance(decision, (TooEarly, Exhausted)):
            then = decision.next_allowed_at
            assert then > self.now
            assert msgspec.structs.replace(self.decide(then - TICK), announce=None) == msgspec.structs.replace(
                decision, announce=None
            )
            yes = self.decide(then)
            assert isinstance(yes, MayCharge)
            assert yes.attempt == 1
            assert then.astimezone(MSK).strftime("%H:%M:%S.%f") == "00:00:00.000000"


class TestLives:
    @given(st.sampled_from(COMMON) | st.sampled_from(ALL_TERMS), ANCHORS, ACTIONS)
    @settings(max_examples=300)
    def test_a_period_is_paid_once_tried_within_its_budget_and_given_up_once(
        self, terms: Terms, anchor: datetime, actions: list[Any]
    ) -> None:
        """One success per period, attempts within the budget, one exhausted event per period
        (docs/subscriptions.md "Periods and attempts")."""
        life = Life(terms, anchor)
        life.live(actions)
        budget = terms.budget
        assert budget is not None
        assert all(count == 1 for count in life.paid.values())
        assert all(count <= budget.attempts for count in life.tried.values())
        assert all(count == 1 for count in life.announced.values())
        assert life.exhausted <= set(life.announced)
        assert not set(life.announced) & set(life.paid)

    @given(st.sampled_from(Interval), ANCHORS, ACTIONS)
    def test_a_calendar_period_has_one_charge_that_did_not_fail(
        self, interval: Interval, anchor: datetime, actions: list[Any]
    ) -> None:
        """One charge a period; a failure frees it (docs/subscriptions.md "Periods and attempts")."""
        kind = terms(interval, 2, Scheme.CALENDAR)
        life = Life(kind, anchor)
        held: set[str] = set()
        for gap, ending, settles, lag in actions:
            life.pass_time(gap)
            ref = calendar_period(interval, life.now).ref
            of_this = life.it.attempts is not None and life.it.attempts.period.ref == ref
            if life.pending is not None and settles and of_this:
                life.end("paid" if ending == "paid" else "failed", lag)
                held -= {ref} if ending != "paid" else set()
            decision = life.decide(life.now)
            assert isinstance(decision, Occupied if ref in held else MayCharge)
            if isinstance(decision, MayCharge):
                life.pending = f"pay_{len(life.tried)}_{life.now}"
                life.tried[life.pending] += 1
                life.it = charge_started(life.it, decision, payment_id=life.pending, external_id=None, now=life.now)
                held.add(ref)
                if ending != "pending":
                    life.end(ending, lag)
                    held -= {ref} if ending != "paid" else set()
        assert all(count == 1 for count in life.paid.values())
        assert not life.announced

    @given(st.sampled_from(COMMON), ANCHORS, st.integers(1, 5), st.booleans())
    def test_an_unpaid_period_moves_no_later_one(
        self, terms: Terms, anchor: datetime, number: int, tries: bool
    ) -> None:
        """Only a success moves the anchor: whatever failed before, the next period opens where the anchor puts it."""
        life = Life(terms, anchor)
        if tries:
            for each in range(1, number):
                life.now = window_period(terms, anchor, each).opens_at
                for _ in range(6):
                    life.ask("failed", timedelta(0))
        period = window_period(terms, anchor, number)
        decision = life.decide(period.opens_at)
        assert isinstance(decision, MayCharge)
        assert (decision.period, decision.attempt) == (period, 1)
