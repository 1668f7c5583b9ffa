"""Raiffeisenbank's adapter beyond the contracts: its requests and their number, declined payments, subscriptions and
payouts, and the credentials of several merchants."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from cambist.adapters.bank.raiffeisen.adapter import RaiffeisenBank
from cambist.adapters.bank.raiffeisen.merchants import Merchants, Pair, PayoutPair
from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.frontends.settings import plugins
from cambist.ports import (
    BindingRequest,
    ChargeRequest,
    ChargeStatus,
    Invoice,
    InvoiceRequest,
    InvoiceStatus,
    MandateState,
    MandateStatus,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    RefundRequest,
    RefundStatus,
    Refused,
    RemittanceRequest,
    RemittanceStatus,
    Unavailable,
    short_operation,
)
from cambist.testing import ProviderFault
from tests.contracts.bank_kit import START
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import ACCOUNT, MERCHANT, PAYOUT_SECRET, SECRET
from tests.providers.raiffeisen.harness import RaiffeisenHarness, new_tools
from tests.tables import table

OPERATION = "pay_0198c3f2-7d1a-7e4b-9f60-000000000001"
BINDING = "sub_0198c3f2-7d1a-7e4b-9f60-000000000001:0198c3f2-7d1a-7e4b-9f60-000000000002"
PART = "exch_0198c3f2-7d1a-7e4b-9f60-000000000001/1"


@pytest.fixture
async def harness() -> AsyncIterator[RaiffeisenHarness]:
    """Open a harness whose adapter and fake share a stopped clock."""
    clock = VirtualClock(START)
    async with Raiffeisen(clock.now) as books:
        made = RaiffeisenHarness(new_tools(clock), books)
        made.clock = clock
        yield made
        for bank in made.banks:
            await bank.close()


@pytest.fixture
def bank(harness: RaiffeisenHarness) -> RaiffeisenBank:
    return harness.banks[0]


async def passed(harness: RaiffeisenHarness, span: timedelta) -> None:
    clock = harness.clock
    assert isinstance(clock, VirtualClock)
    await clock.advance(span.total_seconds())


async def created(harness: RaiffeisenHarness, bank: RaiffeisenBank, operation: str = OPERATION) -> Invoice:
    return await bank.create_invoice(harness.request(operation))


def qr_of(invoice: Invoice) -> str:
    return invoice.reference.split("/")[2]


def sent(harness: RaiffeisenHarness) -> Any:
    """Return the body of the last request."""
    return json.loads(harness.books.requests[-1].body, parse_float=Decimal)


class TestInvoices:
    async def test_a_payment_is_two_calls(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        """One call makes the QR, and one finds it paid after the notification."""
        invoice = await created(harness, bank)
        harness.books.pay(qr_of(invoice))
        assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.PAID
        assert [each.method for each in harness.books.requests] == ["POST", "GET"]

    async def test_invoice_says_who_sells_what_until_when(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        request = InvoiceRequest(
            operation=OPERATION,
            amount_kopecks=490_10,
            purpose="Ёлка «Снег» 🎄",
            expires_at=START + timedelta(minutes=15),
            return_url="https://pay.merchant.example/pay/1",
        )
        invoice = await bank.create_invoice(request)
        assert sent(harness) == {
            "qrType": "QRDynamic",
            "sbpMerchantId": MERCHANT,
            "order": OPERATION,
            "amount": Decimal("490.10"),
            "currency": "RUB",
            "qrExpirationDate": "2026-08-08T15:15:00+03:00",
            "additionalInfo": 'Елка "Снег"',
            "paymentDetails": 'Елка "Снег"',
            "redirectUrl": "https://pay.merchant.example/pay/1",
        }
        assert invoice.payload == invoice.link
        assert invoice.link.startswith("https://qr.nspk.ru/AD")

    async def test_a_declined_payer_may_try_again_until_the_qr_ends(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        invoice = await created(harness, bank)
        harness.books.decline(qr_of(invoice))
        assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
        await passed(harness, timedelta(minutes=16))
        state = await bank.invoice_state(invoice.reference)
        assert (state.status, state.failure) == (InvoiceStatus.FAILED, "declined_by_bank")

    async def test_end_of_an_invoice_is_ours(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        invoice = await created(harness, bank)
        await passed(harness, harness.LIFETIME)
        assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.EXPIRED
        await bank.cancel_invoice(invoice.reference)

    async def test_an_order_that_is_paid_is_looked_up(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        """Not failed: the bank registers no QR for it any more."""
        invoice = await created(harness, bank)
        harness.books.pay(qr_of(invoice))
        await harness.forget()
        assert await created(harness, bank) == invoice

    async def test_paid_order_that_is_not_found_is_an_unknown_outcome(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        harness.books.pay(qr_of(await created(harness, bank)))
        harness.books.knows_orders = False
        await harness.forget()
        with pytest.raises(OutcomeUnknown):
            await created(harness, bank)

    @pytest.mark.parametrize("said", [None, "soon", 5, ""])
    async def test_money_whose_moment_cannot_be_read_came_now(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank, said: Any
    ) -> None:
        """It is paid nevertheless."""
        invoice = await created(harness, bank)
        harness.books.pay(qr_of(invoice))
        harness.books.qrs[qr_of(invoice)]["at"] = said
        state = await bank.invoice_state(invoice.reference)
        assert (state.status, [each.at for each in state.transfers]) == (InvoiceStatus.PAID, [START])

    @pytest.mark.parametrize("amount", ["0", "-1", "0.001"])
    async def test_money_that_cannot_be_counted_is_asked_for_again(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank, amount: str
    ) -> None:
        invoice = await created(harness, bank)
        harness.books.pay(qr_of(invoice))
        harness.books.qrs[qr_of(invoice)]["amount"] = Decimal(amount)
        with pytest.raises(Unavailable):
            await bank.invoice_state(invoice.reference)


class TestRefunds:
    async def paid(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> Invoice:
        invoice = await created(harness, bank)
        harness.books.pay(qr_of(invoice))
        return invoice

    async def test_failed_refund_is_reported(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        invoice = await self.paid(harness, bank)
        await harness.fail_next_refund()
        request = RefundRequest(operation="ref_1", reference=invoice.reference, amount_kopecks=100_00)
        assert (await bank.refund(request)).status is RefundStatus.PROCESSING
        harness.books.finish()
        again = await bank.refund(request)
        assert (again.status, again.failure) == (RefundStatus.FAILED, "declined_by_bank")

    async def test_another_transfer_than_its_own_does_not_go(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        invoice = await self.paid(harness, bank)
        request = RefundRequest(
            operation="ref_1", reference=invoice.reference, amount_kopecks=1, transfer="pay_another"
        )
        with pytest.raises(Refused) as refused:
            await bank.refund(request)
        assert refused.value.reason == "not_found"

    async def test_a_refusal_that_may_be_of_a_repeat_is_unknown(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        """The bank does not answer the query whether it was."""
        invoice = await self.paid(harness, bank)
        asked = iter([False, True])
        harness.books.next(
            ProviderFault.SERVER_ERROR, matching=lambda each: "/refund/" in each.path and next(asked, True), always=True
        )
        request = RefundRequest(operation="ref_1", reference=invoice.reference, amount_kopecks=100_01)
        with pytest.raises(OutcomeUnknown):
            await bank.refund(request)


class TestSubscriptions:
    def request(self, first: int | None = 100_00) -> BindingRequest:
        return BindingRequest(
            operation=BINDING,
            first_charge_kopecks=first,
            purpose="Кофе",
            expires_at=START + timedelta(minutes=15),
        )

    async def bound(self, harness: RaiffeisenHarness, bank: RaiffeisenBank, first: int | None = None) -> MandateState:
        made = await bank.bind(self.request(first))
        harness.books.subscribe(short_operation(BINDING))
        return await bank.mandate_state(made.reference)

    def charge(self, mandate: MandateState) -> ChargeRequest:
        return ChargeRequest(
            operation=OPERATION,
            reference=mandate.reference,
            token=mandate.token or "",
            amount_kopecks=250_00,
            purpose="Кофе",
        )

    async def test_one_without_a_first_charge_is_no_payment(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        made = await bank.bind(self.request(None))
        assert made.link
        assert made.link.startswith("https://sub.nspk.ru/")
        assert harness.books.requests[-1].path == "/api/sbp/v1/subscriptions"
        assert sent(harness)["subscriptionPurpose"] == "Кофе"

    async def test_paid_and_not_bound_is_refused_once_its_qr_has_ended(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        """The payer may pay and not subscribe, or use a bank that cannot."""
        made = await bank.bind(self.request())
        harness.books.pay(harness.books.subscriptions[short_operation(BINDING)]["qr"]["id"])
        paid = await bank.mandate_state(made.reference)
        assert (paid.status, len(paid.transfers)) == (MandateStatus.OPEN, 1)
        await passed(harness, timedelta(minutes=18))
        ended = await bank.mandate_state(made.reference)
        assert (ended.status, ended.failure) == (MandateStatus.REFUSED, "declined_by_bank")
        assert ended.transfers == paid.transfers

    async def test_unpaid_binding_is_closed_once_its_qr_has_ended(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        made = await bank.bind(self.request())
        await passed(harness, timedelta(minutes=18))
        assert (await bank.mandate_state(made.reference)).status is MandateStatus.CLOSED

    async def test_revoked_before_it_is_paid_nobody_can_pay_it(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        made = await bank.bind(self.request())
        await bank.revoke(made.reference)
        [qr] = harness.books.qrs.values()
        assert qr["status"] == "CANCELLED"

    async def test_a_payer_who_unsubscribed_ends_it(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        mandate = await self.bound(harness, bank)
        harness.books.subscriptions[short_operation(BINDING)]["status"] = "UNSUBSCRIBED"
        assert (await bank.mandate_state(mandate.reference)).status is MandateStatus.ENDED
        failed = await bank.charge(self.charge(mandate))
        assert (failed.status, failed.failure) == (ChargeStatus.FAILED, "mandate_revoked")

    async def test_a_charge_that_is_declined_fails_and_is_not_sent_again(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        """The bank would try its order anew."""
        mandate = await self.bound(harness, bank)
        harness.books.next_charge = "DECLINED"
        begun = await bank.charge(self.charge(mandate))
        assert (begun.status, begun.check_after) == (ChargeStatus.PROCESSING, 10)
        harness.books.finish()
        failed, again = await bank.charge(self.charge(mandate)), await bank.charge(self.charge(mandate))
        assert (failed.status, failed.failure) == (ChargeStatus.FAILED, "declined_by_bank")
        assert again == failed
        with pytest.raises(Refused) as refused:
            await bank.refund(RefundRequest(operation="ref_1", reference=failed.reference, amount_kopecks=1))
        assert refused.value.reason == "not_paid"

    async def test_an_order_that_is_paid_elsewhere_is_unknown(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        """As by the mandate before a new binding, of which a restored database has forgotten the charge."""
        harness.books.pay(qr_of(await created(harness, bank)))
        mandate = await self.bound(harness, bank)
        with pytest.raises(OutcomeUnknown):
            await bank.charge(self.charge(mandate))
        assert not harness.books.charges

    async def test_they_are_off_until_the_bank_has_switched_them_on(self, harness: RaiffeisenHarness) -> None:
        bank = RaiffeisenBank(
            harness.tools, merchants=Merchants(Pair(MERCHANT, SECRET), {}), base_url=harness.books.url
        )
        assert not bank.capabilities.mandates
        with pytest.raises(NotSupported):
            await bank.bind(self.request())


class TestPayouts:
    def request(self, **other: Any) -> RemittanceRequest:
        fields = {"phone": "+79990000001", "bank_id": "bank100000000007", "amount_kopecks": 100_00, **other}
        return RemittanceRequest(operation=PART, **fields)

    async def test_payout_says_whom_from_where_and_how(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        await bank.remit(self.request())
        told = sent(harness)
        assert len(told.pop("id")) == 20
        assert told == {
            "account": ACCOUNT,
            "amount": Decimal("100.00"),
            "currency": "RUB",
            "paymentDetails": "Перевод по СБП",
            "payoutMethod": "SBP",
            "payoutParams": {"phone": "79990000001", "bankAlias": "RAIFFEISEN"},
        }

    async def test_reason_of_a_decline_is_reported(self, harness: RaiffeisenHarness, bank: RaiffeisenBank) -> None:
        harness.books.next_payout = "RECEIVER_ACCOUNT_ERROR"
        await bank.remit(self.request())
        harness.books.finish()
        state = await bank.find_remittance(PART)
        assert state is not None
        assert (state.status, state.failure) == (RemittanceStatus.FAILED, "receiver_account_error")

    async def test_want_of_our_own_money_is_nobody_s_refusal(
        self, harness: RaiffeisenHarness, bank: RaiffeisenBank
    ) -> None:
        harness.books.next_payout = "INSUFFICIENT_FUNDS"
        with pytest.raises(Unavailable) as later:
            await bank.remit(self.request())
        assert later.value.retry_after
        assert await bank.find_remittance(PART) is None
        await bank.remit(self.request())

    async def test_a_bank_whose_alias_is_not_known_is_refused_until_it_is_set(self, harness: RaiffeisenHarness) -> None:
        request = self.request(bank_id="bank100000000111")
        with pytest.raises(Refused) as refused:
            await harness.banks[0].remit(request)
        assert refused.value.reason == "recipient"
        knowing = RaiffeisenBank(
            harness.tools,
            merchants=Merchants(None, {}),
            base_url=f"{harness.books.url}/api",
            payouts=PayoutPair(ACCOUNT, PAYOUT_SECRET),
            aliases={"bank100000000111": "VTB"},
        )
        assert [(each.id, each.name) for each in await knowing.banks()] == [
            ("bank100000000004", "Тинькофф"),
            ("bank100000000005", "ВТБ"),
            ("bank100000000007", "Райффайзенбанк"),
            ("bank100000000111", "ВТБ"),
        ]
        await knowing.remit(request)
        assert sent(harness)["payoutParams"]["bankAlias"] == "VTB"
        await knowing.close()

    async def test_an_account_that_is_not_ours_is_for_an_operator(self, harness: RaiffeisenHarness) -> None:
        bank = RaiffeisenBank(
            harness.tools,
            merchants=Merchants(None, {}),
            base_url=f"{harness.books.url}/api",
            payouts=PayoutPair("40702810000000000009", PAYOUT_SECRET),
        )
        with pytest.raises(NotConfigured):
            await bank.remit(self.request())
        await bank.close()


class TestMerchants:
    OWN, OWN_KEY = "MA0000000777", "key-of-another-merchant"

    @pytest.fixture
    async def both(self, harness: RaiffeisenHarness) -> AsyncIterator[RaiffeisenBank]:
        """The installation's merchant, and one of its own for shop_2."""
        harness.books.merchants[self.OWN] = self.OWN_KEY
        bank = self.made(harness, Merchants(Pair(MERCHANT, SECRET), {"shop_2": Pair(self.OWN, self.OWN_KEY, False)}))
        yield bank
        await bank.close()

    def made(self, harness: RaiffeisenHarness, merchants: Merchants) -> RaiffeisenBank:
        return RaiffeisenBank(harness.tools, merchants=merchants, base_url=f"{harness.books.url}/api")

    def request(self, harness: RaiffeisenHarness, shop: str = "shop_2") -> InvoiceRequest:
        return msgspec.structs.replace(harness.request(OPERATION), account="acc_1", shop=shop)

    async def test_the_nearest_is_taken_and_remembered(self, harness: RaiffeisenHarness, both: RaiffeisenBank) -> None:
        invoice = await both.create_invoice(self.request(harness))
        assert sent(harness)["sbpMerchantId"] == self.OWN
        harness.books.pay(qr_of(invoice))
        await both.refund(RefundRequest(operation="ref_1", reference=invoice.reference, amount_kopecks=1))
        assert {each.headers["authorization"] for each in harness.books.requests} == {f"Bearer {self.OWN_KEY}"}

    async def test_everybody_else_s_is_the_installation_s(
        self, harness: RaiffeisenHarness, both: RaiffeisenBank
    ) -> None:
        await both.create_invoice(self.request(harness, "shop_3"))
        assert sent(harness)["sbpMerchantId"] == MERCHANT

    async def test_merchant_without_credentials_goes_to_the_next_bank(self, harness: RaiffeisenHarness) -> None:
        bank = self.made(harness, Merchants(None, {"shop_2": Pair(self.OWN, self.OWN_KEY)}))
        with pytest.raises(Refused) as refused:
            await bank.create_invoice(self.request(harness, "shop_3"))
        assert refused.value.reason == "merchant"

    async def test_one_s_own_key_that_is_not_taken_stops_that_merchant_alone(
        self, harness: RaiffeisenHarness, both: RaiffeisenBank
    ) -> None:
        """NotConfigured takes the gateway down for all."""
        harness.books.merchants[self.OWN] = "a new one"
        with pytest.raises(Unavailable):
            await both.create_invoice(self.request(harness))

    async def test_removed_credentials_are_reported_as_missing(
        self, harness: RaiffeisenHarness, both: RaiffeisenBank
    ) -> None:
        invoice = await both.create_invoice(self.request(harness))
        left = self.made(harness, Merchants(Pair(MERCHANT, SECRET), {}))
        with pytest.raises(NotConfigured, match="shop_2"):
            await left.invoice_state(invoice.reference)


def test_no_secret_shows() -> None:
    made = RaiffeisenBank(
        new_tools(SystemClock()),
        merchants=Merchants(Pair(MERCHANT, SECRET), {}),
        payouts=PayoutPair(ACCOUNT, PAYOUT_SECRET),
    )
    told = repr((made, made._merchants, made._merchants.pair(""), made._payouts, made._api))
    assert not [each for each in (SECRET, PAYOUT_SECRET, ACCOUNT) if each in told]


class TestSettings:
    """An operator's settings make the adapter, or stop the start with the name of the wrong setting."""

    OWN: ClassVar = {"merchant_id": MERCHANT, "secret_key": SECRET}

    def made(self, **values: Any) -> RaiffeisenBank:
        given = {f"raiffeisen_{name}": value for name, value in values.items()}
        made = plugins.made("bank", "raiffeisen", new_tools(SystemClock()), given)
        assert isinstance(made, RaiffeisenBank)
        return made

    def test_a_pair_is_enough(self) -> None:
        can = self.made(**self.OWN).capabilities
        assert (can.mandates, can.remittances, can.cancels_invoices, can.own_lifetime) == (False, False, True, True)

    def test_more_is_switched_on(self) -> None:
        more = {"subscriptions": True, "payout_account": ACCOUNT, "payout_secret_key": PAYOUT_SECRET}
        can = self.made(**self.OWN, **more).capabilities
        assert (can.mandates, can.mandate_charges, can.remittances) == (True, True, True)

    @table(
        ("values", "named"),
        [
            ({}, "CAMBIST_RAIFFEISEN_MERCHANT_ID"),
            ({"merchant_id": MERCHANT}, "CAMBIST_RAIFFEISEN_SECRET_KEY"),
            ({**OWN, "payout_account": ACCOUNT}, "CAMBIST_RAIFFEISEN_PAYOUT_SECRET_KEY"),
            ({**OWN, "payout_account": "407", "payout_secret_key": "x"}, "20 digits"),
            ({**OWN, "url": "http://pay.raif.example/api"}, "https"),
        ],
    )
    def test_missing_setting_is_named(self, values: dict[str, str], named: str) -> None:
        with pytest.raises(NotConfigured, match=named):
            self.made(**values)

    async def test_files_name_merchants_and_banks(self, harness: RaiffeisenHarness, tmp_path: Path) -> None:
        merchants, banks = tmp_path / "merchants.toml", tmp_path / "banks.toml"
        merchants.write_text(f'[shop_2]\nmerchant_id = "{MERCHANT}"\nsecret_key = "{SECRET}"\n')
        banks.write_text('bank100000000111 = "VTB"\n')
        bank = self.made(
            merchants_file=merchants,
            banks_file=banks,
            payout_account=ACCOUNT,
            payout_secret_key=PAYOUT_SECRET,
            url=f"{harness.books.url}/api",
        )
        invoice = await bank.create_invoice(msgspec.structs.replace(harness.request(OPERATION), shop="shop_2"))
        assert invoice.reference.startswith("qr/shop_2/AD")
        await bank.remit(
            RemittanceRequest(
                operation=PART, phone="+79990000001", bank_id="bank100000000111", amount_kopecks=600_000_00
            )
        )
        await bank.check()
        await bank.close()

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("merchants_file", "[shop_2]\nmerchant_id = 5\n"),
            ("merchants_file", "[shop_2]\nsecret_key = 'hunter2'\n"),
            ("merchants_file", "['a/b']\nmerchant_id = 'M'\nsecret_key = 'hunter2'\n"),
            ("merchants_file", "[shop_2]\nmerchant_id = 'M'\nsecret_key = 'hunter2я'\n"),
            ("merchants_file", "secret_key = hunter2"),
            ("banks_file", "bank1 = 5"),
            ("banks_file", "hunter2 = "),
            ("banks_file", 'sber = "SBERBANK"'),
        ],
    )
    def test_a_file_that_is_wrong_stops_the_start_and_is_not_quoted(self, tmp_path: Path, name: str, text: str) -> None:
        path = tmp_path / "file.toml"
        path.write_text(text)
        with pytest.raises(NotConfigured) as wrong:
            self.made(**self.OWN, **{name: path})
        assert "hunter2" not in str(wrong.value)
