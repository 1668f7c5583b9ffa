"""A merchant's name for this machine leads no webhook of a public installation to what listens here
(docs/decisions.md "Receivers' addresses")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cambist.adapters.clock import SystemClock
from cambist.adapters.notifier.http import HttpNotifier
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.frontends.app.compose import open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.notifier import Answer
from tests.contracts.webhooks import Names, post, webhook
from tests.receivers import Receiver
from tests.tables import table

LIES = {
    "inside.example": [["127.0.0.1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "six.example": [["::1"]],
    "several.example": [["10.0.0.1", "127.0.0.1"]],
    "rebound.example": [["8.8.8.8"], ["127.0.0.1"]],
    "localhost": [["127.0.0.1"]],
}
HOSTS = ["127.0.0.1", "127.8.9.10", "[::1]", "[::ffff:127.0.0.1]", "localhost", *LIES]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as entered:
        yield entered


@table("host", [host for host in HOSTS if host != "rebound.example"])
async def test_test_mode_webhook_reaches_no_service_of_this_machine(receiver: Receiver, host: str) -> None:
    receipt = await post(webhook(receiver.url_at(host)), resolver=Names(LIES), loopback=False, limit=5)
    assert (receipt.answer, receiver.connections) == (Answer.BLOCKED, 0)


async def test_name_that_resolves_to_loopback_later_is_blocked(receiver: Receiver) -> None:
    names = Names({"rebound.example": [["192.168.0.1"], ["127.0.0.1"]]})
    for _ in range(3):
        receipt = await post(webhook(receiver.url_at("rebound.example")), resolver=names, loopback=False, limit=5)
        assert (receipt.answer, receiver.connections) == (Answer.BLOCKED, 0)


async def test_loopback_receivers_are_blocked_by_default(receiver: Receiver) -> None:
    made = HttpNotifier(SystemClock())
    try:
        assert (await made.send(webhook(receiver.url))).answer is Answer.BLOCKED
    finally:
        await made.close()
    assert receiver.connections == 0


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ({"base_url": "https://api.example.com"}, False),
        ({"pay_url": "https://pay.example.com"}, False),
        ({"allow_loopback_webhooks": False}, False),
        ({}, True),
        ({"base_url": "https://api.example.com", "allow_loopback_webhooks": True}, True),
    ],
)
async def test_a_merchants_question_about_the_receiver_says_blocked(
    receiver: Receiver, tmp_path: Path, given: dict[str, Any], arrives: bool
) -> None:
    """`POST /webhook-endpoint/test` reports status, time and cause, so it could be used to scan this machine."""
    settings = Settings(database_url="memory://", data_dir=tmp_path, **given)
    async with open_app(settings) as opened:
        made = await create_account(opened.ports, "Merchant")
        wish = {"webhook_url": receiver.url, "webhook_secret": "a-webhook-secret-of-the-tests"}
        await set_settings(opened.ports, made.account_id, wish)
        transport = httpx.ASGITransport(create_app(opened.ports))  # type: ignore[arg-type]  # litestar's and httpx's ASGI types differ in name only
        async with httpx.AsyncClient(transport=transport, base_url=settings.base_url) as client:
            keys = {"X-Api-Key": made.test.api_key, "X-Api-Secret": made.test.api_secret}
            answer = await client.post("/api/v1/webhook-endpoint/test", headers=keys)
        assert answer.status_code == 200, answer.text
    assert (receiver.connections > 0) is arrives
    assert ("blocked" in answer.text) is not arrives
