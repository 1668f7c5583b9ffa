"""Forms of T-Bank's requests: the fields of each method with type and length. The fake refuses any other field."""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from cambist.testing import ProviderRequest
from tests.providers.tbank.books import No

Body = dict[str, Any]
CLOSING = "/cashbox/SendClosingReceipt"
SHAPES: Mapping[str, Mapping[str, tuple[type | tuple[type, ...], bool, int]]] = {
    CLOSING: {"PaymentId": (str, True, 20), "Receipt": (dict, True, 100)},
    "Init": {
        "Amount": (int, True, 10),
        "OrderId": (str, True, 36),
        "Description": (str, False, 140),
        "CustomerKey": (str, False, 36),
        "Recurrent": (str, False, 1),
        "SuccessURL": (str, False, 2048),
        "FailURL": (str, False, 2048),
        "NotificationURL": (str, False, 2048),
        "RedirectDueDate": (str, False, 25),
        "DATA": (dict, False, 20),
        "Receipt": (dict, False, 100),
        "PayType": (str, False, 1),
    },
    "GetQr": {"PaymentId": ((int, str), True, 20), "DataType": (str, False, 7), "BankId": (str, False, 64)},
    "GetState": {"PaymentId": (str, True, 20)},
    "CheckOrder": {"OrderId": (str, True, 36)},
    "Cancel": {
        "PaymentId": (str, True, 20),
        "Amount": (int, False, 10),
        "Receipt": (dict, False, 100),
        "QrMemberId": (str, False, 20),
    },
    "GetQrState": {"PaymentId": (str, True, 20)},
    "AddAccountQr": {
        "Description": (str, True, 140),
        "DataType": (str, False, 7),
        "BankId": (str, False, 64),
        "RedirectDueDate": (str, False, 25),
    },
    "GetAddAccountQrState": {"RequestKey": (int, True, 20)},
    "ChargeQr": {"PaymentId": (str, True, 20), "AccountToken": (str, True, 64)},
    "SbpPayTest": {
        "PaymentId": (str, True, 20),
        "IsRejected": (bool, False, 5),
        "IsDeadlineExpired": (bool, False, 5),
    },
}
"""For each method: its fields besides TerminalKey and Token, with type, requirement and length."""


def read_body(request: ProviderRequest) -> Body:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise No("1", "Content-Type")
    try:
        body = json.loads(request.body)
    except ValueError:
        raise No("1", "JSON") from None
    if not isinstance(body, dict):
        raise No("1", "JSON")
    return body


def check(method: str, given: Body) -> None:
    shape = SHAPES[method]
    if unknown := given.keys() - shape.keys():
        raise No("1", ", ".join(sorted(unknown)))
    for name, (kind, required, longest) in shape.items():
        value = given.get(name)
        if value is None:
            if required:
                raise No("201", name)
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise No("1", name)
        if len(value if isinstance(value, str | dict) else str(value)) > longest or value == "":
            raise No("212", name)
    for key, value in given.get("DATA", {}).items():
        if not isinstance(value, str) or len(key) > 20 or len(value) > 100:
            raise No("209", key)


_ITEM = {"Name", "Price", "Quantity", "Amount", "Tax", "PaymentMethod", "PaymentObject"}
_MORE_1_2 = {"MarkCode", "MarkProcessingMode", "UserData", "Excise", "CountryCode", "DeclarationNumber"}
_AGENT = {
    "bank_paying": {"OperationName", "Phones", "TransferPhones", "OperatorName", "OperatorAddress", "OperatorInn"},
    "paying": {"Phones", "ReceiverPhones"},
}


def check_item(item: Body, version: str) -> None:
    """The fields that an item has in this format."""
    needed = _ITEM | ({"MeasurementUnit"} if version == "1.2" else set())
    allowed = needed | {"AgentData", "SupplierInfo"} | (_MORE_1_2 if version == "1.2" else set())
    if needed - item.keys() or item.keys() - allowed:
        raise No("308", "Items")
    if ("MarkCode" in item) is not str(item["PaymentObject"]).endswith("_with_marking_code"):
        raise No("308", "Items.MarkCode")
    if "MarkCode" in item and (item["MarkCode"].keys() != {"MarkCodeType", "Value"} or item["Quantity"] != 1):
        raise No("308", "Items.MarkCode")
    if not re.fullmatch(r"[0-9]{3}", item.get("CountryCode", "643")):
        raise No("308", "Items.CountryCode")
    if ("AgentData" in item) is not ("SupplierInfo" in item):
        raise No("319", "SupplierInfo")
    if "AgentData" in item:
        kind = item["AgentData"]["AgentSign"].rpartition("_")[0]
        if item["AgentData"].keys() != {"AgentSign"} | _AGENT.get(kind, set()):
            raise No("317", "AgentData")
        if not re.fullmatch(r"[0-9]{10}|[0-9]{12}", item["SupplierInfo"]["Inn"]):
            raise No("320", "SupplierInfo.Inn")


def check_receipt(receipt: Body, amount: int | None) -> None:
    """Raises: No where T-Bank would refuse it."""
    version = receipt.get("FfdVersion", "1.05")
    known = {"Items", "Taxation", "Email", "Phone", "FfdVersion", "Payments"}
    if version == "1.2":
        known |= {"Customer", "CustomerInn", "AddUserProp"}
    if receipt.keys() - known or not receipt.get("Items") or version not in ("1.05", "1.2"):
        raise No("308", "Receipt")
    if receipt.get("Taxation") not in ("osn", "usn_income", "usn_income_outcome", "esn", "patent"):
        raise No("308", "Taxation")
    if not any(isinstance(receipt.get(name), str) and 0 < len(receipt[name]) <= 64 for name in ("Email", "Phone")):
        raise No("308", "Email, Phone")
    for item in receipt["Items"]:
        check_item(item, version)
        quantity = Decimal(str(item["Quantity"]))
        amount_of = (item["Price"] * quantity).quantize(Decimal(1), ROUND_HALF_UP)
        if not 0 < len(item["Name"]) <= 128 or amount_of != item["Amount"]:
            raise No("308", "Items.Amount")
        if quantity <= 0 or len(f"{quantity}") > 9 or -quantity.as_tuple().exponent > 3:  # type: ignore[operator]
            raise No("310", "Items.Quantity")
        if not re.fullmatch(r"none|vat(0|5|7|10|20|22|105|107|110|120|122)", item["Tax"]):
            raise No("308", "Items.Tax")
    if amount is not None and sum(item["Amount"] for item in receipt["Items"]) != amount:
        raise No("334", "Суммы в чеке и в платеже не совпадают.")


def due_of(text: str | None, now: datetime) -> datetime:
    if text is None:
        return now + timedelta(days=1)
    try:
        due = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise No("12", "RedirectDueDate") from None
    if not timedelta(minutes=1) <= due - now <= timedelta(days=90):
        raise No("3017")
    return due
