"""Receipts at a bank whose cash register is called once the money has moved: their payments and amounts, and the time
for which the call is retried (docs/payments.md "Receipts")."""

from collections import deque
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.notices import on_notice
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.receipt_sales import ASKED_FOR, SALE
from cambist.core.usecases.refunds.receipts import BACK
from cambist.frontends.compose import Adapters
from cambist.ports.bank import BankCapabilities, InvoiceStatus
from cambist.ports.bank_simulator import Pretence
from cambist.ports.faults import Fault, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandatePretence
from cambist.ports.receipts import ReceiptNeed, ReceiptRequest, ReceiptState, ReceiptStatus
from tests.houses import TestHouse, open_test_house
from tests.planting import beneath
from tests.subscription_house import bindings, open_link, subscribe
from tests.usecases.test_receipts import EMAIL, Till, configured, post

WAITS = ReceiptStatus.PROCESSING


class Register(Till):
    """A till whose register is told by itself, and says what it was given to say, or that it is done."""

    def __init__(self) -> None:
        super().__init__(ReceiptNeed.OPTIONAL)
        self.words = deque[ReceiptStatus | Fault]()
        self.told: list[ReceiptRequest] = []

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        self.told.append(request)
        word = self.words.popleft() if self.words else ReceiptStatus.DONE
        if isinstance(word, Fault):
            raise word
        return ReceiptState(status=word)

    @property
    def written(self) -> list[tuple[str, str, int, bool]]:
        """Operation, reference, kopecks, and whether they went back."""
        return [(each.operation, each.reference, each.receipt.total_kopecks, each.goes_back) for each in self.told]


@pytest.fixture
def register() -> Register:
    return Register()


@pytest.fixture
async def house(register: Register) -> AsyncIterator[TestHouse]:
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [register]})) as opened:
        register.at(opened.clock)
        await configured(opened, refunds="true", refund_approval="auto")
        yield opened


async def made(house: TestHouse, **body: str) -> Payment:
    answer = await house.create({"client_email": EMAIL, **body}, mode="live")
    return await house.payment(answer.json()["id"])


async def paid(house: TestHouse, register: Register, kopecks: int | None = None, **body: str) -> Payment:
    payment = await made(house, **body)
    pretence = Pretence(status=InvoiceStatus.PAID, amount_kopecks=kopecks)
    for notice in await register.pretend(payment.id, pretence, reference=payment.bank_reference):
        await on_notice(house.ports, notice)
    return payment


async def waiting(house: TestHouse) -> list[Job]:
    async with house.ports.storage.unit() as unit:
        return [job for job in await unit[Job].find() if job.kind in (SALE.kind, BACK.kind)]


async def test_what_was_paid_has_one_receipt_and_what_goes_back_another(house: TestHouse, register: Register) -> None:
    payment = await paid(house, register)
    await house.work(1)
    refund = (await post(house, "/refunds", {"payment_id": payment.id, "amount_rub": "30.00"})).json()
    await house.work(3 * 86400)  # it is settled on the way
    reference = payment.bank_reference or ""
    assert register.written == [(payment.id, reference, 100_00, False), (refund["id"], reference, 30_00, True)]
    assert await waiting(house) == []


async def test_it_is_of_what_came(house: TestHouse, register: Register) -> None:
    payment = await paid(house, register, 60_00)
    assert await waiting(house) == []
    await resolve_mismatch(house.ports, payment.id, "paid")
    await house.work(1)
    assert [kopecks for _, _, kopecks, _ in register.written] == [60_00]


async def test_what_was_not_paid_has_none(house: TestHouse, register: Register) -> None:
    await made(house)
    await house.work(16 * 60)
    assert (register.told, await waiting(house)) == ([], [])


async def test_a_payment_without_terms_has_none(house: TestHouse, register: Register) -> None:
    await paid(house, register, client_email="no address")
    assert (register.told, await waiting(house)) == ([], [])


@pytest.mark.parametrize(("charge", "written"), [("first", [500_00]), ("none", [])])
async def test_a_binding_has_one_where_it_takes_money(
    house: TestHouse, register: Register, charge: str, written: list[int]
) -> None:
    await configured(house, receipt_email="till@shop.example", recurring="true")
    answer = await subscribe(house, mode="live", binding_charge=charge)
    subscription_id = answer.json()["id"]
    await open_link(house, subscription_id)
    [binding] = await bindings(house, subscription_id)
    await register.pretend_mandate(binding.id.replace("pay_", "bnd_"), MandatePretence(event=MandateEvent.CONFIRM))
    await house.work(86400)
    assert (await house.payment(binding.id)).paid_at is not None
    assert [each.receipt.total_kopecks for each in register.told] == written


@pytest.mark.parametrize("gone", ["payment", "register"])
async def test_it_is_over_where_nobody_can_write_it(
    house: TestHouse, register: Register, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = await paid(house, register)
    if gone == "register":
        monkeypatch.setattr(register, "_capabilities", BankCapabilities())
    else:
        async with beneath(house.ports).unit() as unit:
            unit[Payment].remove(await house.payment(payment.id))
            await unit.commit()
        house.made_up = True
    await house.work(1)
    assert (register.told, await waiting(house)) == ([], [])


WORDS = [WAITS, ReceiptStatus.FAILED, Unavailable("away"), OutcomeUnknown("cut"), Refused("no"), NotSupported("none")]


@pytest.mark.parametrize("word", WORDS, ids=str)
async def test_until_it_is_written_it_is_asked_for_by_the_ladder(
    house: TestHouse, register: Register, word: ReceiptStatus | Fault
) -> None:
    register.words.extend([word] * 2)
    await paid(house, register)
    asked = []
    for seconds in (0, 9, 1, 29, 1):
        await house.work(seconds)
        asked.append(len(register.told))
    assert asked == [1, 1, 2, 2, 3]
    assert await waiting(house) == []


@pytest.mark.parametrize(("left", "jobs"), [(1, 1), (0, 0)])
async def test_it_is_given_up_after_30_days(house: TestHouse, register: Register, left: int, jobs: int) -> None:
    register.words.append(WAITS)
    await paid(house, register)
    [job] = await waiting(house)
    async with beneath(house.ports).unit() as unit:
        begun = house.clock.now() - ASKED_FOR + timedelta(seconds=left)
        unit[Job].save(msgspec.structs.replace(job, created_at=begun))
        await unit.commit()
    await house.work()
    assert (len(register.told), len(await waiting(house))) == (1, jobs)
    assert timedelta(days=30) == ASKED_FOR
