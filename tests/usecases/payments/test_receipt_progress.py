"""Progress of receipts at a bank whose cash register is called once the money has moved, and at a register beside the
banks: one receipt at most, retries, second receipts and corrections (docs/receipts.md "State")."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.receipts.receipts import ASKED_FOR, SHIFT, FiscalReceipt
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.receipt_records import RECEIPT
from cambist.core.usecases.receipts.receipts import close_receipt, retry_receipt_for
from cambist.core.usecases.receipts.second import correct_receipt
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Fault, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandateSimulation
from cambist.ports.receipts import FiscalData, ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.subscription_app import bindings, open_link, subscribe
from tests.usecases.payments.test_receipts import EMAIL, Till, configured, post

WAITS = ReceiptStatus.PROCESSING
WRITTEN = FiscalData(storage="9999", document="7", sign="123", register="1")


class Book:
    """A cash register: receipts by operation. It answers as scripted, or that the receipt is done. A scripted fault
    loses the answer of a call, which the register has carried out if `takes_anyway`."""

    def __init__(self) -> None:
        self.words = deque[ReceiptStatus | Fault]()
        self.told: list[ReceiptRequest] = []
        self.written: dict[str, ReceiptRequest] = {}
        self.takes_anyway = False

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        return None if request.operation not in self.written else self._state()

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        self.told.append(request)
        word = self.words[0] if self.words else ReceiptStatus.DONE
        if not isinstance(word, Fault) or self.takes_anyway:
            self.written.setdefault(request.operation, request)
        return self._state()

    def _state(self) -> ReceiptState:
        word = self.words.popleft() if self.words else ReceiptStatus.DONE
        if isinstance(word, Fault):
            raise word
        failure = "the drive is full of payer@example.com" if word is ReceiptStatus.FAILED else None
        return ReceiptState(
            status=word, failure=failure, fiscal=WRITTEN if word is ReceiptStatus.DONE else FiscalData()
        )

    @property
    def sums(self) -> list[tuple[str, str, int, bool]]:
        """Return cause, reference, kopecks, and whether the money goes back, of all written receipts."""
        return [(each.of, each.reference, each.receipt.total_kopecks, each.goes_back) for each in self.written.values()]


class Register(Book, Till):
    """A bank with a cash register that needs a separate call."""

    def __init__(self) -> None:
        Till.__init__(self, ReceiptNeed.OPTIONAL)
        self._capabilities = msgspec.structs.replace(self._capabilities, receipts_apart=True, rewrites_receipts=True)
        Book.__init__(self)


@pytest.fixture
def register() -> Register:
    return Register()


@pytest.fixture
async def app(register: Register) -> AsyncIterator[TestApp]:
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [register]})) as opened:
        register.at(opened.clock)
        await configured(opened, refunds="true", refund_approval="auto")
        yield opened


async def made(app: TestApp, **body: Any) -> Payment:
    answer = await app.create({"client_email": EMAIL, **body}, mode="live")
    return await app.payment(answer.json()["id"])


async def paid(app: TestApp, register: Till, kopecks: int | None = None, **body: Any) -> Payment:
    payment = await made(app, **body)
    simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks)
    for notification in await register.simulate(payment.id, simulation, reference=payment.bank_reference):
        await on_notification(app.ports, notification)
    return payment


async def waiting(app: TestApp) -> list[Job]:
    async with app.ports.storage.unit() as unit:
        return [job for job in await unit[Job].find() if job.kind == RECEIPT.kind]


async def test_payment_has_one_receipt_and_its_refund_another(app: TestApp, register: Register) -> None:
    payment = await paid(app, register)
    await app.work(1)
    refund = (await post(app, "/refunds", {"payment_id": payment.id, "amount_rub": "30.00"})).json()
    await app.work(3 * 86400)  # it is settled on the way
    reference = payment.bank_reference or ""
    assert register.sums == [(payment.id, reference, 100_00, False), (refund["id"], reference, 30_00, True)]
    assert await waiting(app) == []


async def test_receipt_is_of_the_received_amount(app: TestApp, register: Register) -> None:
    payment = await paid(app, register, 60_00)
    assert await waiting(app) == []
    await resolve_mismatch(app.ports, payment.id, "paid")
    await app.work(1)
    assert [kopecks for _, _, kopecks, _ in register.sums] == [60_00]


async def test_unpaid_payment_has_no_receipt(app: TestApp, register: Register) -> None:
    await made(app)
    await app.work(16 * 60)
    assert (register.told, await waiting(app)) == ([], [])


async def test_a_payment_without_terms_has_none(app: TestApp, register: Register) -> None:
    await paid(app, register, client_email="no address")
    assert (register.told, await waiting(app)) == ([], [])


@pytest.mark.parametrize(("charge", "written"), [("first", [500_00]), ("none", [])])
async def test_a_binding_has_one_where_it_takes_money(
    app: TestApp, register: Register, charge: str, written: list[int]
) -> None:
    await configured(app, receipt_email="till@shop.example", recurring="true")
    answer = await subscribe(app, mode="live", binding_charge=charge)
    subscription_id = answer.json()["id"]
    await open_link(app, subscription_id)
    [binding] = await bindings(app, subscription_id)
    await register.simulate_mandate(binding.id.replace("pay_", "bnd_"), MandateSimulation(event=MandateEvent.CONFIRM))
    await app.work(86400)
    assert (await app.payment(binding.id)).paid_at is not None
    assert [each.receipt.total_kopecks for each in register.told] == written


async def receipts(app: TestApp) -> list[FiscalReceipt]:
    async with app.ports.storage.unit() as unit:
        return sorted(await unit[FiscalReceipt].find(), key=lambda each: each.created_at)


async def test_receipt_of_a_removed_payment_ends(app: TestApp, register: Register) -> None:
    payment = await paid(app, register)
    async with beneath(app.ports).unit() as unit:
        unit[Payment].remove(await app.payment(payment.id))
        await unit.commit()
    app.made_up = True
    await app.work(1)
    assert (register.told, await waiting(app)) == ([], [])


async def test_written_receipt_has_its_numbers_and_the_shift(app: TestApp, register: Register) -> None:
    payment = await paid(app, register)
    paid_at = (await app.payment(payment.id)).paid_at
    assert paid_at is not None
    [before] = await receipts(app)
    assert (before.status, before.due_at) == ("pending", paid_at + SHIFT)
    await app.work(1)
    [after] = await receipts(app)
    numbers = (after.storage_number, after.document_number, after.fiscal_sign, after.register_number)
    assert (after.status, numbers) == ("succeeded", ("9999", "7", "123", "1"))


async def test_receipt_with_another_document_of_its_id_stays_pending(app: TestApp, register: Register) -> None:
    """A retry after a failure would take a new id, and write a second receipt."""
    register.words.extend([Refused("another document", reason="operation")] * 50)
    payment = await paid(app, register)
    await app.work(2 * 3600)
    [receipt] = (await app.get(f"/receipts?payment_id={payment.id}", mode="live")).json()["data"]
    assert receipt["status"] == "pending"
    assert {each.operation for each in register.told} == {register.told[0].operation}


FINAL = [ReceiptStatus.FAILED, Refused("no"), NotSupported("none")]


@pytest.mark.parametrize("word", FINAL, ids=str)
async def test_failed_receipt_waits_for_a_retry_under_another_id(
    app: TestApp, register: Register, word: ReceiptStatus | Fault
) -> None:
    register.words.append(word)
    payment = await paid(app, register)
    await app.work(86400)
    [failed] = await receipts(app)
    assert (failed.status, failed.attempt, len(register.told)) == ("failed", 1, 1)
    assert "payer@example.com" not in (failed.failure_reason or "")
    assert (await app.payment(payment.id)).paid_at is not None
    await retry_receipt_for(app.ports, failed.id)
    await app.work(1)
    [written] = await receipts(app)
    assert (written.status, written.attempt, written.failure_reason) == ("succeeded", 2, None)
    assert len({each.operation for each in register.told}) == 2
    with pytest.raises(Refusal, match="succeeded"):
        await retry_receipt_for(app.ports, failed.id)


@pytest.mark.parametrize("word", [WAITS, Unavailable("away"), OutcomeUnknown("cut")], ids=str)
@pytest.mark.parametrize("takes_anyway", [False, True])
async def test_unanswered_receipt_is_looked_up_by_the_backoff(
    app: TestApp, register: Register, word: ReceiptStatus | Fault, takes_anyway: bool
) -> None:
    register.words.extend([word] * 2)
    register.takes_anyway = takes_anyway
    await paid(app, register)
    states = []
    for seconds in (0, 9, 1, 29, 1):
        await app.work(seconds)
        states.append((await receipts(app))[0].status.value)
    assert states == ["pending"] * 4 + ["succeeded"]
    assert (len(register.written), await waiting(app)) == (1, [])


async def test_receipt_is_no_longer_asked_for_after_30_days_and_again_on_request(
    app: TestApp, register: Register
) -> None:
    register.words.extend([WAITS] * 200)
    await paid(app, register)
    await app.work(ASKED_FOR.total_seconds() + 6 * 3600)
    assert (await waiting(app), timedelta(days=30)) == ([], ASKED_FOR)
    [pending] = await receipts(app)
    register.words.clear()
    await retry_receipt_for(app.ports, pending.id)
    await app.work(1)
    [written] = await receipts(app)
    assert (written.status, written.attempt, len(register.written)) == ("succeeded", 1, 1)


async def test_operator_closes_a_failed_receipt(app: TestApp, register: Register) -> None:
    register.words.append(ReceiptStatus.FAILED)
    await paid(app, register)
    await app.work(1)
    [failed] = await receipts(app)
    assert failed.failed_at is not None
    assert (await close_receipt(app.ports, failed.id)).failed_at is None


async def test_separate_receipts_have_the_items_of_payment_and_refund(app: TestApp, register: Register) -> None:
    words = {"vat": "22", "subject": "commodity", "method": "full_payment"}
    tea, cup = {"name": "Tea", "price": "60.00", **words}, {"name": "Cup", "price": "20.00", "quantity": "2", **words}
    payment = await paid(app, register, receipt={"items": [tea, cup]})
    await app.work(1)
    back = {"payment_id": payment.id, "amount_rub": "20.00", "receipt": {"items": [{**cup, "quantity": "1"}]}}
    assert (await post(app, "/refunds", back)).status_code == 201
    await app.work(60)
    names = [[(item.name, item.amount_kopecks) for item in each.receipt.items] for each in register.told]
    assert names == [[("Tea", 60_00), ("Cup", 40_00)], [("Cup", 20_00)]]


async def test_items_are_in_proportion_if_another_amount_is_accepted(app: TestApp, register: Register) -> None:
    words = {"vat": "22", "subject": "commodity", "method": "full_payment"}
    items = [{"name": "Tea", "price": "75.00", **words}, {"name": "Cup", "price": "25.00", **words}]
    payment = await paid(app, register, 60_00, receipt={"items": items})
    await resolve_mismatch(app.ports, payment.id, "paid")
    await app.work(1)
    assert [item.amount_kopecks for item in register.told[0].receipt.items] == [45_00, 15_00]


PREPAID = {"name": "Boots", "price": "100.00", "vat": "22/122", "subject": "commodity", "method": "full_prepayment"}


async def test_second_receipt_is_written_once_after_a_prepayment(app: TestApp, register: Register) -> None:
    payment = await paid(app, register, receipt={"items": [PREPAID]})
    await app.work(1)
    answers = await asyncio.gather(*(post(app, "/receipts", {"payment_id": payment.id}) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    assert [answer.json()["kind"] for answer in answers if answer.status_code == 201] == ["second"]
    await app.work(1)
    second = list(register.written.values())[-1]
    [item] = second.receipt.items
    assert (item.vat, item.mode, second.prepaid_kopecks, second.goes_back) == ("22", "full_payment", 100_00, False)
    again = await post(app, "/receipts", {"payment_id": payment.id})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "INVALID_STATE")


@pytest.mark.parametrize(
    ("method", "wanted"), [("full_payment", (409, "INVALID_STATE")), ("advance", (422, "VALIDATION_ERROR"))]
)
async def test_second_receipt_needs_a_prepayment_of_known_goods(
    app: TestApp, register: Register, method: str, wanted: tuple[int, str]
) -> None:
    payment = await paid(app, register, receipt={"items": [{**PREPAID, "method": method, "subject": "payment"}]})
    answer = await post(app, "/receipts", {"payment_id": payment.id})
    assert (answer.status_code, answer.json()["error"]["code"]) == wanted


class Cloud(Book):
    """A register beside the banks."""

    @property
    def name(self) -> str:
        return "cloud"


async def test_register_writes_receipts_and_corrections_for_a_bank_without() -> None:
    bank, cloud = Till(ReceiptNeed.NONE), Cloud()
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        app.connect(register=cloud)
        bank.at(app.clock)
        await configured(app, refunds="true", refund_approval="auto")
        payment = await paid(app, bank)
        await app.work(1)
        refund = (await post(app, "/refunds", {"payment_id": payment.id, "amount_rub": "30.00"})).json()
        await app.work(60)
        assert bank.last.receipt is None
        assert [(of, kopecks, back) for of, _, kopecks, back in cloud.sums] == [
            (payment.id, 100_00, False),
            (refund["id"], 30_00, True),
        ]
        for number in (None, "4711"):
            await correct_receipt(app.ports, payment.id, "sale_correction", order=number)
        with pytest.raises(Refusal):
            await correct_receipt(app.ports, payment.id, "sale")
        await app.work(1)
        corrected = [each.correction for each in cloud.written.values()][2:]
        day = payment.created_at.date()
        assert {(each.day, each.order) for each in corrected if each} == {(day, None), (day, "4711")}
        assert len(await receipts(app)) == 4


async def test_webhook_says_how_the_receipt_stands_when_it_is_sent() -> None:
    async with open_test_app() as app:
        item = {"name": "Boots", "price": "100.00", "vat": "22", "subject": "commodity", "method": "full_payment"}
        receipt = {"items": [item], "tax_system": "osn", "customer": {"email": EMAIL}}
        with_receipt = (await app.create({"amount_rub": "100.00", "receipt": receipt})).json()["id"]
        without = (await app.create({"amount_rub": "100.00"})).json()["id"]
        for payment in (with_receipt, without):
            await app.simulate(payment, outcome="paid")
        await app.work(60)
        told = {each.headers.get("X-Webhook-Receipt-Status") for each in app.postman.webhooks}
        assert told in ({"pending", None}, {"succeeded", None})
