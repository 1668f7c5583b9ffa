"""A gateway's status, set by hand or observed (docs/webhooks.md "Gateways")."""

from datetime import UTC, datetime, timedelta

from cambist.core.domain.gateways.gateways import Gateway, GatewayReason, GatewayStatus, announced, changed
from cambist.core.domain.gateways.health import is_set_by_hand
from tests.tables import table

S, R = GatewayStatus, GatewayReason
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)


@table(
    ("status", "reason", "takes", "by_hand"),
    [
        (S.OPERATIONAL, None, True, False),
        (S.DEGRADED, R.PROVIDER_ERRORS, True, False),
        (S.DEGRADED, R.OPERATOR, True, True),
        (S.DOWN, R.PROVIDER_TIMEOUT, True, False),
        (S.DOWN, R.OPERATOR, False, True),
        (S.DOWN, R.MAINTENANCE, False, True),
        (S.OPERATIONAL, R.OPERATOR, True, False),
    ],
)
def test_only_an_operator_disables_a_gateway_and_is_not_overruled(
    status: GatewayStatus, reason: GatewayReason | None, takes: bool, by_hand: bool
) -> None:
    assert Gateway(id="bank", status=status, reason=reason).takes_payments is takes
    assert is_set_by_hand(status, reason) is by_hand


@table(
    ("status", "reason", "since", "kept"),
    [
        (S.DEGRADED, R.OPERATOR, BEFORE, R.OPERATOR),
        (S.DOWN, R.PROVIDER_ERRORS, NOW, R.PROVIDER_ERRORS),
        (S.OPERATIONAL, R.OPERATOR, NOW, None),
    ],
)
def test_another_reason_for_the_same_status_is_since_when_it_was(
    status: GatewayStatus, reason: GatewayReason, since: datetime, kept: GatewayReason | None
) -> None:
    before = Gateway(id="bank", status=S.DEGRADED, reason=R.PROVIDER_ERRORS, since=BEFORE)
    after = changed(before, status, reason, NOW)
    assert (after.status, after.reason, after.since) == (status, kept, since)


def test_sequence_of_announced_statuses_rises_by_one() -> None:
    first = announced(Gateway(id="bank", status=S.DOWN))
    assert (first.announced, first.sequence, announced(first).sequence) == (S.DOWN, 1, 2)
