"""YooKassa's words and their meaning in ours, as pure tables (docs/providers/yookassa.md "Errors")."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.yookassa import wire
from cambist.adapters.bank.yookassa.bodies import comment, key_of, marks, operation_of
from cambist.adapters.bank.yookassa.errors import Forbidden, KeyReused, fault_of
from cambist.adapters.bank.yookassa.receipts import MODES, TAX_SYSTEMS, VATS, receipt_of
from cambist.adapters.bank.yookassa.shops import Shop, Shops, read_shops
from cambist.adapters.provider_http import Answer
from cambist.frontends.conformance.operation_ids import suspense_ids
from cambist.frontends.conformance.receipts import AGENTS, SUPPLIER, receipt
from cambist.ports import (
    InvoiceRequest,
    InvoiceStatus,
    NotConfigured,
    OutcomeUnknown,
    RefundStatus,
    Refused,
    Unavailable,
)
from cambist.ports.receipts import (
    MarkCode,
    MarkFormat,
    PaymentMode,
    PaymentSubject,
    Receipt,
    ReceiptItem,
    TaxSystem,
    Vat,
)
from cambist.ports.remittances import RemittanceStatus
from tests.tables import table

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)

# The example of a paid SBP payment in YooKassa's documentation, including the fields that we do not read.
PAID = {
    "id": "2d8e8fcf-000f-5000-8000-18db351245c7",
    "status": "succeeded",
    "amount": {"value": "4.35", "currency": "RUB"},
    "income_amount": {"value": "4.32", "currency": "RUB"},
    "created_at": "2026-11-23T11:00:00.000Z",
    "captured_at": "2026-11-23T11:01:02.345Z",
    "payment_method": {
        "type": "sbp",
        "id": "2d8e8fcf-000f-5000-8000-18db351245c7",
        "saved": False,
        "status": "inactive",
        "sbp_operation_id": "1027088AE4CB48CB81287833347A8777",
        "payer_bank_details": {"bank_id": "100000000111", "bic": "044525225"},
    },
    "recipient": {"account_id": "100500", "gateway_id": "100700"},
    "refundable": True,
    "test": False,
}


def read(shape: type[Any], **more: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode({**PAID, **more}), type=shape)


def test_money_that_came_has_its_fee_its_bank_and_its_number() -> None:
    state = wire.invoice_state("ref", read(wire.Payment))
    [transfer] = state.transfers
    assert state.status is InvoiceStatus.PAID
    assert (transfer.id, transfer.amount_kopecks, transfer.fee_kopecks) == (PAID["id"], 4_35, 3)
    assert (transfer.payer_bank, transfer.sbp_operation_id) == ("044525225", "1027088AE4CB48CB81287833347A8777")
    assert transfer.at == datetime(2026, 11, 23, 11, 1, 2, 345000, tzinfo=UTC)


@table(
    ("status", "reason", "expected", "failure"),
    [
        ("pending", None, InvoiceStatus.OPEN, None),
        ("waiting_for_capture", None, InvoiceStatus.PROCESSING, None),
        ("a_status_of_next_year", None, InvoiceStatus.PROCESSING, None),
        ("canceled", "expired_on_confirmation", InvoiceStatus.EXPIRED, None),
        ("canceled", "canceled_by_merchant", InvoiceStatus.CANCELLED, None),
        ("canceled", "insufficient_funds", InvoiceStatus.FAILED, "insufficient_funds"),
        ("canceled", "permission_revoked", InvoiceStatus.FAILED, "mandate_revoked"),
        ("canceled", "fraud_suspected", InvoiceStatus.FAILED, "cancelled_by_bank"),
        ("canceled", "general_decline", InvoiceStatus.FAILED, "declined_by_bank"),
        ("canceled", "a_reason_of_next_year", InvoiceStatus.FAILED, "unknown"),
        ("canceled", None, InvoiceStatus.FAILED, "unknown"),
    ],
)
def test_statuses_of_a_payment(status: str, reason: str | None, expected: InvoiceStatus, failure: str | None) -> None:
    details = None if reason is None else {"party": "yoo_money", "reason": reason}
    state = wire.invoice_state("ref", read(wire.Payment, status=status, cancellation_details=details))
    assert (state.status, state.failure, state.transfers) == (expected, failure, ())


@table(
    "amount",
    [
        {"value": "4.355", "currency": "RUB"},
        {"value": "4,35", "currency": "RUB"},
        {"value": "-4.35", "currency": "RUB"},
        {"value": "4.35", "currency": "USD"},
        {"value": 4.35, "currency": "RUB"},
        {"value": "4.35\n", "currency": "RUB"},
    ],
    ids=str,
)
def test_an_amount_that_is_no_amount_of_roubles_is_not_read(amount: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(wire.Payment, amount=amount)


@table(("kopecks", "text"), [(1, "0.01"), (4_35, "4.35"), (700_000_00, "700000.00")])
def test_an_amount_is_sent_as_text(kopecks: int, text: str) -> None:
    assert wire.roubles(kopecks) == {"value": text, "currency": "RUB"}
    assert wire.Amount(text, "RUB").kopecks == kopecks


def test_statuses_of_refunds_and_payouts() -> None:
    details = {"cancellation_details": {"reason": "rejected_by_payee"}}
    failed = wire.refund_state(read(wire.Refund, payment_id="p", status="canceled", **details))
    assert (failed.status, failed.failure) == (RefundStatus.FAILED, "rejected_by_payee")
    waiting = wire.refund_state(read(wire.Refund, payment_id="p", status="pending"))
    assert (waiting.status, waiting.check_after) == (RefundStatus.PROCESSING, wire.REFUND_CHECK)
    sent = wire.remittance_state(read(wire.Payout, status="succeeded"))
    assert (sent.status, sent.failure) == (RemittanceStatus.DONE, None)


@table(
    ("status", "error", "end", "reason"),
    [
        (400, {"code": "invalid_request", "parameter": "amount.value"}, Refused, "amount"),
        (400, {"code": "invalid_request", "parameter": "payment_method_id"}, Refused, "not_found"),
        (400, {"code": "invalid_request", "parameter": "receipt"}, Refused, "invalid_request"),
        (404, {"code": "not_found"}, Refused, "not_found"),
        (405, {"code": "not_supported"}, Refused, "not_supported"),
        (400, {"code": "invalid_request", "parameter": "Idempotence-Key"}, KeyReused, None),
        (400, {"code": "invalid_request", "parameter": "payment_method_data.type"}, NotConfigured, None),
        (400, None, OutcomeUnknown, None),
        (404, None, OutcomeUnknown, None),
        (401, {"code": "invalid_credentials"}, NotConfigured, None),
        (403, {"code": "forbidden"}, Forbidden, None),
        (401, None, Unavailable, None),
        (403, None, Unavailable, None),
        (429, {"code": "too_many_requests", "retry_after": 1800}, Unavailable, None),
        (409, {"code": "invalid_request"}, OutcomeUnknown, None),
        (202, {"code": "processing"}, OutcomeUnknown, None),
        (500, {"code": "internal_server_error"}, OutcomeUnknown, None),
    ],
)
def test_the_end_of_a_write(
    status: int, error: dict[str, Any] | None, end: type[Exception], reason: str | None
) -> None:
    """A proxy's answer is not a YooKassa error, so it refuses nothing."""
    fault = fault_of(_answer(status, error), owner=None, now=NOW)
    assert type(fault) is end
    assert getattr(fault, "reason", None) == reason


def test_retry_after_is_read_in_milliseconds() -> None:
    fault = fault_of(_answer(429, {"code": "too_many_requests", "retry_after": 1800}), owner=None, now=NOW)
    assert isinstance(fault, Unavailable)
    assert fault.retry_after == 1.8


def test_error_does_not_quote_the_request() -> None:
    error = {"code": "invalid +79001234567", "description": "phone 79001234567", "parameter": "p. 79001234567!"}
    assert "9001234567" not in str(fault_of(_answer(400, error), owner=None, now=NOW))


@table("status", [401, 403])
def test_a_merchant_s_wrong_key_takes_no_gateway_down(status: int) -> None:
    fault = fault_of(_answer(status, {"code": "x"}), owner="acc_1", now=NOW)
    assert type(fault) is Unavailable
    assert "acc_1" in str(fault)


@table("operation", ["pay_0198c3f2-7d1a-7e4b-9f60-000000000001", *suspense_ids(), "x" * 600])
def test_an_object_of_ours_is_known_again(operation: str) -> None:
    """Ids of any length, by metadata, and a refund by its description alone."""
    told = marks("refund", operation)
    assert all(len(name) <= 32 and len(value) <= 512 for name, value in told.items())
    assert len(key_of(operation)) <= 64
    assert len(comment(operation)) <= 250
    assert operation_of(wire.Seen("1", {**told})) == operation
    assert operation_of(wire.Seen("1", {**told, "cambist": "another"})) is None
    assert operation_of(wire.Seen("1", {}, "Refund of order 1")) is None


def test_the_nearest_shop_of_a_merchant_is_taken() -> None:
    def request(**more: Any) -> InvoiceRequest:
        return InvoiceRequest(operation="pay_1", amount_kopecks=1, purpose="", expires_at=NOW, **more)

    own, shop, account = (Shop(id=str(n), key="k", owner=owner) for n, owner in enumerate((None, "shop_1", "acc_1")))
    shops = Shops(own, {"shop_1": shop, "acc_1": account})
    assert shops.of_request(request(account="acc_1", shop="shop_1")) is shop
    assert shops.of_request(request(account="acc_1", shop="shop_2")) is account
    assert shops.of_request(request(account="acc_2")) is own
    assert shops.of_reference(shop.reference("id-1")) == (shop, "id-1")
    assert shops.of_reference("id-1") == (own, "id-1")
    with pytest.raises(NotConfigured):
        shops.of_reference("acc_gone/id-1")
    with pytest.raises(Refused) as refused:
        Shops(None, {"acc_1": account}).of_request(request(account="acc_2"))
    assert refused.value.reason == "merchant"


def test_a_file_of_merchants_is_read_and_shows_nothing(tmp_path: Any) -> None:
    path = tmp_path / "merchants.toml"
    path.write_text('[acc_1]\nshop_id = "100501"\nsecret_key = "hunter2"\n')
    shops = read_shops(path)
    assert (shops["acc_1"].id, shops["acc_1"].key, shops["acc_1"].owner) == ("100501", "hunter2", "acc_1")
    assert "hunter2" not in repr(shops)
    assert "100501" not in repr(shops)
    with pytest.raises(NotConfigured, match="cannot be read"):
        read_shops(tmp_path / "none.toml")


def _answer(status: int, error: dict[str, Any] | None) -> Answer:
    body = b"<html>" if error is None else msgspec.json.encode({"type": "error", "id": "1", **error})
    return Answer(status=status, headers={}, body=body, unreadable=OutcomeUnknown, name="yookassa")


def test_receipt_is_sent_in_yookassas_codes() -> None:
    """The codes follow the tables of YooKassa's documentation. The rate has been 22 % since 2026."""
    assert set(VATS) == set(Vat)
    assert set(TAX_SYSTEMS) == set(TaxSystem)
    assert set(MODES) == set(PaymentMode)
    item = ReceiptItem(
        name="Чай",
        price_kopecks=4_35,
        thousandths=2000,
        vat=Vat.VAT_22,
        subject=PaymentSubject.COMMODITY,
        mode=PaymentMode.PREPAYMENT,
    )
    receipt = Receipt(items=(item,), tax_system=TaxSystem.PATENT, phone="+79001234567")
    assert receipt_of(receipt) == {
        "receipt": {
            "customer": {"phone": "79001234567"},
            "tax_system_code": 6,
            "items": [
                {
                    "description": "Чай",
                    "quantity": "2",
                    "measure": "piece",
                    "amount": {"value": "4.35", "currency": "RUB"},
                    "vat_code": 11,
                    "payment_subject": "commodity",
                    "payment_mode": "partial_prepayment",
                }
            ],
        }
    }
    assert receipt_of(None) == {}


def test_item_in_full_has_yookassas_fields() -> None:
    sent = receipt(
        100_00,
        subject=PaymentSubject.MARKED,
        mark=MarkCode(format=MarkFormat.GS_1M, value="01\x1d91"),
        country="CN",
        customs_declaration="10702030",
        excise_kopecks=10_05,
    )
    found = receipt_of(msgspec.structs.replace(sent, name="Anna", inn="500100732259"))["receipt"]
    assert found["customer"]["full_name"] == "Anna"
    assert found["customer"]["inn"] == "500100732259"
    [item] = found["items"]
    assert {name: item[name] for name in item if name not in ("description", "amount", "vat_code")} == {
        "quantity": "1",
        "measure": "piece",
        "payment_subject": "marked",
        "payment_mode": "full_payment",
        "country_of_origin_code": "CN",
        "customs_declaration_number": "10702030",
        "excise": "10.05",
        "mark_mode": "0",
        "mark_code_info": {"gs_1m": "01\x1d91"},
    }


@table(
    "fields",
    [{"agent": AGENTS[-1], "supplier": SUPPLIER}, {"additional": "shelf"}, {"subject": PaymentSubject.MARKED}],
)
def test_item_that_a_payment_cannot_have_is_refused(fields: dict[str, Any]) -> None:
    """YooKassa's schema of payments has no agent and no supplier; its separate receipts have them."""
    with pytest.raises(Refused) as refused:
        receipt_of(receipt(100_00, **fields))
    assert refused.value.reason == "receipt"
