"""How a gateway is judged from its answers (docs/webhooks.md "Gateways": `degraded`, `down`, `provider_errors`,
`provider_timeout`)."""

from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.gateways.gateways import GatewayReason as R
from cambist.core.domain.gateways.gateways import GatewayStatus as S
from cambist.core.domain.gateways.health import MINUTES, Minute, Seen, is_worth_writing, judged, with_counts
from tests.tables import table


def minute(number: int, calls: int, errors: int = 0, timeouts: int = 0) -> Minute:
    return Minute(number=number, calls=calls, errors=errors, timeouts=timeouts)


@table(
    ("seen", "verdict"),
    [
        ((), None),
        # Too few calls for a judgement.
        ((minute(9, 9, 9),), None),
        ((minute(9, 2),), None),
        # A share of faults, not a number.
        ((minute(9, 10, 10),), (S.DOWN, R.PROVIDER_ERRORS)),
        ((minute(9, 10, 0, 10),), (S.DOWN, R.PROVIDER_TIMEOUT)),
        ((minute(9, 10, 8),), (S.DOWN, R.PROVIDER_ERRORS)),
        ((minute(9, 1000, 799),), (S.DEGRADED, R.PROVIDER_ERRORS)),
        ((minute(9, 10, 1, 1),), (S.DEGRADED, R.PROVIDER_ERRORS)),
        ((minute(9, 10, 1, 2),), (S.DEGRADED, R.PROVIDER_TIMEOUT)),
        ((minute(9, 1000, 199),), (S.OPERATIONAL, None)),
        # Three minutes count together; older ones do not count.
        ((minute(7, 5, 5), minute(8, 3, 3), minute(9, 2, 2)), (S.DOWN, R.PROVIDER_ERRORS)),
        ((minute(6, 50, 50), minute(9, 2, 2)), None),
        ((minute(6, 50, 50), minute(9, 3)), (S.OPERATIONAL, None)),
        ((minute(8, 10, 10), minute(9, 90)), (S.OPERATIONAL, None)),
    ],
)
def test_a_verdict_is_a_share_of_faults_among_enough_calls(seen: Seen, verdict: tuple[S, R | None] | None) -> None:
    assert judged(seen, 9) == verdict


def test_counts_of_a_minute_only_rise_and_old_minutes_are_forgotten() -> None:
    assert with_counts((), 5, calls=4) == (minute(5, 4),)
    seen = with_counts((), 5, calls=4, errors=1)
    assert with_counts(seen, 5, calls=2, timeouts=3) == (minute(5, 4, 1, 3),)
    seen = with_counts(seen, 6, calls=1)
    assert [each.number for each in with_counts(seen, 7, calls=1)] == [5, 6, 7]
    assert [each.number for each in with_counts(seen, 8, calls=1)] == [6, 8]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 50), st.integers(0, 50)), max_size=40))
def test_remembered_counts_are_bounded_and_in_order(counts: list[tuple[int, int, int]]) -> None:
    seen: Seen = ()
    for number, calls, errors in sorted(counts):
        seen = with_counts(seen, number, calls=calls, errors=errors)
    numbers = [each.number for each in seen]
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= MINUTES


def test_a_storm_of_faults_writes_few_rows() -> None:
    assert sum(map(is_worth_writing, range(1, 10_001))) < 1100
    assert [*filter(is_worth_writing, range(1, 51))] == [*range(1, 21), 30, 40, 50]
