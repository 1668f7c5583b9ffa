"""Raiffeisenbank's wire format: amounts, texts and numbers as the bank wants them, and the meaning of its words."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import msgspec

from cambist.adapters.bank.raiffeisen import wire
from cambist.adapters.bank.raiffeisen.errors import code_of, is_absence, of_question, of_write
from cambist.adapters.provider_http import Answer
from cambist.ports import Fault, InvoiceStatus, NotConfigured, OutcomeUnknown, Refused, Unavailable, short_operation
from tests.tables import table


class TestAmounts:
    """Kopecks to the text of a number and back, by no float."""

    @table(
        ("kopecks", "text"),
        [(1, "0.01"), (10, "0.10"), (100_00, "100.00"), (490_01, "490.01"), (9_007_199_254_740_993, None)],
    )
    def test_are_numbers_with_two_digits(self, kopecks: int, text: str | None) -> None:
        expected = text or f"{kopecks // 100}.{kopecks % 100:02}"
        assert wire.encoded({"amount": wire.roubles(kopecks)}) == b'{"amount":%s}' % expected.encode()

    @table(
        ("text", "kopecks"),
        [
            *(("10", 10_00), ("10.0", 10_00), ("10.00", 10_00), ("1E+1", 10_00), ("0.01", 1), ("101.01", 101_01)),
            *(("0.29", 29), ("1.005", None), ("1e400", None), ("1e-400", None), ("-5", -5_00)),
        ],
    )
    def test_are_read_however_they_are_spelt(self, text: str, kopecks: int | None) -> None:
        said = msgspec.json.decode(f'{{"refundStatus": "x", "amount": {text}}}', type=wire.RefundInfo)
        assert wire.kopecks(said.amount) == kopecks

    @table("text", ["NaN", "Infinity", "-Infinity"])
    def test_are_numbers(self, text: str) -> None:
        assert wire.kopecks(Decimal(text)) is None


class TestTexts:
    """The bank takes ASCII, Russian letters without Ё, and №, up to 140 or 185 characters."""

    @table(
        ("text", "spelt"),
        [
            ("Заказ №1 «Ёлка»", 'Заказ №1 "Елка"'),
            ("Coffee ☕ club 😀", "Coffee club"),
            ("490 ₽ — срок…", "490 руб. - срок..."),
            ("йод, Йошкар-Ола", "йод, Йошкар-Ола"),
            ("café ﬁne ½", "cafe fine 12"),
            ("a\n\tb\u00a0\u200bc", "a b c"),
        ],
    )
    def test_are_spelt_in_the_bank_s_alphabet(self, text: str, spelt: str) -> None:
        assert wire.spelled(text, 140) == spelt

    @table("text", ["", "😀", "\u200b", " "])
    def test_text_without_a_valid_character_is_left_out(self, text: str) -> None:
        assert wire.spelled(text, 140) is None

    def test_are_cut_after_they_are_spelt(self) -> None:
        assert wire.spelled("…" * 100, 140) == "." * 140


class TestNumbers:
    """Our operation ids, where the bank takes them."""

    @table("operation", ["pay_0198c3f2-7d1a-7e4b-9f60-000000000001", "a", "ref_1.b-C"])
    def test_are_our_ids(self, operation: str) -> None:
        assert wire.number_of(operation) == operation

    @table("operation", ["exch_0198c3f2-7d1a-7e4b-9f60-000000000001", "exch_1/1", "sub_1:2", "я"])
    def test_are_digests_of_what_is_longer_or_has_other_characters(self, operation: str) -> None:
        assert wire.number_of(operation) == short_operation(operation)


@table(
    ("moment", "text"),
    [
        (datetime(2026, 11, 22, 11, tzinfo=UTC), "2026-11-22T14:00:00+03:00"),
        (datetime(2026, 11, 22, 11, 0, 0, 1, tzinfo=UTC), "2026-11-22T14:00:01+03:00"),
        (datetime(2026, 11, 22, 23, 30, tzinfo=timezone(timedelta(hours=5))), "2026-11-22T21:30:00+03:00"),
    ],
)
def test_moment_is_sent_in_seconds_rounded_up(moment: datetime, text: str) -> None:
    assert wire.wire_moment(moment) == text


@table(
    "said",
    [
        *("2026-11-22T14:00:00+03:00", "2026-11-22T14:00:00+0300", "2026-11-22T11:00:00.000000000Z"),
        *("2026-11-22T14:00:00", "2026-11-22T14:00:00+03:00[Europe/Moscow]"),
    ],
)
def test_a_moment_is_read_however_it_is_spelt(said: str) -> None:
    assert wire.read_moment(said) == datetime(2026, 11, 22, 11, tzinfo=UTC)


@table(
    ("payment", "qr", "status"),
    [
        ("NO_INFO", "NEW", InvoiceStatus.OPEN),
        ("NO_INFO", "INACTIVE", InvoiceStatus.OPEN),
        ("NO_INFO", "IN_PROGRESS", InvoiceStatus.PROCESSING),
        ("NO_INFO", "PAID", InvoiceStatus.PROCESSING),
        ("NO_INFO", "EXPIRED", InvoiceStatus.EXPIRED),
        ("NO_INFO", "CANCELLED", InvoiceStatus.CANCELLED),
        ("NO_INFO", "NEVER_HEARD_OF", InvoiceStatus.PROCESSING),
        ("DECLINED", "NEW", InvoiceStatus.OPEN),
        ("DECLINED", "EXPIRED", InvoiceStatus.FAILED),
        ("DECLINED", "CANCELLED", InvoiceStatus.FAILED),
        ("SUCCESS", "", InvoiceStatus.PAID),
        ("IN_PROGRESS", "", InvoiceStatus.PROCESSING),
        ("NEVER_HEARD_OF", "", InvoiceStatus.PROCESSING),
    ],
)
def test_payment_and_qr_say_how_an_invoice_stands(payment: str, qr: str, status: InvoiceStatus) -> None:
    """After a declined attempt a QR can be paid again until it expires. An unknown status counts as under way."""
    assert (wire.settled_by_payment(payment) or wire.settled_by_qr(payment, qr)) is status


def answered(status: int, code: str | None = None, *, body: bytes | None = None, write: bool = True) -> Answer:
    told = b"{}" if code is None else b'{"code": "%s", "message": "Ivanov"}' % code.encode()
    return Answer(
        status=status,
        headers={"retry-after": "7"},
        body=told if body is None else body,
        unreadable=OutcomeUnknown if write else Unavailable,
        name="raiffeisen",
    )


class TestErrors:
    """The code counts before the status (docs/providers/raiffeisen.md "Errors")."""

    @table(
        ("status", "code", "fault", "reason"),
        [
            (200, "ERROR.INVALID_REQUEST", Refused, "invalid"),
            (400, "ERROR.INVALID_REQUEST", Refused, "invalid"),
            (500, "ERROR.INVALID_REQUEST", Refused, "invalid"),
            (200, "ERROR.REFUND_INSUFFICIENT_FUNDS", Refused, "amount"),
            (404, "ERROR.NOT_FOUND", Refused, "not_found"),
            (403, "ERROR.NOT_FOUND", Refused, "not_found"),
            (403, "ERROR.ACCOUNT_IS_NOT_REGISTERED", NotConfigured, None),
            (403, "ERROR.NEVER_HEARD_OF", Refused, "unknown"),
            (403, "ERROR.ACCESS_DENIED", NotConfigured, None),
            (400, "ERROR.QR_EXPIRATION_DATE_NOT_VALID", Refused, "lifetime"),
            (400, "ERROR.NEVER_HEARD_OF", Refused, "unknown"),
            (200, "ERROR.NEVER_HEARD_OF", OutcomeUnknown, None),
            (500, "ERROR.NEVER_HEARD_OF", OutcomeUnknown, None),
            (200, "BAD_MESSAGE", OutcomeUnknown, None),
            (200, "ERROR.MERCHANT_NOT_REGISTERED", NotConfigured, None),
            (400, "ERROR.ACCOUNT_IS_NOT_REGISTERED", NotConfigured, None),
            (401, None, Unavailable, None),
            (403, None, Unavailable, None),
            (429, None, Unavailable, None),
            (400, None, OutcomeUnknown, None),
            (404, None, OutcomeUnknown, None),
            (302, None, OutcomeUnknown, None),
            (503, None, OutcomeUnknown, None),
        ],
    )
    def test_fault_of_a_write(self, status: int, code: str | None, fault: type[Fault], reason: str | None) -> None:
        answer = answered(status, code)
        said = of_write(answer, code_of(answer))
        assert isinstance(said, fault)
        assert getattr(said, "reason", None) == reason
        assert "Ivanov" not in str(said), "the bank's message may name people"

    @table(
        ("status", "body", "fault"),
        [
            (401, b'{"status": 401, "error": "Unauthorized", "path": "/api"}', NotConfigured),
            (403, b'{"status": 403, "error": "Forbidden"}', NotConfigured),
            (401, b'{"status": 200, "error": "Unauthorized"}', Unavailable),
            (401, b'{"error": "unauthorized"}', Unavailable),
            (403, b"<html>Access denied</html>", Unavailable),
        ],
    )
    def test_only_the_bank_s_own_denial_is_about_the_key(self, status: int, body: bytes, fault: type[Fault]) -> None:
        for write in (True, False):
            answer = answered(status, body=body, write=write)
            assert type((of_write if write else of_question)(answer, code_of(answer))) is fault

    @table("code", ["ERROR.INSUFFICIENT_FUNDS", "ERROR.DAILY_LIMIT_EXCEEDED"])
    def test_a_payout_that_wants_money_goes_later(self, code: str) -> None:
        answer = answered(400, code)
        assert isinstance(of_write(answer, code, payout=True), Unavailable)
        assert isinstance(of_write(answer, code), Refused)

    @table(
        ("status", "code", "fault"),
        [
            (200, "ERROR.INVALID_REQUEST", Unavailable),
            (404, None, Unavailable),
            (500, None, Unavailable),
            (429, None, Unavailable),
            (401, None, Unavailable),
            (400, "ERROR.MERCHANT_NOT_REGISTERED", NotConfigured),
        ],
    )
    def test_fault_of_a_read(self, status: int, code: str | None, fault: type[Fault]) -> None:
        answer = answered(status, code, write=False)
        assert type(of_question(answer, code_of(answer))) is fault

    def test_a_limit_says_when_it_ends(self) -> None:
        fault = of_write(answered(429), None)
        assert isinstance(fault, Unavailable)
        assert fault.retry_after == 7

    @table(
        ("code", "absence"),
        [
            ("ERROR.NOT_FOUND", True),
            ("ERROR.REFUND_NOT_FOUND", True),
            ("ORDER_NOT_FOUND", True),
            ("ERROR.MERCHANT_NOT_FOUND", False),
            ("ERROR.INVALID_REQUEST", False),
            (None, False),
        ],
    )
    def test_only_a_code_proves_that_there_is_none(self, code: str | None, absence: bool) -> None:
        assert is_absence(code) is absence

    @table("body", [b"", b"<html>", b"[1]", b'{"code": 5}', b'{"code": "Not found"}', b"\xff", b'{"code": "SUCCESS"}'])
    def test_invalid_code_is_none(self, body: bytes) -> None:
        assert code_of(answered(200, body=body)) is None
