"""Receipts at a bank whose cash register is called once the money has moved: their payments and amounts, and the time
for which the call is retried (docs/payments.md "Receipts")."""

from collections import deque
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.receipt_sales import ASKED_FOR, SALE
from cambist.core.usecases.refunds.receipts import BACK
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import BankCapabilities, InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Fault, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandateSimulation
from cambist.ports.receipts import ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.subscription_app import bindings, open_link, subscribe
from tests.usecases.payments.test_receipts import EMAIL, Till, configured, post

WAITS = ReceiptStatus.PROCESSING


class Register(Till):
    """A bank with a cash register that needs a separate call. It answers as scripted, or that the receipt is done."""

    def __init__(self) -> None:
        super().__init__(ReceiptNeed.OPTIONAL)
        self._capabilities = msgspec.structs.replace(self._capabilities, receipts_apart=True)
        self.words = deque[ReceiptStatus | Fault]()
        self.told: list[ReceiptRequest] = []

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        self.told.append(request)
        word = self.words.popleft() if self.words else ReceiptStatus.DONE
        if isinstance(word, Fault):
            raise word
        return ReceiptState(status=word)

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        raise NotImplementedError

    @property
    def written(self) -> list[tuple[str, str, int, bool]]:
        """Return operation, reference, kopecks, and whether it was a refund."""
        return [(each.operation, each.reference, each.receipt.total_kopecks, each.goes_back) for each in self.told]


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


async def paid(app: TestApp, register: Register, kopecks: int | None = None, **body: Any) -> Payment:
    payment = await made(app, **body)
    simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks)
    for notification in await register.simulate(payment.id, simulation, reference=payment.bank_reference):
        await on_notification(app.ports, notification)
    return payment


async def waiting(app: TestApp) -> list[Job]:
    async with app.ports.storage.unit() as unit:
        return [job for job in await unit[Job].find() if job.kind in (SALE.kind, BACK.kind)]


async def test_payment_has_one_receipt_and_its_refund_another(app: TestApp, register: Register) -> None:
    payment = await paid(app, register)
    await app.work(1)
    refund = (await post(app, "/refunds", {"payment_id": payment.id, "amount_rub": "30.00"})).json()
    await app.work(3 * 86400)  # it is settled on the way
    reference = payment.bank_reference or ""
    assert register.written == [(payment.id, reference, 100_00, False), (refund["id"], reference, 30_00, True)]
    assert await waiting(app) == []


async def test_receipt_is_of_the_received_amount(app: TestApp, register: Register) -> None:
    payment = await paid(app, register, 60_00)
    assert await waiting(app) == []
    await resolve_mismatch(app.ports, payment.id, "paid")
    await app.work(1)
    assert [kopecks for _, _, kopecks, _ in register.written] == [60_00]


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


@pytest.mark.parametrize("gone", ["payment", "register"])
async def test_receipt_job_ends_if_no_register_can_write_it(
    app: TestApp, register: Register, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = await paid(app, register)
    if gone == "register":
        monkeypatch.setattr(register, "_capabilities", BankCapabilities())
    else:
        async with beneath(app.ports).unit() as unit:
            unit[Payment].remove(await app.payment(payment.id))
            await unit.commit()
        app.made_up = True
    await app.work(1)
    assert (register.told, await waiting(app)) == ([], [])


WORDS = [WAITS, ReceiptStatus.FAILED, Unavailable("away"), OutcomeUnknown("cut"), Refused("no"), NotSupported("none")]


@pytest.mark.parametrize("word", WORDS, ids=str)
async def test_unwritten_receipt_is_polled_by_the_backoff(
    app: TestApp, register: Register, word: ReceiptStatus | Fault
) -> None:
    register.words.extend([word] * 2)
    await paid(app, register)
    asked = []
    for seconds in (0, 9, 1, 29, 1):
        await app.work(seconds)
        asked.append(len(register.told))
    assert asked == [1, 1, 2, 2, 3]
    assert await waiting(app) == []


@pytest.mark.parametrize(("left", "jobs"), [(1, 1), (0, 0)])
async def test_receipt_is_abandoned_after_30_days(app: TestApp, register: Register, left: int, jobs: int) -> None:
    register.words.append(WAITS)
    await paid(app, register)
    [job] = await waiting(app)
    async with beneath(app.ports).unit() as unit:
        begun = app.clock.now() - ASKED_FOR + timedelta(seconds=left)
        unit[Job].save(msgspec.structs.replace(job, created_at=begun))
        await unit.commit()
    await app.work()
    assert (len(register.told), len(await waiting(app))) == (1, jobs)
    assert timedelta(days=30) == ASKED_FOR


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
