"""The service inside a program: `cambist.open`, in memory and on SQLite (docs/embedding.md)."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest

import cambist
from cambist.adapters.notifier.absent import AbsentNotifier
from cambist.client import AsyncClient
from cambist.core.usecases.common.paging import MomentFilter
from cambist.core.usecases.operators.dashboard import read_dashboard
from cambist.core.usecases.payments.payments import get_payment
from cambist.core.usecases.settlement.statements import list_settlements
from cambist.core.usecases.webhooks.endpoint import send_test
from cambist.core.usecases.webhooks.events import EventQuery, list_events
from cambist.frontends import public
from cambist.frontends.embedding import event_handler as event_handler
from cambist.frontends.embedding import service as service_module
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import BankSimulator, Simulation
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.testing import open_service
from tests.patience import HANGS
from tests.servers import database
from tests.tables import table

TAKEN = "6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11"


async def paid(merchant: cambist.Merchant, **more: Any) -> cambist.Payment:
    payment = await merchant.create_payment("490.00", **more)
    return await merchant.simulate(payment.id, "paid")


PUBLIC = sorted(name for name in vars(public) if not name.startswith("_"))


@table("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(cambist, name).__doc__, name


def test_a_name_that_is_not_public_is_refused_as_python_does() -> None:
    for name in ("Paymnet", "_private"):
        with pytest.raises(AttributeError, match=f"module 'cambist' has no attribute '{name}'"):
            getattr(cambist, name)


def test_the_version_is_the_installed_one() -> None:
    assert cambist.__version__ == version("cambist")


def test_importing_loads_nothing_until_something_is_asked_for() -> None:
    script = "import sys, cambist; print([name for name in sys.modules if name.startswith(('cambist.', 'msgspec'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_payment_is_made_paid_and_received_as_an_event(kind: str, tmp_path: Path) -> None:
    heard: list[cambist.Event] = []
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path / 'shop.db'}"
    async with cambist.open(url, on_event=heard.append, base_url="https://pay.example") as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id)
        payment = await merchant.create_payment(Decimal("4.9E+2"), external_id="order-1")
        assert payment.amount_rub == Decimal("490.00")
        assert payment.payment_url == f"https://pay.example/p/{payment.id}"
        await merchant.simulate(payment.id, "paid")
        assert await service.run_due() > 0
        assert [each.id async for each in merchant.payments()] == [payment.id]
        assert (await merchant.balance()).pending_rub == payment.amount_rub
    [event] = heard
    assert (event.account_id, event.mode, event.sequence, event.attempt) == (account.account_id, "test", 1, 1)
    assert isinstance(event.payload, cambist.PaymentStatusChanged)
    assert (event.payload.payment_id, event.payload.status) == (payment.id, "paid")
    if kind == "sqlite":
        assert (tmp_path / "vault.key").exists(), "the key file lies beside the database"
        async with cambist.open(url) as again:
            merchant = await again.merchant(account.account_id)
            assert (await merchant.payment(payment.id)).status is cambist.PaymentStatus.PAID


async def test_records_and_events_are_those_of_the_client() -> None:
    """docs/embedding.md "Records": one shape for embedding, the API and webhooks."""
    async with open_service() as sandbox:
        made = await sandbox.service.create_account("My shop", refunds=True)
        merchant = await sandbox.service.merchant(made.account_id)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(sandbox.service.asgi()))
        keys = made.test.api_key, made.test.api_secret
        async with http, AsyncClient("https://pay.example", *keys, http=http) as client:
            payment = await merchant.create_payment("490.00", external_id="order-1", metadata={"a": 1})
            await sandbox.pay(payment.id, payer_name="A. B.")
            refund = await sandbox.complete_refund((await merchant.refund(payment.id, "90.00")).id)
            settlement = await sandbox.settle(merchant)
            paid = await merchant.payment(payment.id)
            assert paid == await client.payments.get(payment.id)
            assert (paid.amount_rub, paid.payer_name) == (Decimal("490.00"), "A. B.")
            assert refund == await client.refunds.get(refund.id)
            assert settlement == await client.settlements.get(settlement.id)
            assert await merchant.balance() == await client.money.balance()
            for ours, theirs in [
                (merchant.payments(status="settled"), client.payments.iterate()),
                (merchant.refunds(), client.refunds.iterate()),
                (merchant.settlements(), client.settlements.iterate()),
                (merchant.movements(), client.money.iterate_movements()),
            ]:
                assert [each async for each in ours] == [each async for each in theirs] != []
            told = [(await client.events.get(event.id), event) async for event in merchant.events()]
            assert [(one.id, one.sequence, one.event) for one, _ in told] == [
                (event.id, event.sequence, event.payload) for _, event in told
            ]
            assert [event.payload for _, event in told[::-1]] == [event.payload for event in sandbox.received]


async def test_a_key_makes_one_payment() -> None:
    async with cambist.open() as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        first = await merchant.create_payment(490, idempotency_key=TAKEN)
        assert (await merchant.create_payment(990, idempotency_key=TAKEN)).id == first.id
        assert (await merchant.create_payment(490)).id != first.id


@table(
    ("amount", "more", "code"),
    [
        ("1.00", {}, "AMOUNT_BELOW_MINIMUM"),
        ("ten", {}, "VALIDATION_ERROR"),
        ("490", {"external_id": 5}, "VALIDATION_ERROR"),
        ("490", {"external_id": "a\0b"}, "VALIDATION_ERROR"),
        ("490", {"idempotency_key": "no uuid"}, "VALIDATION_ERROR"),
        ("490", {"shop_id": "01a1febc-96fe-79c2-ae88-b1653117c017"}, "SHOP_NOT_FOUND"),
    ],
)
async def test_refusal_of_the_api_is_raised_with_its_code(amount: str, more: dict[str, Any], code: str) -> None:
    async with cambist.open() as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        with pytest.raises(cambist.Refusal) as refused:
            await merchant.create_payment(amount, **more)
        assert refused.value.code == code


@pytest.mark.parametrize("amount", [4.9, True, None])
async def test_amount_of_a_wrong_type_is_a_type_error(amount: Any) -> None:
    async with cambist.open() as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        with pytest.raises(TypeError, match="Decimal"):
            await merchant.create_payment(amount)


async def test_an_event_that_was_not_handled_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    async def on_event(event: cambist.Event) -> None:
        attempts.append(event.attempt)
        if len(attempts) == 1:
            raise RuntimeError("the database is away")

    caplog.set_level(logging.CRITICAL)
    async with cambist.open(on_event=on_event) as service, service.working():
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        await paid(merchant)
        async with asyncio.timeout(HANGS):
            while len(attempts) < 2:
                await asyncio.sleep(0.05)
    assert attempts == [1, 2]


async def test_worker_ends_with_its_block_and_keeps_the_accounts_webhook_url() -> None:
    heard: list[cambist.Event] = []
    posted: list[str] = []

    class Posts:
        async def send(self, webhook: WebhookRequest) -> DeliveryResult:
            posted.append(webhook.url)
            return DeliveryResult(answer=Answer.RESPONDED, status=200)

        async def close(self) -> None:
            raise AssertionError("whoever gives an adapter closes it")

    own = {"webhook_url": "https://merchant.example/hooks", "webhook_secret": "at-least-16-characters"}
    async with cambist.open(on_event=heard.append, adapters=cambist.Adapters(notifier=Posts())) as service:
        account = await service.create_account("My shop", **own)
        merchant = await service.merchant(account.account_id)
        await paid(merchant)
        await service.run_due()
        assert (posted, heard) == (["https://merchant.example/hooks"], [])
        await service.receive(account.account_id)
        await paid(merchant)
        await service.run_due()
        assert [event.payload for event in heard]
        assert (await merchant.do(send_test)).delivered, "the test letter has no payload to hear"
        assert len(heard) == 1


async def test_a_handler_that_hangs_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_handler, "LIMIT", 0.01)
    tried: list[str] = []

    async def on_event(event: cambist.Event) -> None:
        tried.append(event.id)
        await asyncio.Event().wait()

    async with cambist.open(on_event=on_event) as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        payment = await paid(merchant)
        await service.run_due()
        [told] = (await merchant.do(list_events, EventQuery(object_id=payment.id), 1, 20)).records
        assert [told.event.id] == tried
        assert (told.delivery.status, told.delivery.attempts) == ("pending", 1)


async def test_receipt_says_that_there_is_no_handler() -> None:
    """The webhook is not lost by it: it comes again, and operators see why it did not go."""
    webhook = WebhookRequest(url=event_handler.address_of("acc_1"), headers={}, body=b"")
    result = await event_handler.EventHandler(None, AbsentNotifier("not installed")).send(webhook)
    assert (result.answer, result.status) == (Answer.CONNECTION, None)
    assert "on_event" in result.note
    elsewhere = WebhookRequest(url="https://merchant.example/", headers={}, body=b"")
    assert (
        await event_handler.EventHandler(None, AbsentNotifier("not installed")).send(elsewhere)
    ).note == "not installed"


async def test_requests_that_its_http_face_refuses_are_there_for_the_console(tmp_path: Path) -> None:
    """Every process writes what limits refused, at its end at the latest (docs/operations.md "Metrics")."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    async with cambist.open(url) as service:
        transport = httpx.ASGITransport(service.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as http:
            # More than twice the limit: a minute may end on the way.
            asked = [await http.get("/api/v1/rates", headers={"X-Api-Key": "nobody"}) for _ in range(121)]
    refused = sum(answer.status_code == 429 for answer in asked)
    async with cambist.open(url) as service:
        assert sum((await service.do(read_dashboard)).hits.hour) == refused > 0


async def test_use_cases_that_are_not_named_are_reached_by_do() -> None:
    async with cambist.open() as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id, "live")
        assert (await merchant.do(list_settlements, MomentFilter(), 1, 20)).total == 0
        with pytest.raises(cambist.Refusal, match="test mode"):
            await merchant.simulate("pay_1", "paid")
        with pytest.raises(cambist.Refusal):
            await service.merchant("acc_none")


@table("url", ["mysql://x", "", "sqlite:///", "postgres"])
def test_database_of_an_unknown_form_is_reported(url: str) -> None:
    with pytest.raises(ValueError, match="postgresql://"):
        cambist.open(url)


async def test_a_notification_has_the_bank_asked_at_once() -> None:
    """The bank says that something happened; forged, unknown and doubled ones change nothing."""
    async with cambist.open() as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id, cambist.Mode.LIVE)
        payment = await merchant.create_payment("490.00")
        await service.heard(payment.id)
        assert (await merchant.payment(payment.id)).status is cambist.PaymentStatus.PENDING
        asked = await merchant.do(get_payment, payment.id)
        assert asked.bank is not None
        bank = service.ports.banks.named(asked.bank)
        assert isinstance(bank, BankSimulator)
        await bank.simulate(payment.id, Simulation(status=InvoiceStatus.PAID, silent=True))
        for operation in ("pay_unknown", payment.id, payment.id):
            await service.heard(operation)
        assert (await merchant.payment(payment.id)).status is cambist.PaymentStatus.PAID
        assert (await merchant.balance()).pending_rub == payment.amount_rub


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty storage."""
    if request.param == "postgres":
        with database(*map(request.getfixturevalue, ("server", "postgres_template"))) as url:
            yield url
    else:
        yield "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'shop.db'}"


async def test_account_that_many_create_at_once_is_one(address: str) -> None:
    """Two services stand for two processes; each is called many times at once. Memory has one process."""
    in_memory = address == "memory://"
    keys: dict[str, Any] = {} if in_memory else {"vault_key": f"1:{'ab' * 32}", "vault_pepper": "cd" * 32}
    async with AsyncExitStack() as closing:
        services = [
            await closing.enter_async_context(cambist.open(address, on_event=lambda _: None, **keys))
            for _ in range(1 if in_memory else 2)
        ]
        asked = [service.account(" Tea shop ", create=True, refunds=True) for service in services for _ in range(8)]
        [account_id] = set(await asyncio.gather(*asked))
        assert [each.account_id for each in await services[0].accounts()] == [account_id]
        payment = await paid(await services[-1].merchant(account_id))
        assert (await (await services[0].merchant(account_id)).refund(payment.id)).amount_rub == 490


async def test_account_whose_creation_was_interrupted_gets_its_events_and_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cambist.open(on_event=lambda _: None) as service:
        monkeypatch.setattr(service_module, "set_settings", _dies)
        with pytest.raises(asyncio.CancelledError):
            await service.account("Tea shop", create=True, refunds=True)
        monkeypatch.undo()
        merchant = await service.merchant(await service.account("Tea shop", create=True, refunds=True))
        payment = await paid(merchant)
        assert (await merchant.refund(payment.id)).amount_rub == 490
        assert len(await service.accounts()) == 1


async def _dies(*_: object) -> None:
    raise asyncio.CancelledError


async def test_older_account_of_the_name_is_used_and_keeps_its_address() -> None:
    async with cambist.open(on_event=lambda _: None) as service:
        older = await service.create_account("Tea shop", webhook_url="https://a.example/", webhook_secret="x" * 16)
        assert await service.account("Tea shop", create=True) == older.account_id
        assert len(await service.accounts()) == 1
