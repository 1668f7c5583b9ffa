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
from cambist.core.usecases.gateways.announcements import HOLD, TELL
from cambist.core.usecases.gateways.gateways import list_gateways, read_reason, set_gateway
from cambist.core.usecases.jobs import LEASE, run
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.jobs import Job
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp, open_test_app
from tests.clock_kit import DAY, advance
from tests.invariants import everything

FIRST, SECOND = "simulator-test", "second-test"
S = GatewayStatus


async def told(app: TestApp, gateway_id: str = FIRST) -> list[tuple[str, str | None, str | None]]:
    """Return status, previous status and reason of every event about a gateway."""
    return [(each["status"], each["previous_status"], each["reason"]) for each in await app.events(gateway_id)]


async def shown(app: TestApp, mode: str = "test") -> list[dict[str, Any]]:
    response = await app.get("/gateways", mode=mode)
    assert response.status_code == 200, response.text
    gateways: list[dict[str, Any]] = response.json()
    return gateways


async def play(app: TestApp, status: str, gateway_id: str = FIRST, mode: str = "test") -> Any:
    return await app.http.post(
        f"/api/v1/sandbox/gateways/{gateway_id}/simulate", json={"status": status}, headers=app.headers(mode)
    )


async def test_gateways_are_listed_for_the_mode_of_the_key(app: TestApp) -> None:
    """`GET /gateways`: {gateway_id, payment_method, status, reason, since}, of the caller's mode."""
    untouched = {"payment_method": "sbp", "status": "operational", "reason": None, "since": None}
    assert await shown(app) == [{"gateway_id": FIRST, **untouched}]
    assert await shown(app, "live") == [{"gateway_id": "simulator-live", **untouched}]


async def test_a_change_is_announced_once_it_has_held_for_a_minute(app: TestApp) -> None:
    """A change is announced once it has held for 60 s (docs/webhooks.md "Gateways")."""
    at = app.clock.now()
    await set_gateway(app.ports, FIRST, S.DEGRADED)
    [gateway] = await shown(app)
    assert (gateway["status"], gateway["reason"]) == ("degraded", "operator")
    await app.work(59.9)
    assert await told(app) == []
    await app.work(0.2)
    assert await told(app) == [("degraded", "operational", "operator")]
    assert app.postman.bodies == await app.events(FIRST)
    app.check_signatures()
    await app.work(600)
    assert len(await told(app)) == 1
    assert (app.clock.now() - at).total_seconds() > 600
    assert [job for job in await everything(app.ports, Job) if job.kind in (HOLD.kind, TELL)] == []


async def test_outage_shorter_than_a_minute_is_not_announced(app: TestApp) -> None:
    for _ in range(5):
        await set_gateway(app.ports, FIRST, S.DOWN)
        await app.work(30)
        await set_gateway(app.ports, FIRST, S.OPERATIONAL)
        await app.work(20)
    await app.work(600)
    assert await told(app) == []


async def test_the_minute_counts_from_the_last_change(app: TestApp) -> None:
    await set_gateway(app.ports, FIRST, S.DEGRADED)
    await app.work(40)
    await set_gateway(app.ports, FIRST, S.DOWN, GatewayReason.MAINTENANCE)
    await app.work(40)
    assert await told(app) == []
    await app.work(21)
    assert await told(app) == [("down", "operational", "maintenance")]
    await set_gateway(app.ports, FIRST, S.OPERATIONAL)
    await app.work(61)
    assert await told(app) == [("down", "operational", "maintenance"), ("operational", "down", None)]


async def test_change_while_a_worker_holds_the_last_one_begins_another_minute(app: TestApp) -> None:
    await set_gateway(app.ports, FIRST, S.DEGRADED)
    await app.clock.advance(60)
    [job] = [each for each in await app.ports.storage.claim(100, LEASE) if each.kind == HOLD.kind]
    await set_gateway(app.ports, FIRST, S.DOWN)
    await run(app.ports, job)
    await app.work(59.9)
    assert await told(app) == []
    await app.work(0.2)
    assert await told(app) == [("down", "operational", "operator")]


async def test_account_with_an_advanced_clock_gets_the_event_in_its_own_time(app: TestApp) -> None:
    await set_gateway(app.ports, FIRST, S.DEGRADED)
    await advance(app, DAY)
    at = app.clock.now() + DAY
    await app.work(61)
    [event] = await app.events(FIRST)
    assert event["timestamp"] == iso(at + timedelta(seconds=60))


async def test_the_same_status_again_is_no_change(app: TestApp) -> None:
    await set_gateway(app.ports, FIRST, S.DOWN)
    [before] = await shown(app)
    await app.work(30)
    await set_gateway(app.ports, FIRST, S.DOWN, GatewayReason.MAINTENANCE)
    [after] = await shown(app)
    assert (after["since"], after["reason"]) == (before["since"], "maintenance")
    await app.work(31)
    assert await told(app) == [("down", "operational", "maintenance")]


async def test_every_receiving_account_gets_one_event_in_its_mode() -> None:
    """In batches, and once however often the job of a batch is run."""
    async with open_test_app() as app:
        ports = app.ports
        others = [(await accounts.create_account(ports, f"Merchant {n}")).account_id for n in range(230)]
        wish = {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
        for account_id in others[::2]:
            await accounts.set_settings(ports, account_id, wish)
        await app.work()
        await set_gateway(ports, "simulator-live", S.DOWN)
        await app.clock.advance(61)
        runs = 0
        while claimed := await ports.storage.claim(100, LEASE):
            for job in claimed:
                await run(ports, job)
                if job.kind == TELL:
                    runs += 1
                    await run(ports, job)
        assert runs > 1
        await app.work()
        async with ports.storage.unit() as unit:
            events = await unit[Event].find(object_id="simulator-live")
        assert sorted(event.account_id for event in events) == sorted([app.account.account_id, *others[::2]])
        assert {(event.mode, event.type) for event in events} == {(Mode.LIVE, EventType.GATEWAY_STATUS_CHANGED)}


async def test_sequences_rise_over_real_and_simulated_statuses(app: TestApp) -> None:
    """X-Webhook-Sequence rises per object (docs/webhooks.md "What a receiver does")."""
    await play(app, "degraded")
    await set_gateway(app.ports, FIRST, S.DOWN)
    await app.work(61)
    await play(app, "operational")
    await set_gateway(app.ports, FIRST, S.OPERATIONAL)
    await app.work(61)
    sequences = [int(webhook.headers["X-Webhook-Sequence"]) for webhook in app.postman.webhooks]
    assert sequences == [1, 2, 3, 4]


async def test_an_unknown_gateway_is_refused(app: TestApp) -> None:
    with pytest.raises(Refusal, match="No gateway") as raised:
        await set_gateway(app.ports, "nobody", S.DOWN)
    assert raised.value.code == "GATEWAY_NOT_FOUND"


def test_an_operator_gives_only_his_own_reasons() -> None:
    assert read_reason("maintenance") is GatewayReason.MAINTENANCE
    for text in ("provider_errors", "provider_timeout", ""):
        with pytest.raises(Refusal):
            read_reason(text)


async def test_new_payments_pass_over_a_gateway_that_is_down() -> None:
    async with open_test_app(further_banks=[FurtherBank(name=SECOND)]) as app:
        await set_gateway(app.ports, FIRST, S.DEGRADED)
        assert await bank_of(app) == FIRST
        await set_gateway(app.ports, FIRST, S.DOWN)
        assert await bank_of(app) == SECOND
        await set_gateway(app.ports, FIRST, S.OPERATIONAL)
        assert await bank_of(app) == FIRST


async def bank_of(app: TestApp) -> str | None:
    payment = await app.created()
    async with app.ports.storage.unit() as unit:
        found = await unit[Payment].get(payment["id"])
    assert found is not None
    return found.bank


async def test_no_gateway_left_is_503_and_leaves_the_key_free(app: TestApp) -> None:
    """503 PAYMENT_ROUTE_UNAVAILABLE: retry after 30 to 60 s with the same key (docs/errors.md "All codes")."""
    key = "11111111-1111-4111-8111-111111111111"
    await set_gateway(app.ports, FIRST, S.DOWN)
    response = await app.create(key=key)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "PAYMENT_ROUTE_UNAVAILABLE"
    assert 30 <= int(response.headers["retry-after"]) <= 60
    assert (await app.create(mode="live")).status_code == 201
    await set_gateway(app.ports, FIRST, S.OPERATIONAL)
    assert (await app.create(key=key)).status_code == 201


async def test_a_refused_payment_does_not_fall_to_a_gateway_that_is_down() -> None:
    async with open_test_app(further_banks=[FurtherBank(name=SECOND)]) as app:
        await set_gateway(app.ports, SECOND, S.DOWN)
        app.script.create.append(Twist(ending=Ending.REFUSED))
        response = await app.create()
        assert (response.status_code, response.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")


async def test_simulated_status_is_the_accounts_alone_and_announced_at_once(app: TestApp) -> None:
    """POST /sandbox/gateways/{id}/simulate: the event, and nothing for anybody else."""
    other = await accounts.create_account(app.ports, "Another")
    response = await play(app, "down")
    assert response.status_code == 200
    assert response.json()["status"] == "down"
    await app.work()
    assert await told(app) == [("down", "operational", "maintenance")]
    assert await shown(app) == [response.json()]
    assert (await app.create()).status_code == 503
    [theirs] = await list_gateways(app.ports, Mode.TEST, other.account_id)
    [everybodys] = await list_gateways(app.ports, Mode.TEST)
    assert theirs == everybodys
    assert theirs.status is S.OPERATIONAL
    assert (await play(app, "down")).status_code == 200
    assert (await play(app, "operational")).json()["status"] == "operational"
    assert (await app.create()).status_code == 201
    assert await told(app) == [("down", "operational", "maintenance"), ("operational", "down", None)]


async def test_a_played_status_needs_a_test_key_and_a_gateway_of_test_mode(app: TestApp) -> None:
    for status, gateway_id, mode, code in (
        ("down", FIRST, "live", (404, "NOT_FOUND")),
        ("down", "simulator-live", "test", (404, "GATEWAY_NOT_FOUND")),
        ("gone", FIRST, "test", (400, "VALIDATION_ERROR")),
    ):
        response = await play(app, status, gateway_id, mode)
        assert (response.status_code, response.json()["error"]["code"]) == code


async def test_gateway_status_is_cached_as_a_key_is_a_simulated_one_never(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways are read at most every 2 s; a merchant's simulated status shows at once (docs/decisions.md
    "Storage")."""
    asked: dict[str, float] = {}
    storage = app.ports.storage
    recent = storage.recent

    async def noted(kind: Any, record_id: str, /, *, within: float = 0.0) -> Any:
        if kind is Gateway:
            asked[record_id] = within
        return await recent(kind, record_id, within=within)

    monkeypatch.setattr(storage, "recent", noted)
    await app.created()
    simulated = own_id(app.account.account_id, "simulator-test")
    assert asked == {"simulator-test": RECENT, simulated: 0.0}
    assert RECENT == 2.0
