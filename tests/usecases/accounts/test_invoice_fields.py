"""Fields of a bank's invoice beside its link: the target of the link, and the end of the invoice (docs/adapters.md
"Fields of an invoice")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.frontends.app.compose import Adapters
from cambist.frontends.console.kinds.payments import _facts
from cambist.ports.bank import Invoice, InvoiceKind, InvoicePayer, InvoiceRequest, InvoiceState, InvoiceStatus
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from cambist.ports.mandates import Binding, BindingRequest
from tests.apps import TestApp, open_test_app
from tests.subscription_app import press, subscribed
from tests.usecases.payments.test_polling import TellsNothing


class Says(TellsNothing):
    """A live bank whose invoices have what a test wants."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**capabilities)
        self.more: dict[str, Any] = {}
        self.requests: list[InvoiceRequest] = []
        self.closed: list[str] = []
        self.refusal: Fault | None = None

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        self.requests.append(request)
        return msgspec.structs.replace(await super().create_invoice(request), **self.more)

    async def invoice_state(self, reference: str) -> InvoiceState:
        state = await super().invoice_state(reference)
        if state.status is InvoiceStatus.OPEN and reference in self.closed and self.refusal is None:
            return msgspec.structs.replace(state, status=InvoiceStatus.CANCELLED)
        return state

    async def cancel_invoice(self, reference: str) -> None:
        self.closed.append(reference)
        if self.refusal is not None:
            raise self.refusal


@pytest.fixture
def bank() -> Says:
    return Says(cancels_invoices=True)


@pytest.fixture
async def app(bank: Says) -> AsyncIterator[TestApp]:
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as opened:
        bank.clock = opened.ports.clock
        await set_settings(opened.ports, opened.account.account_id, {"direct_links": "true"})
        yield opened


@pytest.mark.parametrize("kind", InvoiceKind)
async def test_only_a_link_of_sbp_is_handed_out_as_one(app: TestApp, bank: Says, kind: InvoiceKind) -> None:
    if kind is not InvoiceKind.QR:
        bank.more = {"kind": kind, "payload": None}
    payment = (await app.create(mode="live")).json()
    answer = await app.get(f"/payments/{payment['id']}/sbp-link", mode="live")
    link = f"https://bank.example/{payment['id']}"
    assert answer.json() == {"sbp_link": link if kind is InvoiceKind.QR else None}
    stored = await app.payment(payment["id"])
    assert (stored.bank_link, stored.qr_payload) == (link, link if kind is InvoiceKind.QR else None)
    page = (await app.http.get(f"/p/{payment['id']}")).text
    assert ('id="qr"' in page) is (kind is InvoiceKind.QR)
    assert f'href="{link}"' in page


@pytest.mark.parametrize(("minutes", "lives"), [(5, 5), (15, 15), (60, 15)])
async def test_a_payment_ends_with_its_invoice_where_that_ends_earlier(
    app: TestApp, bank: Says, minutes: int, lives: int
) -> None:
    begun = app.clock.now()
    bank.more = {"expires_at": begun + timedelta(minutes=minutes)}
    answer = (await app.create(mode="live")).json()
    payment = await app.payment(answer["id"])
    assert payment.expires_at == begun + timedelta(minutes=lives)
    assert answer["expires_at"] == (await app.get(f"/payments/{payment.id}", mode="live")).json()["expires_at"]
    await app.work(lives * 60 - 1)
    assert (await app.payment(payment.id)).status == "pending"
    await app.work(1)
    assert (await app.payment(payment.id)).status == "expired"


async def test_money_after_our_deadline_and_before_the_bank_s_is_late_money(app: TestApp, bank: Says) -> None:
    bank.more = {"expires_at": app.clock.now() + timedelta(minutes=60)}
    bank.refusal = Refused("the payer is about it", reason="state")
    payment = (await app.create(mode="live")).json()
    await app.work(16 * 60)
    assert (await app.payment(payment["id"])).status == "expired"
    bank.pay(payment["id"])
    await app.work(4 * 60)
    assert (await app.payment(payment["id"])).status == "paid"


async def test_the_invoice_of_an_expired_payment_is_closed_once(app: TestApp, bank: Says) -> None:
    payment = (await app.create(mode="live")).json()
    await app.work(15 * 60 - 1)
    assert bank.closed == []
    await app.work(7 * 3600)
    assert bank.closed == [payment["id"]]
    assert (await app.payment(payment["id"])).status == "expired"


@pytest.mark.parametrize("fault", [Unavailable("away"), OutcomeUnknown("cut"), Refused("no", reason="state")], ids=str)
async def test_failed_closing_of_an_invoice_is_repeated_later(app: TestApp, bank: Says, fault: Fault) -> None:
    bank.refusal = fault
    payment = (await app.create(mode="live")).json()
    await app.work(15 * 60)
    assert (await app.payment(payment["id"])).status == "expired"
    assert bank.closed == [payment["id"]]
    bank.refusal, bank.closed = None, []
    await app.work(7 * 3600)
    assert bank.closed == [payment["id"]]


async def test_invoice_paid_in_time_is_not_closed(app: TestApp, bank: Says) -> None:
    payment = (await app.create(mode="live")).json()
    bank.pay(payment["id"])
    await app.work(7 * 3600)
    assert (await app.payment(payment["id"])).status == "paid"
    assert bank.closed == []


async def test_a_bank_that_does_not_say_so_is_not_asked_to_close(app: TestApp, bank: Says) -> None:
    bank.capabilities = msgspec.structs.replace(bank.capabilities, cancels_invoices=False)
    await app.create(mode="live")
    await app.work(7 * 3600)
    assert bank.closed == []


async def test_the_payer_comes_back_from_the_bank_s_page_to_our_window(app: TestApp, bank: Says) -> None:
    payment = (await app.create(mode="live")).json()
    assert [request.return_url for request in bank.requests] == [payment["payment_url"]]


async def test_bank_returns_the_payer_of_a_binding_to_the_subscription_page() -> None:
    asked: list[BindingRequest] = []
    async with open_test_app() as opened:
        bank: Any = opened.ports.banks.of_mode("test")[0]
        usual = bank._adapter.bind

        async def bind(request: BindingRequest) -> Binding:
            asked.append(request)
            return cast("Binding", await usual(request))

        bank.bind = bind
        made = await subscribed(opened)
        await press(opened, made["id"])
    assert {request.return_url for request in asked} == {made["binding_url"]}
    whose = {(request.account, request.shop, request.terminal) for request in asked}
    assert whose == {(opened.account.account_id, opened.account.default_shop_id, None)}


TOLD = {"client_phone": "+79990001122", "client_email": "anna@shop.example"}


@pytest.mark.parametrize(
    ("body", "payer"),
    [
        ({}, None),
        ({"payer": {"full_name": "Anna B", "document_number": "4509123456"}}, None),
        (TOLD, InvoicePayer(phone="+79990001122", email="anna@shop.example")),
        ({"client_info": {"ip": "2001:db8:0::1"}}, InvoicePayer(ip="2001:db8::1")),
        ({**TOLD, "client_info": {"ip": "not one"}}, InvoicePayer(phone="+79990001122", email="anna@shop.example")),
        ({"client_info": {"ip": 7, "user_agent": "x"}}, None),
    ],
)
async def test_bank_that_wants_payer_data_gets_the_merchants(
    app: TestApp, bank: Says, body: dict[str, Any], payer: InvoicePayer | None
) -> None:
    bank.capabilities = msgspec.structs.replace(bank.capabilities, wants_payer=True)
    assert (await app.create(body, mode="live")).status_code == 201
    [request] = bank.requests
    assert request.payer == payer
    for private in ("79990001122", "anna@", "2001:db8", "4509", "Anna"):
        assert private not in repr(request)


async def test_any_other_bank_gets_no_payer_data(app: TestApp, bank: Says) -> None:
    assert (await app.create(TOLD, mode="live")).status_code == 201
    assert [request.payer for request in bank.requests] == [None]


async def test_banks_details_of_the_money_are_kept_for_operators_only(app: TestApp, bank: Says) -> None:
    payment = (await app.create(mode="live")).json()
    bank.pay(payment["id"])
    told = {"fee_kopecks": 1_23, "payer_bank": "100000000004", "sbp_operation_id": "B6010CANARY"}
    bank.paid[payment["id"]] = msgspec.structs.replace(bank.paid[payment["id"]], **told)
    await app.work(600)
    stored = await app.payment(payment["id"])
    assert (stored.status, str(stored.provider_fee)) == ("paid", "1.23")
    shown = dict(_facts(stored))
    assert (shown["bank's fee"], shown["payer's bank"]) == ("1.23 RUB", "100000000004")
    assert shown["SBP operation"] == "B6010CANARY"
    answer = (await app.get(f"/payments/{payment['id']}", mode="live")).text
    events = str(await app.events(payment["id"]))
    for secret in ("B6010CANARY", "100000000004", "1.23"):
        assert secret not in answer
        assert secret not in events
    assert "paid" in events


async def test_a_bank_that_says_no_more_than_the_amount_is_as_good(app: TestApp, bank: Says) -> None:
    payment = (await app.create(mode="live")).json()
    bank.pay(payment["id"])
    await app.work(600)
    stored = await app.payment(payment["id"])
    assert (stored.status, stored.provider_fee, stored.payer_bank, stored.sbp_operation_id) == (
        "paid",
        None,
        None,
        None,
    )


async def test_bank_is_given_the_owner_of_a_payment(app: TestApp, bank: Says) -> None:
    account = app.account
    other = (await create_shop(app.ports, account.account_id, "Second", "0")).id
    await app.create(mode="live")
    await app.create({"shop_id": other}, mode="live")
    await set_settings(app.ports, account.account_id, {"terminals": "true"})
    terminal = await create_terminal(app.ports, account.account_id, TerminalWish(label="T"))
    await app.create({"method_id": terminal.id}, mode="live")
    assert [(request.account, request.shop, request.terminal) for request in bank.requests] == [
        (account.account_id, account.default_shop_id, None),
        (account.account_id, other, None),
        (account.account_id, account.default_shop_id, terminal.id),
    ]
