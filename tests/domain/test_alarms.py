"""When a message comes, and of what (docs/alarms.md "When a message comes")."""

from datetime import UTC, datetime, timedelta

from cambist.core.domain.alarms import (
    MOST_KNOWN,
    Known,
    Looked,
    Message,
    Problem,
    after,
    as_it_stands,
    news,
    recipient_id,
    recipient_of,
)
from cambist.ports.alarms import QuietHours
from tests.tables import table

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GATHERING = timedelta(minutes=15)


def problem(name: str, *, urgent: bool = False, source: str = "payouts") -> Problem:
    return Problem(id=name, source=source, kind="payout", text=f"{name}: stuck", urgent=urgent)


CALM, URGENT = problem("calm"), problem("urgent", urgent=True)


def known(*problems: Problem, gone: timedelta | None = None) -> tuple[Known, ...]:
    since = None if gone is None else NOW - gone
    return tuple(Known(problem=each, told_at=NOW - 60 * MINUTE, gone_since=since) for each in problems)


def looked(*problems: Problem, blind: tuple[str, ...] = ()) -> Looked:
    return Looked(problems=problems, blind=blind)


def told(
    before: tuple[Known, ...], now: Looked, *, is_quiet: bool = False, last: timedelta | None = None
) -> tuple[list[str], list[str], bool] | None:
    message = news(
        as_it_stands(before, now, NOW),
        now,
        NOW,
        told_at=None if last is None else NOW - last,
        is_quiet=is_quiet,
        gathering=GATHERING,
    )
    if message is None:
        return None
    return [each.id for each in message.begun], [each.id for each in message.over], message.silent


class TestNews:
    def test_each_problem_is_reported_once(self) -> None:
        assert told((), looked(CALM, URGENT)) == (["urgent", "calm"], [], False)
        assert told(known(CALM, URGENT), looked(CALM, URGENT)) is None

    def test_problem_gone_for_two_minutes_is_reported_as_over(self) -> None:
        assert told(known(CALM), looked()) is None, "it is gone since now"
        assert told(known(CALM, gone=119 * MINUTE / 60), looked()) is None
        assert told(known(CALM, gone=2 * MINUTE), looked()) == ([], ["calm"], False)

    def test_problem_back_before_that_is_the_same_problem(self) -> None:
        [back] = as_it_stands(known(CALM, gone=MINUTE), looked(CALM), NOW)
        assert back.gone_since is None

    def test_problem_that_becomes_urgent_is_reported_again(self) -> None:
        worse = problem("calm", urgent=True)
        assert told(known(CALM), looked(worse), last=MINUTE) == (["calm"], [], False)
        assert told(known(worse), looked(CALM)) is None, "what is less urgent is no news"

    @table("last", [timedelta(0), 14 * MINUTE])
    def test_problems_that_can_wait_are_gathered(self, last: timedelta) -> None:
        assert told((), looked(CALM), last=last) is None
        assert told(known(CALM, gone=2 * MINUTE), looked(), last=last) is None
        assert told((), looked(CALM, URGENT), last=last) == (["urgent", "calm"], [], False), "and goes along"
        assert told(known(URGENT, gone=2 * MINUTE), looked(), last=last) == ([], ["urgent"], False)

    def test_gathered_problems_are_reported_when_the_time_is_over(self) -> None:
        assert told((), looked(CALM), last=GATHERING) == (["calm"], [], False)

    def test_a_clock_that_was_set_back_holds_nothing_up(self) -> None:
        assert told((), looked(CALM), last=-60 * MINUTE) == (["calm"], [], False)
        [gone] = as_it_stands(known(CALM, gone=-60 * MINUTE), looked(), NOW)
        assert gone.gone_since == NOW

    def test_quiet_hours_are_broken_by_what_is_urgent_alone(self) -> None:
        assert told((), looked(CALM), is_quiet=True) is None
        assert told(known(CALM, gone=60 * MINUTE), looked(), is_quiet=True) is None
        assert told((), looked(CALM, URGENT), is_quiet=True) == (["urgent", "calm"], [], False)

    def test_end_of_an_urgent_problem_is_reported_silently_in_quiet_hours(self) -> None:
        assert told(known(URGENT, gone=2 * MINUTE), looked(), is_quiet=True) == ([], ["urgent"], True)

    def test_problem_of_an_unreadable_source_is_not_over(self) -> None:
        [kept] = as_it_stands(known(CALM), looked(blind=("payouts",)), NOW)
        assert kept.gone_since is None
        [other] = as_it_stands(known(problem("x", source="ledger")), looked(blind=("payouts",)), NOW)
        assert other.gone_since == NOW

    def test_the_number_of_troubles_is_bounded_and_the_urgent_ones_come_first(self) -> None:
        many = [problem(f"t{number}") for number in range(MOST_KNOWN + 5)]
        found = told((), looked(*many, URGENT))
        assert found is not None
        assert (len(found[0]), found[0][0]) == (MOST_KNOWN, "urgent")
        assert told(known(*many[:MOST_KNOWN]), looked(*many)) is None
        assert told(known(*many[: MOST_KNOWN + 2]), looked(*many)) is None, "an earlier version knew more"

    def test_known_problem_that_becomes_urgent_keeps_its_place(self) -> None:
        full = [problem(f"t{number}") for number in range(MOST_KNOWN)]
        worse = problem("t7", urgent=True)
        assert told(known(*full), looked(*full[:7], worse, *full[8:])) == (["t7"], [], False)
        assert told(known(*full), looked(*full[:7], worse, *full[8:], URGENT)) == (["t7"], [], False)


def test_sent_message_adds_begun_problems_and_drops_ended_ones() -> None:
    message = Message(id="m", at=NOW, begun=(URGENT,), over=(CALM,))
    left = after(known(CALM, problem("other")), message, NOW)
    assert [each.problem.id for each in left] == ["other", "urgent"]
    assert left[-1].told_at == NOW


@table("parts", [("email", None), ("email", "acc_1")])
def test_a_recipient_is_a_channel_and_perhaps_a_merchant(parts: tuple[str, str | None]) -> None:
    assert recipient_of(recipient_id(*parts)) == parts


@table(
    ("quiet", "hour", "covered"),
    [
        (QuietHours(start=22 * 60, end=8 * 60), 23, True),
        (QuietHours(start=22 * 60, end=8 * 60), 7, True),
        (QuietHours(start=22 * 60, end=8 * 60), 8, False),
        (QuietHours(start=22 * 60, end=8 * 60), 22, True),
        (QuietHours(start=22 * 60, end=8 * 60, offset=180), 5, False),
        (QuietHours(start=22 * 60, end=8 * 60, offset=180), 19, True),
        (QuietHours(start=9 * 60, end=10 * 60), 9, True),
        (QuietHours(start=9 * 60, end=10 * 60), 10, False),
    ],
)
def test_quiet_hours_may_run_over_midnight_and_have_an_offset(quiet: QuietHours, hour: int, covered: bool) -> None:
    assert quiet.covers(NOW.replace(hour=hour)) is covered
