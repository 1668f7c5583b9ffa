"""A service for the tests of an embedding program: docs/embedding.md "Tests"."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

import cambist
from cambist.testing import ServiceSandbox, SyncServiceSandbox, open_service, open_sync_service

START = datetime(2026, 5, 1, 20, tzinfo=UTC)


@pytest.mark.parametrize("database", ["memory", "sqlite"])
async def test_payment_is_paid_refunded_and_settled_without_waiting(database: Literal["memory", "sqlite"]) -> None:
    told: list[str] = []

    async def on_event(event: cambist.Event) -> None:
        told.append(event.type.value)

    async with open_service(on_event=on_event, database=database, start=START) as sandbox:
        payment = await sandbox.merchant.create_payment("490.00")
        assert payment.created_at == sandbox.clock.now() == START
        paid = await sandbox.pay(payment.id, payer_name="A. B.")
        assert paid.status is cambist.PaymentStatus.PAID
        refund = await sandbox.merchant.refund(payment.id, "90.00")
        assert (await sandbox.complete_refund(refund.id)).status is cambist.RefundStatus.COMPLETED
        settlement = await sandbox.settle()
        assert [each.id async for each in sandbox.merchant.settlements()] == [settlement.id]
        assert (await sandbox.merchant.payment(payment.id)).status is cambist.PaymentStatus.SETTLED
    assert told == ["payment.status_changed", "refund.completed", "payment.status_changed"]
    assert [event.type.value for event in sandbox.received] == told


async def test_payments_fail_expire_and_are_underpaid() -> None:
    async with open_service() as sandbox:
        made = [(await sandbox.merchant.create_payment(100)).id for _ in range(3)]
        failed = await sandbox.fail(made[0], cambist.FailureReason.INSUFFICIENT_FUNDS)
        assert (failed.status, failed.failure_reason) == ("failed", "insufficient_funds")
        assert (await sandbox.expire(made[1])).status is cambist.PaymentStatus.EXPIRED
        assert (await sandbox.pay(made[2], amount_rub="99.00")).status is cambist.PaymentStatus.AMOUNT_MISMATCH
        assert len(sandbox.received) == 3


async def test_refund_fails_or_is_rejected() -> None:
    async with open_service() as sandbox:
        payment = await sandbox.merchant.create_payment(100)
        await sandbox.pay(payment.id)
        failed = await sandbox.merchant.refund(payment.id, 10)
        assert (await sandbox.fail_refund(failed.id)).status is cambist.RefundStatus.FAILED
        rejected = await sandbox.merchant.refund(payment.id, 10)
        assert (await sandbox.reject_refund(rejected.id)).status is cambist.RefundStatus.REJECTED
        assert [event.type.value for event in sandbox.received[1:]] == ["refund.failed", "refund.rejected"]


async def test_clock_does_what_falls_due_on_the_way(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[datetime] = []

    def on_event(event: cambist.Event) -> None:
        attempts.append(sandbox.clock.now())
        if event.attempt == 1:
            raise RuntimeError("the shop's database is away")

    caplog.set_level(logging.CRITICAL)
    async with open_service(on_event=on_event) as sandbox:
        payment = await sandbox.merchant.create_payment(100)
        await sandbox.clock.advance_to(payment.expires_at + timedelta(minutes=5))
        assert (await sandbox.merchant.payment(payment.id)).status is cambist.PaymentStatus.EXPIRED
        assert attempts[1] - attempts[0] == timedelta(seconds=1), "the backoff's first pause"
        with pytest.raises(ValueError, match="forward"):
            await sandbox.clock.advance(seconds=-1)


async def test_live_account_of_the_program_is_paid_by_a_simulated_bank() -> None:
    async with open_service() as sandbox:
        account = await sandbox.service.account("My shop", create=True, refunds=True)
        merchant = await sandbox.service.merchant(account, "live")
        payment = await merchant.create_payment(100)
        assert (await sandbox.pay(payment.id)).status is cambist.PaymentStatus.PAID
        refund = await merchant.refund(payment.id, 10)
        assert (await sandbox.complete_refund(refund.id)).status is cambist.RefundStatus.COMPLETED
        assert (await sandbox.settle(merchant)).payments == 1
        assert {event.mode for event in sandbox.received} == {cambist.Mode.LIVE}


async def test_unknown_ids_and_databases_are_refused() -> None:
    async with open_service() as sandbox:
        with pytest.raises(cambist.Refusal, match="No payment"):
            await sandbox.pay("pay_1")
        with pytest.raises(cambist.Refusal, match="No refund"):
            await sandbox.complete_refund("ref_1")
    with pytest.raises(ValueError, match="memory, sqlite"):
        async with open_service(database="postgresql://x"):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize("_loop", [1, 2])
async def test_programs_own_mount_serves_the_service_of_the_test(_loop: int) -> None:
    """Also a mount of a module, which sees another event loop in each test."""
    heard = HEARD[:]
    async with open_service(PAY, settings={"refunds": False}) as sandbox:
        assert await PAY.service() is sandbox.service
        payment = await sandbox.merchant.create_payment(100)
        assert payment.payment_url == f"https://shop.example/pay/p/{payment.id}"
        await sandbox.pay(payment.id)
        with pytest.raises(RuntimeError, match="open already"):
            async with open_service(PAY):
                pass
        with pytest.raises(cambist.Refusal):
            await sandbox.merchant.refund(payment.id)
    assert HEARD[len(heard) :] == sandbox.received != []
    async with PAY.lifespan():
        assert await (await PAY.service()).accounts() == [], "its own database again"


HEARD: list[cambist.Event] = []
PAY = cambist.Mount(on_event=HEARD.append, base_url="https://shop.example/pay/")


class TestSynchronousPrograms:
    @pytest.fixture
    def heard(self) -> list[str]:
        return []

    @pytest.fixture
    def sandbox(self, heard: list[str]) -> Iterator[SyncServiceSandbox]:
        with open_sync_service(on_event=lambda event: heard.append(event.type.value), start=START) as opened:
            yield opened

    def test_payment_is_paid_refunded_and_settled(self, sandbox: SyncServiceSandbox, heard: list[str]) -> None:
        payment = sandbox.merchant.create_payment("490.00")
        assert sandbox.pay(payment.id).status is cambist.PaymentStatus.PAID
        refund = sandbox.merchant.refund(payment.id, "90.00")
        assert sandbox.complete_refund(refund.id).amount_rub == 90
        sandbox.settle()
        assert heard == ["payment.status_changed", "refund.completed", "payment.status_changed"]
        assert [event.type.value for event in sandbox.received] == heard

    def test_clock_is_moved(self, sandbox: SyncServiceSandbox) -> None:
        payment = sandbox.merchant.create_payment(100)
        sandbox.clock.advance(days=1)
        assert sandbox.clock.now() == START + timedelta(days=1)
        assert sandbox.merchant.payment(payment.id).status is cambist.PaymentStatus.EXPIRED
        with pytest.raises(ValueError, match="forward"):
            sandbox.clock.advance_to(START)

    def test_programs_own_service_is_the_one_of_the_test(self) -> None:
        heard: list[cambist.Event] = []
        desk = cambist.open_sync("postgresql://nowhere.invalid/shop", on_event=heard.append)
        for _ in range(2):
            with open_sync_service(desk, database="sqlite") as sandbox:
                assert sandbox.service is desk
                merchant = desk.merchant(desk.account("My shop", create=True))
                sandbox.pay(merchant.create_payment(100).id)
                with pytest.raises(RuntimeError, match="open already"), open_sync_service(desk):
                    pass
        assert len(heard) == 2


def test_reprs_name_the_time_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    with open_sync_service(database="sqlite", start=START) as sandbox:
        assert repr(sandbox) == "SyncServiceSandbox(2026-05-01T20:00:00+00:00)"
        assert isinstance(sandbox.inner, ServiceSandbox)
        assert repr(sandbox.inner) == "ServiceSandbox(2026-05-01T20:00:00+00:00)"
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == [], "no warning of key files"


def test_open_service_needs_no_extra() -> None:
    script = (
        "import sys, cambist.testing as testing; print(len(dir(testing)) > 10);"
        "testing.open_service, testing.open_sync_service;"
        "print([name for name in ('httpx2', 'litestar', 'pytest', 'sqlalchemy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True", "[]"]
