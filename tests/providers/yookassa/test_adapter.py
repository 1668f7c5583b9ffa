"""YooKassa's adapter beyond the contracts of all banks: its windows, its lists, payouts cancelled because our balance
is too low, and merchants' own shops."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.yookassa.adapter import YooKassaBank
from cambist.adapters.bank.yookassa.shops import Shop, Shops
from cambist.adapters.clock import VirtualClock
from cambist.frontends.conformance.operation_ids import binding_id, operation_id, part_id
from cambist.ports import (
    BindingRequest,
    ChargeRequest,
    ChargeStatus,
    Forged,
    InboundNotification,
    InvoiceKind,
    InvoiceStatus,
    MandateStatus,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    RefundRequest,
    Refused,
    RemittanceRequest,
    RemittanceStatus,
    Unavailable,
)
from cambist.testing import ProviderAnswer, ProviderFault, is_write

from .conftest import tools_of
from .fake import GATEWAY, KEY, SHOP, YooKassaFake, too_many
from .harness import YooKassaHarness, bank_of

PAY, REF = operation_id("pay"), operation_id("ref")
REMIT = RemittanceRequest(operation=part_id(), phone="+79990000001", bank_id="bank100000000111", amount_kopecks=1000_00)


@contextmanager
def counted(fake: YooKassaFake) -> Iterator[list[str]]:
    """The calls that were made meanwhile."""
    before, made = dict(fake.calls), list[str]()
    yield made
    made += [name for name, count in fake.calls.items() for _ in range(count - before.get(name, 0))]


class TestPayments:
    async def test_a_payment_costs_one_call_to_make_and_one_for_each_look(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """docs/providers/yookassa.md "Calls": nothing is noted, and nothing is requested twice."""
        with counted(fake) as calls:
            invoice = await harness.banks[0].create_invoice(harness.request(PAY))
            await harness.banks[0].invoice_state(invoice.reference)
        assert calls == ["POST /v3/payments", "GET /v3/payments/{id}"]

    async def test_a_qr_has_an_sbp_link_and_an_hour(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        invoice = await harness.banks[0].create_invoice(harness.request(PAY))
        assert invoice.kind is InvoiceKind.QR
        assert (invoice.payload or "").startswith("https://qr.nspk.ru/")
        assert invoice.expires_at == clock.now() + timedelta(hours=1)
        await clock.advance(3600)
        assert (await harness.banks[0].invoice_state(invoice.reference)).status is InvoiceStatus.EXPIRED
        assert fake.told[-1]["event"] == "payment.canceled"

    async def test_a_page_of_theirs_comes_back_to_where_we_say(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        bank = bank_of(tools_of(clock), fake, by_page=True)
        request = msgspec.structs.replace(harness.request(PAY), return_url="https://pay.example/p/1")
        invoice = await bank.create_invoice(request)
        assert (invoice.kind, invoice.payload) == (InvoiceKind.PAGE, None)
        assert fake.books.things[invoice.reference]["confirmation"]["return_url"] == "https://pay.example/p/1"
        await bank.create_invoice(harness.request(operation_id("pay", 2)))
        assert fake.books.of_operation(operation_id("pay", 2))["confirmation"]["return_url"] == "https://pay.example"
        await bank.close()

    @pytest.mark.parametrize("first", [None, 100_00])
    async def test_a_binding_on_a_page_of_theirs_is_no_qr(
        self, fake: YooKassaFake, clock: VirtualClock, first: int | None
    ) -> None:
        bank = bank_of(tools_of(clock), fake, by_page=True)
        made = await bank.bind(
            BindingRequest(operation=binding_id(1), first_charge_kopecks=first, purpose="Club", expires_at=clock.now())
        )
        state = await bank.mandate_state(made.reference)
        for told in (made, state):
            assert (told.kind, told.payload) == (InvoiceKind.PAGE, None)
            assert told.link
        await bank.close()

    @pytest.mark.parametrize("skew", [-240, 0, 3600], ids=str)
    async def test_payment_is_found_whatever_their_clock_says(
        self, harness: YooKassaHarness, fake: YooKassaFake, skew: int
    ) -> None:
        fake.skew = timedelta(seconds=skew)
        await harness.lose_next_answer(done=True)
        with pytest.raises(OutcomeUnknown):
            await harness.bank.create_invoice(harness.request(PAY))
        assert await harness.bank.find_invoice(PAY) is not None

    async def test_search_of_a_long_day_begins_with_the_likely_minutes(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        """An invoice from the moment of sending is found without reading later ones."""
        fake.page = 100
        await harness.bank.create_invoice(harness.request(PAY))
        await clock.advance(3600)
        for number in range(101, 103):
            await harness.bank.create_invoice(harness.request(operation_id("pay", number)))
        with counted(fake) as calls:
            assert await harness.bank.find_invoice(PAY) is not None
        assert calls == ["GET /v3/payments"]

    async def test_invoice_made_long_after_its_first_attempt_is_found(
        self, harness: YooKassaHarness, clock: VirtualClock
    ) -> None:
        await harness.lose_next_answer(done=False)
        with pytest.raises(OutcomeUnknown):
            await harness.bank.create_invoice(harness.request(PAY))
        await clock.advance(7200)
        made = await harness.bank.create_invoice(harness.request(PAY))
        found = await harness.bank.find_invoice(PAY)
        assert found is not None
        assert found.reference == made.reference

    async def test_after_a_day_a_repeat_is_another_payment(self, harness: YooKassaHarness, clock: VirtualClock) -> None:
        """So the fake forgets as YooKassa does, and `repeat_window` is less."""
        first = await harness.banks[0].create_invoice(harness.request(PAY))
        await clock.advance(24 * 3600 - 1)
        assert (await harness.banks[0].create_invoice(harness.request(PAY))).reference == first.reference
        await clock.advance(1)
        assert (await harness.banks[0].create_invoice(harness.request(PAY))).reference != first.reference
        window = harness.banks[0].capabilities.repeat_window
        assert window is not None
        assert window < timedelta(hours=24)

    async def test_operation_with_another_amount_is_searched_and_not_refused(self, harness: YooKassaHarness) -> None:
        """The first one is there: a refusal would let another bank be tried."""
        await harness.banks[0].create_invoice(harness.request(PAY))
        with pytest.raises(OutcomeUnknown):
            await harness.banks[0].create_invoice(harness.request(PAY, 200_00))

    async def test_too_many_requests_say_when_in_milliseconds(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        fake.next(too_many(2500), matching=is_write)
        with pytest.raises(Unavailable) as busy:
            await harness.banks[0].create_invoice(harness.request(PAY))
        assert busy.value.retry_after == 2.5

    async def test_a_shop_without_sbp_is_an_operator_s_to_mend(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        fake.has_sbp = False
        with pytest.raises(NotConfigured, match="SBP"):
            await harness.banks[0].create_invoice(harness.request(PAY))

    @pytest.mark.parametrize("status", [400, 404])
    async def test_an_id_that_is_none_is_refused_by_either_status(
        self, harness: YooKassaHarness, fake: YooKassaFake, status: int
    ) -> None:
        error = {"type": "error", "id": "1", "code": "invalid_request", "parameter": "payment_id"}
        fake.next(ProviderAnswer.of_json(error, status))
        with pytest.raises(Refused):
            await harness.banks[0].invoice_state("no-such-reference")

    async def test_a_strange_object_in_a_list_is_no_absence(self, harness: YooKassaHarness, fake: YooKassaFake) -> None:
        fake.next(ProviderAnswer.of_json({"type": "list", "items": [{"id": None}]}))
        with pytest.raises(Unavailable):
            await harness.bank.find_invoice(PAY)

    async def test_a_list_without_an_end_is_left(self, harness: YooKassaHarness, fake: YooKassaFake) -> None:
        page = ProviderAnswer.of_json({"type": "list", "items": [], "next_cursor": "for-ever"})
        fake.next(page, always=True)
        with pytest.raises(Unavailable, match="too long"):
            await harness.bank.find_invoice(PAY)


class TestRefunds:
    async def test_one_without_metadata_is_known_by_its_description(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """Metadata of refunds are new there; an account that has none of them sends no refund twice."""
        invoice = await harness.bank.create_invoice(harness.request(PAY))
        fake.books.pay(invoice.reference)
        await harness.bank.refund(RefundRequest(operation=REF, reference=invoice.reference, amount_kopecks=1_00))
        refund = fake.books.of_operation(REF)
        refund["metadata"] = {}
        assert await harness.bank.find_refund(REF) is not None
        notification = fake.notification("refund.succeeded", refund)
        heard = await harness.banks[0].receive(_inbound(notification))
        assert [each.operation for each in heard.notifications] == [REF]

    async def test_another_payment_s_transfer_is_refused(self, harness: YooKassaHarness, fake: YooKassaFake) -> None:
        invoice = await harness.bank.create_invoice(harness.request(PAY))
        fake.books.pay(invoice.reference)
        request = RefundRequest(
            operation=REF, reference=invoice.reference, amount_kopecks=1_00, transfer=operation_id("x")
        )
        with pytest.raises(Refused) as refused:
            await harness.bank.refund(request)
        assert refused.value.reason == "not_found"

    async def test_one_with_another_amount_is_asked_for_and_not_refused(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """A refusal would say that no money went."""
        invoice = await harness.bank.create_invoice(harness.request(PAY))
        fake.books.pay(invoice.reference)
        for kopecks, fault in ((1_00, None), (2_00, OutcomeUnknown)):
            request = RefundRequest(operation=REF, reference=invoice.reference, amount_kopecks=kopecks)
            if fault is None:
                await harness.bank.refund(request)
            else:
                with pytest.raises(fault):
                    await harness.bank.refund(request)


class TestMandates:
    def request(self, harness: YooKassaHarness, first: int | None) -> BindingRequest:
        return BindingRequest(
            operation=binding_id(),
            first_charge_kopecks=first,
            purpose="Coffee club",
            expires_at=harness.clock.now() + harness.LIFETIME,
            return_url="https://pay.example/s/1",
        )

    async def test_method_alone_is_saved_without_a_first_charge(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """The link is on our side; the notification names the method, and its note our operation."""
        binding = await harness.bank.bind(self.request(harness, None))  # type: ignore[attr-defined]
        assert (binding.link or "").startswith("https://qr.nspk.ru/")
        bound = fake.books.of_operation(binding_id())
        fake.books.confirm(bound["id"])
        told = fake.told[-1]
        assert told["event"] == "payment_method.active"
        unmarked: dict[str, str] = {}
        for metadata in (bound["metadata"], unmarked):
            told["object"]["metadata"] = metadata
            heard = await harness.banks[0].receive(_inbound(told))
            assert [each.operation for each in heard.notifications] == [binding_id()]

    async def test_payer_who_paid_without_binding_is_refused_with_the_money(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        binding = await harness.bank.bind(self.request(harness, 100_00))  # type: ignore[attr-defined]
        fake.books.pay(binding.reference.removeprefix("first."), bind=False)
        state = await harness.banks[0].mandate_state(binding.reference)
        assert state.status is MandateStatus.REFUSED
        assert [transfer.amount_kopecks for transfer in state.transfers] == [100_00]

    async def test_a_mandate_that_the_payer_revoked_fails_as_such(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """Whether or not the method's state at YooKassa shows it, the charge does."""
        await harness.bank.bind(self.request(harness, 100_00))  # type: ignore[attr-defined]
        await harness.confirm(binding_id())
        state = await harness.banks[0].mandate_state(f"first.{fake.books.of_operation(binding_id())['id']}")
        fake.books.things[state.token.split(".")[1]]["_can_be_charged"] = False  # type: ignore[union-attr]
        charge = ChargeRequest(
            operation=PAY, reference=state.reference, token=state.token or "", amount_kopecks=1_00, purpose="x"
        )
        failed = await harness.banks[0].charge(charge)
        assert (failed.status, failed.failure) == (ChargeStatus.FAILED, "mandate_revoked")

    async def test_a_charge_that_waits_for_its_receipt_is_asked_for_again(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        await harness.bank.bind(self.request(harness, 100_00))  # type: ignore[attr-defined]
        await harness.confirm(binding_id())
        state = await harness.banks[0].mandate_state(f"first.{fake.books.of_operation(binding_id())['id']}")
        fake.books.charges_wait = True
        charge = ChargeRequest(
            operation=PAY, reference=state.reference, token=state.token or "", amount_kopecks=1_00, purpose="x"
        )
        waiting = await harness.banks[0].charge(charge)
        assert (waiting.status, waiting.check_after) == (ChargeStatus.PROCESSING, 10)

    async def test_a_shop_that_may_save_no_methods_still_takes_payments(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """A refusal, which lets the next bank bind; the gateway is as good as before."""
        told = {
            "type": "error",
            "id": "1",
            "code": "forbidden",
            "description": "This store can't make recurring payments",
        }
        for first in (100_00, None):
            fake.next(ProviderAnswer.of_json(told, 403), matching=is_write)
            with pytest.raises(Refused) as refused:
                await harness.banks[0].bind(self.request(harness, first))
            assert refused.value.reason == "forbidden"
        fake.next(ProviderAnswer.of_json(told, 403), matching=is_write)
        with pytest.raises(NotConfigured):
            await harness.banks[0].create_invoice(harness.request(PAY))

    async def test_mandates_are_unsupported_without_the_setting(self, fake: YooKassaFake, clock: VirtualClock) -> None:
        bank = bank_of(tools_of(clock), fake, mandates=False)
        assert not bank.capabilities.mandates
        with pytest.raises(NotSupported):
            await bank.revoke("first.1")
        await bank.close()


class TestPayouts:
    async def test_an_empty_balance_is_tried_again_under_another_key(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """It is no refusal: once there is money, the same operation is sent, once."""
        balance, fake.books.balance[GATEWAY] = fake.books.balance[GATEWAY], 0
        for _ in range(2):
            with pytest.raises(Unavailable) as poor:
                await harness.banks[0].remit(REMIT)
            assert poor.value.retry_after == 600
            assert await harness.bank.find_remittance(REMIT.operation) is None  # type: ignore[attr-defined]
        fake.books.balance[GATEWAY] = balance
        await harness.bank.remit(REMIT)  # type: ignore[attr-defined]
        await harness.bank.remit(REMIT)  # type: ignore[attr-defined]
        assert await harness.remitted() == 1000_00
        assert await harness.bank.find_remittance(REMIT.operation) is not None  # type: ignore[attr-defined]

    async def test_a_forgotten_count_of_tries_sends_nothing_twice(
        self, harness: YooKassaHarness, fake: YooKassaFake
    ) -> None:
        """A restored database asks under the first key again, which says that it is over."""
        balance, fake.books.balance[GATEWAY] = fake.books.balance[GATEWAY], 0
        with pytest.raises(Unavailable):
            await harness.banks[0].remit(REMIT)
        fake.books.balance[GATEWAY] = balance
        await harness.banks[0].remit(REMIT)
        await harness.forget()
        with pytest.raises(Unavailable):
            await harness.banks[0].remit(REMIT)
        await harness.banks[0].remit(REMIT)
        assert await harness.remitted() == 1000_00

    @pytest.mark.parametrize(("phone", "bank"), [("+79990000001", "bank100000009999"), ("+7999", "bank100000000111")])
    async def test_unknown_phone_or_bank_is_refused(self, harness: YooKassaHarness, phone: str, bank: str) -> None:
        with pytest.raises(Refused) as refused:
            await harness.banks[0].remit(msgspec.structs.replace(REMIT, phone=phone, bank_id=bank))
        assert refused.value.reason == "recipient"

    async def test_the_shop_s_key_pays_nobody_out(self, fake: YooKassaFake, clock: VirtualClock) -> None:
        bank = bank_of(tools_of(clock), fake, gateway=Shop(id=SHOP, key=KEY))
        with pytest.raises(NotConfigured):
            await bank.remit(REMIT)
        await bank.close()

    async def test_payouts_are_unsupported_without_a_gateway(self, fake: YooKassaFake, clock: VirtualClock) -> None:
        bank = bank_of(tools_of(clock), fake, gateway=None)
        assert not bank.capabilities.remittances
        with pytest.raises(NotSupported):
            await bank.remit(REMIT)
        await bank.close()

    async def test_the_members_of_sbp_are_listed(self, harness: YooKassaHarness) -> None:
        banks = await harness.banks[0].banks()
        assert ("bank100000000004", "Т-Банк", "044525225") in [(each.id, each.name, each.bic) for each in banks]


class TestShops:
    async def test_a_merchant_s_own_shop_gets_its_payments_and_its_refunds(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        fake.add_shop("200600", "live_another")
        shops = Shops(Shop(id=SHOP, key=KEY), {"acc_2": Shop(id="200600", key="live_another", owner="acc_2")})
        bank = YooKassaBank(tools_of(clock), shops, base_url=fake.api)
        request = msgspec.structs.replace(harness.request(PAY), account="acc_2")
        invoice = await bank.create_invoice(request)
        owner, _, theirs = invoice.reference.partition("/")
        assert (owner, fake.books.owners[theirs]) == ("acc_2", "200600")
        fake.books.pay(theirs)
        assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.PAID
        back = RefundRequest(operation=REF, reference=invoice.reference, amount_kopecks=1_00)
        await bank.refund(back)
        [sent] = await bank.refunds_since(clock.now())
        assert (sent.operation, sent.reference) == (REF, invoice.reference)
        await bank.close()

    async def test_a_merchant_s_wrong_key_is_no_word_about_all(
        self, harness: YooKassaHarness, fake: YooKassaFake, clock: VirtualClock
    ) -> None:
        shops = Shops(Shop(id=SHOP, key=KEY), {"acc_2": Shop(id="200600", key="live_wrong", owner="acc_2")})
        bank = YooKassaBank(tools_of(clock), shops, base_url=fake.api)
        with pytest.raises(Unavailable):
            await bank.create_invoice(msgspec.structs.replace(harness.request(PAY), account="acc_2"))
        await bank.create_invoice(harness.request(PAY))
        await bank.close()

    @pytest.mark.parametrize(("told", "match"), [({"test": True}, "demo"), ({"status": "disabled"}, "not enabled")])
    async def test_check_reports_a_shop_without_sbp(
        self, harness: YooKassaHarness, fake: YooKassaFake, told: dict[str, Any], match: str
    ) -> None:
        fake.next(ProviderAnswer.of_json({"account_id": SHOP, "status": "enabled", "test": False, **told}))
        with pytest.raises(NotConfigured, match=match):
            await harness.banks[0].check()


class TestNotifications:
    @pytest.mark.parametrize(
        "body",
        [
            {"type": "notification", "event": "deal.closed", "object": {"id": "dl-1"}},
            {"type": "notification", "event": "payment.succeeded", "object": {"id": "1", "metadata": {"order": "7"}}},
            {"type": "notification", "event": "payment.succeeded", "object": {"id": "1", "description": "cambistics"}},
        ],
        ids=["another kind", "another program's", "a likely word"],
    )
    async def test_foreign_notification_is_accepted_and_names_nothing(
        self, harness: YooKassaHarness, body: dict[str, Any]
    ) -> None:
        """Any other answer would make YooKassa repeat the notification for a day."""
        heard = await harness.banks[0].receive(_inbound(body))
        assert (heard.notifications, heard.status) == ((), 200)

    async def test_malformed_notification_is_forged(self, harness: YooKassaHarness) -> None:
        bodies: list[Any] = [{"event": "payment.succeeded", "object": {"id": "1"}}, {"type": "notification"}, [], "x"]
        for body in bodies:
            with pytest.raises(Forged):
                await harness.banks[0].receive(_inbound(body))


async def test_refused_connection_and_lost_answer_are_different_faults(
    harness: YooKassaHarness, fake: YooKassaFake
) -> None:
    """A refused connection certainly did nothing. After a complete request the outcome is unknown."""
    fake.next(ProviderFault.LOST_BEFORE, matching=is_write)
    with pytest.raises(OutcomeUnknown):
        await harness.banks[0].remit(REMIT)
    fake.be_away()
    with pytest.raises(Unavailable):
        await harness.banks[0].remit(REMIT)
    await fake.come_back()
    assert (await harness.banks[0].remit(REMIT)).status is RemittanceStatus.PROCESSING


def _inbound(body: Any) -> InboundNotification:
    return InboundNotification(headers={}, body=json.dumps(body).encode(), query={}, address="185.71.76.1")
