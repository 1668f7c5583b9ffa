"""The moments that only an app can ask, at the microsecond before, at it, and at the one after. The others:
domain/test_boundaries.py."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.events import Delivery, Event
from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.accounts.keys import rotate_key
from cambist.core.usecases.common.encrypted import webhook_secret_aad
from cambist.core.usecases.kyc.links import hosted_url, open_link
from cambist.core.usecases.operators.settlement import due_by_account
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.retention import RETAIN, retain
from cambist.core.usecases.webhooks.outbox import ask_to_deliver
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult
from tests.apps import WEBHOOK_SECRET, TestApp
from tests.exchange_app import open_exchange_app

TICK = timedelta(microseconds=1)
SIDES = (-TICK, timedelta(0), TICK)
MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)


async def paid_around(app: TestApp, moment: datetime) -> list[str]:
    """Three payments: paid a microsecond before it, at it, and a microsecond after it."""
    made = [(await app.created())["id"] for _ in SIDES]
    for payment_id, side in zip(made, SIDES, strict=True):
        await app.clock.advance_to(moment + side)
        await app.simulate(payment_id, outcome="paid")
        assert (await app.payment(payment_id)).paid_at == moment + side
    return made


async def test_a_settlement_takes_what_was_paid_before_its_cutoff(app: TestApp) -> None:
    """A settlement takes "every payment `paid` with `paid_at` < 00:00 UTC". All payments were created before it: only
    the time of payment counts."""
    await start_recurring_jobs(app.ports)
    await app.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    payments = await paid_around(app, MIDNIGHT)
    await app.work(9 * 3600 + 60)
    assert [(await app.payment(each)).status for each in payments] == [
        PaymentStatus.SETTLED,
        PaymentStatus.PAID,
        PaymentStatus.PAID,
    ]
    await app.work(86_400)
    assert {(await app.payment(each)).status for each in payments} == {PaymentStatus.SETTLED}


async def test_amount_shown_as_due_is_what_the_settlement_takes(app: TestApp) -> None:
    await app.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    await paid_around(app, MIDNIGHT)
    async with app.ports.storage.unit() as unit:
        assert sum((await due_by_account(unit, Mode.TEST, MIDNIGHT)).values()) == 1


async def asked_around(app: TestApp, moment: datetime, ask: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The answers a microsecond before, at the moment, and a microsecond after it."""
    answers = []
    for side in SIDES:
        await app.clock.advance_to(moment + side)
        answers.append(await ask())
    return answers


async def test_a_replaced_key_ends_with_its_overlap(app: TestApp) -> None:
    pair = app.account.test
    ends_at = app.clock.now() + timedelta(hours=24)
    await rotate_key(app.ports, app.account.account_id, Mode.TEST, timedelta(hours=24))

    async def is_known() -> bool:
        try:
            await authenticate(app.ports, pair.api_key, pair.api_secret)
        except Refusal:
            return False
        return True

    assert await asked_around(app, ends_at, is_known) == [True, False, False]


async def test_a_replaced_webhook_secret_signs_for_24_hours(app: TestApp) -> None:
    """The rule: "for 24 h `X-Webhook-Signature` still uses the old secret, `webhook-signature` carries both"."""
    until = app.clock.now() + timedelta(hours=24)
    await set_settings(app.ports, app.account.account_id, {"webhook_secret": "another-webhook-secret"})

    async def signatures() -> int:
        await app.http.post("/api/v1/webhook-endpoint/test", headers=app.headers())
        return len(app.postman.webhooks[-1].headers["webhook-signature"].split())

    assert await asked_around(app, until, signatures) == [2, 1, 1]


async def test_the_secret_before_the_last_is_kept_only_while_it_signs(app: TestApp) -> None:
    """A second rotation within the 24 hours leaves the first one's old secret in force; at their end it does not."""
    for side, signs in ((-TICK, WEBHOOK_SECRET), (timedelta(0), "the-second-webhook-secret")):
        account = (await create_account(app.ports, "Another")).account_id
        until = app.clock.now() + timedelta(hours=24)
        for secret in (WEBHOOK_SECRET, "the-second-webhook-secret"):
            await set_settings(app.ports, account, {"webhook_secret": secret})
        await app.clock.advance_to(until + side)
        await set_settings(app.ports, account, {"webhook_secret": "the-third-webhook-secret"})
        async with app.ports.storage.unit() as unit:
            found = await unit[Account].get(account)
        assert found is not None
        assert found.previous_secret is not None
        assert app.ports.vault.decrypt(found.previous_secret, webhook_secret_aad(account)) == signs.encode()


async def test_a_link_to_the_kyc_page_is_good_for_an_hour(app: TestApp) -> None:
    link = hosted_url(app.ports, app.account.account_id, "+79990000001")
    session = parse_qs(urlsplit(link).query)["session"][0]

    async def opens() -> bool:
        return open_link(app.ports, session) is not None

    until = app.clock.now() + timedelta(hours=1)
    assert await asked_around(app, until, opens) == [True, False, False]


async def test_a_payment_is_payable_until_it_expires(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"direct_links": "true"})
    payment = await app.created()
    expires_at = (await app.payment(payment["id"])).expires_at

    async def is_payable() -> bool:
        return (await app.get(f"/payments/{payment['id']}/sbp-link")).json()["sbp_link"] is not None

    assert await asked_around(app, expires_at, is_payable) == [True, False, False]


async def test_rub_of_an_exchange_are_held_for_five_minutes() -> None:
    async with open_exchange_app() as app:
        bought = await app.bought()
        await app.pay(bought.id)
        held_until = (await app.exchange(bought.id)).hold_until
        assert held_until is not None

        async def status() -> str:
            await app.look(bought.id)
            return await app.status(bought.id)

        found = await asked_around(app.app, held_until, status)
        assert found[0] == "rub_received"
        assert "rub_received" not in found[1:]


async def test_events_are_kept_for_thirty_days_at_least(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    await app.work()
    async with app.ports.storage.unit() as unit:
        [delivery] = [each for each in await unit[Delivery].find() if str(each.type).startswith("payment")]

    async def is_kept() -> bool:
        job = await app.ports.storage.get(Job, RETAIN)
        assert job is not None
        await retain(app.ports, job)
        async with app.ports.storage.unit() as unit:
            return await unit[Event].get(delivery.id) is not None

    over = delivery.created_at + timedelta(days=30)
    assert await asked_around(app, over, is_kept) == [True, True, False]


async def test_events_are_filtered_from_a_moment_with_it_to_a_moment_without_it(app: TestApp) -> None:
    """`from` is inclusive, `to` exclusive, to the millisecond that the API shows."""
    await app.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    payments = await paid_around(app, MIDNIGHT)
    moment = "2026-01-02T00:00:00.000Z"
    since = (await app.get(f"/events?from={moment}")).json()["data"]
    until = (await app.get(f"/events?to={moment}")).json()["data"]
    assert [each["object_id"] for each in reversed(since)] == payments[1:]
    assert [each["object_id"] for each in until] == payments[:1]


async def test_a_breaker_lets_a_probe_go_when_its_pause_is_over(app: TestApp) -> None:
    """The rule: "pauses 30 s, 1, 2, 5, 10, 30, 60 min"."""
    app.postman.answers = [DeliveryResult(answer=Answer.RESPONDED, status=503)] * 20
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    await app.work(515)
    account = app.account.account_id
    async with app.ports.storage.unit() as unit:
        breaker = await unit[Breaker].get(endpoint_id(account, Mode.TEST))
    assert breaker is not None
    assert breaker.next_probe_at is not None

    async def webhooks() -> int:
        async with app.ports.storage.unit() as unit:
            ask_to_deliver(app.ports, unit, account, Mode.TEST)  # as an event that comes just then does
            await unit.commit()
        await app.work()
        return len(app.postman.webhooks)

    sent = len(app.postman.webhooks)
    assert await asked_around(app, breaker.next_probe_at, webhooks) == [sent, sent + 1, sent + 1]


async def test_created_from_is_inclusive_and_created_to_exclusive(app: TestApp) -> None:
    await app.clock.advance_to(MIDNIGHT - timedelta(minutes=5))

    async def made() -> str:
        return str((await app.created())["id"])

    payments = await asked_around(app, MIDNIGHT, made)
    since = (await app.get("/payments?created_from=2026-01-02T00:00:00Z")).json()["data"]
    until = (await app.get("/payments?created_to=2026-01-02T00:00:00Z")).json()["data"]
    assert [each["id"] for each in reversed(since)] == payments[1:]
    assert [each["id"] for each in until] == payments[:1]


async def test_payment_at_midnight_is_turnover_of_the_new_day(app: TestApp) -> None:
    await app.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    await paid_around(app, MIDNIGHT)
    rows = (await app.get("/shops/turnover?from=2026-01-01&to=2026-01-02")).json()["data"]
    assert {each["date"]: each["payments"] for each in rows} == {"2026-01-01": 1, "2026-01-02": 2}
