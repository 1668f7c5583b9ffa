"""The straight road of a payment over real HTTP: `cambist serve`, a merchant, a payer and a receiver."""

import asyncio
from collections import Counter
from typing import Self
from uuid import uuid4

import msgspec
from standardwebhooks import Webhook

from cambist.core.domain.webhooks.delivery import last_attempt_id
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from cambist.core.domain.webhooks.signing import standard_secret, verify_signature
from cambist.ports.bundle import Ports
from tests.receivers import Receiver, Request
from tests.stories.merchant import merchant
from tests.stories.processes import WEBHOOK_SECRET, Installation, eventually


def event_of(request: Request) -> str:
    """The id of a genuine event. `now` is the attempt's own time: how old one may be is tested in tests/domain."""
    return verify_signature(
        request.headers, request.body, [WEBHOOK_SECRET], int(request.headers["x-webhook-timestamp"])
    )


async def delivered(ports: Ports, event_id: str) -> Delivery | None:
    """The delivery once it is entered as done; that happens after the receiver's answer."""
    async with ports.storage.unit() as unit:
        found = await unit[Delivery].get(event_id)
    return found if found is not None and found.status is DeliveryStatus.DELIVERED else None


async def tried(ports: Ports, account_id: str) -> list[Delivery]:
    """The account's deliveries that were attempted."""
    async with ports.storage.unit() as unit:
        return [each for each in await unit[Delivery].find(account_id=account_id) if each.attempts]


class LateReceiver(Receiver):
    """A receiver at an address that was known before: until it is entered, nobody listens there."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self


async def test_a_payment_from_its_creation_to_the_verified_webhook(sqlite_location: Installation) -> None:
    """Standard Webhooks libraries verify our webhooks as they are (docs/webhooks.md "The signature")."""
    async with Receiver() as receiver:
        account = await sqlite_location.account(receiver.url)
        _, base = sqlite_location.serve()
        async with merchant(base, account.test) as shop:
            created = await shop.create(external_id="order-7", metadata={"basket": 7})
            assert created.status == 201
            payment = created.json
            assert payment["status"] == "pending"

            window = payment["payment_url"]
            assert window == f"{base}/p/{payment['id']}"
            async with shop.client.get(window, headers={"Accept-Language": "en"}) as page:
                assert (page.status, page.content_type) == (200, "text/html")
                assert "100.00" in await page.text()

            async with shop.client.post(f"{window}/simulate", data={"action": "pay"}, allow_redirects=False) as done:
                assert (done.status, done.headers["Location"]) == (303, f"/p/{payment['id']}")

            [request] = await receiver.arrived()
            assert (request.method, request.target) == ("POST", "/hook")
            event_id = event_of(request)
            assert Webhook(standard_secret(WEBHOOK_SECRET)).verify(request.body, dict(request.headers))
            assert request.headers["x-webhook-id"] == request.headers["webhook-id"] == event_id
            event = msgspec.json.decode(request.body)
            assert event.pop("timestamp").endswith("Z")
            assert event == {
                "event": "payment.status_changed",
                "payment_id": payment["id"],
                "external_id": "order-7",
                "status": "paid",
                "previous_status": "pending",
                "amount_rub": "100.00",
                "actual_amount_rub": "100.00",
                "amount_usdt": None,
                "payment_method": "sbp",
                "refund_pending": False,
                "metadata": {"basket": 7},
                "sandbox": True,
                "shop_id": account.default_shop_id,
                "shop_name": "Default",
            }

            shown = await shop.ask("GET", f"/payments/{payment['id']}")
            assert shown.status == 200
            assert (shown.json["status"], shown.json["actual_amount_rub"]) == ("paid", "100.00")
            assert shown.json["paid_at"] is not None


async def test_a_receiver_that_fails_is_tried_again_with_the_same_event(sqlite_location: Installation) -> None:
    """Pauses of 1 s and 2 s (docs/webhooks.md "When you do not answer"), X-Webhook-Id the same, X-Webhook-Attempt
    rising, and X-Webhook-Timestamp of each attempt's own time. A 2xx closes the delivery."""
    async with Receiver() as receiver:
        receiver.answer_with(500, 500, 200)
        account = await sqlite_location.account(receiver.url)
        _, base = sqlite_location.serve()
        async with merchant(base, account.test) as shop:
            await shop.paid()
        attempts = await receiver.arrived(3)
        assert [each.headers["x-webhook-attempt"] for each in attempts] == ["1", "2", "3"]
        [event_id] = {event_of(each) for each in attempts}
        assert len({each.body for each in attempts}) == 1
        first, second, third = (int(each.headers["x-webhook-timestamp"]) for each in attempts)
        assert second - first >= 1
        assert third - second >= 2

        async with sqlite_location.app() as ports:
            delivery = await eventually(lambda: delivered(ports, event_id))
        assert delivery.attempts == len(receiver.requests) == 3


async def test_a_receiver_that_was_down_over_a_restart_gets_its_event(sqlite_location: Installation) -> None:
    """A restart loses nothing (ARCHITECTURE.md "Units and jobs")."""
    async with Receiver() as gone:
        port = gone.port
    receiver = LateReceiver(port)
    account = await sqlite_location.account(receiver.url)
    service, base = sqlite_location.serve()
    async with merchant(base, account.test) as shop:
        payment = await shop.paid()
    async with sqlite_location.app() as ports:
        [before] = await eventually(lambda: tried(ports, account.account_id))
        async with ports.storage.unit() as unit:
            attempt = await unit[Attempt].get(last_attempt_id(before))
    assert attempt is not None
    assert (attempt.answer, attempt.status) == ("connection", None)
    assert service.terminate() == 0
    sqlite_location.serve()
    async with receiver:
        [request, *_] = await receiver.arrived()
    assert event_of(request) == before.id
    assert int(request.headers["x-webhook-attempt"]) >= 2
    assert msgspec.json.decode(request.body)["payment_id"] == payment["id"]


async def test_twenty_requests_at_once_with_one_new_key_make_one_payment(place: Installation) -> None:
    """One 201, nineteen 200, one payment (docs/concepts.md "Idempotency"), over sockets of their own."""
    await place.migrate()
    account = await place.account()
    _, base = place.serve()
    key = str(uuid4())
    async with merchant(base, account.test) as shop:
        answers = await asyncio.gather(*(shop.create(key) for _ in range(20)))
        assert Counter(answer.status for answer in answers) == {201: 1, 200: 19}
        assert [answer.headers.get("Idempotent-Replayed") for answer in answers].count("true") == 19
        [payment_id] = {answer.json["id"] for answer in answers}
        page = (await shop.ask("GET", "/payments")).json
        assert page["pagination"]["total"] == 1
        assert [each["id"] for each in page["data"]] == [payment_id]
