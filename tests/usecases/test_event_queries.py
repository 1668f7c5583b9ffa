"""Which events a query asks for (docs/webhooks.md "Looking, and sending again")."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import DeliveryStatus, Event, EventType
from cambist.core.usecases.webhooks.events import EventQuery, EventRange, Wanted, read_query
from tests.tables import table

LOW = datetime(2026, 1, 1, tzinfo=UTC)
HIGH, TICK = LOW + timedelta(hours=1), timedelta(microseconds=1)
OWNER = {"account_id": "acc_1", "mode": "test"}
EVENT = Event(
    id="evt_1",
    account_id="acc_1",
    mode=Mode.TEST,
    type=EventType.PAYMENT_STATUS_CHANGED,
    object_id="pay_1",
    sequence=1,
    body=b"{}",
    created_at=LOW,
)
WANTED = Wanted(owner=OWNER, type=EventType.PAYMENT_STATUS_CHANGED, low=LOW, high=HIGH)


@table(
    ("of_event", "of_query", "takes"),
    [
        ({}, {}, True),
        ({"account_id": "acc_2"}, {}, False),
        ({"mode": Mode.LIVE}, {}, False),
        ({"account_id": "acc_2"}, {"owner": {}}, True),
        ({"type": EventType.REFUND_FAILED}, {}, False),
        ({"type": EventType.REFUND_FAILED}, {"type": None}, True),
        ({"created_at": LOW - TICK}, {}, False),
        ({"created_at": LOW - TICK}, {"low": None}, True),
        ({"created_at": HIGH - TICK}, {}, True),
        ({"created_at": HIGH}, {}, False),
        ({"created_at": HIGH}, {"high": None}, True),
    ],
)
def test_events_of_an_object_are_those_that_are_asked_for(
    of_event: dict[str, Any], of_query: dict[str, Any], takes: bool
) -> None:
    """From the one moment on, and before the other."""
    wanted = msgspec.structs.replace(WANTED, **of_query)
    assert wanted.takes(msgspec.structs.replace(EVENT, **of_event)) is takes


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ({}, None, None),
        ({"since": EARLY}, LOW, None),
        ({"created_from": EARLY}, LOW, None),
        ({"since": EARLY, "created_from": LATE}, HIGH, None),
        ({"since": LATE, "created_from": EARLY}, HIGH, None),
        ({"until": EARLY}, None, LOW),
        ({"created_to": LATE}, None, HIGH),
        ({"until": EARLY, "created_to": LATE}, None, LOW),
        ({"until": LATE, "created_to": EARLY}, None, LOW),
    ],
)
def test_of_two_names_for_a_bound_the_narrower_counts(
    asked: dict[str, str], low: datetime | None, high: datetime | None
) -> None:
    read = read_query(OWNER, EventQuery(**asked))
    assert (read.low, read.high) == (low, high)


def test_a_range_asks_as_a_list_does() -> None:
    body = EventRange(since=EARLY, until=LATE, type="payment.status_changed", delivery_status="failed")
    read = read_query(OWNER, body.query)
    assert read == msgspec.structs.replace(WANTED, status=DeliveryStatus.FAILED)
