"""Every example of embedding, adapters and a merchant's side runs (examples/)."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from cambist.frontends.conformance import notifier as of_notifiers
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.bank_harness import BankHarness
from cambist.frontends.conformance.harnesses import NotifierHarness
from cambist.frontends.testing import Sandbox, open_stage
from examples import embed_script, mount_litestar, mount_starlette, own_notifier, reconcile
from examples.own_bank.conftest import bank_harness

__all__ = ["BankHarness", "bank_harness"]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """The pytest plugin's fixture `cambist_sandbox`."""
    with open_stage() as stage, stage.open_sandbox() as opened:
        yield opened


class TestOwnBank:
    """The example keeps the contract that we ship, and its harness plays all of it."""

    class TestRequests(of_banks.TestRequests): ...

    class TestInvoices(of_banks.TestInvoices): ...

    class TestPayments(of_banks.TestPayments): ...

    class TestRefunds(of_banks.TestRefunds): ...

    class TestNotifications(of_banks.TestNotifications): ...

    class TestFaults(of_banks.TestFaults): ...

    class TestCancelledCalls(of_banks.TestCancelledCalls): ...

    class TestTwoOfOneName(of_banks.TestTwoOfOneName): ...

    class TestExtremes(of_banks.TestExtremes): ...

    class TestLimit(of_banks.TestLimit): ...

    class TestClosed(of_banks.TestClosed): ...

    class TestWhatItSays(of_banks.TestWhatItSays): ...


class TestOwnNotifier(of_notifiers.TestNotifier):
    """A full queue stands for a receiver's bad answer and for a missing receiver."""

    class Harness(NotifierHarness):
        def __init__(self) -> None:
            self.queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(maxsize=20)
            self.notifier = own_notifier.QueueNotifier(self.queue)

        async def received(self) -> list[bytes]:
            return [self.queue.get_nowait()[1] for _ in range(self.queue.qsize())]

        async def answer(self, status: int) -> None:
            if status != 200:
                pytest.skip("a queue takes a letter or is full, and then it answers 503")

    @pytest.fixture
    def notifier_harness(self) -> NotifierHarness:
        return self.Harness()


async def test_the_plain_script() -> None:
    said = await embed_script.take_a_payment("memory://")
    assert said == ["order-1 is paid", "AMOUNT_BELOW_MINIMUM: The minimum amount is 30.00 RUB"]


async def test_own_notifier_gets_the_webhooks() -> None:
    [body] = await own_notifier.main()
    assert b'"status":"paid"' in body


@pytest.mark.parametrize("example", [mount_starlette, mount_litestar], ids=["starlette", "litestar"])
async def test_the_api_and_the_window_answer_inside_another_application(example: Any) -> None:
    async with example.pay.lifespan(example.app):
        transport = httpx.ASGITransport(example.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            made = await http.post("/orders/order-1")
            window = await http.get(made.json()["pay_at"])
            assert (window.status_code, "490,00" in window.text) == (200, True)
            service = await example.pay.service()
            assert [each.name for each in await service.accounts()] == ["My shop"]
            pair = (await service.create_account("Another")).test
            headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}
            assert (await http.get("/pay/api/v1/payments", headers=headers)).json()["data"] == []
            unknown = await http.get("/pay/api/v1/nothing", headers=headers)
            assert unknown.json()["error"]["code"] == "NOT_FOUND"
            assert (await http.get("/api/v1/payments", headers=headers)).status_code == 404, "it is mounted elsewhere"


def test_the_reconciliation_finds_what_differs(sandbox: Sandbox) -> None:
    client = sandbox.client
    payments = [client.payments.create(amount_rub=amount, external_id=f"order-{amount}") for amount in (100, 200, 300)]
    for payment in payments:
        sandbox.pay(payment.id)
    sandbox.clock.advance(days=2)
    late = client.payments.create(amount_rub=400)
    sums = reconcile.settled(client)
    assert sums == {payment.id: Decimal(amount) for payment, amount in zip(payments, (100, 200, 300), strict=True)}
    orders = [
        {"order": "order-100", "payment_id": payments[0].id, "amount_rub": "100.00"},
        {"order": "order-200", "payment_id": payments[1].id, "amount_rub": "250.00"},
        {"order": "order-400", "payment_id": late.id, "amount_rub": "400.00"},
    ]
    assert reconcile.differences(orders, sums) == [
        "order-200: settled 200.00, expected 250.00",
        "order-400: not settled yet",
        f"{payments[2].id}: settled 300.00, and no order has it",
    ]
