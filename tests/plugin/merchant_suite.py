"""A merchant's suite, as the plugin's test runs it: everything of the sandbox at least once."""

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx2
import pytest

from cambist.core.usecases.accounts.shops import create_shop
from cambist.frontends.client import (
    AsyncClient,
    CambistError,
    Client,
    PaymentStatus,
    PaymentStatusChanged,
    SubscriptionStatus,
    SubscriptionStatusChanged,
    verify_webhook,
)
from cambist.frontends.testing import Sandbox, SandboxOptions, Stage

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("round_", [1, 2])
def test_every_test_has_a_app_of_its_own(round_: int, cambist_client: Client, cambist_sandbox: Sandbox) -> None:
    assert cambist_client.payments.list().data == []
    assert cambist_sandbox.clock.now() == SandboxOptions().start
    cambist_sandbox.clock.advance(days=round_)
    assert cambist_client.payments.create(amount_rub=100).created_at == cambist_sandbox.clock.now()


def test_actions_and_their_webhooks(cambist_sandbox: Sandbox) -> None:
    client = cambist_sandbox.client
    paid, failed, expired, short = (client.payments.create(amount_rub=100).id for _ in range(4))
    assert cambist_sandbox.pay(paid).status is PaymentStatus.PAID
    assert cambist_sandbox.fail(failed, "insufficient_funds").failure_reason == "insufficient_funds"
    assert cambist_sandbox.expire(expired).status is PaymentStatus.EXPIRED
    assert cambist_sandbox.pay(short, amount_rub="99").status is PaymentStatus.AMOUNT_MISMATCH
    told = [(event.payment_id, event.status) for event in cambist_sandbox.events(PaymentStatusChanged)]
    assert told == [(paid, "paid"), (failed, "failed"), (expired, "expired"), (short, "amount_mismatch")]
    cambist_sandbox.clear_webhooks()
    plan = client.subscriptions.create(amount_rub=300, interval="week", description="Plan")
    assert cambist_sandbox.confirm(plan.id).status is SubscriptionStatus.ACTIVE
    assert [event.status for event in cambist_sandbox.events(SubscriptionStatusChanged)] == ["active"]
    assert len(cambist_sandbox.events()) == len(cambist_sandbox.webhooks) == 2


def test_time_does_what_falls_due(cambist_sandbox: Sandbox) -> None:
    made = cambist_sandbox.client.payments.create(amount_rub=100)
    cambist_sandbox.pay(made.id)
    cambist_sandbox.clock.advance_to(cambist_sandbox.clock.now() + timedelta(days=1))
    [_, settled] = cambist_sandbox.events(PaymentStatusChanged)
    assert (settled.status, settled.timestamp.hour) == (PaymentStatus.SETTLED, 9)
    with pytest.raises(ValueError, match="forward"):
        cambist_sandbox.clock.advance(seconds=-1)


def test_a_receivers_status_is_honoured_and_what_it_raises_is_kept(cambist_sandbox: Sandbox) -> None:
    answers = [400, None]

    def receive(headers: Mapping[str, str], body: bytes) -> int | None:
        # The machine's clock: as a receiver in production.
        event = verify_webhook(headers, body, [cambist_sandbox.webhook_secret]).event
        assert isinstance(event, PaymentStatusChanged)
        # A receiver may ask the service, though the service waits for it.
        assert cambist_sandbox.client.payments.get(event.payment_id).status is PaymentStatus.FAILED
        if not answers:
            raise LookupError("no such order")
        return answers.pop(0)

    cambist_sandbox.deliver_to(receive)
    cambist_sandbox.fail(cambist_sandbox.client.payments.create(amount_rub=100).id)
    assert [each.status for each in cambist_sandbox.deliveries] == [400]
    cambist_sandbox.clock.advance(seconds=1)
    assert [each.status for each in cambist_sandbox.deliveries] == [400, 200]
    assert [each.attempt for each in cambist_sandbox.webhooks] == [1, 2]
    cambist_sandbox.fail(cambist_sandbox.client.payments.create(amount_rub=100).id)
    last = cambist_sandbox.deliveries[-1]
    assert (last.status, type(last.error)) == (500, LookupError)


def test_an_application_as_receiver(cambist_sandbox: Sandbox) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        given = {name.decode(): value.decode() for name, value in scope["headers"]}
        event = verify_webhook(given, body, [cambist_sandbox.webhook_secret]).event
        assert isinstance(event, PaymentStatusChanged)
        seen.append((await cambist_sandbox.async_client.payments.get(event.payment_id)).status)
        await send({"type": "http.response.start", "status": 204 if scope["path"] == "/webhooks" else 404})
        await send({"type": "http.response.body", "body": b""})

    cambist_sandbox.deliver_to_app(app)
    cambist_sandbox.pay(cambist_sandbox.client.payments.create(amount_rub=100).id)
    assert (seen, cambist_sandbox.deliveries[-1].status) == (["paid"], 204)


@pytest.mark.asyncio
async def test_on_asyncio(cambist_async_client: AsyncClient, cambist_sandbox: Sandbox) -> None:
    made = await asyncio.gather(*(cambist_async_client.payments.create(amount_rub=100 + n) for n in range(3)))
    cambist_sandbox.pay(made[0].id)
    assert [each.id async for each in cambist_async_client.payments.iterate(status="paid")] == [made[0].id]


def test_on_an_event_loop_of_anyio(cambist_async_client: AsyncClient) -> None:
    async def main() -> str:
        return (await cambist_async_client.payments.create(amount_rub=100)).status

    assert anyio.run(main) == "pending"


@pytest.mark.asyncio
async def test_another_http_client(cambist_sandbox: Sandbox) -> None:
    transport = httpx2.ASGITransport(cambist_sandbox.asgi)
    async with httpx2.AsyncClient(transport=transport, base_url=cambist_sandbox.base_url) as http:
        answer = await http.get("/api/v1/payments?status=paid", headers=cambist_sandbox.headers)
        assert (answer.status_code, answer.json()["data"]) == (200, [])
        assert (await http.get("/api/v1/payments")).status_code == 401
        assert (await http.get("/p/pay_unknown")).status_code == 404


def test_pauses_of_the_client_pass_on_the_sandboxes_clock(cambist_sandbox: Sandbox) -> None:
    """Sixty reads a minute, then 429 with Retry-After: the clock is virtual, so the test does not sleep."""
    start = cambist_sandbox.clock.now()
    for _ in range(61):
        cambist_sandbox.client.money.balance()
    assert timedelta(0) < cambist_sandbox.clock.now() - start <= timedelta(seconds=60)


def test_two_services_at_once(cambist_stage: Stage, cambist_sandbox: Sandbox) -> None:
    """The receiver of one takes a payment at the other."""
    with cambist_stage.open_sandbox() as other:

        def receive(_headers: Mapping[str, str], _body: bytes) -> None:
            other.client.payments.create(amount_rub=50)

        cambist_sandbox.deliver_to(receive)
        cambist_sandbox.pay(cambist_sandbox.client.payments.create(amount_rub=100).id)
        amounts = [[each.amount_rub for each in it.client.payments.iterate()] for it in (cambist_sandbox, other)]
    assert amounts == [[100], [50]]


def test_an_operators_action(cambist_sandbox: Sandbox) -> None:
    shop = cambist_sandbox.run(create_shop, cambist_sandbox.account_id, "Second")
    with pytest.raises(CambistError) as error:
        cambist_sandbox.client.payments.create(amount_rub=100, shop_id=shop.id)
    assert error.value.code == "SHOP_MARKUP_NOT_SET"


def test_no_secret_is_shown(cambist_sandbox: Sandbox) -> None:
    assert cambist_sandbox.api_secret not in repr(cambist_sandbox) + repr(cambist_sandbox.client)


def test_two_threads_at_once(cambist_client: Client) -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(cambist_client.payments.create(amount_rub=100).id))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4


class TestOptions:
    @pytest.fixture
    def cambist_options(self) -> SandboxOptions:
        return SandboxOptions(start=START, settings={"refunds": "false"}, receiver_time="sandbox")

    def test_start_settings_and_receivers_time(self, cambist_sandbox: Sandbox) -> None:
        assert cambist_sandbox.clock.now() == START
        with pytest.raises(CambistError) as error:
            cambist_sandbox.client.refunds.create(payment_id="pay_1")
        assert error.value.code == "NOT_FOUND"

        def receive(headers: Mapping[str, str], body: bytes) -> None:
            verify_webhook(headers, body, [cambist_sandbox.webhook_secret], now=cambist_sandbox.clock.now)

        cambist_sandbox.deliver_to(receive)
        cambist_sandbox.fail(cambist_sandbox.client.payments.create(amount_rub=100).id)
        assert cambist_sandbox.deliveries[-1].status == 200


def test_further_endpoints_are_verified_with_their_own_secrets(cambist_sandbox: Sandbox) -> None:
    new = cambist_sandbox.client.webhook_endpoints.create(url="https://books.test/hooks")
    taken: list[str] = []

    def receive(headers: Mapping[str, str], body: bytes) -> None:
        secrets = [cambist_sandbox.webhook_secret, new.secret or ""]
        taken.append(verify_webhook(headers, body, secrets).id)

    cambist_sandbox.deliver_to(receive)
    cambist_sandbox.pay(cambist_sandbox.client.payments.create(amount_rub=100).id)
    assert {each.url for each in cambist_sandbox.deliveries} == {"https://merchant.test/webhooks", new.url}
    assert len(taken) == 2
    assert len(set(taken)) == 1
    assert new.secret is not None
    assert new.secret not in repr(new)
    cambist_sandbox.client.webhook_endpoints.rotate_secret(new.id)
    cambist_sandbox.fail(cambist_sandbox.client.payments.create(amount_rub=100).id)
    assert [each.status for each in cambist_sandbox.deliveries] == [200] * 4
    cambist_sandbox.client.webhook_endpoints.delete(new.id)
    cambist_sandbox.fail(cambist_sandbox.client.payments.create(amount_rub=100).id)
    assert len(cambist_sandbox.deliveries) == 5
