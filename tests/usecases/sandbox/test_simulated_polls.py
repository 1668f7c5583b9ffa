"""While a sandbox clock is advanced, simulated providers are polled at deadlines only (docs/sandbox.md "The clock"),
because they change only by a call. No money is missed, and real providers are polled as usual."""

from datetime import timedelta

import msgspec

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.common.account_time import living_with
from cambist.core.usecases.refunds.bank_refunds import REVERSAL_POLLS
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import RefundStatus
from tests.apps import TestApp, open_test_app
from tests.clock_kit import DAY, advance
from tests.exchange_app import open_exchange_app
from tests.invariants import everything
from tests.refund_app import open_refund_app

HOUR = timedelta(hours=1)
LOST = timedelta(hours=5)
"""When a late payment without a notification arrives: within the window for late money."""


class TestExchanges:
    async def test_unpaid_exchange_is_polled_at_its_end_and_once_more(self) -> None:
        async with open_exchange_app() as exchanges:
            made = await exchanges.created()
            done = await advance(exchanges.app, DAY)
            assert await exchanges.status(made["id"]) == "expired"
            assert done["jobs_run"] == len(["the first look", "its end", "its event", "the last look"])

    async def test_unreported_money_is_found_at_the_deadline(self) -> None:
        async with open_exchange_app() as exchanges:
            made = await exchanges.created()
            await exchanges.send(made["id"])
            await advance(exchanges.app, DAY)
            assert await exchanges.status(made["id"]) == "completed"

    async def test_unreported_late_money_is_found_by_the_last_poll(self) -> None:
        async with open_exchange_app() as exchanges:
            made = await exchanges.created()
            await advance(exchanges.app, LOST)
            assert await exchanges.status(made["id"]) == "expired"
            async with living_with(exchanges.ports, exchanges.app.account.account_id, Mode.TEST):
                await exchanges.send(made["id"])
            await advance(exchanges.app, 2 * HOUR)
            [transfer] = await exchanges.transfers()
            assert transfer.suspended == transfer.amount

    async def test_rub_are_waited_for_in_the_same_way(self) -> None:
        async with open_exchange_app() as exchanges:
            body = {"client_phone": "+70000000001", "amount_rub": "10000.00"}
            answer = await exchanges.action("/sandbox/exchanges", body)
            assert answer.status_code == 201, answer.text
            done = await advance(exchanges.app, DAY)
            assert await exchanges.status(answer.json()["id"]) == "expired"
            assert done["jobs_run"] == len(["the first look", "its end", "its event", "the last look"])


class TestPayments:
    async def test_expired_payment_is_polled_once_more(self, app: TestApp) -> None:
        await app.created()
        assert (await advance(app, DAY))["jobs_run"] == len(["its end", "its event", "the last look"])

    async def test_payment_at_a_real_bank_is_polled_as_usual(self) -> None:
        async with open_test_app() as plain:
            bank = plain.ports.banks.named("simulator-test").capabilities
        real = msgspec.structs.replace(bank, simulated=False)
        assert real.sends_notifications
        async with open_test_app(further_banks=[FurtherBank(name="real", capabilities=real)]) as app:
            app.script.create.append(Twist(ending=Ending.UNAVAILABLE))
            await app.created()
            [payment] = await everything(app.ports, Payment)
            assert payment.bank == "real"
            done = await advance(app, DAY)
            late = ["30 minutes", "2 hours", "6 hours"]
            assert done["jobs_run"] == len(["30 s", *range(1, 15), "its end", "its event", *late])


async def test_unreported_reversal_is_found_by_the_last_poll() -> None:
    async with open_refund_app() as refunds:
        _, refund_id = await refunds.processing()
        await advance(refunds.app, HOUR)
        assert await refunds.status(refund_id) == "completed"
        async with living_with(refunds.ports, refunds.app.account.account_id, Mode.TEST):
            await refunds.bank().simulate_refund(refund_id, RefundStatus.REVERSED)
        await advance(refunds.app, REVERSAL_POLLS[-1] - 2 * HOUR)
        assert await refunds.status(refund_id) == "completed"
        await advance(refunds.app, 2 * HOUR)
        assert await refunds.status(refund_id) == "reversed"
