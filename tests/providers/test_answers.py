"""A provider's answer is checked once. An invalid one means an unknown outcome or a failed read, and never money."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.frontends.layers.guard import answers
from cambist.frontends.layers.guard.answers import check_answer, check_drawn, clean_answer
from cambist.frontends.layers.guard.guard import Guard
from cambist.frontends.layers.guard.values import InvalidAnswer
from cambist.frontends.layers.wrapping import OPERATIONS, Does
from cambist.frontends.telemetry.telemetry import outcome_of
from cambist.ports.bank import (
    Invoice,
    InvoiceKind,
    InvoiceState,
    InvoiceStatus,
    Notification,
    RefundState,
    RefundStatus,
    SentRefund,
    Transfer,
)
from cambist.ports.bank_simulator import Simulation
from cambist.ports.chain import Final, NotFound, UsdtTransfer
from cambist.ports.checking import Shortage
from cambist.ports.deposits import Deposit
from cambist.ports.faults import Fault, OutcomeUnknown, Unavailable
from cambist.ports.files import StoredFile
from cambist.ports.kyc import Check, CheckNotification, CheckStatus
from cambist.ports.mandates import Binding, ChargeState, ChargeStatus, MandateState, MandateStatus
from cambist.ports.members import MemberBank
from cambist.ports.notifications import Received
from cambist.ports.payouts import SentTransfer, SignedTransfer, TransferState
from cambist.ports.rates import RateQuote
from cambist.ports.receipts import ReceiptState, ReceiptStatus
from cambist.ports.remittances import RemittanceState, RemittanceStatus
from cambist.ports.reporting import ReportedEntry, ReportedKind, ReportedPage, ReportedState
from tests.apps import TestApp, open_test_app
from tests.providers_kit import inside
from tests.tables import table

AT = datetime(2026, 8, 8, 12, tzinfo=UTC)
HASH = "0" * 63 + "f"
ASKED = "asked"
"""The order with which every operation is called."""


def changed(record: Any, **fields: Any) -> Any:
    """The record with these fields, of whatever type they are."""
    return msgspec.structs.replace(record, **fields)


MONEY = Transfer(id="tr_1", amount_kopecks=100_00, at=AT, payer_name="Иван П.")
INVOICE = Invoice(reference="inv_1", payload="https://qr.example/1", link="https://qr.example/1", check_after=5.0)
PAID = InvoiceState(reference=ASKED, status=InvoiceStatus.PAID, transfers=(MONEY,))
CHARGED = ChargeState(reference="ch_1", status=ChargeStatus.PAID, transfer=MONEY)
MANDATE = MandateState(reference=ASKED, status=MandateStatus.ACTIVE, token="t", transfers=(MONEY,))
REFUND = RefundState(status=RefundStatus.FAILED, failure="no such card", check_after=0)
REMITTANCE = RemittanceState(status=RemittanceStatus.DONE)
WRITTEN = ReceiptState(status=ReceiptStatus.DONE)
CHECK = Check(reference=ASKED, status=CheckStatus.FORM, form_url="https://kyc.example/1", level=1)
DEPOSIT = Deposit(tx_hash=HASH, index=0, units=1, at=AT, is_final=True)
MOVED = UsdtTransfer(index=3, sender="TA", recipient="TB", units=5)
SIGNED = SignedTransfer(operation=ASKED, tx_hash=HASH, blob=b"x", expires_at=AT)
SENT = SentTransfer(signed=changed(SIGNED, blob=b""), address="TB", units=5)
SHORT = Shortage(of="tron", since=AT, told="1 of 2 nodes answer, and 2 have to agree")
QUOTE = RateQuote(rate=Decimal("81.5"), at=AT, source="market")

ENTRY = ReportedEntry(
    id="b-1", kind=ReportedKind.PAYMENT, state=ReportedState.DONE, moment=AT, amount_kopecks=1, operation="pay_1"
)

SOUND: Mapping[tuple[str, str], Any] = {
    ("bank", "create_invoice"): INVOICE,
    ("bank", "find_invoice"): INVOICE,
    ("bank", "invoice_state"): PAID,
    ("bank", "cancel_invoice"): None,
    ("bank", "refund"): REFUND,
    ("bank", "find_refund"): REFUND,
    ("bank", "refunds_since"): [SentRefund(operation="ref_1", reference="inv_1", amount_kopecks=1)],
    ("bank", "bind"): Binding(reference="m_1", link=None, payload=None),
    ("bank", "find_binding"): Binding(reference="m_1", link="https://bank.example/m", payload="m"),
    ("bank", "mandate_state"): MANDATE,
    ("bank", "charge"): CHARGED,
    ("bank", "find_charge"): CHARGED,
    ("bank", "revoke"): None,
    ("bank", "write_receipt"): WRITTEN,
    ("bank", "find_receipt"): WRITTEN,
    ("bank", "remit"): REMITTANCE,
    ("bank", "find_remittance"): REMITTANCE,
    ("bank", "banks"): [MemberBank(id="bank100000000004", name="Alfa", bic="044525593")],
    ("bank", "entries"): ReportedPage(entries=(ENTRY,), next_cursor="ENTRY-1"),
    ("bank", "receive"): Received(notifications=(Notification(operation="pay_1"),), body=b"OK"),
    ("bank", "search_invoice"): INVOICE,
    ("bank", "search_refund"): REFUND,
    ("bank", "search_binding"): Binding(reference="m_1", link=None, payload=None),
    ("bank", "search_charge"): CHARGED,
    ("bank", "search_remittance"): REMITTANCE,
    ("chain", "lookup"): Final((MOVED,)),
    ("deposits", "address"): "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE",
    ("deposits", "deposits"): [DEPOSIT, DEPOSIT],
    ("kyc", "register"): CHECK,
    ("kyc", "find_check"): CHECK,
    ("kyc", "search_check"): CHECK,
    ("kyc", "check_state"): CHECK,
    ("kyc", "receive"): Received(notifications=(CheckNotification(operation="kyc_1"),), status=204),
    ("payouts", "sign"): SIGNED,
    ("payouts", "broadcast"): None,
    ("payouts", "state"): TransferState.IN_BLOCK,
    ("payouts", "in_place"): SIGNED,
    ("payouts", "find"): SENT,
    ("payouts", "sent_since"): [SENT],
    ("rates", "quote"): QUOTE,
    ("receipts", "write_receipt"): WRITTEN,
    ("receipts", "find_receipt"): WRITTEN,
    ("receipts", "receive"): Received(notifications=(Notification(operation="rcp_1"),)),
    ("files", "stat"): StoredFile(key=ASKED, size=7),
    ("files", "remove"): None,
    ("alarms", "tell"): None,
    ("alarms", "tell_merchant"): None,
    **{(port, "check"): None for port in OPERATIONS},
    **{(port, "owns"): True for port in ("deposits", "payouts")},
    **{(port, "shortages"): [SHORT] for port in ("chain", "deposits", "payouts")},
}
LISTS = ("deposits", "refunds_since", "sent_since", "banks", "shortages")
UNSEEN = {"revoke", "cancel_invoice", "broadcast", "check", "stat", "remove", "tell", "tell_merchant"}
MAY_BE_NONE = UNSEEN | {operation for _, operation in SOUND if operation.startswith(("find", "search"))}
ALL = list(SOUND)


def check(port: str, operation: str, answer: Any) -> None:
    """Check the answer as the guard does."""
    answer, _ = clean_answer(port, operation, answer)
    check_answer(port, operation, answer, ((SIGNED if operation == "in_place" else ASKED,), {}))


def test_every_operation_has_a_valid_sample_answer() -> None:
    assert {(port, operation) for port, operations in OPERATIONS.items() for operation in operations} == set(ALL)


@table(("port", "operation"), ALL)
def test_valid_answer_passes(port: str, operation: str) -> None:
    check(port, operation, SOUND[port, operation])
    if operation in MAY_BE_NONE:
        check(port, operation, None)
    else:
        with pytest.raises(InvalidAnswer):
            check(port, operation, None)


@table("wrong", [5, "paid", b"", {"status": "paid"}, object(), (), [None], True, PAID.status])
@table(("port", "operation"), ALL)
def test_answer_of_another_type_is_invalid(port: str, operation: str, wrong: Any) -> None:
    of_the_type = {"address": isinstance(wrong, str), "owns": wrong is True}.get(operation, False)
    if of_the_type or (operation in LISTS and wrong == ()):
        return  # it is of the type
    with pytest.raises(InvalidAnswer):
        check(port, operation, wrong)


@table(
    "fields",
    [
        {"status": 199},
        {"status": 600},
        {"status": 204},
        {"body": b"x" * 65_537},
        {"body": "OK"},
        {"content_type": ""},
        {"content_type": "text/plain\r\nSet-Cookie: a"},
        {"content_type": "текст"},
        {"notifications": (Notification(operation="x" * 513),)},
        {"notifications": ("pay_1",)},
    ],
)
def test_impossible_reply_to_a_provider_is_invalid(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidAnswer):
        check("bank", "receive", changed(SOUND["bank", "receive"], **fields))


@table("kind", InvoiceKind)
def test_an_invoice_has_what_its_qr_says_where_it_has_a_qr(kind: InvoiceKind) -> None:
    sound = changed(INVOICE, kind=kind, payload="x" if kind is InvoiceKind.QR else None)
    check_drawn(sound)
    with pytest.raises(InvalidAnswer, match=r"invoice\.payload: is (missing|there)"):
        check_drawn(changed(sound, payload=None if kind is InvoiceKind.QR else "x"))


AMOUNTS = (0, -5, -(10**30), 10**13 + 1, 10**30, 100.0, "100", True, None, Decimal(100))
IDS = ("", " ", " x", "x" * 513, "x\n", "\ud800", None, 7, b"x")
MOMENTS = (
    None, "2026-08-08T12:00:00Z", 1_786_000_000, AT.replace(tzinfo=None), datetime(1999, 12, 31, tzinfo=UTC),
    datetime(2200, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime.max.replace(tzinfo=timezone(-timedelta(hours=12))),
)  # fmt: skip
STATUSES = (None, "", "paid", "PAID", 2, TransferState.FINAL)
PAUSES = ("5", -1, float("nan"), float("inf"), 10**30, True, Decimal(5))
TEXTS = (5, b"x", "x" * 4097, "a\x00b", "a\nb", "\udfff")
LINKS = (*TEXTS, "javascript:alert(1)", "https://bank.example/a b", "DATA:text/html,x")
UNITS = (0, -1, 10**18 + 1, 10**30, 1.0, "1", True, None)
HASHES = ("", HASH.upper(), "0x" + HASH[2:], HASH + "0", HASH[1:], "g" * 64, None, b"0" * 64)


RATES = (80, 80.5, "80", Decimal("NaN"), Decimal("inf"), None)


def of_kopecks(kopecks: Any) -> Any:
    return changed(MONEY, amount_kopecks=kopecks)


def in_money(**fields: Any) -> InvoiceState:
    return changed(PAID, transfers=(MONEY, changed(MONEY, **{"id": "tr_2", **fields})))  # type: ignore[no-any-return]


FIELDS: list[tuple[tuple[str, str], Any, tuple[Any, ...]]] = [
    (("bank", "create_invoice"), lambda value: changed(INVOICE, reference=value), IDS),
    (("bank", "create_invoice"), lambda value: changed(INVOICE, payload=value), ("", None, *TEXTS)),
    (("bank", "create_invoice"), lambda value: changed(INVOICE, link=value), (None, *LINKS)),
    (("bank", "create_invoice"), lambda value: changed(INVOICE, check_after=value), PAUSES),
    (("bank", "find_invoice"), lambda value: changed(INVOICE, reference=value), IDS),
    (("bank", "invoice_state"), lambda value: changed(PAID, reference=value), (*IDS, "of another")),
    (("bank", "invoice_state"), lambda value: changed(PAID, status=value), STATUSES),
    (("bank", "invoice_state"), lambda value: changed(PAID, transfers=value), ((), None, MONEY, "tr", (MONEY, MONEY))),
    (("bank", "invoice_state"), lambda value: in_money(id=value), IDS),
    (("bank", "invoice_state"), lambda value: in_money(amount_kopecks=value), AMOUNTS),
    (("bank", "invoice_state"), lambda value: in_money(at=value), MOMENTS),
    (("bank", "invoice_state"), lambda value: in_money(taken_back=value), (None, 0, "no")),
    (("bank", "refund"), lambda value: changed(REFUND, status=value), (*STATUSES, InvoiceStatus.PAID)),
    (("bank", "find_refund"), lambda value: changed(REFUND, check_after=value), PAUSES),
    (("bank", "bind"), lambda value: Binding(reference=value, link=None, payload=None), IDS),
    (("bank", "find_binding"), lambda value: Binding(reference="m", link=value, payload="m"), LINKS),
    (("bank", "mandate_state"), lambda value: changed(MANDATE, reference=value), (*IDS, "of another")),
    (("bank", "mandate_state"), lambda value: changed(MANDATE, status=value), STATUSES),
    (("bank", "mandate_state"), lambda value: changed(MANDATE, token=value), ("", *TEXTS)),
    (("bank", "mandate_state"), lambda value: changed(MANDATE, transfers=(of_kopecks(value),)), AMOUNTS),
    (("bank", "mandate_state"), lambda value: changed(MANDATE, transfers=(value, value)), (MONEY,)),
    (("bank", "charge"), lambda value: changed(CHARGED, reference=value), IDS),
    (("bank", "charge"), lambda value: changed(CHARGED, status=value), STATUSES),
    (("bank", "charge"), lambda value: changed(CHARGED, transfer=value), (None, (MONEY,), "tr")),
    (("bank", "find_charge"), lambda value: changed(CHARGED, transfer=of_kopecks(value)), AMOUNTS),
    (("bank", "remit"), lambda value: changed(REMITTANCE, status=value), STATUSES),
    (("bank", "write_receipt"), lambda value: changed(WRITTEN, status=value), STATUSES),
    (("bank", "find_receipt"), lambda value: changed(WRITTEN, status=value), STATUSES),
    (("bank", "find_remittance"), lambda value: changed(REMITTANCE, check_after=value), PAUSES),
    (("chain", "lookup"), lambda value: Final((changed(MOVED, units=value),)), UNITS),
    (("chain", "lookup"), lambda value: Final((changed(MOVED, index=value),)), (-1, None, "0", True)),
    (("chain", "lookup"), Final, (None, MOVED, "x")),
    (("deposits", "address"), lambda value: value, ("", " ", "T Q", "x" * 129, *TEXTS)),
    (("deposits", "deposits"), lambda value: [changed(DEPOSIT, units=value)], UNITS),
    (("deposits", "deposits"), lambda value: [changed(DEPOSIT, tx_hash=value)], HASHES),
    (("deposits", "deposits"), lambda value: [changed(DEPOSIT, at=value)], MOMENTS),
    (("deposits", "deposits"), lambda value: [changed(DEPOSIT, is_final=value)], (None, 1, "yes")),
    (("kyc", "register"), lambda value: changed(CHECK, reference=value), IDS),
    (("kyc", "find_check"), lambda value: changed(CHECK, status=value), STATUSES),
    (("kyc", "check_state"), lambda value: changed(CHECK, form_url=value), LINKS),
    (("kyc", "check_state"), lambda value: changed(CHECK, reference=value), ("of another",)),
    (("kyc", "check_state"), lambda value: changed(CHECK, level=value), (-1, "1", None, 10**30)),
    (("payouts", "sign"), lambda value: changed(SIGNED, operation=value), (*IDS, "of another")),
    (("payouts", "sign"), lambda value: changed(SIGNED, tx_hash=value), HASHES),
    (("payouts", "sign"), lambda value: changed(SIGNED, blob=value), (b"", "x", None)),
    # A transfer without an end has None there.
    (("payouts", "sign"), lambda value: changed(SIGNED, expires_at=value), MOMENTS[1:]),
    (("payouts", "in_place"), lambda value: changed(SIGNED, operation=value), (*IDS, "of another")),
    (("payouts", "in_place"), lambda value: changed(SIGNED, tx_hash=value), HASHES),
    (("payouts", "find"), lambda value: changed(SENT, units=value), UNITS),
    (("payouts", "find"), lambda value: changed(SENT, address=value), ("", "T Q", "Т", *TEXTS)),
    (("payouts", "find"), lambda value: changed(SENT, signed=changed(SIGNED, operation=value)), (*IDS, "of another")),
    (("payouts", "state"), lambda value: value, (None, "final", "", 1)),
    (("rates", "quote"), lambda value: changed(QUOTE, rate=value), RATES),
    (("rates", "quote"), lambda value: changed(QUOTE, rate=Decimal(value)), ("1e31", "-1e400", "1e-40")),
    (("rates", "quote"), lambda value: changed(QUOTE, at=value), MOMENTS),
]  # fmt: skip
"""For each operation: a sound answer, one field with a given value, and a class that the answer must not have."""

CASES = [
    pytest.param(*asked, build, value, id=f"{asked[1]}-{number}-{place}")
    for number, (asked, build, values) in enumerate(FIELDS)
    for place, value in enumerate(values)
]


@table(("port", "operation", "build", "value"), CASES)
def test_a_field_that_cannot_be_true_does_not_pass(port: str, operation: str, build: Any, value: Any) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        check(port, operation, build(value))
    if isinstance(value, str) and len(value.strip()) > 3:
        assert value not in str(caught.value), "what is wrong is told by its place alone"


@table(
    "answer",
    [
        changed(PAID, transfers=(changed(MONEY, amount_kopecks=1), changed(MONEY, id="tr_2", amount_kopecks=10**13))),
        changed(PAID, transfers=(changed(MONEY, taken_back=True),)),
        changed(PAID, transfers=(changed(MONEY, at=AT.astimezone(timezone(timedelta(hours=3)))),)),
        changed(PAID, status=InvoiceStatus.EXPIRED, transfers=()),
        changed(PAID, transfers=(changed(MONEY, payer_name="Anne-Marie O’Connor\u00a0Ünal"),)),
    ],
)
def test_unusual_but_valid_answer_passes(answer: Any) -> None:
    check("bank", "invoice_state", answer)
    check("chain", "lookup", NotFound())


ODD = [
    ("Ivan\nPetrov", "IvanPetrov"),
    ("\x1b[31mIvan", "[31mIvan"),
    ("\x9bIvan\x00", "Ivan"),
    ("Iv\u202ean\u2066\u200f", "Ivan"),
    ("Ivan\u2028\u2029", "Ivan"),
    ("Iv\udfffan", "Ivan"),
    (" Ivan\t", "Ivan"),
    ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ("x" * 100_000, "x" * 512),
    ("\n", None),
    ("", None),
    (5, None),
    (b"Ivan", None),
]
"""Texts from a provider that we only show, and the part that we keep."""

NULLABLE: list[tuple[tuple[str, str], Any, Any]] = [
    (("bank", "invoice_state"), lambda value: in_money(payer_name=value), lambda said: said.transfers[1].payer_name),
    (("bank", "invoice_state"), lambda value: in_money(payer_bank=value), lambda said: said.transfers[1].payer_bank),
    (
        ("bank", "invoice_state"),
        lambda value: in_money(sbp_operation_id=value),
        lambda said: said.transfers[1].sbp_operation_id,
    ),
    (("bank", "invoice_state"), lambda value: changed(PAID, failure=value), lambda said: said.failure),
    (("bank", "refund"), lambda value: changed(REFUND, failure=value), lambda said: said.failure),
    (("bank", "find_remittance"), lambda value: changed(REMITTANCE, failure=value), lambda said: said.failure),
    (
        ("bank", "find_charge"),
        lambda value: changed(CHARGED, transfer=changed(MONEY, payer_name=value)),
        lambda said: said.transfer.payer_name,
    ),
    (
        ("bank", "mandate_state"),
        lambda value: changed(MANDATE, transfers=(changed(MONEY, payer_name=value),)),
        lambda said: said.transfers[0].payer_name,
    ),
    (("kyc", "check_state"), lambda value: changed(CHECK, account_number=value), lambda said: said.account_number),
]


@table(("asked", "build", "read"), NULLABLE)
def test_shown_text_is_cleaned_and_decides_nothing(asked: tuple[str, str], build: Any, read: Any) -> None:
    for said, kept in ODD:
        answer, odd = clean_answer(*asked, build(said))
        assert read(answer) == kept
        assert len(odd) == (said != kept)
        check(*asked, build(said))


@table(
    ("asked", "build", "read"),
    [
        (("rates", "quote"), lambda value: changed(QUOTE, source=value), lambda said: said.source),
        (
            ("chain", "lookup"),
            lambda value: Final((changed(MOVED, sender=value),)),
            lambda said: said.transfers[0].sender,
        ),
        (("bank", "banks"), lambda value: [MemberBank(id="bank1", name=value)], lambda said: said[0].name),
    ],
)
def test_shown_text_that_must_be_there_is_cleaned_too(asked: tuple[str, str], build: Any, read: Any) -> None:
    for said, kept in ODD:
        if isinstance(said, str):
            assert read(clean_answer(*asked, build(said))[0]) == (kept or "")
            check(*asked, build(said))
        else:
            with pytest.raises(InvalidAnswer):
                check(*asked, build(said))


@table(("port", "operation"), ALL)
def test_answer_without_odd_text_is_handed_on_as_it_is(port: str, operation: str) -> None:
    answer, odd = clean_answer(port, operation, SOUND[port, operation])
    assert answer is SOUND[port, operation]
    assert odd == []


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_MANY", 2)
    check("deposits", "deposits", [DEPOSIT] * 2)
    with pytest.raises(InvalidAnswer):
        check("deposits", "deposits", [DEPOSIT] * 3)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals(), st.datetimes(),
    st.sampled_from([MONEY, PAID, CHARGED, DEPOSIT, RefundStatus.DONE, object(), (MONEY,), [DEPOSIT], (None,)]),
)  # fmt: skip


@given(data=st.data(), asked=st.sampled_from(ALL), junk=JUNK)
def test_any_answer_either_passes_or_is_invalid(data: st.DataObject, asked: tuple[str, str], junk: Any) -> None:
    """Any value in any field is either accepted and has its declared type, or the answer is invalid."""
    answer = SOUND[asked]
    if isinstance(answer, msgspec.Struct):
        field = data.draw(st.sampled_from(answer.__struct_fields__))
        answer = changed(answer, **{field: junk})
    else:
        answer = junk
    try:
        check(*asked, answer)
    except InvalidAnswer:
        return
    for money in [*getattr(answer, "transfers", ()), getattr(answer, "transfer", None)]:
        assert money is None or getattr(money, "amount_kopecks", 0) > 0 or money.units > 0


@table(("port", "operation"), ALL)
async def test_caller_gets_the_fault_with_what_is_known(
    caplog: pytest.LogCaptureFixture, port: str, operation: str
) -> None:
    async def garbage(*_: Any) -> Any:
        return {"paid": -5, "payer": "IVAN PETROV"}

    adapter = type("Provider", (), {"name": "theirs", operation: garbage})()
    guarded: Any = Guard(VirtualClock()).over(port, adapter)
    caplog.clear()
    with caplog.at_level(logging.ERROR), pytest.raises(Fault) as caught:
        await getattr(guarded, operation)(ASKED)
    writes = OPERATIONS[port][operation] is Does.WRITE
    assert type(caught.value) is (OutcomeUnknown if writes else Unavailable)
    assert outcome_of(caught.value) == "garbage"
    assert caplog.messages == [f"{port} theirs: {operation}: garbage: answer: is of type dict"]


class TestDrawing:
    """A drawn invoice must be possible; an impossible one is ignored."""

    @table("drawn", [INVOICE, None])
    def test_valid_answer_passes(self, drawn: Any) -> None:
        check_drawn(drawn)

    @table("drawn", [changed(INVOICE, reference=""), changed(INVOICE, payload=7), "invoice"])
    def test_impossible_invoice_is_requested_from_the_bank_instead(self, drawn: Any) -> None:
        bank: Any = type("Theirs", (), {"name": "theirs", "draw_invoice": lambda *_: drawn})()
        assert Guard(VirtualClock()).over("bank", bank).draw_invoice(ASKED) is None
        assert Guard(VirtualClock(), own=(type(bank),)).over("bank", bank).draw_invoice(ASKED) is drawn


class TestPayment:
    """An invalid answer moves no payment, and a later valid one does."""

    SAID: tuple[list[Transfer], ...] = (
        [changed(MONEY, amount_kopecks=value) for value in (-5, 0, 10**30)],
        [changed(MONEY, at=datetime(1970, 1, 1, tzinfo=UTC))],
        [],
    )

    @table("transfers", [*([one] for one in SAID[0]), *SAID[1:]])
    async def test_money_that_cannot_be_is_none(self, transfers: list[Transfer]) -> None:
        async with open_test_app() as app:
            payment = await app.created()
            bank = inside(app.ports.banks.named("simulator-test"))
            usual = bank.invoice_state

            async def garbage(reference: str) -> InvoiceState:
                return InvoiceState(reference=reference, status=InvoiceStatus.PAID, transfers=tuple(transfers))

            bank.invoice_state = garbage
            with pytest.raises(Unavailable):
                await app.told(payment["id"], Simulation(status=InvoiceStatus.PAID))
            assert await self.seen(app, payment["id"]) == (PaymentStatus.PENDING, 0)
            bank.invoice_state = usual
            await app.work(15 * 60)
            assert await self.seen(app, payment["id"]) == (PaymentStatus.PAID, 1)

    async def test_odd_name_of_the_payer_delays_no_payment(self, caplog: pytest.LogCaptureFixture) -> None:
        async with open_test_app() as app:
            payment = await app.created()
            money = changed(MONEY, at=app.clock.now(), payer_name="\x1bIvan\nPetrov\u202e")

            async def says(reference: str) -> InvoiceState:
                return InvoiceState(reference=reference, status=InvoiceStatus.PAID, transfers=(money,))

            inside(app.ports.banks.named("simulator-test")).invoice_state = says
            caplog.clear()
            for _ in range(3):
                await app.told(payment["id"], Simulation(status=InvoiceStatus.PAID))
            assert await self.seen(app, payment["id"]) == (PaymentStatus.PAID, 1)
            assert (await app.get(f"/payments/{payment['id']}")).json()["payer_name"] == "IvanPetrov"
            [line] = [each.getMessage() for each in caplog.records if "odd text" in each.getMessage()]
            assert line.endswith("invoice_state: odd text: cleaned, the rest of the answer counts: payer_name")

    async def test_impossible_invoice_is_an_unknown_outcome_and_is_polled(self) -> None:
        async with open_test_app(test_banks=("simulator-asked",)) as app:
            [name] = app.ports.banks.order["test"]
            bank = inside(app.ports.banks.named(name))
            usual, asked = bank.create_invoice, []

            async def garbage(request: Any) -> Any:
                asked.append(request.operation)
                return changed(await usual(request), reference=10**30)

            bank.create_invoice = garbage
            key = "0b3c2f9e-56a7-4f0e-9d0a-6f1f6b1b7c11"
            for _ in range(2):
                assert (await app.create(key=key)).status_code == 502
            await app.work(60)
            stored = await app.payment(asked[0])
            assert (len(asked), stored.status, stored.bank_reference is not None) == (1, PaymentStatus.PENDING, True)

    @staticmethod
    async def seen(app: TestApp, payment_id: str) -> tuple[PaymentStatus, int]:
        events = await app.events(payment_id)
        return (await app.payment(payment_id)).status, len(events)
