"""T-Bank's adapter beyond the contract of banks: orders that exist twice, charges, notifications, terminals of
merchants (docs/providers/tbank.md)."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.tbank.adapter import TBank
from cambist.adapters.bank.tbank.notifications import NETWORKS
from cambist.adapters.bank.tbank.references import order_id
from cambist.adapters.bank.tbank.terminals import Terminal, read_terminals
from cambist.adapters.clock import VirtualClock
from cambist.frontends.conformance.operation_ids import binding_id, operation_id
from cambist.ports import ProviderNote
from cambist.ports.bank import InvoiceStatus, RefundRequest
from cambist.ports.faults import Forged, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.mandates import (
    MANDATE_REVOKED,
    BindingRequest,
    ChargeRequest,
    ChargeStatus,
    MandateState,
    MandateStatus,
)
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.providers.tbank.fake import PASSWORD, TERMINAL, TBankFake, sign
from tests.providers.tbank.harness import TBankHarness, open_harness, told

PAY, OTHER, CHARGE = operation_id("pay", 1), operation_id("pay", 2), operation_id("pay", 7)
BINDING = binding_id()


@pytest.fixture
async def harness() -> AsyncIterator[TBankHarness]:
    async with open_harness() as opened:
        yield opened


def calls(harness: TBankHarness) -> Counter[str]:
    """Return how often each method was called since the last time."""
    counted = Counter(request.path.rpartition("/")[2] for request in harness.fake.requests)
    harness.fake.requests.clear()
    return counted


def by(method: str) -> Any:
    def matches(request: ProviderRequest) -> bool:
        return request.path == f"/v2/{method}"

    return matches


def binding(harness: TBankHarness, first: int | None = None) -> BindingRequest:
    due = harness.clock.now() + timedelta(hours=1)
    return BindingRequest(operation=BINDING, first_charge_kopecks=first, purpose="Coffee club", expires_at=due)


async def bound(harness: TBankHarness, first: int | None = None) -> MandateState:
    made = await harness.tbank.bind(binding(harness, first))
    await harness.confirm(BINDING)
    return await harness.tbank.mandate_state(made.reference)


def debit(mandate: MandateState, operation: str = CHARGE) -> ChargeRequest:
    return ChargeRequest(
        operation=operation,
        reference=mandate.reference,
        token=mandate.token or "",
        amount_kopecks=250_00,
        purpose="Coffee club",
    )


class TestCalls:
    """The numbers of calls in docs/providers/tbank.md "Calls"."""

    async def test_calls_of_a_payment_and_its_refund(self, harness: TBankHarness) -> None:
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        assert calls(harness) == {"Init": 1, "GetQr": 1}
        await harness.pay(PAY, invoice, 100_00)
        await harness.tbank.invoice_state(invoice.reference)
        assert calls(harness) == {"GetState": 1, "CheckOrder": 1}
        await harness.tbank.invoice_state(invoice.reference)
        assert calls(harness) == {"GetState": 1}
        await harness.tbank.refund(RefundRequest(operation="ref", reference=invoice.reference, amount_kopecks=100_00))
        assert calls(harness) == {"GetState": 1, "GetQrState": 1, "Cancel": 1}

    async def test_calls_of_a_charge(self, harness: TBankHarness) -> None:
        mandate = await bound(harness)
        calls(harness)
        await harness.tbank.charge(debit(mandate))
        assert calls(harness) == {"CheckOrder": 1, "Init": 1, "ChargeQr": 1, "GetState": 2}


class TestOrders:
    async def test_one_payment_is_shown_if_an_order_exists_twice(self, harness: TBankHarness) -> None:
        """On some terminals a second Init of an OrderId makes a second payment: the recorded one counts."""
        harness.books.takes_orders_twice = True
        both = (harness.tbank, harness.another())
        made = await asyncio.gather(*(bank.create_invoice(harness.request(PAY)) for bank in both * 3))
        assert len({(each.reference, each.link) for each in made}) == 1
        shown = [each for each in harness.books.payments.values() if each.qr is not None]
        assert len(shown) == 1, "nobody can pay the other one"

    async def test_paid_one_of_two_payments_of_an_order_is_found(self, harness: TBankHarness) -> None:
        """After the notes were lost, too."""
        harness.books.takes_orders_twice = True
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        await harness.pay(PAY, invoice, 100_00)
        paid = harness.payment(PAY)
        for _ in range(2):
            harness.books.open(TERMINAL, paid.order_id, 100_00, paid.due, recurrent=False, text="")
        await harness.forget()
        found = await harness.tbank.search_invoice(harness.request(PAY), harness.clock.now())
        assert found is not None
        assert found.reference == invoice.reference

    async def test_one_whose_qr_was_lost_gets_it_when_it_is_found(self, harness: TBankHarness) -> None:
        harness.fake.next(ProviderFault.LOST_AFTER, matching=by("GetQr"))
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.create_invoice(harness.request(PAY))
        found = await harness.another().search_invoice(harness.request(PAY), harness.clock.now())
        assert found is not None
        assert found.link == harness.payment(PAY).qr

    async def test_ended_invoice_is_reported_as_expired(self, harness: TBankHarness) -> None:
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        await harness.pass_time(timedelta(minutes=16))
        assert (await harness.tbank.invoice_state(invoice.reference)).status is InvoiceStatus.EXPIRED

    async def test_reason_of_a_failure_is_reported(self, harness: TBankHarness) -> None:
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        harness.books.reject(harness.payment(PAY), "5060")
        await harness.pass_time(timedelta(minutes=15))
        state = await harness.tbank.invoice_state(invoice.reference)
        assert (state.status, state.failure) == (InvoiceStatus.FAILED, "insufficient_funds")

    async def test_rejected_payment_stays_open_while_its_qr_lives(self, harness: TBankHarness) -> None:
        """T-Bank does not say whether a payer may try again; a first try that failed may be followed by money."""
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        harness.books.reject(harness.payment(PAY), "5060")
        calls(harness)
        state = await harness.tbank.invoice_state(invoice.reference)
        assert (state.status, state.failure) == (InvoiceStatus.OPEN, None)
        assert calls(harness) == {"GetState": 1}
        await harness.pass_time(timedelta(minutes=14))
        await harness.pay(PAY, invoice, 100_00)
        state = await harness.tbank.invoice_state(invoice.reference)
        assert (state.status, len(state.transfers)) == (InvoiceStatus.PAID, 1)

    async def test_rejected_payment_whose_deadline_is_forgotten_has_failed(self, harness: TBankHarness) -> None:
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        harness.books.reject(harness.payment(PAY))
        await harness.forget()
        assert (await harness.tbank.invoice_state(invoice.reference)).status is InvoiceStatus.FAILED

    async def test_money_says_its_number_in_the_payment_system(self, harness: TBankHarness) -> None:
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        await harness.pay(PAY, invoice, 100_00)
        [transfer] = (await harness.tbank.invoice_state(invoice.reference)).transfers
        assert transfer.sbp_operation_id == harness.payment(PAY).sbp_id

    @pytest.mark.parametrize(("code", "fault"), [("3001", NotConfigured), ("3016", Refused), ("999", OutcomeUnknown)])
    async def test_an_error_of_the_qr_is_the_invoice_s(
        self, harness: TBankHarness, code: str, fault: type[Exception]
    ) -> None:
        said = ProviderAnswer.of_json({"Success": False, "ErrorCode": code, "Message": "Нет."})
        harness.fake.next(said, matching=by("GetQr"))
        with pytest.raises(fault):
            await harness.tbank.create_invoice(harness.request(PAY))


class TestCharges:
    async def test_charge_opened_and_not_sent_is_absent_and_charged_once(self, harness: TBankHarness) -> None:
        """The process died between Init and ChargeQr."""
        mandate = await bound(harness)
        held = harness.fake.hold_next(matching=by("ChargeQr"), done=False)
        sending = asyncio.ensure_future(harness.tbank.charge(debit(mandate)))
        await held.arrived()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert await harness.another().search_charge(debit(mandate), harness.clock.now()) is None
        assert (await harness.another().charge(debit(mandate))).status is ChargeStatus.PROCESSING
        await held.release()  # the first one arrives late: T-Bank charges a payment once
        await harness.finish_charges()
        assert harness.books.debited == [(harness.payment(CHARGE).id, 250_00)]

    async def test_a_lost_init_is_asked_for(self, harness: TBankHarness) -> None:
        mandate = await bound(harness)
        harness.fake.next(ProviderFault.LOST_AFTER, matching=by("Init"))
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.charge(debit(mandate))
        await harness.another().charge(debit(mandate))
        await harness.finish_charges()
        assert len(harness.books.debited) == 1

    async def test_one_of_two_payments_of_an_order_is_charged(self, harness: TBankHarness) -> None:
        harness.books.takes_orders_twice = True
        mandate = await bound(harness)
        both = (harness.tbank, harness.another())
        await asyncio.gather(*(bank.charge(debit(mandate)) for bank in both * 2))
        await harness.finish_charges()
        assert len(harness.books.debited) == 1

    @pytest.mark.parametrize(("code", "wait"), [("3042", 3600.0), ("3041", 86400.0)])
    async def test_a_limit_of_the_payment_system_was_certainly_not_executed(
        self, harness: TBankHarness, code: str, wait: float
    ) -> None:
        mandate = await bound(harness)
        harness.fake.next(ProviderAnswer.of_json({"Success": False, "ErrorCode": code}), matching=by("ChargeQr"))
        with pytest.raises(Unavailable) as limit:
            await harness.tbank.charge(debit(mandate))
        assert limit.value.retry_after == wait
        assert await harness.tbank.search_charge(debit(mandate), harness.clock.now()) is None
        await harness.tbank.charge(debit(mandate))
        await harness.finish_charges()
        assert len(harness.books.debited) == 1

    async def test_mandate_is_reported_as_it_stands_at_t_bank(self, harness: TBankHarness) -> None:
        mandate = await bound(harness)
        await harness.lose_mandate(BINDING)
        failed = await harness.tbank.charge(debit(mandate))
        assert (failed.status, failed.failure) == (ChargeStatus.FAILED, MANDATE_REVOKED)
        assert (await harness.tbank.mandate_state(mandate.reference)).status is MandateStatus.LOST

    async def test_token_is_compared_with_t_banks_without_notes(self, harness: TBankHarness) -> None:
        mandate = await bound(harness)
        await harness.forget()
        with pytest.raises(Refused):
            await harness.tbank.charge(msgspec.structs.replace(debit(mandate), token="another"))
        assert (await harness.tbank.charge(debit(mandate))).status is ChargeStatus.PROCESSING

    async def test_no_token_is_noted(self, harness: TBankHarness) -> None:
        mandate = await bound(harness)
        await harness.tbank.charge(debit(mandate))
        async with harness.storage.unit() as unit:
            kept = b"".join(note.body for note in await unit[ProviderNote].find())
        assert mandate.token
        assert mandate.token.encode() not in kept

    async def test_binding_whose_first_charge_was_rejected_waits_while_its_qr_lives(
        self, harness: TBankHarness
    ) -> None:
        made = await harness.tbank.bind(binding(harness, 100_00))
        harness.books.reject(harness.payment(BINDING), "5060")
        assert (await harness.tbank.mandate_state(made.reference)).status is MandateStatus.OPEN
        await harness.pass_time(timedelta(days=1))
        state = await harness.tbank.mandate_state(made.reference)
        assert (state.status, state.failure) == (MandateStatus.REFUSED, "insufficient_funds")

    async def test_a_terminal_without_bindings_binds_nobody(self, harness: TBankHarness) -> None:
        """GetQr of a recurrent payment has no RequestKey where the option is off."""
        harness.books.binds = False
        with pytest.raises(Refused):
            await harness.tbank.bind(binding(harness, 100_00))


class TestNotifications:
    async def test_t_bank_reads_ok_and_nothing_else(self, harness: TBankHarness) -> None:
        await harness.tbank.create_invoice(harness.request(PAY))
        heard = await harness.tbank.receive(await harness.notification(PAY))
        assert (heard.status, heard.body) == (200, b"OK")
        assert [each.operation for each in heard.notifications] == [PAY]

    async def test_one_of_a_refund_names_it_too(self, harness: TBankHarness) -> None:
        harness.books.refunds_later = True
        invoice = await harness.tbank.create_invoice(harness.request(PAY))
        await harness.pay(PAY, invoice, 100_00)
        await harness.tbank.refund(RefundRequest(operation="ref", reference=invoice.reference, amount_kopecks=100_00))
        await harness.finish_refunds()
        heard = await harness.tbank.receive(await harness.notification(PAY))
        assert [each.operation for each in heard.notifications] == [PAY, "ref"]

    async def test_a_binding_s_has_no_order_and_names_it_all_the_same(self, harness: TBankHarness) -> None:
        """It carries its RequestKey, which is a number in answers and a text here."""
        await harness.tbank.bind(binding(harness))
        await harness.confirm(BINDING)
        heard = await harness.tbank.receive(told(harness.fake.binding_notification(await harness.key(BINDING))))
        assert ([each.operation for each in heard.notifications], heard.body) == ([BINDING], b"OK")

    async def test_foreign_notification_is_accepted_and_names_nothing(self, harness: TBankHarness) -> None:
        await harness.tbank.create_invoice(harness.request(PAY))
        foreign = harness.fake.notification(harness.payment(PAY), OrderId="of another program")
        heard = await harness.tbank.receive(told(foreign))
        assert (heard.notifications, heard.body) == ((), b"OK")

    @pytest.mark.parametrize(
        "change",
        [{"Amount": 1}, {"Success": False}, {"Status": "REFUNDED"}, {"TerminalKey": "1691DEMO"}, {"Token": None}],
    )
    async def test_a_changed_one_is_forged(self, harness: TBankHarness, change: dict[str, Any]) -> None:
        await harness.tbank.create_invoice(harness.request(PAY))
        body = {**json.loads(harness.fake.notification(harness.payment(PAY))), **change}
        with pytest.raises(Forged):
            await harness.tbank.receive(told(json.dumps(body).encode()))

    async def test_numbers_count_as_they_are_spelt(self, harness: TBankHarness) -> None:
        """100.00 and 100 are two texts, and two Tokens."""
        await harness.tbank.create_invoice(harness.request(PAY))
        fields = {"TerminalKey": TERMINAL, "OrderId": order_id(PAY), "Status": "CONFIRMED", "Amount": "100.00"}
        signed = json.dumps({**fields, "Token": sign(fields, PASSWORD)}).replace('"100.00"', "100.00")
        assert (await harness.tbank.receive(told(signed.encode()))).notifications
        with pytest.raises(Forged):
            await harness.tbank.receive(told(signed.replace("100.00", "100").encode()))

    def test_the_networks_are_the_published_ones(self) -> None:
        published = ["91.194.226.0/23", "212.49.24.0/24"]
        published += [f"91.218.{number}.0/24" for number in range(132, 136)]
        published += [f"212.233.{number}.0/24" for number in range(80, 84)]
        ours = [ip_network(each) for each in NETWORKS]
        assert all(any(ip_network(each).subnet_of(our) for our in ours) for each in published)  # type: ignore[arg-type]
        assert sum(each.num_addresses for each in ours) == sum(ip_network(each).num_addresses for each in published)


MERCHANTS = f"""
[acc_1]
terminal_key = "1691"
password = "first"

[shop_2]
terminal_key = "{TERMINAL}"
password = "{PASSWORD}"
"""


class TestTerminals:
    async def test_each_merchant_uses_its_own_terminal_and_later_calls_follow(self, tmp_path: Path) -> None:
        path = tmp_path / "merchants.toml"
        path.write_text(MERCHANTS)
        clock = VirtualClock()
        async with TBankFake(clock, {"1691": "first", TERMINAL: PASSWORD}) as fake:
            harness = TBankHarness(clock, fake)
            bank = TBank(harness.tools, terminal=None, by_owner=read_terminals(path), base_url=fake.url)
            asked = msgspec.structs.replace(harness.request(PAY), account="acc_1")
            first = await bank.create_invoice(asked)
            second = await bank.create_invoice(
                msgspec.structs.replace(harness.request(OTHER), account="acc_1", shop="shop_2")
            )
            assert [each.reference.partition("/")[0] for each in (first, second)] == ["1691", TERMINAL]
            assert (await bank.invoice_state(first.reference)).status is InvoiceStatus.OPEN
            heard = await bank.receive(told(fake.notification(harness.payment(PAY))))
            assert [each.operation for each in heard.notifications] == [PAY]
            await harness.forget()
            found = await bank.search_invoice(asked, clock.now())
            assert found is not None
            assert found.reference == first.reference
            with pytest.raises(Refused):
                await bank.create_invoice(msgspec.structs.replace(harness.request(CHARGE), account="acc_9"))
            await bank.check()
            for each in (bank, *harness.banks):
                await each.close()

    @pytest.mark.parametrize(
        "text",
        [
            "password = 1",
            "[acc_1]\nterminal_key = 'x'",
            "[acc_1]\nterminal_key = 'x'\npassword = 'a secret'\nother = 'y'",
            "[acc_1\npassword = 'a secret'",
            "[acc_1]\nterminal_key = 'not a key'\npassword = 'a secret'",
            "[a]\nterminal_key = 'x'\npassword = 'a secret'\n[b]\nterminal_key = 'x'\npassword = 'another'",
            "",
        ],
    )
    async def test_a_file_that_is_wrong_stops_the_start_and_is_not_quoted(
        self, harness: TBankHarness, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "merchants.toml"
        path.write_text(text)
        with pytest.raises(NotConfigured) as wrong:
            TBank(harness.tools, terminal=None, by_owner=read_terminals(path))
        assert "secret" not in str(wrong.value)

    async def test_a_terminal_that_is_gone_takes_the_bank_from_nobody(self, harness: TBankHarness) -> None:
        with pytest.raises(Unavailable):
            await harness.tbank.invoice_state("1691/1/100")

    async def test_rejected_credentials_of_a_merchant_are_unavailable(self, harness: TBankHarness) -> None:
        wrong = Terminal(key=TERMINAL, password="x")
        bank = TBank(harness.tools, terminal=None, by_owner={"acc_1": wrong}, base_url=harness.fake.url)
        with pytest.raises(Unavailable):
            await bank.create_invoice(msgspec.structs.replace(harness.request(PAY), account="acc_1"))
        with pytest.raises(NotSupported):
            await bank.bind(binding(harness))
        await bank.close()

    async def test_check_reports_credentials_that_t_bank_rejects(self, harness: TBankHarness) -> None:
        wrong = TBank(harness.tools, terminal=Terminal(key=TERMINAL, password="x"), base_url=harness.fake.url)
        with pytest.raises(NotConfigured):
            await wrong.check()
        await wrong.close()
        await harness.tbank.check()
        assert harness.tbank.clock_skew is None or isinstance(harness.tbank.clock_skew, float)

    def test_address_of_the_bank_is_https_or_of_this_machine(self, harness: TBankHarness) -> None:
        with pytest.raises(NotConfigured):
            TBank(harness.tools, terminal=Terminal(key="x", password="y"), base_url="http://securepay.tinkoff.ru")
        assert "y" not in repr(Terminal(key="x", password="y"))
