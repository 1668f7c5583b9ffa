"""A late or doubtful answer has no effect on an exchange's payout, return or beginning if the operation is over, has
not begun, or belongs to another exchange (docs/exchanges.md "Rules")."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.exchanges import ExchangeStatus as S
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.payouts import PartStatus as P
from cambist.core.domain.exchanges.payouts import payout_parts
from cambist.core.usecases.exchanges import creation, progress
from cambist.core.usecases.exchanges.payout import begin_payout, pay_out
from cambist.core.usecases.exchanges.remittances import REMITTANCES, Remitting
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.exchanges.rub_return import RUB_RETURNS, RubReturning
from cambist.core.usecases.exchanges.sending import begin_sending
from cambist.core.usecases.exchanges.steps import WATCH_EXCHANGE
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from cambist.core.usecases.settlement.rates import market_rate
from cambist.ports.bank import Invoice, InvoiceRequest, RefundState, RefundStatus
from cambist.ports.bundle import Ports
from cambist.ports.faults import NotConfigured, Stale, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.remittances import RemittanceState, RemittanceStatus
from tests.domain.exchange_kit import END, NOW, exchange
from tests.exchange_app import PHONE, ExchangeApp, conclude, open_exchange_app
from tests.planting import beneath
from tests.tables import table
from tests.usecases.exchanges.test_exchange_return import BACK, late_rub, late_usdt

R = RemittanceStatus
KEY = "5f0c5f7e-3d3c-4f0f-8f0a-0b7a0d3c2b1a"


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(receiver=False) as opened:
        yield opened


def remitting(status: S, part: P, **more: Any) -> Remitting:
    sold = exchange(status)
    [first, *_] = payout_parts(sold.id, sold.amount_rub, None)
    spoken_of = msgspec.structs.replace(first, status=part, **more)
    return Remitting(msgspec.structs.replace(sold, parts=(spoken_of,)), spoken_of, is_as_made=True)


@table(
    ("status", "part", "word"),
    [
        (S.RUB_SENDING, P.SENT, R.PROCESSING),
        *((S.RUB_SENDING, part, word) for part in (P.PLANNED, P.DONE, P.FAILED) for word in (R.DONE, R.FAILED)),
        *((status, P.SENT, word) for status in (S.COMPLETED, S.FAILED) for word in (R.DONE, R.FAILED)),
    ],
)
async def test_a_word_moves_a_part_that_is_under_way_alone(status: S, part: P, word: R) -> None:
    nobody: Any = None
    subject = remitting(status, part)
    assert await REMITTANCES.apply(nobody, nobody, subject, RemittanceState(status=word)) is subject


def test_a_bank_knows_a_part_from_when_it_was_sent() -> None:
    assert REMITTANCES.sent_at(remitting(S.RUB_SENDING, P.SENT, sent_at=END)) == END
    assert REMITTANCES.sent_at(remitting(S.RUB_SENDING, P.SENT)) == NOW, "one of an earlier version"


class TestReturns:
    async def returning(self, app: ExchangeApp) -> ExchangeTransfer:
        exchange_id = await late_rub(app)
        app.app.script.refund.append(Twist(ending=Ending.UNKNOWN_DONE))
        app.app.script.find_refund.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
        [transfer] = await return_money(app.ports, exchange_id)
        await app.app.clock.advance(1)
        await app.run_due()
        [transfer] = await app.transfers()
        return transfer

    async def test_a_bank_knows_one_from_when_it_was_sent(self, app: ExchangeApp) -> None:
        transfer = await self.returning(app)
        assert transfer.sent_back is not None
        exchange = await app.exchange(transfer.exchange_id)
        assert RUB_RETURNS.sent_at(RubReturning(transfer, exchange)) == transfer.sent_back.sent_at
        assert transfer.sent_back.sent_at != transfer.sent_back.created_at

    @pytest.mark.parametrize(("failure", "told"), [("account_closed", "account_closed"), (None, "unknown")])
    async def test_why_one_failed_is_kept(self, app: ExchangeApp, failure: str | None, told: str) -> None:
        transfer = await self.returning(app)
        assert transfer.sent_back is not None
        state = RefundState(status=RefundStatus.FAILED, failure=failure)
        await conclude(app.ports, transfer.id, transfer.sent_back.operation, state)
        [after] = await app.transfers()
        assert after.sent_back is not None
        assert (after.sent_back.status, after.sent_back.failure) == ("failed", told)

    async def test_only_rub_that_are_sent_back_are_the_banks(self, app: ExchangeApp) -> None:
        await return_money(app.ports, await late_usdt(app), BACK)
        [usdt] = await app.transfers()
        await late_rub(app)
        [rub] = [each for each in await app.transfers() if each.id != usdt.id]
        async with app.ports.storage.unit() as unit:
            assert [await RUB_RETURNS.load(app.ports, unit, each) for each in (usdt.id, rub.id, "gone")] == [None] * 3


class TestPayouts:
    async def received(self, app: ExchangeApp) -> Exchange:
        """Make an exchange whose USDT arrived and whose payout has not begun."""
        made = await app.made()
        await app.send(made.id)
        after = await progress.poll_funds(app.ports, made)
        assert after.status is S.USDT_RECEIVED
        return after

    async def test_payout_that_cannot_begin_says_why(self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch) -> None:
        received, bank = await self.received(app), app.bank()
        no_banks = msgspec.structs.replace(app.ports.banks, order={}, banks={})
        with pytest.raises(NotConfigured, match="no bank of test mode"):
            await begin_payout(msgspec.structs.replace(app.ports, banks=no_banks), received)

        async def nobody(*_: object) -> None:
            return None

        monkeypatch.setattr("cambist.core.usecases.exchanges.payout.first_open", nobody)
        with pytest.raises(Unavailable, match="out of service"):
            await begin_payout(app.ports, received)
        assert (await app.exchange(received.id), await app.remitted(), bank.name) == (
            received,
            {},
            "simulator-test",
        )

    async def test_payout_that_its_bank_may_have_waits_until_the_bank_is_wired(self, app: ExchangeApp) -> None:
        begun = await begin_payout(app.ports, await self.received(app))
        no_banks = msgspec.structs.replace(app.ports.banks, banks={})
        with pytest.raises(NotConfigured):
            await pay_out(msgspec.structs.replace(app.ports, banks=no_banks), begun)

    async def test_forged_exchange_begins_no_payout(self, app: ExchangeApp) -> None:
        received = await self.received(app)
        async with beneath(app.ports).unit() as unit:
            forged = unit[Exchange].save(msgspec.structs.replace(received, client_bank_id="bank100000000111"))
            await unit.commit()
        assert await begin_payout(app.ports, forged) == forged
        async with beneath(app.ports).unit() as unit:
            unit[Exchange].save(msgspec.structs.replace(forged, client_bank_id=received.client_bank_id))
            await unit.commit()

    async def test_forged_exchange_is_polled_once_it_was_sent(self, app: ExchangeApp) -> None:
        """And not before."""
        begun = await begin_payout(app.ports, await self.received(app))
        app.app.script.remit.append(Twist(ending=Ending.UNKNOWN_DONE))
        await pay_out(app.ports, begun)
        sent = await app.exchange(begun.id)
        await app.bank().simulate_remittance(sent.parts[0].operation, R.DONE)
        async with beneath(app.ports).unit() as unit:
            forged = unit[Exchange].save(msgspec.structs.replace(sent, client_bank_id="bank100000000111"))
            await unit.commit()
        assert (await pay_out(app.ports, forged)).exchange.status == "completed"
        app.app.made_up = True
        async with beneath(app.ports).unit() as unit:
            whole = await app.exchange(begun.id)
            unit[Exchange].save(msgspec.structs.replace(whole, client_bank_id=sent.client_bank_id))
            await unit.commit()


class TestSending:
    async def test_sending_begins_once_after_the_hold(self, app: ExchangeApp) -> None:
        made = await app.bought()
        await app.pay(made.id)
        held = await app.exchange(made.id)
        assert held.hold_until is not None
        await app.app.clock.advance((held.hold_until - app.app.clock.now()).total_seconds() - 1)
        assert await begin_sending(app.ports, held) == held
        await app.app.clock.advance(1)
        begun = await begin_sending(app.ports, held)
        assert begun.status is S.USDT_SENDING
        assert await begin_sending(app.ports, held) == begun, "whoever comes late begins nothing"
        with pytest.raises(Stale):
            await begin_sending(app.ports, msgspec.structs.replace(held, id=f"{held.id[:-1]}x"))


class TestBeginnings:
    @pytest.mark.parametrize(("left", "status"), [(1, "awaiting_rub"), (0, "failed")])
    async def test_at_its_deadline_nobody_is_asked_for_an_invoice(
        self, app: ExchangeApp, left: int, status: str
    ) -> None:
        app.app.script.create.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        made = await app.bought()
        await app.app.clock.advance((made.expires_at - app.app.clock.now()).total_seconds() - left)
        assert await app.look(made.id) == status

    @pytest.mark.parametrize(("payload", "link", "shown"), [("p", "l", "p"), (None, "l", "l"), ("p", None, "p")])
    async def test_a_client_is_shown_what_the_bank_gave(
        self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch, payload: str | None, link: Any, shown: str
    ) -> None:
        async def give(_request: InvoiceRequest) -> Invoice:
            return Invoice(reference="simulator-test:r", payload=payload, link=link)

        monkeypatch.setattr(app.bank(), "create_invoice", give)
        assert (await app.bought()).invoice_payload == shown

    async def test_a_repeat_of_one_that_is_open_asks_nobody(self, app: ExchangeApp) -> None:
        made = await app.made(key=KEY)
        app.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE))
        assert await app.made(key=KEY) == made
        assert len(app.watcher.script.address) == 1

    async def test_two_requests_with_one_key_at_once_make_one_exchange(self, app: ExchangeApp) -> None:
        first, second = await asyncio.gather(app.made(key=KEY), app.made(key=KEY))
        assert first.id == second.id

    async def test_exchange_withdrawn_by_another_request_is_unavailable(
        self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        address = app.watcher.address

        async def late(operation: str) -> str:
            async with app.ports.storage.unit() as unit:
                found = await unit[Exchange].get(operation)
                assert found is not None
                unit[Exchange].remove(found)
                await WATCH_EXCHANGE.drop(unit, operation)
                await unit.commit()
            return await address(operation)

        monkeypatch.setattr(app.watcher, "address", late)
        with pytest.raises(Refusal) as caught:
            await app.made(key=str(uuid4()))
        assert (caught.value.code, caught.value.retry_after) == ("PROVIDER_UNAVAILABLE", 30)

    async def test_client_blocked_while_the_rate_is_fetched_begins_no_exchange(
        self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def slow(*given: Any, **named: Any) -> Any:
            found = await market_rate(*given, **named)
            wish = ClientSimulation(phone=PHONE, kyc_status="blocked")
            await simulate_client(app.ports, await app.caller(), wish)
            return found

        monkeypatch.setattr(creation, "market_rate", slow)
        with pytest.raises(Refusal) as caught:
            await app.made()
        assert caught.value.code == "CLIENT_BLOCKED"


async def test_exchange_that_moved_during_its_poll_is_polled_again_at_once(
    app: ExchangeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, inner = await app.bought(), progress.progress

    async def slow(ports: Ports, before: Exchange, attempts: int = 1) -> Any:
        paying = await inner(ports, before, attempts)
        await app.pay(made.id)
        return paying

    monkeypatch.setattr(progress, "progress", slow)
    await app.app.clock.advance(10)
    [job] = await app.ports.storage.claim(10, 60)
    await progress.watch_exchange(app.ports, job)
    after = await app.ports.storage.get(Job, job.id)
    assert after is not None
    assert (after.due, await app.status(made.id)) == (app.app.clock.now(), "rub_received")


async def test_ended_exchange_learns_nothing_while_its_bank_is_away(app: ExchangeApp) -> None:
    """So the last poll for late money is repeated."""
    made = await app.bought()
    await app.pay(made.id)
    await app.app.work(400)
    over = await app.exchange(made.id)
    app.app.script.state.append(Twist(ending=Ending.UNAVAILABLE))
    paying = await progress.progress(app.ports, over)
    assert paying is not None
    assert (paying.exchange, paying.is_received, over.status) == (over, False, S.COMPLETED)
