"""The cash register behind Raiffeisenbank's fake: receipts are saved, may be saved again, and are registered once."""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.providers.raiffeisen.fake_people import FakePeople
from tests.providers.raiffeisen.fake_rules import Rejected, amount_in, found_in

_NUMBER = re.compile(r"[A-Za-z0-9_-]{1,99}\Z")
_VATS = {"NONE", *(f"VAT{each}" for each in (0, 5, 7, 10, 20, 22, 105, 107, 110, 120, 122))}
_FORMER_VATS = {"none", "vat0", "vat10", "vat110", "vat20", "vat120"}
_OBJECTS = {"COMMODITY", "EXCISE", "JOB", "SERVICE", "PAYMENT", "ANOTHER"}
_MODES = {"FULL_PREPAYMENT", "FULL_PAYMENT", "ADVANCE", "PREPAYMENT"}
_NEW_OBJECTS = _OBJECTS | {
    f"{kind}_MARKING_{code}" for kind in ("COMMODITY", "EXCISE") for code in ("NO_CODE", "WITH_CODE")
}
_RECEIPT = {"receiptNumber", "client", "items", "total"}
_ITEM = {"name", "price", "quantity", "amount", "paymentObject", "vatType"}


class FakeReceipts(FakePeople):
    """`is_former`: it knows the words of 2021 alone."""

    is_former = False
    has_register = True
    next_receipt = ""
    """How the next receipt that is registered ends, where not well."""

    def receipts_of(self, operation: str) -> list[dict[str, Any]]:
        """Return the receipts with this number that reached the tax office."""
        return [each for each in self.receipts.values() if each["receiptNumber"] == operation and each["registered"]]

    def _save_receipt(self, side: str, body: dict[str, Any]) -> dict[str, Any]:
        self._need_register()
        number = body.get("receiptNumber")
        if body.keys() - {"payments"} != _RECEIPT or not _NUMBER.match(str(number)):
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        email = body["client"].get("email", "")
        if body["client"].keys() != {"email"} or not re.fullmatch(r"[^@\s]+@[^@\s]+", email) or len(email) > 64:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        amounts = [self._item_amount(item) for item in body["items"]]
        total = amount_in({"amount": body["total"]}, "RECEIPT_VALIDATION_FAILED")
        if not 1 <= len(amounts) <= 100 or sum(amounts) != total:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        before = self.receipts.get((side, str(number)))
        if before is not None and before["status"] != "NEW":
            raise Rejected("RECEIPT_STATUS_CONFLICT", 409)
        saved = {**body, "receiptType": side.upper(), "status": "NEW", "registered": 0}
        self.receipts[side, str(number)] = saved
        return _shown(saved)

    def _item_amount(self, item: Mapping[str, Any]) -> Decimal:
        objects, vats, fields = _NEW_OBJECTS, _VATS, _ITEM | {"paymentMode", "measurementUnit"}
        if self.is_former:
            objects, vats, fields = {each.lower() for each in _OBJECTS}, _FORMER_VATS, _ITEM
        more = set() if self.is_former else {"agentType", "supplierInfo", "marking"}
        if fields - item.keys() or item.keys() - fields - more or not 1 <= len(item["name"]) <= 128:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        if item["paymentObject"] not in objects or item["vatType"] not in vats:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        if not self.is_former and item["paymentMode"] not in _MODES:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        price, amount = (amount_in({"amount": item[name]}, "RECEIPT_VALIDATION_FAILED") for name in ("price", "amount"))
        if ("marking" in item) is not item["paymentObject"].endswith("_WITH_CODE"):
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        if ("agentType" in item) is not ("supplierInfo" in item):
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        if (price * Decimal(item["quantity"])).quantize(Decimal("0.01"), ROUND_HALF_UP) != amount:
            raise Rejected("RECEIPT_VALIDATION_FAILED")
        return amount

    def _register_receipt(self, side: str, number: str) -> dict[str, Any]:
        self._need_register()
        receipt = found_in(self.receipts, (side, number), "RECEIPT_NOT_FOUND", status=404)
        if receipt["status"] != "NEW":
            raise Rejected("RECEIPT_STATUS_CONFLICT", 409)
        receipt["end"], self.next_receipt = self.next_receipt or "DONE", ""
        receipt |= {"status": "IN_PROGRESS", "registered": receipt["registered"] + 1}
        self._hurry()
        return _shown(receipt)

    def _show_receipt(self, side: str, number: str) -> dict[str, Any]:
        return _shown(found_in(self.receipts, (side, number), "RECEIPT_NOT_FOUND", status=404))

    def _need_register(self) -> None:
        if not self.has_register:
            raise Rejected("CREDENTIALS_NOT_FOUND", 403)

    def finish(self) -> None:
        super().finish()
        for receipt in self.receipts.values():
            if receipt["status"] == "IN_PROGRESS":
                receipt["status"] = receipt["end"]


def _shown(receipt: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in receipt.items() if name not in ("registered", "end")}
