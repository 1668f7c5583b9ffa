"""Gateways: set by hand, announced once a change has held, passed over while down (docs/webhooks.md "Gateways";
docs/sandbox.md "The calls")."""

from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import iso
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import Gateway, GatewayReason, GatewayStatus, own_id
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.access import RECENT
from cambist.core.usecases.gateways.gateways import list_gateways, read_reason, set_gateway
from cambist.core.usecases.gateways.news import HOLD, TELL
from cambist.core.usecases.jobs import LEASE, run
from cambist.frontends.compose import FurtherBank
from cambist.ports.jobs import Job
from tests.clock_kit import DAY, advance
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house
from tests.invariants import everything

FIRST, SECOND = "simulator-test", "second-test"
S = GatewayStatus


async def told(house: TestHouse, gateway_id: str = FIRST) -> list[tuple[str, str | None, str | None]]:
    """Status, previous status and reason of every event about a gateway."""
    return [(each["status"], each["previous_status"], each["reason"]) for each in await house.events(gateway_id)]


async def shown(house: TestHouse, mode: str = "test") -> list[dict[str, Any]]:
    response = await house.get("/gateways", mode=mode)
    assert response.status_code == 200, response.text
    gateways: list[dict[str, Any]] = response.json()
    return gateways


async def play(house: TestHouse, status: str, gateway_id: str = FIRST, mode: str = "test") -> Any:
    return await house.http.post(
        f"/api/v1/sandbox/gateways/{gateway_id}/simulate", json={"status": status}, headers=house.headers(mode)
    )


async def test_gateways_are_listed_for_the_mode_of_the_key(house: TestHouse) -> None:
    """`GET /gateways`: {gateway_id, payment_method, status, reason, since}, of the caller's mode."""
    untouched = {"payment_method": "sbp", "status": "operational", "reason": None, "since": None}
    assert await shown(house) == [{"gateway_id": FIRST, **untouched}]
    assert await shown(house, "live") == [{"gateway_id": "simulator-live", **untouched}]


async def test_a_change_is_announced_once_it_has_held_for_a_minute(house: TestHouse) -> None:
    """A change is announced once it has held for 60 s (docs/webhooks.md "Gateways")."""
    at = house.clock.now()
    await set_gateway(house.ports, FIRST, S.DEGRADED)
    [gateway] = await shown(house)
    assert (gateway["status"], gateway["reason"]) == ("degraded", "operator")
    await house.work(59.9)
    assert await told(house) == []
    await house.work(0.2)
    assert await told(house) == [("degraded", "operational", "operator")]
    assert house.postman.bodies == await house.events(FIRST)
    house.check_signatures()
    await house.work(600)
    assert len(await told(house)) == 1
    assert (house.clock.now() - at).total_seconds() > 600
    assert [job for job in await everything(house.ports, Job) if job.kind in (HOLD.kind, TELL)] == []


async def test_what_comes_back_within_a_minute_is_announced_to_nobody(house: TestHouse) -> None:
    for _ in range(5):
        await set_gateway(house.ports, FIRST, S.DOWN)
        await house.work(30)
        await set_gateway(house.ports, FIRST, S.OPERATIONAL)
        await house.work(20)
    await house.work(600)
    assert await told(house) == []


async def test_the_minute_counts_from_the_last_change(house: TestHouse) -> None:
    await set_gateway(house.ports, FIRST, S.DEGRADED)
    await house.work(40)
    await set_gateway(house.ports, FIRST, S.DOWN, GatewayReason.MAINTENANCE)
    await house.work(40)
    assert await told(house) == []
    await house.work(21)
    assert await told(house) == [("down", "operational", "maintenance")]
    await set_gateway(house.ports, FIRST, S.OPERATIONAL)
    await house.work(61)
    assert await told(house) == [("down", "operational", "maintenance"), ("operational", "down", None)]


async def test_a_change_while_a_worker_has_the_last_one_in_hand_begins_another_minute(house: TestHouse) -> None:
    await set_gateway(house.ports, FIRST, S.DEGRADED)
    await house.clock.advance(60)
    [job] = [each for each in await house.ports.storage.claim(100, LEASE) if each.kind == HOLD.kind]
    await set_gateway(house.ports, FIRST, S.DOWN)
    await run(house.ports, job)
    await house.work(59.9)
    assert await told(house) == []
    await house.work(0.2)
    assert await told(house) == [("down", "operational", "operator")]


async def test_an_account_whose_clock_was_advanced_is_told_in_its_own_time(house: TestHouse) -> None:
    await set_gateway(house.ports, FIRST, S.DEGRADED)
    await advance(house, DAY)
    at = house.clock.now() + DAY
    await house.work(61)
    [event] = await house.events(FIRST)
    assert event["timestamp"] == iso(at + timedelta(seconds=60))


async def test_the_same_status_again_is_no_change(house: TestHouse) -> None:
    await set_gateway(house.ports, FIRST, S.DOWN)
    [before] = await shown(house)
    await house.work(30)
    await set_gateway(house.ports, FIRST, S.DOWN, GatewayReason.MAINTENANCE)
    [after] = await shown(house)
    assert (after["since"], after["reason"]) == (before["since"], "maintenance")
    await house.work(31)
    assert await told(house) == [("down", "operational", "maintenance")]


async def test_every_account_that_receives_is_told_once_in_its_mode() -> None:
    """In batches, and once however often the job of a batch is run."""
    async with open_test_house() as house:
        ports = house.ports
        others = [(await accounts.create_account(ports, f"Merchant {n}")).account_id for n in range(230)]
        wish = {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
        for account_id in others[::2]:
            await accounts.set_settings(ports, account_id, wish)
        await house.work()
        await set_gateway(ports, "simulator-live", S.DOWN)
        await house.clock.advance(61)
        runs = 0
        while claimed := await ports.storage.claim(100, LEASE):
            for job in claimed:
                await run(ports, job)
                if job.kind == TELL:
                    runs += 1
                    await run(ports, job)
        assert runs > 1
        await house.work()
        async with ports.storage.unit() as unit:
            events = await unit[Event].find(object_id="simulator-live")
        assert sorted(event.account_id for event in events) == sorted([house.account.account_id, *others[::2]])
        assert {(event.mode, event.type) for event in events} == {(Mode.LIVE, EventType.GATEWAY_STATUS_CHANGED)}


async def test_sequences_rise_over_what_is_told_to_all_and_what_is_played(house: TestHouse) -> None:
    """X-Webhook-Sequence rises per object (docs/webhooks.md "What a receiver does")."""
    await play(house, "degraded")
    await set_gateway(house.ports, FIRST, S.DOWN)
    await house.work(61)
    await play(house, "operational")
    await set_gateway(house.ports, FIRST, S.OPERATIONAL)
    await house.work(61)
    sequences = [int(webhook.headers["X-Webhook-Sequence"]) for webhook in house.postman.webhooks]
    assert sequences == [1, 2, 3, 4]


async def test_an_unknown_gateway_is_refused(house: TestHouse) -> None:
    with pytest.raises(Refusal, match="No gateway") as raised:
        await set_gateway(house.ports, "nobody", S.DOWN)
    assert raised.value.code == "GATEWAY_NOT_FOUND"


def test_an_operator_gives_only_his_own_reasons() -> None:
    assert read_reason("maintenance") is GatewayReason.MAINTENANCE
    for text in ("provider_errors", "provider_timeout", ""):
        with pytest.raises(Refusal):
            read_reason(text)


async def test_new_payments_pass_over_a_gateway_that_is_down() -> None:
    async with open_test_house(further_banks=[FurtherBank(name=SECOND)]) as house:
        await set_gateway(house.ports, FIRST, S.DEGRADED)
        assert await bank_of(house) == FIRST
        await set_gateway(house.ports, FIRST, S.DOWN)
        assert await bank_of(house) == SECOND
        await set_gateway(house.ports, FIRST, S.OPERATIONAL)
        assert await bank_of(house) == FIRST


async def bank_of(house: TestHouse) -> str | None:
    payment = await house.created()
    async with house.ports.storage.unit() as unit:
        found = await unit[Payment].get(payment["id"])
    assert found is not None
    return found.bank


async def test_no_gateway_left_is_503_and_leaves_the_key_free(house: TestHouse) -> None:
    """503 PAYMENT_ROUTE_UNAVAILABLE: retry after 30 to 60 s with the same key (docs/errors.md "All codes")."""
    key = "11111111-1111-4111-8111-111111111111"
    await set_gateway(house.ports, FIRST, S.DOWN)
    response = await house.create(key=key)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "PAYMENT_ROUTE_UNAVAILABLE"
    assert 30 <= int(response.headers["retry-after"]) <= 60
    assert (await house.create(mode="live")).status_code == 201
    await set_gateway(house.ports, FIRST, S.OPERATIONAL)
    assert (await house.create(key=key)).status_code == 201


async def test_a_refused_payment_does_not_fall_to_a_gateway_that_is_down() -> None:
    async with open_test_house(further_banks=[FurtherBank(name=SECOND)]) as house:
        await set_gateway(house.ports, SECOND, S.DOWN)
        house.script.create.append(Twist(ending=Ending.REFUSED))
        response = await house.create()
        assert (response.status_code, response.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")


async def test_a_played_status_is_this_accounts_alone_and_told_at_once(house: TestHouse) -> None:
    """POST /sandbox/gateways/{id}/simulate: the event, and nothing for anybody else."""
    other = await accounts.create_account(house.ports, "Another")
    response = await play(house, "down")
    assert response.status_code == 200
    assert response.json()["status"] == "down"
    await house.work()
    assert await told(house) == [("down", "operational", "maintenance")]
    assert await shown(house) == [response.json()]
    assert (await house.create()).status_code == 503
    [theirs] = await list_gateways(house.ports, Mode.TEST, other.account_id)
    [everybodys] = await list_gateways(house.ports, Mode.TEST)
    assert theirs == everybodys
    assert theirs.status is S.OPERATIONAL
    assert (await play(house, "down")).status_code == 200
    assert (await play(house, "operational")).json()["status"] == "operational"
    assert (await house.create()).status_code == 201
    assert await told(house) == [("down", "operational", "maintenance"), ("operational", "down", None)]


async def test_a_played_status_needs_a_test_key_and_a_gateway_of_test_mode(house: TestHouse) -> None:
    for status, gateway_id, mode, code in (
        ("down", FIRST, "live", (404, "NOT_FOUND")),
        ("down", "simulator-live", "test", (404, "GATEWAY_NOT_FOUND")),
        ("gone", FIRST, "test", (400, "VALIDATION_ERROR")),
    ):
        response = await play(house, status, gateway_id, mode)
        assert (response.status_code, response.json()["error"]["code"]) == code


async def test_another_process_s_word_of_a_gateway_is_as_old_as_that_of_a_key_and_what_is_played_is_new(
    house: TestHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways are read at most every 2 s; a merchant's simulated status shows at once (docs/decisions.md
    "Storage")."""
    asked: dict[str, float] = {}
    storage = house.ports.storage
    recent = storage.recent

    async def noted(kind: Any, record_id: str, /, *, within: float = 0.0) -> Any:
        if kind is Gateway:
            asked[record_id] = within
        return await recent(kind, record_id, within=within)

    monkeypatch.setattr(storage, "recent", noted)
    await house.created()
    simulated = own_id(house.account.account_id, "simulator-test")
    assert asked == {"simulator-test": RECENT, simulated: 0.0}
    assert RECENT == 2.0
