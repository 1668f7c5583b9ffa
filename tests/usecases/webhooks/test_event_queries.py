"""Filters of event queries (docs/webhooks.md "Looking, and sending again")."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.list_counts import ListCount
from cambist.core.domain.webhooks.events import DeliveryStatus, Event, EventType
from cambist.core.usecases.common import long_lists
from cambist.core.usecases.common.encrypted import event_body_aad
from cambist.core.usecases.webhooks.events import (
    EndpointEventFilter,
    EventQuery,
    EventRange,
    Wanted,
    list_endpoint_events,
    list_events,
    read_query,
)
from tests import event_factory
from tests.apps import TestApp
from tests.domain.test_payloads import full
from tests.http.test_webhook_endpoints import made
from tests.invariants import everything
from tests.planting import beneath
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


@table(
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
def test_narrower_of_two_bounds_counts(asked: dict[str, str], low: datetime | None, high: datetime | None) -> None:
    read = read_query(OWNER, EventQuery(**asked))
    assert (read.low, read.high) == (low, high)


def test_a_range_asks_as_a_list_does() -> None:
    body = EventRange(since=EARLY, until=LATE, type="payment.status_changed", delivery_status="failed")
    read = read_query(OWNER, body.query)
    assert read == msgspec.structs.replace(WANTED, status=DeliveryStatus.FAILED)


async def asking(app: TestApp) -> Caller:
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.LIVE, key_id="a-key")


async def test_long_lists_of_each_type_are_counted_by_themselves(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """And days that are over once (docs/concepts.md "Lists")."""
    monkeypatch.setattr(long_lists, "LONG", 2)
    caller, types = await asking(app), [EventType.PAYMENT_STATUS_CHANGED] * 5 + [EventType.REFUND_FAILED] * 3
    at = app.clock.now() - timedelta(days=3)
    async with beneath(app.ports).unit() as unit:
        for number, each in enumerate(types):
            event_id = f"evt_{number}"
            told = {"id": event_id, "account_id": caller.account_id, "mode": Mode.LIVE, "type": each}
            body = app.ports.vault.encrypt(msgspec.json.encode(full(each)), event_body_aad(event_id))
            unit[Event].add(msgspec.structs.replace(EVENT, **told, body=body, created_at=at))
        await unit.commit()
    kept = list[Any]()
    for _ in range(2):
        for asked, total in ((None, 8), (types[0], 5), (types[-1], 3)):
            assert (await list_events(app.ports, caller, EventQuery(type=asked), 1, 20)).total == total
        counts = [each.count for each in await everything(app.ports, ListCount) if each.count]
        assert sorted(counts) == [3, 5, 8]
        kept.append(await everything(app.ports, ListCount))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("object_id", ["", "\0", "pay_1\0", "\u00e9"])
async def test_malformed_object_id_has_no_events(app: TestApp, object_id: str) -> None:
    page = await list_events(app.ports, await asking(app), EventQuery(object_id=object_id), 1, 20)
    assert (page.records, page.total) == ([], 0)


async def test_events_are_found_by_how_their_delivery_stands(app: TestApp) -> None:
    """Pending events have a time of the next attempt, and all others have none."""
    caller = msgspec.structs.replace(await asking(app), mode=Mode.TEST)
    endpoint_id = (await made(app))["id"]
    [event] = await event_factory.happen(app.ports, caller.account_id)
    for before, status, other in (("", "pending", "delivered"), ("work", "delivered", "pending")):
        if before:
            await app.work(5)
        for asked, found in ((status, [event]), (other, [])):
            own = await list_events(app.ports, caller, EventQuery(delivery_status=asked), 1, 20)
            wish = EndpointEventFilter(delivery_status=asked)
            further = await list_endpoint_events(app.ports, caller, endpoint_id, wish, lambda: (1, 20))
            assert [each.event.id for each in own.records] == found, asked
            assert [each.event.id for each in further.records] == found, asked
            assert (own.total, further.total) == (len(found), len(found))
