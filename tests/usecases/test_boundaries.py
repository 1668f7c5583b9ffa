"""The moments that only a house can ask, at the microsecond before, at it, and at the one after. The others:
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
from cambist.core.usecases.kyc.links import hosted_url, open_link
from cambist.core.usecases.operators.settlement import due_by_account
from cambist.core.usecases.retention import RETAIN, retain
from cambist.core.usecases.sealed import webhook_secret_place
from cambist.core.usecases.standing import start_standing
from cambist.core.usecases.webhooks.outbox import ask_to_deliver
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult
from tests.exchange_house import open_exchange_house
from tests.houses import WEBHOOK_SECRET, TestHouse

TICK = timedelta(microseconds=1)
SIDES = (-TICK, timedelta(0), TICK)
MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)


async def paid_around(house: TestHouse, moment: datetime) -> list[str]:
    """Three payments: paid a microsecond before it, at it, and a microsecond after it."""
    made = [(await house.created())["id"] for _ in SIDES]
    for payment_id, side in zip(made, SIDES, strict=True):
        await house.clock.advance_to(moment + side)
        await house.simulate(payment_id, outcome="paid")
        assert (await house.payment(payment_id)).paid_at == moment + side
    return made


async def test_a_settlement_takes_what_was_paid_before_its_cutoff(house: TestHouse) -> None:
    """A settlement takes "every payment `paid` with `paid_at` < 00:00 UTC". All payments were created before it: only
    the time of payment counts."""
    await start_standing(house.ports)
    await house.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    payments = await paid_around(house, MIDNIGHT)
    await house.work(9 * 3600 + 60)
    assert [(await house.payment(each)).status for each in payments] == [
        PaymentStatus.SETTLED,
        PaymentStatus.PAID,
        PaymentStatus.PAID,
    ]
    await house.work(86_400)
    assert {(await house.payment(each)).status for each in payments} == {PaymentStatus.SETTLED}


async def test_what_an_operator_is_told_to_be_due_is_what_the_settlement_takes(house: TestHouse) -> None:
    await house.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    await paid_around(house, MIDNIGHT)
    async with house.ports.storage.unit() as unit:
        assert sum((await due_by_account(unit, Mode.TEST, MIDNIGHT)).values()) == 1


async def asked_around(house: TestHouse, moment: datetime, ask: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The answers a microsecond before, at the moment, and a microsecond after it."""
    answers = []
    for side in SIDES:
        await house.clock.advance_to(moment + side)
        answers.append(await ask())
    return answers


async def test_a_replaced_key_ends_with_its_overlap(house: TestHouse) -> None:
    pair = house.account.test
    ends_at = house.clock.now() + timedelta(hours=24)
    await rotate_key(house.ports, house.account.account_id, Mode.TEST, timedelta(hours=24))

    async def is_known() -> bool:
        try:
            await authenticate(house.ports, pair.api_key, pair.api_secret)
        except Refusal:
            return False
        return True

    assert await asked_around(house, ends_at, is_known) == [True, False, False]


async def test_a_replaced_webhook_secret_signs_for_24_hours(house: TestHouse) -> None:
    """The rule: "for 24 h `X-Webhook-Signature` still uses the old secret, `webhook-signature` carries both"."""
    until = house.clock.now() + timedelta(hours=24)
    await set_settings(house.ports, house.account.account_id, {"webhook_secret": "another-webhook-secret"})

    async def signatures() -> int:
        await house.http.post("/api/v1/webhook-endpoint/test", headers=house.headers())
        return len(house.postman.webhooks[-1].headers["webhook-signature"].split())

    assert await asked_around(house, until, signatures) == [2, 1, 1]


async def test_the_secret_before_the_last_is_kept_only_while_it_signs(house: TestHouse) -> None:
    """A second rotation within the 24 hours leaves the first one's old secret in force; at their end it does not."""
    for side, signs in ((-TICK, WEBHOOK_SECRET), (timedelta(0), "the-second-webhook-secret")):
        account = (await create_account(house.ports, "Another")).account_id
        until = house.clock.now() + timedelta(hours=24)
        for secret in (WEBHOOK_SECRET, "the-second-webhook-secret"):
            await set_settings(house.ports, account, {"webhook_secret": secret})
        await house.clock.advance_to(until + side)
        await set_settings(house.ports, account, {"webhook_secret": "the-third-webhook-secret"})
        async with house.ports.storage.unit() as unit:
            found = await unit[Account].get(account)
        assert found is not None
        assert found.previous_secret is not None
        assert house.ports.vault.unseal(found.previous_secret, webhook_secret_place(account)) == signs.encode()


async def test_a_link_to_the_kyc_page_is_good_for_an_hour(house: TestHouse) -> None:
    link = hosted_url(house.ports, house.account.account_id, "+79990000001")
    session = parse_qs(urlsplit(link).query)["session"][0]

    async def opens() -> bool:
        return open_link(house.ports, session) is not None

    until = house.clock.now() + timedelta(hours=1)
    assert await asked_around(house, until, opens) == [True, False, False]


async def test_a_payment_is_payable_until_it_expires(house: TestHouse) -> None:
    await set_settings(house.ports, house.account.account_id, {"direct_links": "true"})
    payment = await house.created()
    expires_at = (await house.payment(payment["id"])).expires_at

    async def is_payable() -> bool:
        return (await house.get(f"/payments/{payment['id']}/sbp-link")).json()["sbp_link"] is not None

    assert await asked_around(house, expires_at, is_payable) == [True, False, False]


async def test_rub_of_an_exchange_are_held_for_five_minutes() -> None:
    async with open_exchange_house() as house:
        bought = await house.bought()
        await house.pay(bought.id)
        held_until = (await house.exchange(bought.id)).hold_until
        assert held_until is not None

        async def status() -> str:
            await house.look(bought.id)
            return await house.status(bought.id)

        found = await asked_around(house.house, held_until, status)
        assert found[0] == "rub_received"
        assert "rub_received" not in found[1:]


async def test_events_are_kept_for_thirty_days_at_least(house: TestHouse) -> None:
    await start_standing(house.ports)
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    await house.work()
    async with house.ports.storage.unit() as unit:
        [delivery] = [each for each in await unit[Delivery].find() if str(each.type).startswith("payment")]

    async def is_kept() -> bool:
        job = await house.ports.storage.get(Job, RETAIN)
        assert job is not None
        await retain(house.ports, job)
        async with house.ports.storage.unit() as unit:
            return await unit[Event].get(delivery.id) is not None

    over = delivery.created_at + timedelta(days=30)
    assert await asked_around(house, over, is_kept) == [True, True, False]


async def test_events_are_filtered_from_a_moment_with_it_to_a_moment_without_it(house: TestHouse) -> None:
    """`from` is inclusive, `to` exclusive, to the millisecond that the API shows."""
    await house.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    payments = await paid_around(house, MIDNIGHT)
    moment = "2026-01-02T00:00:00.000Z"
    since = (await house.get(f"/events?from={moment}")).json()["data"]
    until = (await house.get(f"/events?to={moment}")).json()["data"]
    assert [each["object_id"] for each in reversed(since)] == payments[1:]
    assert [each["object_id"] for each in until] == payments[:1]


async def test_a_breaker_lets_a_probe_go_when_its_pause_is_over(house: TestHouse) -> None:
    """The rule: "pauses 30 s, 1, 2, 5, 10, 30, 60 min"."""
    house.postman.answers = [DeliveryResult(answer=Answer.RESPONDED, status=503)] * 20
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    await house.work(515)
    account = house.account.account_id
    async with house.ports.storage.unit() as unit:
        breaker = await unit[Breaker].get(endpoint_id(account, Mode.TEST))
    assert breaker is not None
    assert breaker.next_probe_at is not None

    async def webhooks() -> int:
        async with house.ports.storage.unit() as unit:
            ask_to_deliver(house.ports, unit, account, Mode.TEST)  # as an event that comes just then does
            await unit.commit()
        await house.work()
        return len(house.postman.webhooks)

    sent = len(house.postman.webhooks)
    assert await asked_around(house, breaker.next_probe_at, webhooks) == [sent, sent + 1, sent + 1]


async def test_payments_are_filtered_from_a_moment_with_it_to_a_moment_without_it(house: TestHouse) -> None:
    """The rule: "`created_from` (inclusive), `created_to` (exclusive)"."""
    await house.clock.advance_to(MIDNIGHT - timedelta(minutes=5))

    async def made() -> str:
        return str((await house.created())["id"])

    payments = await asked_around(house, MIDNIGHT, made)
    since = (await house.get("/payments?created_from=2026-01-02T00:00:00Z")).json()["data"]
    until = (await house.get("/payments?created_to=2026-01-02T00:00:00Z")).json()["data"]
    assert [each["id"] for each in reversed(since)] == payments[1:]
    assert [each["id"] for each in until] == payments[:1]


async def test_what_is_paid_at_midnight_is_turnover_of_the_day_that_begins(house: TestHouse) -> None:
    await house.clock.advance_to(MIDNIGHT - timedelta(minutes=5))
    await paid_around(house, MIDNIGHT)
    rows = (await house.get("/shops/turnover?from=2026-01-01&to=2026-01-02")).json()["data"]
    assert {each["date"]: each["payments"] for each in rows} == {"2026-01-01": 1, "2026-01-02": 2}
