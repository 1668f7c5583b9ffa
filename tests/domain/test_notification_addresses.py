"""Which secret of a provider's notification address counts, and which parts of a notification are believed
(docs/adapters.md "Notifications")."""

from datetime import UTC, datetime, timedelta

from cambist.core.domain.notifications import NotificationAddress, believed, is_notification, rotated
from tests.tables import table

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@table(
    ("method", "path", "expected"),
    [
        ("POST", "/api/v1/notices/bank/secret", True),
        ("GET", "/api/v1/notices/bank/secret", False),
        ("POST", "/api/v1/notices/bank", False),
        ("POST", "/api/v1/notices/bank/secret/more", False),
        ("POST", "/api/v2/notifications/bank/secret", False),
    ],
)
def test_a_notification_is_posted_to_two_parts_below_its_path(method: str, path: str, expected: bool) -> None:
    assert is_notification(method, path) is expected


def test_former_secret_counts_for_a_day_after_a_rotation_older_ones_not() -> None:
    address = NotificationAddress(id="bank", secret=b"first", created_at=NOW)
    assert address.former_at(NOW) is None
    second = rotated(address, b"second", NOW)
    assert (second.secret, second.former_at(NOW + DAY - TICK), second.former_at(NOW + DAY)) == (
        b"second",
        b"first",
        None,
    )
    third = rotated(second, b"third", NOW + MINUTE)
    assert (third.former_at(NOW + MINUTE), third.former_at(NOW + DAY)) == (b"second", b"second")


@table(("received_at", "expected"), [(None, True), (NOW - MINUTE + TICK, False), (NOW - MINUTE, True)])
def test_last_notification_is_recorded_once_a_minute(received_at: datetime | None, expected: bool) -> None:
    assert (
        NotificationAddress(id="bank", secret=b"s", received_at=received_at, created_at=NOW).is_to_be_noted(NOW)
        is expected
    )


@table(
    ("operations", "ours", "others"),
    [
        (["pay_1", "pay_1", "ref_1"], ["pay_1", "ref_1"], 0),
        (["", "pay 1", "pay_1\n", "é", "~!"], ["~!"], 4),
        (["x" * 512, "x" * 513], ["x" * 512], 1),
        ([f"pay_{number}" for number in range(101)], [f"pay_{number}" for number in range(100)], 1),
    ],
)
def test_a_hundred_operations_of_a_notification_are_believed_each_once(
    operations: list[str], ours: list[str], others: int
) -> None:
    assert believed(operations) == (ours, others)
