"""One event or delivery that cannot be read delays no other webhook, not even of its own merchant; an event type
unknown to this version is sent unchanged (docs/operations.md "Rows that cannot be read")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases import jobs
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.operators.unreadable import take_up
from cambist.core.usecases.webhooks.outbox import DELIVER, deliver_id
from cambist.ports.jobs import Job
from cambist.ports.unreadable import UnreadableRow
from tests.event_factory import happen
from tests.servers import service_url
from tests.spoiling import Spoilable, address, open_spoilable

BEYOND = 900_000_000_000_000_000
SIMULATE = "/sandbox/gateways/simulator-test/simulate"


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, "sqlite", tmp_path)


@pytest.fixture
async def street(url: str, tmp_path: Path) -> AsyncIterator[Spoilable]:
    async with open_spoilable(url, tmp_path, "ours") as opened:
        yield opened


async def waiting(street: Spoilable, count: int) -> list[str]:
    """Return so many events of the merchant that are not sent yet."""
    return await happen(street.ports, street.merchants["ours"].account_id, count)


async def status(street: Spoilable, event_id: str) -> DeliveryStatus:
    found = await street.ports.storage.get(Delivery, event_id)
    assert found is not None
    return found.status


@pytest.mark.parametrize("table", ["events", "deliveries"])
async def test_event_of_an_unknown_type_is_sent_listed_and_resent_as_it_is(street: Spoilable, table: str) -> None:
    first, second, third = await waiting(street, 3)
    await street.spoil(f"UPDATE {table} SET type = 'moon.risen' WHERE id = '{second}'")
    await street.work()
    assert street.street.told("ours") == [first, second, third]
    if table == "events":
        assert street.street.webhooks[1].headers["X-Webhook-Event"] == "moon.risen"
        listed = await street.call("ours", "GET", "/events")
        assert [each["type"] for each in listed.json()["data"]].count("moon.risen") == 1
        one = await street.call("ours", "GET", f"/events/{second}")
        assert one.json()["type"] == "moon.risen"
    again = await street.call("ours", "POST", f"/events/{second}/resend")
    assert again.status_code == 200
    await street.work()
    assert street.street.told("ours") == [first, second, third, second]


@pytest.mark.parametrize(("table", "field"), [("events", "created_at"), ("deliveries", "give_up_at")])
async def test_unreadable_event_delays_no_other_and_is_reported(street: Spoilable, table: str, field: str) -> None:
    first, second, third = await waiting(street, 3)
    await street.spoil(f"UPDATE {table} SET {field} = {BEYOND} WHERE id = '{second}'")
    await street.work()
    assert street.street.told("ours") == [first, third]
    [fourth] = await waiting(street, 1)
    await street.work()
    assert street.street.told("ours") == [first, third, fourth]
    listed = await street.call("ours", "GET", "/events")
    assert listed.status_code == 200
    assert [each["id"] for each in listed.json()["data"]] == [fourth, third, first]
    assert listed.json()["pagination"]["total"] == 4
    assert (await street.call("ours", "GET", f"/events/{second}")).json()["error"]["code"] == "INTERNAL_ERROR"
    async with street.ports.storage.unit() as unit:
        [note] = await unit[UnreadableRow].find()
    assert (note.source, note.row_id, note.held) == (table, second, None)
    assert note.why == f"{field} (OverflowError)"


async def test_an_event_that_does_not_decrypt_delays_no_other(
    street: Spoilable, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = await waiting(street, 3)
    await street.spoil(f"UPDATE events SET body = (SELECT body FROM events WHERE id = '{first}') WHERE id = '{second}'")
    await street.work()
    assert street.street.told("ours") == [first, third]
    assert f"{second} is not delivered" in caplog.text
    one = await street.call("ours", "GET", f"/events/{second}")
    assert (one.status_code, one.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    letters = (await street.call("ours", "GET", "/sandbox/letters")).json()["data"]
    assert [each["id"] for each in letters] == [first, third]


async def test_repaired_event_is_sent_within_the_hour(street: Spoilable) -> None:
    """A newer program repairs it by being there."""
    [event] = await waiting(street, 1)
    await street.spoil(f"UPDATE events SET sequence = sequence, created_at = created_at + {BEYOND}")
    await street.work()
    assert street.street.told("ours") == []
    await street.spoil(f"UPDATE events SET created_at = created_at - {BEYOND}")
    await street.clock.advance(timedelta(hours=1).total_seconds())
    await street.work()
    assert street.street.told("ours") == [event]
    assert await status(street, event) is DeliveryStatus.DELIVERED


async def test_a_delivery_that_can_be_read_again_is_sent_without_a_further_event(street: Spoilable) -> None:
    """Its receiver's job ran while the delivery was unreadable, and has ended."""
    [event] = await waiting(street, 1)
    await street.spoil(f"UPDATE deliveries SET give_up_at = give_up_at + {BEYOND}")
    await street.work()
    assert street.street.told("ours") == []
    await street.spoil(f"UPDATE deliveries SET give_up_at = give_up_at - {BEYOND}")
    assert await take_up(street.ports) == 1
    await street.work()
    assert street.street.told("ours") == [event]
    assert await status(street, event) is DeliveryStatus.DELIVERED


async def test_a_delivery_to_a_further_endpoint_that_can_be_read_again_is_sent(street: Spoilable) -> None:
    wish = {"url": address("further"), "event_types": ["*"]}
    made = await street.call("ours", "POST", "/webhook-endpoints", json=wish)
    assert made.status_code == 201, made.text
    [event] = await waiting(street, 1)
    await street.spoil(f"UPDATE endpoint_deliveries SET give_up_at = give_up_at + {BEYOND}")
    await street.work()
    assert street.street.told("further") == []
    await street.spoil(f"UPDATE endpoint_deliveries SET give_up_at = give_up_at - {BEYOND}")
    assert await take_up(street.ports) == 1
    await street.work()
    assert street.street.told("further") == [event]


async def test_a_delivery_that_was_to_be_tried_later_is_tried_at_its_time(street: Spoilable) -> None:
    """While the delivery was unreadable, there was no time to set the timer to."""
    [event] = await waiting(street, 1)
    street.street.refuses = 1
    await street.work()
    again = await street.ports.storage.get(Delivery, event)
    assert again is not None
    assert again.due is not None
    await street.spoil(f"UPDATE deliveries SET give_up_at = give_up_at + {BEYOND}")
    await street.clock.advance((again.due - street.ports.clock.now()).total_seconds() + 1)
    await street.work()
    await street.spoil(f"UPDATE deliveries SET due = due + 60000000, give_up_at = give_up_at - {BEYOND}")
    assert await take_up(street.ports) == 1
    await street.work()
    assert len(street.street.told("ours")) == 1
    await street.work(60)
    assert street.street.told("ours") == [event, event]


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends"])
async def test_delivery_skipped_again_by_an_older_worker_is_still_sent(
    street: Spoilable, tmp_path: Path, ends: bool
) -> None:
    """In a rolling upgrade the newer program takes it up, and the older one claims the receiver's job once more."""
    [event] = await waiting(street, 1)
    unreadable, readable = (f"UPDATE deliveries SET give_up_at = give_up_at {sign} {BEYOND}" for sign in "+-")
    await street.spoil(unreadable)
    await street.work()
    async with open_spoilable(street.url, tmp_path, clock=street.clock) as newer:
        await street.spoil(readable)
        assert await take_up(newer.ports) == 1
        await street.spoil(unreadable)
        await street.work()
        if ends:
            await street.ports.storage.close()
        else:
            assert await take_up(street.ports) == 0
        await street.spoil(readable)
        assert await take_up(newer.ports) == 1
        await newer.work()
        assert newer.street.told("ours") == [event]


async def test_a_held_delivery_that_can_be_read_again_is_released(street: Spoilable) -> None:
    """The receiver was set, and the other held deliveries were released without this one."""
    account_id = street.merchants["ours"].account_id
    [event] = await happen(street.ports, account_id, receives=False)
    await street.spoil(f"UPDATE deliveries SET created_at = created_at + {BEYOND}")
    await set_settings(street.ports, account_id, {"webhook_url": address("moved")})
    await street.work(125)
    assert street.street.told("moved") == []
    await street.spoil(f"UPDATE deliveries SET created_at = created_at - {BEYOND}")
    assert await take_up(street.ports) == 1
    await street.work()
    assert street.street.told("moved") == [event]


async def test_failing_receiver_job_is_retried_at_once_for_a_new_event(
    street: Spoilable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It backs off for half a minute and more; the event is not to wait for that."""
    endpoint = f"{street.merchants['ours'].account_id}:{Mode.TEST}"

    async def failing(*_: object) -> None:
        raise RuntimeError("the secret does not open")

    working = jobs.HANDLERS[DELIVER]
    monkeypatch.setitem(jobs.HANDLERS, DELIVER, failing)
    first = await waiting(street, 1)
    await street.work(10)
    assert await street.ports.storage.get(Job, deliver_id(endpoint)) is None
    monkeypatch.setitem(jobs.HANDLERS, DELIVER, working)
    await street.work(3)
    assert street.street.told("ours") == []
    second = await waiting(street, 1)
    await street.work()
    assert street.street.told("ours") == first + second


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_count_that_cannot_be_read_holds_up_no_event(street: Spoilable) -> None:
    """The events keep their numbers. Postgres cannot store a count that is not a number."""
    for status in ("down", "degraded", "operational"):
        played = await street.call("ours", "POST", SIMULATE, json={"status": status})
        assert played.status_code == 200
        await street.work()
        await street.spoil("UPDATE gateway_counts SET told = 'many'")
    assert [webhook.headers["X-Webhook-Sequence"] for webhook in street.street.webhooks] == ["1", "2", "3"]
