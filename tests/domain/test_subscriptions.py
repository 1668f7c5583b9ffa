"""Subscriptions as data: every row of the state table, and what each happening makes of each status
(docs/states.md "Subscription"; docs/subscriptions.md "Making one")."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.subscriptions import moves as subscription_moves
from cambist.core.domain.subscriptions.moves import Mandate, bound
from cambist.core.domain.subscriptions.periods import calendar_period
from cambist.core.domain.subscriptions.subscriptions import (
    SUBSCRIPTION_MOVES,
    Binding,
    Subscription,
    SubscriptionStatus,
    awaits_binding,
    binding_ends_at,
    masked_phone,
    pause_ends_at,
)
from tests.domain.subscription_kit import (
    BOUND_AT,
    DAY,
    HOUR,
    TICK,
    S,
    attempts,
    moscow,
    refusal,
    subscription,
)
from tests.moves import trigger_to
from tests.tables import table

NOW = BOUND_AT + 2 * DAY
NEW = Mandate(bank="bank", reference="binding-2", token=b"u")
OLD = Mandate(bank="bank", reference="binding-1", token=b"t")
OPEN = Binding(operation="op-1", requested_at=BOUND_AT - HOUR)
LINK = "https://bank.example/link"
WAITING = {"binding_url": None, "binding_url_pending": True, "binding": OPEN}
CREATED = BOUND_AT - HOUR

Change = Callable[[Subscription], Subscription]


def bind(it: Subscription, mandate: Mandate = NEW, charge: str | None = "pay_b", at: datetime = NOW) -> Subscription:
    return bound(it, mandate, shown=it.amount, at=at, charge=charge, now=NOW)


def plain(name: str, *args: Any, **kwargs: Any) -> Change:
    return lambda it: getattr(subscription_moves, name)(it, *args, now=NOW, **kwargs)


ALLOWED = {
    (S.PENDING_BINDING, S.ACTIVE),
    (S.PENDING_BINDING, S.CANCELLED),
    (S.PENDING_BINDING, S.EXPIRED),
    (S.ACTIVE, S.PAUSED),
    (S.ACTIVE, S.CANCELLED),
    (S.ACTIVE, S.EXPIRED),
    (S.PAUSED, S.ACTIVE),
    (S.PAUSED, S.CANCELLED),
    (S.PAUSED, S.EXPIRED),
}


class TestTable:
    @table(("before", "after"), list(product(S, S)), ids=lambda status: str(status))
    def test_the_moves_are_those_of_the_contract(self, before: SubscriptionStatus, after: SubscriptionStatus) -> None:
        if (before, after) in ALLOWED:
            assert SUBSCRIPTION_MOVES.move(before, trigger_to(SUBSCRIPTION_MOVES, before, after)) is after
        else:
            with pytest.raises(IllegalMove):
                trigger_to(SUBSCRIPTION_MOVES, before, after)

    def test_cancelled_and_expired_are_final(self) -> None:
        assert {status for status in S if SUBSCRIPTION_MOVES.is_final(status)} == {S.CANCELLED, S.EXPIRED}


class TestHappenings:
    @table(
        ("change", "moves"),
        [
            (bind, {S.PENDING_BINDING: S.ACTIVE, S.PAUSED: S.ACTIVE}),
            (plain("mandate_lost"), {S.ACTIVE: S.PAUSED}),
            (plain("mandate_restored"), {S.PAUSED: S.ACTIVE}),
            (plain("consent_ended"), {S.ACTIVE: S.EXPIRED}),
            (plain("binding_closed"), {S.PENDING_BINDING: S.CANCELLED}),
            (plain("binding_timed_out"), {S.PENDING_BINDING: S.EXPIRED}),
            (
                lambda it: subscription_moves.pause_timed_out(it, BOUND_AT + 91 * DAY),
                {S.PAUSED: S.EXPIRED},
            ),
        ],
        ids=["bound", "lost", "restored", "consent ended", "closed", "binding timed out", "pause timed out"],
    )
    @table("status", S)
    def test_bank_and_time_move_a_status_once(
        self, change: Change, moves: dict[SubscriptionStatus, SubscriptionStatus], status: SubscriptionStatus
    ) -> None:
        """A move sends one event. Without a move the status stays and no event is sent."""
        before = subscription(status)
        after = change(before)
        assert after.status is moves.get(status, status)
        assert after.sequence == before.sequence + (status in moves)
        again = change(after)
        assert (again.status, again.sequence) == (after.status, after.sequence)

    @table("status", S)
    def test_cancelling(self, status: SubscriptionStatus) -> None:
        """Cancelling twice is a 409; the bank's side follows (docs/subscriptions.md "Changing and ending")."""
        before = subscription(status, past_due=status is S.ACTIVE)
        if status in (S.CANCELLED, S.EXPIRED):
            assert refusal(lambda: subscription_moves.cancelled(before, NOW)) == (409, "INVALID_STATE")
            return
        after = subscription_moves.cancelled(before, NOW)
        assert (after.status, after.sequence) == (S.CANCELLED, 1)
        assert (after.past_due, after.rebind_required, after.binding_url_pending) == (False, False, False)
        assert after.revoke_pending is (status is not S.PENDING_BINDING)
        assert subscription_moves.revoked(after, NOW).revoke_pending is False

    def test_cancelling_ends_a_binding_that_is_open_at_the_bank(self) -> None:
        opened = subscription_moves.binding_begun(subscription(S.PENDING_BINDING), OPEN, NOW)
        assert opened.sequence == 0
        assert subscription_moves.cancelled(opened, NOW).revoke_pending is True

    @table("status", S)
    def test_past_due_is_a_flag_of_active_ones_and_its_change_an_event(self, status: SubscriptionStatus) -> None:
        """It stays active with `past_due`, reported with equal statuses (docs/subscriptions.md "When the mandate is
        lost")."""
        before = subscription(status)
        after = subscription_moves.past_due(before, overdue=True, now=NOW)
        assert after.past_due is (status is S.ACTIVE)
        assert after.sequence == (status is S.ACTIVE)
        assert subscription_moves.past_due(after, overdue=True, now=NOW) == after
        cleared = subscription_moves.past_due(after, overdue=False, now=NOW)
        assert (cleared.past_due, cleared.sequence) == (False, 2 * after.sequence)

    @table(
        ("status", "change"),
        [
            (S.PENDING_BINDING, bind),
            (S.PENDING_BINDING, plain("binding_closed")),
            (S.PENDING_BINDING, plain("binding_timed_out")),
            (S.ACTIVE, plain("consent_ended")),
            (S.PAUSED, bind),
            (S.PAUSED, plain("mandate_restored")),
            (S.PAUSED, plain("binding_closed")),
            (S.PAUSED, lambda it: subscription_moves.pause_timed_out(it, BOUND_AT + 91 * DAY)),
        ],
    )
    def test_afterwards_no_link_is_waited_for_and_nothing_is_overdue(
        self, status: SubscriptionStatus, change: Change
    ) -> None:
        flags = {"past_due": True} if status is S.ACTIVE else {"binding_url": None, "binding_url_pending": True}
        after = change(subscription(status, **flags))
        assert (after.past_due, after.binding_url_pending) == (False, False)

    @table(("status", "more"), [(S.PAUSED, {}), (S.ACTIVE, {"binding_url_pending": True})])
    def test_a_binding_that_is_closed_ends_nothing_where_no_link_was_to_come(
        self, status: SubscriptionStatus, more: dict[str, Any]
    ) -> None:
        before = subscription(status, **more)
        assert subscription_moves.binding_closed(before, NOW) is before

    @table(
        ("status", "first", "expected"),
        [(S.PENDING_BINDING, None, "pay_2"), (S.PENDING_BINDING, "pay_1", "pay_1"), (S.ACTIVE, None, None)],
    )
    def test_the_first_payment_is_the_first_that_was_paid_before_the_binding(
        self, status: SubscriptionStatus, first: str | None, expected: str | None
    ) -> None:
        before = subscription(status, first_payment_id=first)
        assert subscription_moves.first_paid(before, "pay_2", NOW).first_payment_id == expected

    @table(
        ("status", "more", "awaits"),
        [
            (S.PENDING_BINDING, {}, True),
            (S.ACTIVE, {"rebind_required": True}, False),
            (S.PAUSED, {"rebind_required": False}, False),
            (S.PAUSED, {}, True),
            (S.PAUSED, {"binding": msgspec.structs.replace(OPEN, bank="bank", bank_reference="binding-1")}, False),
            (S.PAUSED, {"binding": msgspec.structs.replace(OPEN, bank="bank", bank_reference="binding-2")}, True),
            (S.PAUSED, {"binding": OPEN}, True),
            (S.CANCELLED, {}, False),
        ],
    )
    def test_payer_may_bind_first_and_again_by_a_binding_since_the_loss(
        self, status: SubscriptionStatus, more: dict[str, Any], awaits: bool
    ) -> None:
        assert awaits_binding(subscription(status, **more)) is awaits

    def test_losing_the_mandate_asks_for_a_new_one(self) -> None:
        lost = subscription_moves.mandate_lost(subscription(past_due=True), NOW)
        assert (lost.rebind_required, lost.past_due, lost.paused_at, lost.can_be_charged) == (True, False, NOW, False)
        back = subscription_moves.mandate_restored(lost, NOW)
        assert (back.rebind_required, back.paused_at, back.can_be_charged) == (False, None, True)


class TestLink:
    def test_link_that_got_ready_makes_an_event_with_equal_statuses(self) -> None:
        ready = subscription_moves.link_issued(subscription(S.PENDING_BINDING, **WAITING), LINK, NOW)
        assert (ready.status, ready.binding_url, ready.binding_url_pending) == (S.PENDING_BINDING, LINK, False)
        assert ready.sequence == 1
        assert subscription_moves.link_issued(ready, LINK, NOW) == ready

    @table("status", [S.ACTIVE, S.CANCELLED, S.EXPIRED])
    def test_a_link_that_comes_too_late_changes_nothing(self, status: SubscriptionStatus) -> None:
        late = subscription(status, **WAITING)
        assert subscription_moves.link_issued(late, LINK, NOW) == late

    @table(
        ("fields", "ends_at", "becomes"),
        [
            ({"binding_url": None, "binding_url_pending": True}, CREATED + HOUR, S.CANCELLED),
            (WAITING, CREATED + HOUR, S.CANCELLED),
            ({}, CREATED + DAY, S.EXPIRED),
            ({"binding": msgspec.structs.replace(OPEN, link_issued_at=BOUND_AT)}, BOUND_AT + DAY, S.EXPIRED),
        ],
    )
    def test_how_long_a_binding_is_waited_for(
        self, fields: dict[str, Any], ends_at: datetime, becomes: SubscriptionStatus
    ) -> None:
        """An hour for the link, then cancelled; 24 hours for the payer, then expired (docs/limits.md "Times")."""
        waiting = subscription(S.PENDING_BINDING, **fields)
        assert binding_ends_at(waiting) == ends_at
        assert subscription_moves.binding_timed_out(waiting, ends_at - TICK) == waiting
        ended = subscription_moves.binding_timed_out(waiting, ends_at)
        assert (ended.status, ended.binding_url_pending) == (becomes, False)
        assert ended.revoke_pending is (waiting.binding is not None)
        assert binding_ends_at(ended) is None

    def test_a_pause_lasts_90_days(self) -> None:
        paused = subscription(S.PAUSED, paused_at=BOUND_AT)
        assert pause_ends_at(paused) == BOUND_AT + 90 * DAY
        assert pause_ends_at(subscription()) is None
        almost = BOUND_AT + 90 * DAY - TICK
        assert subscription_moves.pause_timed_out(paused, almost) == paused
        ended = subscription_moves.pause_timed_out(paused, BOUND_AT + 90 * DAY)
        assert (ended.status, ended.rebind_required, ended.revoke_pending) == (S.EXPIRED, False, True)

    @table("status", S)
    def test_binding_anew_is_for_those_that_lost_their_mandate(self, status: SubscriptionStatus) -> None:
        before = subscription(status)
        standing = msgspec.structs.replace(before, rebind_required=False)
        for wrong in (standing, *([] if status is S.PAUSED else [before])):
            asking = partial(subscription_moves.rebound, wrong, None, None, NOW)
            assert refusal(asking) == (409, "INVALID_STATE")
        if status is not S.PAUSED:
            return
        asked = subscription_moves.rebound(before, None, OPEN, NOW)
        assert (asked.status, asked.binding_url, asked.binding_url_pending, asked.sequence) == (status, None, True, 0)
        ready = subscription_moves.link_issued(asked, LINK, NOW)
        assert (ready.binding_url, ready.binding_url_pending, ready.sequence) == (LINK, False, 1)
        closed = subscription_moves.binding_closed(asked, NOW)
        assert (closed.status, closed.binding_url, closed.binding_url_pending) == (status, None, False)


class TestBinding:
    @table("charge", ["pay_b", None])
    def test_the_first_binding_is_the_first_payment(self, charge: str | None) -> None:
        """The binding sets the anchor (docs/subscriptions.md "Periods and attempts"), also without a charge."""
        active = bind(subscription(S.PENDING_BINDING), charge=charge, at=moscow(2026, 1, 31, 23))
        assert active.anchor == moscow(2026, 1, 31, 23)
        assert (active.current_period_start, active.current_period_end) == (moscow(2026, 1, 31), moscow(2026, 2, 28))
        assert (active.mandate_bank, active.mandate_token, active.can_be_charged) == ("bank", b"u", True)
        assert (active.attempts is None) is (charge is None)

    @table("charge", ["pay_b", None])
    def test_in_the_calendar_scheme_only_a_charge_takes_the_period(self, charge: str | None) -> None:
        active = bind(subscription(S.PENDING_BINDING, scheme=Scheme.CALENDAR), charge=charge)
        period = calendar_period(active.interval, NOW)
        assert (active.current_period_start, active.current_period_end) == (period.opens_at, period.closes_at)
        if charge is not None:
            assert active.attempts is not None
            known = active.attempts
            assert (known.period, known.payment_id, known.paid, known.used) == (period, charge, True, 1)

    def test_a_new_binding_without_charge_leaves_the_anchor(self) -> None:
        """Only successes move it. Otherwise a period would count as paid."""
        known = attempts(used=2)
        again = bind(subscription(S.PAUSED, attempts=known), charge=None)
        assert (again.status, again.anchor, again.attempts) == (S.ACTIVE, BOUND_AT, known)
        assert (again.mandate_reference, again.rebind_required, again.paused_at) == ("binding-2", False, None)

    @table("status", [S.ACTIVE, S.PAUSED, S.CANCELLED])
    def test_an_old_report_brings_no_lost_mandate_back(self, status: SubscriptionStatus) -> None:
        known = subscription(status)
        assert bind(known, OLD) == known

    @table("status", [S.CANCELLED, S.EXPIRED])
    def test_a_mandate_that_comes_too_late_is_kept_to_be_revoked(self, status: SubscriptionStatus) -> None:
        late = bind(subscription(status, mandate_bank=None, mandate_reference=None, mandate_token=None))
        assert (late.status, late.mandate_token, late.revoke_pending, late.sequence) == (status, b"u", True, 0)
        done = subscription_moves.revoked(late, NOW)
        assert bind(done) == done

    def test_new_mandate_wins_if_the_old_one_came_back_meanwhile(self) -> None:
        active = bind(subscription(past_due=True), charge=None)
        assert (active.mandate_reference, active.past_due, active.sequence) == ("binding-2", False, 1)


@table(
    ("phone", "mask"),
    [("+70000001234", "***1234"), ("8 (000) 000-12-34", "***1234"), ("12345", "***2345"), ("1234", "***"), ("", "***")],
)
def test_only_the_last_digits_of_a_phone_are_kept(phone: str, mask: str) -> None:
    """Kept masked: `***` and the last 4 digits (docs/subscriptions.md "Making one")."""
    assert masked_phone(phone) == mask
