"""Times of a job's next run (core/usecases/common/schedule.py; ARCHITECTURE.md "Three outcomes")."""

from datetime import UTC, datetime, timedelta

from cambist.core.usecases.common.schedule import hinted, next_ask, next_late_status_poll, pause_after
from tests.tables import table

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600


@table(
    ("asked", "seconds"),
    [(0, 10), (1, 10), (2, 30), (3, 120), (4, 600), (5, HOUR), (6, 6 * HOUR), (7, 6 * HOUR), (1000, 6 * HOUR)],
)
def test_a_provider_that_gave_no_end_is_asked_again_by_a_backoff(asked: int, seconds: float) -> None:
    """The last step is for ever."""
    assert pause_after(asked) == timedelta(seconds=seconds)
    assert next_ask(None, asked, NOW) == NOW + timedelta(seconds=seconds)


@table(("hint", "seconds"), [(-5, 1), (0, 1), (1, 1), (1.5, 1.5), (21600, 21600), (21601, 21600), (1e12, 21600)])
def test_a_provider_says_itself_when_within_our_bounds(hint: float, seconds: float) -> None:
    assert hinted(hint) == timedelta(seconds=seconds)
    assert next_ask(hint, 5, NOW) == NOW + timedelta(seconds=seconds)


@table(
    ("hours", "advanced", "due"),
    [(0, False, 1), (0.99, False, 1), (1, False, 2), (2, False, 6), (5.99, False, 6), (6, False, None),
     (0, True, 6), (1, True, 6), (5.99, True, 6), (6, True, None)],
)  # fmt: skip
def test_ended_record_is_polled_once_more_at_each_late_moment(hours: float, advanced: bool, due: float | None) -> None:
    """If a sandbox clock is advanced over these moments, only after the last of them."""
    pauses = [timedelta(hours=each) for each in (1, 2, 6)]
    found = next_late_status_poll(pauses, NOW, NOW + timedelta(hours=hours), advanced=advanced)
    assert found == (None if due is None else NOW + timedelta(hours=due))
