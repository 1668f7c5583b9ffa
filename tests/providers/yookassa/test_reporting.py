"""YooKassa's lists, and a day of an app compared with them over real HTTP (docs/reconciliation.md;
docs/providers/yookassa.md)."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.yookassa.adapter import YooKassaBank
from cambist.adapters.bank.yookassa.shops import Shop, Shops
from cambist.adapters.clock import VirtualClock
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.reconciliation.reconciliation import Discrepancy, ReconciliationStatus
from cambist.core.usecases.reconciliation.discrepancies import list_differences
from cambist.core.usecases.reconciliation.reconciliation import Compared, reconcile
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.frontends.conformance.operation_ids import operation_id, part_id
from cambist.frontends.conformance.reporting import listed
from cambist.ports import (
    NotConfigured,
    RefundRequest,
    RemittanceRequest,
    ReportedKind,
    ReportedState,
    Unavailable,
)
from cambist.testing import ProviderAnswer, ProviderFault
from tests.invariants import everything

from .app import open_yookassa_app
from .conftest import tools_of
from .fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake
from .harness import YooKassaHarness, bank_of
from .test_app import Shop as Merchant

PAY, REF, PART = operation_id("pay"), operation_id("ref"), part_id()
S = ReconciliationStatus


class TestLists:
    async def test_fee_is_listed_as_with_the_money(self, harness: YooKassaHarness, fake: YooKassaFake) -> None:
        invoice = await harness.bank.create_invoice(harness.request(PAY))
        fake.books.pay(invoice.reference)
        [transfer] = (await harness.bank.invoice_state(invoice.reference)).transfers
        [entry] = await listed(harness)
        assert (entry.fee_kopecks, entry.reference, entry.id) == (
            transfer.fee_kopecks,
            invoice.reference,
            invoice.reference,
        )
        assert entry.fee_kopecks is not None

    async def test_a_payout_that_was_cancelled_for_want_of_our_money_never_was(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        request = RemittanceRequest(
            operation=PART, phone="+79990000001", bank_id="bank100000000111", amount_kopecks=1000_00
        )
        balance, fake.books.balance[GATEWAY] = fake.books.balance[GATEWAY], 0
        with pytest.raises(Unavailable):
            await harness.banks[0].remit(request)
        fake.books.balance[GATEWAY] = balance
        await harness.banks[0].remit(request)
        assert len(fake.books.of_kind("payout")) == 2
        [entry] = await listed(harness)
        assert (entry.kind, entry.operation, entry.state) == (ReportedKind.PAYOUT, PART, ReportedState.OPEN)

    async def test_foreign_payment_is_listed_without_an_operation(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        made = fake.books.payment(SHOP, {"confirmation": {"type": "qr"}, "metadata": {"order": "7"}}, 5_00)
        fake.books.pay(made["id"])
        [entry] = await listed(harness)
        assert (entry.id, entry.operation, entry.reference, entry.amount_kopecks) == (made["id"], None, None, 5_00)

    async def test_a_payment_of_another_currency_is_none_of_ours_and_hides_no_other(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        made = fake.books.payment(SHOP, {"confirmation": {"type": "qr"}}, 5_00)
        made["amount"] = {"value": "5.00", "currency": "USD"}
        await harness.bank.create_invoice(harness.request(PAY))
        assert [each.operation for each in await listed(harness)] == [PAY]

    async def test_one_of_ours_that_cannot_be_read_fails_the_list(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        invoice = await harness.bank.create_invoice(harness.request(PAY))
        fake.books.things[invoice.reference]["amount"] = {"value": "5.00", "currency": "USD"}
        with pytest.raises(Unavailable):
            await listed(harness)

    @pytest.mark.parametrize(
        "body",
        [
            {"type": "list"},
            {"type": "list", "items": [{"id": 7}]},
            {"type": "list", "items": [{"id": "x", "status": "succeeded", "amount": {"value": "1.00"}}]},
            {"type": "list", "items": [{"id": "x", "status": "ok", "amount": {"value": "1.00", "currency": "RUB"}}]},
            [],
        ],
        ids=["no items", "no id", "no currency", "no moment", "no object"],
    )
    async def test_a_strange_list_is_no_empty_one(
        self, harness: YooKassaHarness, fake: YooKassaFake, body: Any
    ) -> None:
        fake.next(ProviderAnswer.of_json(body))
        bank, now = harness.banks[0], harness.clock.now()
        with pytest.raises(Unavailable):
            await bank.entries("", now - timedelta(hours=1), now, None)

    async def test_each_owner_has_a_list_and_fails_alone(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        fake.add_shop("200600", "live_another")
        shops = Shops(
            Shop(id=SHOP, key=KEY),
            {
                "acc_2": Shop(id="200600", key="live_another", owner="acc_2"),
                "acc_3": Shop(id="300700", key="live_wrong", owner="acc_3"),
            },
        )
        bank = YooKassaBank(tools_of(clock), shops, base_url=fake.api, gateway=Shop(id=GATEWAY, key=PAYOUT_KEY))
        assert bank.owners() == ("", "acc_2", "acc_3")
        invoice = await bank.create_invoice(msgspec.structs.replace(harness.request(PAY), account="acc_2"))
        fake.books.pay(invoice.reference.rpartition("/")[2])
        await bank.refund(RefundRequest(operation=REF, reference=invoice.reference, amount_kopecks=1_00))
        assert bank.owner_of(invoice.reference) == "acc_2"
        harness.bank = bank
        assert await listed(harness, whose="") == []
        found = await listed(harness, whose="acc_2")
        assert [(each.operation, each.reference) for each in found] == [(PAY, invoice.reference), (REF, None)]
        with pytest.raises((Unavailable, NotConfigured)):
            await listed(harness, whose="acc_3")
        with pytest.raises(NotConfigured):
            await listed(harness, whose="acc_4")
        await bank.close()

    async def test_installation_without_own_shop_or_gateway_has_no_list(
        self, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        merchants = {"acc_2": Shop(id=SHOP, key=KEY, owner="acc_2")}
        bank = YooKassaBank(tools_of(clock), Shops(None, merchants), base_url=fake.api)
        assert bank.owners() == ["acc_2"]
        await bank.close()
        bank = bank_of(tools_of(clock), fake, gateway=None)
        assert bank.owners() == ("",)
        await bank.close()


class Day:
    """A day of the app, from noon on in Moscow."""

    def __init__(self, shop: Merchant) -> None:
        self.shop = shop
        self.ports = shop.app.ports
        self.day = shop.app.clock.now().astimezone(MOSCOW).date() + timedelta(days=1)

    async def at(self, hours: float) -> None:
        moment = datetime.combine(self.day, datetime.min.time(), MOSCOW) + timedelta(hours=hours)
        await self.shop.app.work((moment - self.shop.app.clock.now()).total_seconds())

    async def compared(self) -> Compared:
        [one] = await reconcile(self.ports, self.day, "yookassa")
        return one

    async def found(self) -> list[Discrepancy]:
        return await list_differences(self.ports)


@pytest.fixture
async def day() -> AsyncIterator[Day]:
    async with open_yookassa_app() as (app, fake, cabinet):
        made = Day(Merchant(app, fake, cabinet))
        await made.at(12)
        yield made


async def status_of(day: Day) -> ReconciliationStatus:
    result = (await day.compared()).result
    assert result is not None
    return result.status


async def test_a_day_with_payments_refunds_and_what_nobody_paid_agrees(day: Day) -> None:
    paid = [await day.shop.paid() for _ in range(3)]
    await day.shop.post("/payments", amount_rub="77.00")
    await day.shop.post("/refunds", payment_id=paid[0]["id"], amount_rub="100.00")
    await day.shop.app.work(3)
    for refund in day.shop.fake.books.of_kind("refund"):
        day.shop.fake.books.finish_refund(refund["id"])
    await day.shop.tell()
    await day.at(28)
    day.shop.fake.page = 2
    result = (await day.compared()).result
    assert result is not None
    assert (result.status, result.entries, await day.found()) == (S.AGREED, 5, [])


async def test_entries_made_in_the_cabinet_and_lost_ones_are_found(day: Day) -> None:
    lost, kept = await day.shop.paid(), await day.shop.paid()
    books = day.shop.fake.books
    repository = books.repository("payment", SHOP)
    place = repository._things.index(books.of_operation(lost["id"]))
    del repository._things[place], repository._made[place]
    own = books.payment(SHOP, {"confirmation": {"type": "qr"}}, 5_00)
    books.pay(own["id"])
    in_cabinet = books.refund(SHOP, {"payment_id": books.of_operation(kept["id"])["id"]}, 10_00)
    books.finish_refund(in_cabinet["id"])
    await day.at(28)
    assert await status_of(day) is S.DIFFERENT
    assert {(each.difference, each.subject, each.object_id, each.entry) for each in await day.found()} == {
        ("missing", "payment", lost["id"], None),
        ("extra", "payment", None, own["id"]),
        ("extra", "refund", None, in_cabinet["id"]),
    }


async def test_a_key_that_was_forgotten_there_and_made_a_second_payment_is_found(day: Day) -> None:
    paid = await day.shop.paid()
    books = day.shop.fake.books
    first = books.of_operation(paid["id"])
    second = books.payment(SHOP, {"confirmation": {"type": "qr"}, "metadata": first["metadata"]}, 490_00)
    books.pay(second["id"])
    await day.at(28)
    assert await status_of(day) is S.DIFFERENT
    [row] = await day.found()
    assert (row.difference, row.entry, row.object_id) == ("extra", second["id"], paid["id"])


async def test_faults_on_the_way_end_in_the_same_and_no_gateway_is_down_for_them(day: Day) -> None:
    for _ in range(3):
        await day.shop.paid()
    await day.at(28)
    for fault in (
        ProviderFault.CUT_IN_BODY,
        ProviderFault.SERVER_ERROR,
        ProviderFault.BUSY,
        ProviderFault.BROKEN_JSON,
        ProviderFault.JSON_WITHOUT_FIELDS,
        ProviderFault.UNAUTHORIZED,
    ):
        day.shop.fake.next(fault, matching=lambda request: request.path.endswith("/refunds"))
        assert await status_of(day) is S.FAILED, fault
    result = (await day.compared()).result
    assert result is not None
    assert (result.status, result.run) == (S.AGREED, 1)
    gateways = (await day.shop.app.get("/gateways", mode="live")).json()
    assert {each["status"] for each in gateways} == {"operational"}


async def test_each_night_it_is_compared_by_itself() -> None:
    async with open_yookassa_app() as (app, fake, cabinet):
        await start_recurring_jobs(app.ports)
        day = Day(Merchant(app, fake, cabinet))
        await day.at(12)
        await day.shop.paid()
        await day.at(12 + 48)
        rows = await everything(app.ports, type((await day.compared()).result))
        assert {each.status for each in rows} == {S.AGREED}
        assert sum(each.entries for each in rows) == 1
