"""Receipts by 54-FZ: their recipients, their content, and requests that are refused without one (docs/payments.md
"Receipts")."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts import receipts as words
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import iso
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.receipts.receipts import SHIFT, FiscalReceipt, ReceiptKind, ReceiptStatus, ReceiptWriter
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.action_item import MOST
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_receipts
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.payments.receipts import receipt_of
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.frontends.app.compose import Adapters
from cambist.frontends.console.kinds.payments import _facts
from cambist.ports import receipts
from cambist.ports.bank import BankCapabilities, Invoice, InvoiceRequest, InvoiceStatus, RefundRequest, RefundState
from cambist.ports.bank_simulator import Simulation
from cambist.ports.mandates import Binding, BindingRequest, ChargeRequest, ChargeState, MandateEvent, MandateSimulation
from cambist.ports.receipts import Receipt, ReceiptItem, ReceiptNeed
from tests.apps import TestApp, open_test_app
from tests.subscription_app import press, subscribe
from tests.tables import table
from tests.usecases.payments.test_polling import TellsNothing

SETTINGS = {
    "receipt_tax_system": "usn_income",
    "receipt_vat": "5/105",
    "receipt_subject": "commodity",
    "receipt_mode": "full_prepayment",
}
SHOP = "till@shop.example"
EMAIL, PHONE = "anna@example.com", "+79990001122"


class Till(SimulatedBank):
    """A live bank that writes receipts, and records the calls it got."""

    def __init__(self, need: ReceiptNeed) -> None:
        can = BankCapabilities(receipts=need, mandates=True, mandate_charges=True, sends_notifications=True)
        clock: Any = None
        super().__init__("till", MemoryStorage(clock), clock, SeededIds(7), capabilities=can)
        self.asked: list[Any] = []

    def at(self, clock: Any) -> None:
        """The app's clock is its own."""
        super().__init__("till", MemoryStorage(clock), clock, SeededIds(7), capabilities=self.capabilities)

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        self.asked.append(request)
        return await super().create_invoice(request)

    async def refund(self, request: RefundRequest) -> RefundState:
        self.asked.append(request)
        return await super().refund(request)

    async def bind(self, request: BindingRequest) -> Binding:
        self.asked.append(request)
        return await super().bind(request)

    async def charge(self, request: ChargeRequest) -> ChargeState:
        self.asked.append(request)
        return await super().charge(request)

    @property
    def last(self) -> Any:
        return self.asked[-1]


@pytest.fixture(params=[ReceiptNeed.REQUIRED])
def till(request: pytest.FixtureRequest) -> Till:
    return Till(request.param)


@pytest.fixture
async def app(till: Till) -> AsyncIterator[TestApp]:
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [till]})) as opened:
        till.at(opened.clock)
        yield opened


async def configured(app: TestApp, **more: str) -> None:
    await set_settings(app.ports, app.account.account_id, {**SETTINGS, **more})


async def post(app: TestApp, path: str, body: dict[str, Any]) -> httpx.Response:
    headers = app.headers("live", Idempotency_Key=str(uuid4()))
    return await app.http.post(f"/api/v1{path}", json=body, headers=headers)


def written(kopecks: int, name: str, **contact: Any) -> Receipt:
    """Return the receipt sent to the cash register with these settings."""
    item = ReceiptItem(
        name=name,
        price_kopecks=kopecks,
        vat=receipts.Vat.VAT_5_105,
        subject=receipts.PaymentSubject.COMMODITY,
        mode=receipts.PaymentMode.FULL_PREPAYMENT,
    )
    return Receipt(items=(item,), tax_system=receipts.TaxSystem.USN_INCOME, **contact)


@pytest.mark.parametrize(
    ("body", "contact"),
    [
        ({"client_email": EMAIL}, {"email": EMAIL}),
        ({"client_phone": PHONE}, {"phone": PHONE}),
        ({"client_email": EMAIL, "client_phone": PHONE}, {"email": EMAIL, "phone": PHONE}),
        ({"client_email": "no address", "client_phone": PHONE}, {"phone": PHONE}),
        ({}, {"email": SHOP}),
        ({"client_email": "no address"}, {"email": SHOP}),
    ],
)
async def test_receipt_follows_the_account_and_goes_to_payer_or_merchant(
    app: TestApp, till: Till, body: dict[str, str], contact: dict[str, str]
) -> None:
    await configured(app, receipt_email=SHOP)
    answer = await app.create({**body, "description": "Tea", "amount_rub": "123.45"}, mode="live")
    assert answer.status_code == 201, answer.text
    assert till.last.receipt == written(123_45, "Tea", **contact)
    for private in (EMAIL, PHONE, SHOP):
        assert private not in repr(till.last)
        assert private not in answer.text


@pytest.mark.parametrize("missing", SETTINGS)
async def test_payment_is_refused_naming_the_receipt_setting_that_lacks(app: TestApp, till: Till, missing: str) -> None:
    await configured(app, receipt_email=SHOP, **{missing: ""})
    refused = await app.create({"client_email": EMAIL}, mode="live")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert refused.json()["error"]["message"].endswith(f": {missing}")
    assert till.asked == []


@pytest.mark.parametrize("body", [{}, {"client_email": "no address"}, {"client_email": "a@b c"}])
async def test_missing_payer_address_is_required_and_leaves_the_key_free(
    app: TestApp, till: Till, body: dict[str, str]
) -> None:
    await configured(app)
    key = "8f7f4f5e-3c61-4d5b-9a39-0c8d2f6b1a11"
    refused = await app.create(body, mode="live", key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "PAYER_DATA_REQUIRED")
    assert refused.json()["error"]["details"] == {"missing_fields": ["client_email"]}
    assert till.asked == []
    assert (await app.create({"client_phone": PHONE}, mode="live", key=key)).status_code == 201


@pytest.mark.parametrize("till", [ReceiptNeed.OPTIONAL], indirect=True)
async def test_payment_needs_no_receipt_where_none_is_required(app: TestApp, till: Till) -> None:
    assert (await app.create({"client_email": EMAIL}, mode="live")).status_code == 201
    await configured(app)
    assert (await app.create(mode="live")).status_code == 201
    assert [request.receipt for request in till.asked] == [None, None]
    assert (await app.create({"client_email": EMAIL}, mode="live")).status_code == 201
    assert till.last.receipt is not None


@pytest.mark.parametrize("till", [ReceiptNeed.NONE], indirect=True)
async def test_bank_without_receipts_gets_none_and_nothing_is_stored(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    made = (await app.create({"client_email": EMAIL}, mode="live")).json()
    assert till.last.receipt is None
    assert (await app.payment(made["id"])).receipt is None


async def test_a_bank_that_requires_one_is_passed_over(till: Till) -> None:
    other = TellsNothing()
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [till, other]})) as app:
        till.at(app.clock)
        other.clock = app.clock
        made = (await app.create(mode="live")).json()
        assert (await app.payment(made["id"])).bank == other.name
        await configured(app)
        made = (await app.create({"client_email": EMAIL}, mode="live")).json()
        assert (await app.payment(made["id"])).bank == till.name


async def _paid(app: TestApp, till: Till, amount: str = "100.00", **body: Any) -> Payment:
    made = (await app.create({"amount_rub": amount, **body}, mode="live")).json()
    payment = await app.payment(made["id"])
    await _pay(app, till, payment)
    payment = await app.payment(made["id"])
    assert payment.status is PaymentStatus.PAID
    return payment


async def _pay(app: TestApp, till: Till, payment: Payment, *, again: bool = False) -> None:
    simulation = Simulation(status=InvoiceStatus.PAID, again=again)
    for notification in await till.simulate(payment.id, simulation, reference=payment.bank_reference):
        await on_notification(app.ports, notification)


async def test_refund_has_its_own_receipt_in_the_payments_terms(app: TestApp, till: Till) -> None:
    await configured(app, refunds="true", refund_approval="auto")
    payment = await _paid(app, till, client_email=EMAIL, description="Tea")
    await configured(app, receipt_vat="none", receipt_mode="advance", receipt_tax_system="")
    for amount in ("33.33", "66.67"):
        body = {"payment_id": payment.id, "amount_rub": amount}
        assert (await post(app, "/refunds", body)).status_code == 201
        await app.work(60)
    back = [request.receipt for request in till.asked if isinstance(request, RefundRequest)]
    assert back == [written(33_33, "Tea", email=EMAIL), written(66_67, "Tea", email=EMAIL)]


async def test_return_of_suspense_money_has_a_receipt(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    payment = await _paid(app, till, description="Tea")
    await _pay(app, till, payment, again=True)
    async with app.ports.storage.unit() as unit:
        [unapplied] = await unit[Suspense].find()
    await return_suspense(app.ports, unapplied.id)
    await app.work(60)
    assert till.last.receipt == written(100_00, "Tea", email=SHOP)


async def _bound(app: TestApp, till: Till, **body: Any) -> str:
    made = (await subscribe(app, mode="live", **body)).json()
    await press(app, made["id"])
    simulation = MandateSimulation(event=MandateEvent.CONFIRM)
    for notification in await till.simulate_mandate(till.last.operation, simulation):
        await on_notification(app.ports, notification)
    found: str = made["id"]
    return found


async def test_charges_of_a_subscription_have_receipts_for_the_merchant(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    subscription = await _bound(app, till)
    assert till.last.receipt == written(500_00, "Club", email=SHOP)
    await app.work(32 * 86400)
    charged = await post(app, f"/subscriptions/{subscription}/charges", {"amount_rub": "499.99"})
    assert charged.status_code == 201, charged.text
    assert isinstance(till.last, ChargeRequest)
    assert till.last.receipt == written(499_99, "Club", email=SHOP)


async def test_a_binding_that_takes_nothing_has_none(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    await _bound(app, till, binding_charge="none")
    assert (till.last.first_charge_kopecks, till.last.receipt) == (None, None)


@pytest.mark.parametrize("binding_charge", ["first", "none"])
async def test_subscription_is_refused_if_its_charges_could_have_no_receipts(
    app: TestApp, till: Till, binding_charge: str
) -> None:
    await configured(app)
    refused = await subscribe(app, mode="live", binding_charge=binding_charge, client_phone=PHONE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert refused.json()["error"]["message"].endswith(": receipt_email")
    assert till.asked == []


async def test_charge_without_a_receipt_is_refused_and_leaves_the_period_free(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    subscription = await _bound(app, till, binding_charge="none")
    await app.work(32 * 86400)
    await configured(app, receipt_email="")
    asked = len(till.asked)
    path = f"/subscriptions/{subscription}/charges"
    refused = await post(app, path, {"amount_rub": "500.00"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert len(till.asked) == asked
    await configured(app, receipt_email=SHOP)
    assert (await post(app, path, {"amount_rub": "500.00"})).status_code == 201


async def test_operators_see_what_it_says(app: TestApp, till: Till) -> None:
    await configured(app)
    made = (await app.create({"client_email": EMAIL}, mode="live")).json()
    shown = dict(_facts(await app.payment(made["id"])))
    assert shown["receipt"] == "usn_income, VAT 5/105, commodity, full_prepayment"
    assert EMAIL not in str(shown)


_TERMS = words.ReceiptTerms(
    tax_system=words.TaxSystem.OSN,
    vat=words.Vat.NONE,
    subject=words.PaymentSubject.JOB,
    mode=words.PaymentMode.ADVANCE,
    email=SHOP,
)


@given(
    amount=st.integers(1, 10**12),
    part=st.integers(1, 10**12),
    description=st.none() | st.text(max_size=255),
    vat=st.sampled_from(words.Vat),
)
def test_items_sum_up_to_the_amount_and_have_a_name_that_fits(
    amount: int, part: int, description: str | None, vat: words.Vat
) -> None:
    terms = msgspec.structs.replace(_TERMS, vat=vat)
    payment = msgspec.structs.replace(_PAYMENT, amount=Rub(amount), description=description, receipt=terms)
    ports: Any = None
    till = Till(ReceiptNeed.OPTIONAL)
    whole, back = receipt_of(ports, payment, till), receipt_of(ports, payment, till, part)
    assert whole is not None
    assert back is not None
    assert (whole.total_kopecks, back.total_kopecks) == (amount, part)
    assert all(1 <= len(item.name) <= 128 for item in (*whole.items, *back.items))


_PAYMENT = Payment(
    id="pay_1",
    account_id="a",
    mode=Mode.LIVE,
    shop_id="s",
    status=PaymentStatus.PENDING,
    amount=Rub(1),
    payment_method="sbp",
    created_at=None,  # type: ignore[arg-type]  # not looked at
    expires_at=None,  # type: ignore[arg-type]
)


@table("length", [1, 127, 128, 129, 255])
def test_a_name_is_the_descriptions_first_128_characters(length: int) -> None:
    """docs/adapters.md "Receipts"."""
    ports: Any = None
    payment = msgspec.structs.replace(_PAYMENT, description="x" * length, receipt=_TERMS)
    written = receipt_of(ports, payment, Till(ReceiptNeed.OPTIONAL))
    assert written is not None
    assert [item.name for item in written.items] == ["x" * min(length, 128)]


@table("name", ["TaxSystem", "Vat", "PaymentSubject", "PaymentMode"])
def test_settings_and_the_port_have_the_same_words(name: str) -> None:
    assert {each.name: each.value for each in getattr(words, name)} == {
        each.name: each.value for each in getattr(receipts, name)
    }


@pytest.mark.parametrize("till", [ReceiptNeed.OPTIONAL, ReceiptNeed.NONE], indirect=True)
async def test_the_doctor_has_nothing_to_say_where_no_bank_requires_receipts(app: TestApp) -> None:
    assert (await check_receipts(app.ports)).level is Level.OK


async def test_the_doctor_names_accounts_that_a_bank_takes_nothing_of(app: TestApp) -> None:
    """One missing setting is enough; the recipient's address may come with each payment."""
    finding = await check_receipts(app.ports)
    assert finding.level is Level.WARNING
    assert f"till requires receipts, for which accounts lack settings: {app.account.account_id};" in finding.message
    assert "are refused" in finding.message
    await configured(app)
    assert (await check_receipts(app.ports)).level is Level.OK
    await configured(app, receipt_vat="")
    assert (await check_receipts(app.ports)).level is Level.WARNING
    await configured(app)
    made: list[str] = []
    for further, more in ((3, ";"), (2, " and 2 more;")):
        made += [(await create_account(app.ports, f"Merchant {number}")).account_id for number in range(further)]
        message = (await check_receipts(app.ports)).message
        [*_, last] = [each for each in made if each in message]
        assert len([each for each in made if each in message]) == 3
        assert f"{last}{more}" in message


async def test_beside_a_bank_that_writes_none_their_payments_pass_it_by() -> None:
    clock: Any = None
    other = SimulatedBank("other", MemoryStorage(clock), clock, SeededIds(8))
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [Till(ReceiptNeed.REQUIRED), other]})) as app:
        assert "pass it by" in (await check_receipts(app.ports)).message


@pytest.mark.parametrize("status", [ReceiptStatus.PENDING, ReceiptStatus.FAILED])
async def test_oldest_receipt_that_needs_a_person_is_named(app: TestApp, status: ReceiptStatus) -> None:
    """More receipts than one read returns are fresh, and more are late: ids do not rise with time."""
    now = app.clock.now()
    fresh = [(f"a{number:03}", now) for number in range(MOST)]
    late = [(f"b{number:03}", now - timedelta(hours=2)) for number in range(MOST)]
    oldest = ("z", now - timedelta(hours=3))
    async with app.ports.storage.unit() as unit:
        for receipt_id, since in (*late, oldest, *(fresh if status is ReceiptStatus.PENDING else ())):
            unit[FiscalReceipt].add(fiscal_receipt(receipt_id, since, status))
        await unit.commit()
    [waiting] = [each for each in (await read_action_items(app.ports)).found if each.kind == "receipt"]
    assert (waiting.object_id, waiting.since) == oldest
    assert waiting.text.startswith(f"{MOST}+ receipts ")
    assert f"the shift ends at {iso(oldest[1] + SHIFT)}" in waiting.text
    async with app.ports.storage.unit() as unit:
        tried = msgspec.structs.replace(fiscal_receipt("t", oldest[1] - SHIFT, status), mode=Mode.TEST)
        unit[FiscalReceipt].add(tried)
        await unit.commit()
    found = [each for each in (await read_action_items(app.ports)).found if each.kind == "receipt"]
    assert {(each.object_id, each.mode) for each in found} == {("z", Mode.LIVE), ("t", Mode.TEST)}, "tests hide nothing"


def fiscal_receipt(receipt_id: str, since: datetime, status: ReceiptStatus) -> FiscalReceipt:
    return FiscalReceipt(
        id=receipt_id,
        account_id="acc_1",
        mode=Mode.LIVE,
        shop_id="shop",
        payment_id="pay_1",
        kind=ReceiptKind.SALE,
        status=status,
        amount=Rub(100_00),
        writer=ReceiptWriter.BANK,
        provider="till",
        attempt_at=since,
        created_at=since,
        changed_at=since,
        due_at=since + SHIFT,
        failed_at=since if status is ReceiptStatus.FAILED else None,
    )


GS1M = {"format": "gs_1m", "value": "0104600000000008215Cup\x1d91EE10\x1d92abcdef=="}
CART: dict[str, Any] = {
    "customer": {"email": EMAIL},
    "tax_system": "osn",
    "discount": "100.00",
    "items": [
        {
            "name": "Tea",
            "price": "120.00",
            "quantity": "1.5",
            "measure": "kilogram",
            "vat": "22",
            "method": "full_payment",
        },
        {
            "name": "Cup",
            "price": "333.33",
            "quantity": "3",
            "vat": "22",
            "subject": "commodity",
            "method": "full_payment",
        },
        {
            "name": "Book",
            "price": "250.01",
            "vat": "10",
            "subject": "marked",
            "method": "full_payment",
            "mark_code": GS1M,
        },
        {"name": "Delivery", "price": "70.00", "vat": "none", "subject": "service", "method": "full_payment"},
    ],
}


async def test_items_of_the_request_go_to_the_register(app: TestApp, till: Till) -> None:
    await configured(app)
    answer = await app.create({"amount_rub": "1400.00", "receipt": CART}, mode="live")
    assert answer.status_code == 201, answer.text
    assert "receipt" not in answer.json()
    sent = till.last.receipt
    assert [(each.name, each.price_kopecks, str(each.quantity), each.amount_kopecks) for each in sent.items] == [
        ("Tea", 112_00, "1.5", 168_00),
        ("Cup", 311_11, "3", 933_33),
        ("Book", 233_34, "1", 233_34),
        ("Delivery", 65_33, "1", 65_33),
    ]
    assert (sent.email, sent.tax_system, sent.total_kopecks) == (EMAIL, receipts.TaxSystem.OSN, 1400_00)
    assert sent.items[2].mark == receipts.MarkCode(format=receipts.MarkFormat.GS_1M, value=GS1M["value"])
    assert sent.items[0].subject is receipts.PaymentSubject.COMMODITY  # the account's
    payment = await app.ports.storage.get(Payment, answer.json()["id"])
    assert payment is not None
    assert payment.private is not None
    assert b"Book" not in payment.private


@pytest.mark.parametrize(
    ("change", "status", "path"),
    [
        ({"items": [{"name": "Tea"}]}, 400, "receipt.items[0]"),
        ({"items": [{"name": 1, "price": "1.00"}]}, 400, "receipt.items[0].name"),
        ({"items": [{"name": "Tea", "price": "1400.00"}, {"name": "", "price": "1.00"}]}, 422, "receipt.items[1].name"),
        ({"discount": "100.01"}, 422, "receipt.items"),
        ({"surprise": 1}, 400, "receipt"),
    ],
)
async def test_wrong_receipt_is_refused_naming_item_and_field(
    app: TestApp, till: Till, change: dict[str, Any], status: int, path: str
) -> None:
    await configured(app)
    refused = await app.create({"amount_rub": "1400.00", "receipt": {**CART, **change}}, mode="live")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (status, "VALIDATION_ERROR"), refused.text
    assert error["details"][0]["path"].startswith(path)
    assert till.asked == []


async def test_items_need_no_settings_of_the_account(app: TestApp, till: Till) -> None:
    items = [{**each, "subject": each.get("subject", "commodity")} for each in CART["items"]]
    answer = await app.create({"amount_rub": "1400.00", "receipt": {**CART, "items": items}}, mode="live")
    assert answer.status_code == 201, answer.text
    assert till.last.receipt.total_kopecks == 1400_00


@pytest.mark.parametrize("till", [ReceiptNeed.NONE], indirect=True)
async def test_items_are_dropped_where_no_bank_writes_receipts(app: TestApp, till: Till) -> None:
    items = [{**each, "subject": each.get("subject", "commodity")} for each in CART["items"]]
    answer = await app.create({"amount_rub": "1400.00", "receipt": {**CART, "items": items}}, mode="live")
    assert answer.status_code == 201, answer.text
    payment = await app.ports.storage.get(Payment, answer.json()["id"])
    assert payment is not None
    assert (till.last.receipt, payment.private, payment.receipt) == (None, None, None)


async def paid_with_items(app: TestApp, till: Till) -> str:
    """Return the id of a paid payment of 1400.00 with the items of CART."""
    await configured(app, refunds="true", refund_approval="auto")
    return (await _paid(app, till, amount_rub="1400.00", receipt=CART)).id


async def test_refund_sends_the_items_that_are_returned(app: TestApp, till: Till) -> None:
    payment_id = await paid_with_items(app, till)
    items = [{"name": "Cup", "price": "311.11", "vat": "22", "subject": "commodity", "method": "full_payment"}]
    body = {"payment_id": payment_id, "amount_rub": "311.11", "receipt": {"items": items}}
    wrong = await post(app, "/refunds", {**body, "amount_rub": "311.10"})
    assert (wrong.status_code, wrong.json()["error"]["details"][0]["path"]) == (422, "receipt.items")
    refund = await post(app, "/refunds", body)
    assert refund.status_code == 201, refund.text
    assert "receipt" not in refund.json()
    await app.work(60)
    sent = till.last.receipt
    assert [(each.name, each.amount_kopecks) for each in sent.items] == [("Cup", 311_11)]
    assert (sent.email, sent.tax_system) == (EMAIL, receipts.TaxSystem.OSN)
    stored = await app.ports.storage.get(Refund, refund.json()["id"])
    assert stored is not None
    assert stored.private is not None
    assert b"Cup" not in stored.private


async def test_part_refunded_without_items_has_each_line_in_proportion(app: TestApp, till: Till) -> None:
    payment_id = await paid_with_items(app, till)
    refund = await post(app, "/refunds", {"payment_id": payment_id, "amount_rub": "700.00"})
    assert refund.status_code == 201, refund.text
    await app.work(60)
    sent = till.last.receipt
    assert sent.total_kopecks == 700_00
    assert {each.name for each in sent.items} == {"Tea", "Cup", "Book", "Delivery"}
    assert all(each.mark is None for each in sent.items)


async def test_charge_of_a_subscription_sends_its_items(app: TestApp, till: Till) -> None:
    await configured(app, receipt_email=SHOP)
    subscription = await _bound(app, till)
    await app.work(32 * 86400)
    items = [{"name": "January", "price": "249.99"}, {"name": "Locker", "price": "250.00", "vat": "22"}]
    path = f"/subscriptions/{subscription}/charges"
    wrong = await post(app, path, {"amount_rub": "500.00", "receipt": {"items": items}})
    assert (wrong.status_code, wrong.json()["error"]["details"][0]["path"]) == (422, "receipt.items")
    receipt = {"items": items, "customer": {"email": EMAIL}}
    charged = await post(app, path, {"amount_rub": "499.99", "receipt": receipt})
    assert charged.status_code == 201, charged.text
    sent = till.last.receipt
    assert [(each.name, each.amount_kopecks) for each in sent.items] == [("January", 249_99), ("Locker", 250_00)]
    assert sent.email == EMAIL
    payment = await app.payment(charged.json()["id"])
    assert payment.private is not None
    assert b"Locker" not in payment.private
