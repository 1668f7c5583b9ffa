"""T-Bank's Token, errors, statuses and references (docs/providers/tbank.md)."""

from decimal import Decimal
from typing import Any

import msgspec

from cambist.adapters.bank.tbank.errors import AGAIN_AFTER, FAILURES, NOT_CONFIGURED, REFUSED, failure_of, fault_of
from cambist.adapters.bank.tbank.orders import deadline, described
from cambist.adapters.bank.tbank.references import Reference, find_reference, order_id
from cambist.adapters.bank.tbank.tokens import is_signed, token
from cambist.adapters.bank.tbank.wire import Said, kopecks_of, status_of
from cambist.adapters.clock import VirtualClock
from cambist.core.domain.payments.payments import FailureReason
from cambist.ports.bank import InvoiceStatus
from cambist.ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from tests.providers.tbank.fake import sign
from tests.tables import table

REQUEST = {
    "TerminalKey": "MerchantTerminalKey",
    "Amount": 19200,
    "OrderId": "21090",
    "Description": "Подарочная карта на 1000 рублей",
    "DATA": {"Phone": "+71234567890", "Email": "a@test.com"},
    "Receipt": {"Taxation": "osn"},
}
NOTIFICATION = {
    "TerminalKey": "1321054611234DEMO",
    "OrderId": "201709",
    "Success": True,
    "Status": "AUTHORIZED",
    "PaymentId": 8742591,
    "ErrorCode": "0",
    "Amount": 9855,
    "CardId": 322264,
    "Pan": "430000******0777",
    "ExpDate": "1122",
    "RebillId": 101709,
}
PUBLISHED = [
    (REQUEST, "usaf8fw8fsw21g", "0024a00af7c350a3a67ca168ce06502aa72772456662e38696d48b56ee9c97d9"),
    (NOTIFICATION, "Dfsfh56dgKl", "b906d28e76c6428e37b25fcf86c0adc52c63d503013fdd632e300593d165766b"),
]
"""From T-Bank's own pages: fields, password, Token."""


class TestToken:
    @table(("fields", "password", "published"), PUBLISHED)
    def test_adapter_and_fake_make_the_published_ones(
        self, fields: dict[str, Any], password: str, published: str
    ) -> None:
        assert token(fields, password) == published
        assert sign(fields, password) == published
        assert is_signed({**fields, "Token": published}, password)

    @table("told", [None, "", "0024", "я" * 64, 5, True, "\ud800"])
    def test_any_other_is_none(self, told: Any) -> None:
        assert not is_signed({**REQUEST, "Token": told}, "usaf8fw8fsw21g")

    def test_a_password_among_the_fields_counts_for_nothing(self) -> None:
        """The sender of a notification cannot choose the key of its signature."""
        forged = {"TerminalKey": "1", "Password": "mine"}
        assert not is_signed({**forged, "Token": sign({"TerminalKey": "1"}, "mine")}, "theirs")


class TestErrors:
    @table(
        ("code", "message", "write", "read"),
        [
            ("204", "", NotConfigured, NotConfigured),
            ("3001", "", NotConfigured, NotConfigured),
            ("3042", "", Unavailable, Unavailable),
            ("255", "", Refused, Refused),
            ("3028", "", Refused, Refused),
            ("9999", "Неверные параметры.", Refused, Refused),
            ("9999", "Внутренняя ошибка системы", OutcomeUnknown, Unavailable),
            ("3040", "", OutcomeUnknown, Unavailable),
            ("7999", "", OutcomeUnknown, Unavailable),
            ("999", "", OutcomeUnknown, Unavailable),
            ("100", "", OutcomeUnknown, Unavailable),
            ("77777", "", OutcomeUnknown, Unavailable),
            ("<b>payer</b>", "", OutcomeUnknown, Unavailable),
        ],
    )
    def test_each_is_one_of_the_ends(self, code: str, message: str, write: type, read: type) -> None:
        """A code outside every table leaves a write unknown and makes a read fail."""
        said = Said(success=False, error_code=code, message=message)
        assert type(fault_of(said, writes=True)) is write
        assert type(fault_of(said, writes=False)) is read
        assert "payer" not in str(fault_of(said, writes=True))

    def test_limits_say_when_they_end(self) -> None:
        waits = {code: fault_of(Said(success=False, error_code=code), writes=True) for code in ("3029", "3030", "3002")}
        assert [getattr(fault, "retry_after", None) for fault in waits.values()] == [3600.0, 86400.0, 3600.0]

    def test_no_code_has_two_ends(self) -> None:
        assert not NOT_CONFIGURED.keys() & AGAIN_AFTER.keys()
        assert not REFUSED.keys() & (NOT_CONFIGURED.keys() | AGAIN_AFTER.keys())

    def test_failures_are_words_of_the_interface(self) -> None:
        assert {*FAILURES.values(), failure_of(None), failure_of("0")} <= {reason.value for reason in FailureReason}


class TestStatuses:
    @table(
        ("word", "status"),
        [
            ("NEW", InvoiceStatus.OPEN),
            ("FORM_SHOWED", InvoiceStatus.OPEN),
            ("AUTHORIZED", InvoiceStatus.PROCESSING),
            ("CONFIRMED", InvoiceStatus.PAID),
            ("ASYNC_REFUNDING", InvoiceStatus.PAID),
            ("PARTIAL_REFUNDED", InvoiceStatus.PAID),
            ("REFUNDED", InvoiceStatus.PAID),
            ("REJECTED", InvoiceStatus.FAILED),
            ("CANCELED", InvoiceStatus.CANCELLED),
            ("DEADLINE_EXPIRED", InvoiceStatus.EXPIRED),
            ("OF_TOMORROW", InvoiceStatus.PROCESSING),
            (None, InvoiceStatus.PROCESSING),
        ],
    )
    def test_unknown_status_ends_nothing(self, word: str | None, status: InvoiceStatus) -> None:
        assert status_of(word) is status

    @table(("text", "kopecks"), [("9855", 9855), ("9855.0", 9855), ("1e3", 1000), ("98.5", None), ("1e99", None)])
    def test_amounts_are_whole_kopecks(self, text: str, kopecks: int | None) -> None:
        """The text is read as Decimal, never as float."""
        assert kopecks_of(msgspec.json.decode(text, type=Decimal)) == kopecks


class TestReferences:
    def test_a_payment_is_found_in_the_cabinet_by_its_own_uuid(self) -> None:
        assert order_id("pay_0198c3f2-7d1a-7e4b-9f60-000000000001") == "0198c3f2-7d1a-7e4b-9f60-000000000001"

    @table(
        "operation",
        [
            "exch_0198c3f2-7d1a-7e4b-9f60-000000000001/1",
            "sub_1:2",
            "PAY_0198c3f2-7d1a-7e4b-9f60-000000000001",
            "x" * 600,
        ],
    )
    def test_order_id_of_any_other_operation_has_36_characters(self, operation: str) -> None:
        assert len(order_id(operation)) == 36
        assert order_id(operation) != order_id(f"{operation}1")

    @table("key", [None, "211258", "ed989549-d3be-4758-95c7-22647e03f9ec"])
    def test_reference_is_read_as_it_was_written(self, key: str | None) -> None:
        made = Reference(terminal="1690DEMO", payment_id="3093639567", kopecks=100_00, request_key=key)
        assert find_reference(str(made)) == made

    @table("text", ["", "a/b", "T/1/2/3/4", "T/1/2\n", "T/-1/2", f"T/{'1' * 21}/2", "T/1/2/ключ"])
    def test_text_without_a_reference_has_none(self, text: str) -> None:
        assert find_reference(text) is None


class TestForms:
    def test_a_deadline_is_between_a_minute_and_90_days_ahead(self) -> None:
        now = VirtualClock().now()
        for wish in (-5, 0, 1, 900, 86400 * 400):
            at, text = deadline(now.fromtimestamp(now.timestamp() + wish, now.tzinfo), now)
            assert 60 < (at - now).total_seconds() < 90 * 86400
            assert text.endswith("+03:00")

    def test_a_description_is_cut(self) -> None:
        assert described("Ё" * 141) == "Ё" * 140
        assert described("a\ud800b") == "a?b"
