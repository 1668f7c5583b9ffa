"""Field rules of YooKassa's API, from its OpenAPI file and its SDK. An invalid field is refused with the parameter's
name."""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import urlsplit

_KEY = re.compile(r"[0-9a-zA-Z+\-_.]{1,64}\Z")
_AMOUNT = re.compile(r"[0-9]+\.[0-9]{2}\Z")
_PHONE = re.compile(r"[0-9]{4,15}\Z")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\Z")
_ITEM = ("description", "amount", "vat_code", "quantity", "payment_subject", "payment_mode")
_ITEM_1_2 = (
    *("measure", "country_of_origin_code", "customs_declaration_number", "excise", "mark_mode", "mark_code_info"),
)
_APART = ("agent_type", "supplier", "additional_payment_subject_props")
"""Fields of items in receipts apart from money."""
_SUBJECTS = {
    *("commodity", "excise", "job", "service", "intellectual_activity", "payment", "agent_commission"),
    *("composite", "another", "property_right", "marked", "non_marked", "marked_excise", "non_marked_excise"),
}
_MODES = {
    *("full_prepayment", "partial_prepayment", "advance", "full_payment", "partial_payment", "credit"),
    "credit_payment",
}
LEAST, MOST = 1_00, 700_000_00
PAYOUT_MOST = 500_000_00

Body = Mapping[str, Any]


class Wrong(Exception):
    """The request is refused. `status` and `code` as the API has them."""

    def __init__(
        self, parameter: str | None, why: str = "wrong", *, status: int = 400, code: str = "invalid_request"
    ) -> None:
        super().__init__(why)
        self.parameter, self.why, self.status, self.code = parameter, why, status, code


def check_key(key: str | None) -> str:
    if key is None or not _KEY.match(key):
        raise Wrong("Idempotence-Key", "missing, or not of 1 to 64 allowed characters")
    return key


def check_fields(body: Body, *known: str, of: str = "") -> None:
    """Check that the body has no field unknown to the API, so that a misspelt one is found before a bank sees it."""
    for name in body:
        if name not in known:
            raise Wrong(f"{of}{name}", "unknown parameter")


def kopecks(amount: Any, parameter: str = "amount", least: int = LEAST, most: int = MOST) -> int:
    if not isinstance(amount, dict) or set(amount) != {"value", "currency"}:
        raise Wrong(parameter)
    value = amount["value"]
    if amount["currency"] != "RUB" or not isinstance(value, str) or not _AMOUNT.match(value):
        raise Wrong(f"{parameter}.value")
    found = int(value.replace(".", ""))
    if not least <= found <= most:
        raise Wrong(f"{parameter}.value", "out of bounds")
    return found


def money(amount: int) -> dict[str, str]:
    return {"value": f"{amount // 100}.{amount % 100:02d}", "currency": "RUB"}


def check_text(body: Body, name: str, longest: int) -> None:
    if name in body and not (isinstance(body[name], str) and 0 < len(body[name]) <= longest):
        raise Wrong(name, "not a text, or too long")


def check_metadata(body: Body) -> None:
    metadata = body.get("metadata", {})
    if not isinstance(metadata, dict) or len(metadata) > 16:
        raise Wrong("metadata")
    for name, value in metadata.items():
        if len(name) > 32 or not isinstance(value, str) or len(value) > 512:
            raise Wrong("metadata", "a key of 32, a value of 512 characters at most")


def check_confirmation(body: Body) -> str:
    asked = body.get("confirmation")
    if not isinstance(asked, dict) or asked.get("type") not in ("qr", "redirect"):
        raise Wrong("confirmation.type")
    check_fields(asked, "type", "return_url", of="confirmation.")
    if asked["type"] == "redirect" and "return_url" not in asked:
        raise Wrong("confirmation.return_url", "missing")
    url = asked.get("return_url", "https://shop.example/")
    if not isinstance(url, str) or len(url) > 2048 or not urlsplit(url).scheme:
        raise Wrong("confirmation.return_url")
    return str(asked["type"])


def check_item_1_2(item: Body) -> None:
    """The fields of format 1.2, by YooKassa's OpenAPI file."""
    if not isinstance(item["quantity"], str) or not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", item["quantity"]):
        raise Wrong("receipt.items.quantity")
    if Decimal(item["quantity"]) <= 0 or not re.fullmatch(r"[a-z_]+", item["measure"]):
        raise Wrong("receipt.items.quantity")
    if not re.fullmatch(r"[A-Z]{2}", item.get("country_of_origin_code", "RU")):
        raise Wrong("receipt.items.country_of_origin_code")
    if not 1 <= len(item.get("customs_declaration_number", "1")) <= 32:
        raise Wrong("receipt.items.customs_declaration_number")
    if not re.fullmatch(r"[0-9]+\.[0-9]{2}", item.get("excise", "1.00")):
        raise Wrong("receipt.items.excise")
    is_marked = item["payment_subject"] in ("marked", "marked_excise")
    if is_marked is not ("mark_code_info" in item) or is_marked is not (item.get("mark_mode") == "0"):
        raise Wrong("receipt.items.mark_code_info")
    if is_marked and (len(item["mark_code_info"]) != 1 or item["quantity"] != "1"):
        raise Wrong("receipt.items.mark_code_info")


def check_receipt(body: Body, total: int, *, required: bool) -> None:
    """The sum of its items is the amount; one address of the customer is there."""
    if "receipt" not in body:
        if required:
            raise Wrong("receipt", "Receipt is missing or illegal")
        return
    receipt = body["receipt"]
    customer, items = receipt.get("customer", {}), receipt.get("items")
    if not (_EMAIL.match(customer.get("email", "")) or _PHONE.match(customer.get("phone", ""))):
        raise Wrong("receipt.customer")
    if not 1 <= receipt.get("tax_system_code", 1) <= 6:
        raise Wrong("receipt.tax_system_code")
    if not isinstance(items, list) or not 0 < len(items) <= 100:
        raise Wrong("receipt.items")
    found = 0
    for item in items:
        check_fields(
            item,
            "description",
            "amount",
            "vat_code",
            "quantity",
            "payment_subject",
            "payment_mode",
            *_ITEM_1_2,
            *(_APART if "settlements" in receipt else ()),
            of="receipt.items.",
        )
        check_item_1_2(item)
        if not 0 < len(item["description"]) <= 128 or not 1 <= item["vat_code"] <= 12:
            raise Wrong("receipt.items")
        if item["payment_subject"] not in _SUBJECTS or item["payment_mode"] not in _MODES:
            raise Wrong("receipt.items")
        price = kopecks(item["amount"], "receipt.items.amount", 0)
        found += int((price * Decimal(item["quantity"])).quantize(Decimal(1), ROUND_HALF_UP))
    if found != total:
        raise Wrong("receipt.items", "its sum is not the amount")


def check_apart(body: Body) -> None:
    """A receipt apart from money: its settlements are its items' sum."""
    check_fields(
        body,
        *("type", "payment_id", "refund_id", "customer", "items", "tax_system_code", "send", "settlements"),
        *("additional_user_props", "receipt_industry_details", "receipt_operational_details"),
    )
    if body.get("type") not in ("payment", "refund") or body.get("send") is not True:
        raise Wrong("type")
    if ("payment_id" in body) is ("refund_id" in body):
        raise Wrong("payment_id", "one of both is wanted")
    settled = 0
    for each in body["settlements"]:
        if each["type"] not in ("cashless", "prepayment", "postpayment", "consideration"):
            raise Wrong("settlements.type")
        settled += kopecks(each["amount"], "settlements.amount", 1)
    check_receipt({"receipt": body}, settled, required=True)


def check_payment(body: Body, *, receipts: bool) -> int:
    check_fields(
        body,
        *("amount", "capture", "description", "metadata", "confirmation", "payment_method_data"),
        *("payment_method_id", "save_payment_method", "receipt", "client_ip", "merchant_customer_id", "recipient"),
        *("transfers", "statements", "deal", "airline", "payment_order", "receiver", "payment_token"),
    )
    amount = kopecks(body.get("amount"))
    check_text(body, "description", 128)
    check_metadata(body)
    check_receipt(body, amount, required=receipts)
    if body.get("capture") is not True:
        raise Wrong("capture", "SBP has no second step")
    if "payment_method_id" in body:
        if "confirmation" in body or "payment_method_data" in body:
            raise Wrong("payment_method_id", "with a saved method nobody confirms")
        return amount
    if body.get("payment_method_data") != {"type": "sbp"}:
        raise Wrong("payment_method_data.type")
    check_confirmation(body)
    return amount


def check_refund(body: Body, *, receipts: bool) -> int:
    check_fields(body, "payment_id", "amount", "description", "metadata", "receipt", "sources", "deal")
    amount = kopecks(body.get("amount"), least=1)
    check_text(body, "description", 250)
    check_metadata(body)
    check_receipt(body, amount, required=receipts)
    return amount


def check_method(body: Body) -> None:
    check_fields(body, "type", "confirmation", "metadata", "holder", "client_ip")
    if body.get("type") != "sbp":
        raise Wrong("type")
    check_metadata(body)
    check_confirmation(body)


def check_payout(body: Body, banks: Mapping[str, str]) -> int:
    check_fields(body, "amount", "payout_destination_data", "description", "metadata")
    amount = kopecks(body.get("amount"), most=PAYOUT_MOST)
    check_text(body, "description", 128)
    check_metadata(body)
    person = body.get("payout_destination_data")
    if not isinstance(person, dict) or person.get("type") != "sbp":
        raise Wrong("payout_destination_data.type")
    check_fields(person, "type", "phone", "bank_id", of="payout_destination_data.")
    if not isinstance(person.get("phone"), str) or not _PHONE.match(person["phone"]):
        raise Wrong("payout_destination_data.phone")
    if person.get("bank_id") not in banks:
        raise Wrong("payout_destination_data.bank_id")
    return amount
