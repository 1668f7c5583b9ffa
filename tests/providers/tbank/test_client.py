"""The client `tbank`, which others wrote, passes against the fake: so the fake speaks T-Bank's protocol."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pydantic import Field
from tbank.acquiring.aio import AcquiringClient
from tbank.acquiring.enums import AccountQrStatus, PaymentStatus, Tax, Taxation
from tbank.acquiring.models import (
    InitRequest,
    Receipt,
    ReceiptItem,
)
from tbank.acquiring.webhooks import parse_notification, verify_notification
from tbank.core.errors import TBankAPIError

from cambist.adapters.clock import VirtualClock
from tests.providers.tbank.fake import PASSWORD, TERMINAL, TBankFake


@pytest.fixture
async def fake() -> AsyncIterator[TBankFake]:
    async with TBankFake(VirtualClock()) as opened:
        opened.numbers_as_text = True
        yield opened


@pytest.fixture
async def client(fake: TBankFake) -> AsyncIterator[AcquiringClient]:
    opened = AcquiringClient(TERMINAL, PASSWORD, base_url=f"{fake.url}/v2")
    async with opened:
        yield opened


def order(amount: int = 490_00, **more: object) -> InitRequest:
    return InitRequest(amount=amount, order_id="21090", description="Подарочная карта", **more)  # type: ignore[arg-type]


async def test_a_payment_by_qr_is_paid_and_goes_back_in_parts(fake: TBankFake, client: AcquiringClient) -> None:
    due = (fake.books.clock.now() + timedelta(minutes=15)).isoformat()
    made = await client.init(order(redirect_due_date=due))
    assert made.payment_id
    assert (await client.get_qr(made.payment_id)).data == fake.payment("21090").qr
    assert (await client.get_state(made.payment_id)).status is PaymentStatus.FORM_SHOWED
    fake.books.pay(fake.payment("21090"))
    assert (await client.get_state(made.payment_id)).status is PaymentStatus.CONFIRMED
    told = fake.notification(fake.payment("21090"))
    assert verify_notification(_read(told), PASSWORD)
    assert not verify_notification(_read(told), "another")
    assert parse_notification(_read(told)).status is PaymentStatus.CONFIRMED
    part = await client.cancel(made.payment_id, 100_00)
    assert (part.status, part.original_amount, part.new_amount) == (PaymentStatus.PARTIAL_REFUNDED, 490_00, 390_00)
    rest = await client.cancel(made.payment_id)
    assert (rest.status, rest.new_amount) == (PaymentStatus.REFUNDED, 0)
    assert (await client.get_qr_state(made.payment_id)).amount == 390_00
    [payment] = (await client.check_order("21090")).payments
    assert (payment.payment_id, payment.status) == (made.payment_id, "REFUNDED")


class ForQr(InitRequest):
    """The field that the client lacks: without it T-Bank charges nothing."""

    data: dict[str, str] = Field(default={"QR": "true"}, alias="DATA")


async def test_an_account_is_bound_and_charged_once(fake: TBankFake, client: AcquiringClient) -> None:
    asked = await client.add_account_qr("Coffee club")
    assert asked.request_key
    assert (await client.get_add_account_qr_state(asked.request_key)).status is AccountQrStatus.PROCESSING
    fake.books.confirm(int(asked.request_key))
    state = await client.get_add_account_qr_state(asked.request_key)
    assert state.status is AccountQrStatus.ACTIVE
    made = await client.init(ForQr(amount=250_00, order_id="1", recurrent="Y"))
    assert made.payment_id
    assert state.account_token
    await client.charge_qr(made.payment_id, state.account_token)
    with pytest.raises(TBankAPIError):
        await client.charge_qr(made.payment_id, state.account_token)
    fake.books.finish_charge(fake.payment("1"))
    assert fake.books.debited == [(made.payment_id, 250_00)]
    plain = await client.init(order(recurrent="Y"))
    with pytest.raises(TBankAPIError):
        await client.charge_qr(plain.payment_id or "", state.account_token)


@pytest.mark.parametrize("wants", [True, False])
async def test_a_receipt_is_taken_by_a_register_alone(fake: TBankFake, client: AcquiringClient, wants: bool) -> None:
    fake.wants_receipts = wants
    item = ReceiptItem(name="Карта", price=490_00, quantity=1, amount=490_00, tax=Tax.NONE)
    if wants:
        with pytest.raises(TBankAPIError):
            await client.init(order())
    else:
        with pytest.raises(TBankAPIError):
            await client.init(order(receipt=Receipt(taxation=Taxation.OSN, items=[item], email="a@test.com")))


@pytest.mark.parametrize(("terminal", "password"), [(TERMINAL, "another"), ("1691DEMO", PASSWORD)])
async def test_another_pair_is_refused(fake: TBankFake, terminal: str, password: str) -> None:
    client = AcquiringClient(terminal, password, base_url=f"{fake.url}/v2")
    async with client:
        with pytest.raises(TBankAPIError):
            await client.init(order())
    assert fake.books.payments == {}


async def test_an_order_is_there_once(client: AcquiringClient) -> None:
    await client.init(order())
    with pytest.raises(TBankAPIError):
        await client.init(order())


def _read(body: bytes) -> dict[str, object]:
    read: dict[str, object] = json.loads(body)
    return read
