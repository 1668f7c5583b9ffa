"""The outcome of a refund without a key, from its payment's visible state (docs/providers/tbank.md "Refunds")."""

from datetime import timedelta

import pytest

from cambist.adapters.bank.tbank.refund_book import (
    ALL,
    PAID,
    PART,
    QUIET,
    Book,
    Entry,
    Seen,
    Stage,
    begun,
    found,
    settled,
    unexplained,
)
from cambist.adapters.clock import VirtualClock
from cambist.ports.bank import RefundRequest, RefundState, RefundStatus
from cambist.ports.faults import OutcomeUnknown, Refused, Unavailable
from tests.tables import table

NOW = VirtualClock().now()
LATER = NOW + QUIET
BUSY = "ASYNC_REFUNDING"
DONE = RefundState(status=RefundStatus.DONE)


def seen(status: str, kopecks: int = 100, last: int | None = None, code: str | None = None) -> Seen:
    return Seen(status=status, kopecks=kopecks, last=last, code=code)


def entry(kopecks: int = 60, stage: Stage = Stage.SENT, before: Seen | None = None, operation: str = "a") -> Entry:
    return Entry(operation=operation, kopecks=kopecks, sent_at=NOW, before=before or seen(PAID), stage=stage)


def book(*entries: Entry) -> Book:
    return Book(paid=100, entries=entries)


def ask(kopecks: int = 60, operation: str = "a") -> RefundRequest:
    return RefundRequest(operation=operation, reference="T/1/100", amount_kopecks=kopecks)


HALF = entry(40, Stage.DONE, operation="b")
"""Another one, that went before."""
SAME = seen(PART, 60, last=40)
"""The payment's state after it, at a terminal that lowers the amount."""
BLIND = seen(PART, 100, last=40)
"""The same, where it does not."""


class TestOneWithoutAnAnswer:
    @table(
        ("known", "before", "after", "stage"),
        [
            # The first of its payment: CONFIRMED becomes something else once a refund went.
            ((), seen(PAID), seen(PART, 40, 60), Stage.DONE),
            ((), seen(PAID), seen(PART, 40), Stage.DONE),
            ((), seen(PAID), seen(PART, 100, 60), Stage.DONE),
            ((), seen(PAID), seen(PART, 100), Stage.DONE),
            ((), seen(PAID), seen(BUSY, 100, 60), Stage.TAKEN),
            ((), seen(PAID), seen(PAID, 100, 60, "I05043"), Stage.FAILED),
            # An old error says nothing of this one.
            ((), seen(PAID, code="I05043"), seen(PAID, code="I05043"), Stage.SENT),
            # Somebody else's amount.
            ((), seen(PAID), seen(PART, 70, 30), Stage.SENT),
            ((), seen(PAID), seen(PART, 100, 30), Stage.SENT),
            ((), seen(PAID), seen(ALL, 0, 100), Stage.SENT),
            # A second refund: only the remainder can prove it.
            ((HALF,), SAME, seen(ALL, 0, 60), Stage.DONE),
            ((HALF,), BLIND, seen(ALL, 100, 60), Stage.DONE),
            ((HALF,), BLIND, seen(PART, 100, 60), Stage.DONE),
            ((HALF,), BLIND, BLIND, Stage.SENT),
        ],
    )
    def test_end_of_an_unanswered_refund_is_read_off_the_payment(
        self, known: tuple[Entry, ...], before: Seen, after: Seen, stage: Stage
    ) -> None:
        looked = settled(book(*known, entry(before=before)), after, NOW)
        now = looked.entry("a")
        assert now is not None
        assert now.stage is stage

    @table(("known", "before"), [((), seen(PAID)), ((HALF,), SAME)])
    def test_invisible_refund_is_undecided_at_first_and_absent_later(
        self, known: tuple[Entry, ...], before: Seen
    ) -> None:
        sent = book(*known, entry(before=before))
        assert settled(sent, before, LATER - timedelta(seconds=1)).entry("a") is not None
        assert settled(sent, before, LATER).entry("a") is None

    @table(
        ("known", "before", "after"),
        [
            ((), seen(PAID), seen(PART, 70, 30)),
            ((HALF,), BLIND, BLIND),
            ((entry(30, Stage.DONE, operation="b"),), BLIND, seen(ALL, 100, 60)),
            ((), seen(PAID), seen("OF_TOMORROW")),
        ],
    )
    def test_undecidable_refund_is_never_sent_again(self, known: tuple[Entry, ...], before: Seen, after: Seen) -> None:
        """However much time passes: it is an operator's."""
        year = NOW + timedelta(days=365)
        looked = settled(book(*known, entry(before=before)), after, year)
        with pytest.raises(Unavailable):
            found(looked, ask(), after, year)
        with pytest.raises(Unavailable):
            begun(looked, ask(1, "c"), after, year)

    def test_repeat_meanwhile_is_reported_as_under_way(self) -> None:
        _, state = found(book(entry()), ask(), seen(PAID), NOW)
        assert state is not None
        assert state.status is RefundStatus.PROCESSING


class TestOneThatWasTaken:
    @table(
        ("known", "before", "after", "stage"),
        [
            ((), seen(PAID), seen(PART, 40, 60), Stage.DONE),
            ((), seen(PAID), seen(PAID, 100, 60, "I05043"), Stage.FAILED),
            ((), seen(PAID, code="I05043"), seen(PAID, 100, 60, "I05043"), Stage.FAILED),
            ((), seen(PAID), seen(PAID), Stage.TAKEN),
            ((HALF,), BLIND, seen(PART, 100, 60), Stage.DONE),
            ((HALF,), BLIND, seen(PART, 100, 60, "I05043"), Stage.TAKEN),
        ],
    )
    def test_accepted_refund_ends_as_the_payment_shows(
        self, known: tuple[Entry, ...], before: Seen, after: Seen, stage: Stage
    ) -> None:
        looked = settled(book(*known, entry(stage=Stage.TAKEN, before=before)), after, LATER)
        now = looked.entry("a")
        assert now is not None
        assert now.stage is stage

    def test_refund_without_a_known_end_is_undecidable(self) -> None:
        """It is neither failed nor sent again."""
        taken = book(entry(stage=Stage.TAKEN))
        with pytest.raises(Unavailable):
            found(settled(taken, seen(PAID), LATER), ask(), seen(PAID), LATER)


class TestOneThatWasForgotten:
    """The database is older than what T-Bank did."""

    @table("after", [seen(PART, 40, 60), seen(PART, 100, 60)])
    def test_forgotten_refund_is_done_if_just_its_amount_went(self, after: Seen) -> None:
        kept, state = found(book(), ask(), after, NOW)
        assert state == DONE
        assert kept.gone == 60
        assert found(kept, ask(), after, NOW) == (kept, DONE)

    def test_the_same_amount_is_taken_over_once(self) -> None:
        after = seen(PART, 40, 60)
        kept, _ = found(book(), ask(), after, NOW)
        assert found(kept, ask(60, "c"), after, NOW) == (kept, None)

    @table("after", [seen(PART, 70, 30), seen(ALL, 0, 40), seen(PART, 100), seen(BUSY, 100, 60)])
    def test_refund_is_undecidable_if_other_money_went_back(self, after: Seen) -> None:
        with pytest.raises(Unavailable):
            found(book(), ask(), after, NOW)

    @table("after", [seen(PART, 40, 60), seen(PART, 70, 30), seen(PART, 100, 60)])
    def test_a_new_one_is_not_sent_into_the_unknown(self, after: Seen) -> None:
        """It may be the very refund that went: the same request makes the same operation."""
        with pytest.raises(OutcomeUnknown):
            begun(book(), ask(), after, NOW)

    def test_second_refund_is_decidable_only_if_the_remainder_is_shown(self) -> None:
        assert found(book(HALF), ask(), SAME, NOW)[1] is None
        with pytest.raises(Unavailable):
            found(book(HALF), ask(), BLIND, NOW)
        with pytest.raises(OutcomeUnknown):
            begun(book(HALF), ask(), BLIND, NOW)

    def test_refund_open_in_the_old_book_claims_no_other_refunds_money(self) -> None:
        old = book(entry(30))
        after = seen(PART, 40, 30)  # this one, and another one since
        with pytest.raises(Unavailable):
            found(settled(old, after, LATER), ask(30), after, LATER)

    def test_money_that_is_there_again_stops_everything(self) -> None:
        assert unexplained(book(HALF), seen(PAID)) == -40
        with pytest.raises(OutcomeUnknown):
            begun(book(HALF), ask(10, "c"), seen(PAID), NOW)


class TestBeginning:
    @table(("kopecks", "fits"), [(0, False), (-1, False), (1, True), (60, True), (61, False)])
    def test_no_more_than_is_left(self, kopecks: int, fits: bool) -> None:
        if fits:
            assert begun(book(HALF), ask(kopecks), SAME, NOW).open is not None
            return
        with pytest.raises(Refused) as refused:
            begun(book(HALF), ask(kopecks), SAME, NOW)
        assert refused.value.reason == "amount"

    @table("stage", [Stage.SENT, Stage.TAKEN])
    def test_one_at_a_time(self, stage: Stage) -> None:
        """The next refund reports that it waits, until the end of the first one is known or can no longer be found."""
        busy, after = book(entry(30, stage)), seen(PAID)
        with pytest.raises(Unavailable):
            begun(busy, ask(10, "c"), after, NOW)
        _, state = found(busy, ask(10, "c"), after, NOW)
        assert state is not None
        assert state.status is RefundStatus.PROCESSING
        with pytest.raises(Unavailable):
            found(busy, ask(10, "c"), after, LATER)

    def test_a_limit_of_the_payment_system_is_waited_for(self) -> None:
        closed = Book(paid=100, closed_until=LATER)
        with pytest.raises(Unavailable) as wait:
            begun(closed, ask(), seen(PAID), NOW)
        assert wait.value.retry_after == QUIET.total_seconds()
        assert begun(closed, ask(), seen(PAID), LATER).open is not None

    def test_a_failed_one_leaves_the_money_for_another(self) -> None:
        assert begun(book(entry(100, Stage.FAILED)), ask(100, "c"), seen(PAID), NOW).open is not None
