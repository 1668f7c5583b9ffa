"""Subscriptions and payouts of Raiffeisenbank's fake."""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from cambist.testing import FakeProvider
from tests.providers.raiffeisen.fake_rules import (
    ACCOUNT,
    BANKS,
    MERCHANT,
    MOSCOW,
    SECRET,
    Rejected,
    amount_in,
    check_texts,
    found_in,
    number_in,
)

_PAYOUT_ID = re.compile(r"[A-Za-z0-9_-]{1,20}\Z")


class FakeBooks(FakeProvider):
    """State that both halves of the fake share."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.now = now
        self.qrs: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.charges: dict[str, dict[str, Any]] = {}
        self.payouts: dict[str, dict[str, Any]] = {}
        self.receipts: dict[tuple[str, str], dict[str, Any]] = {}
        """Receipts by side (`sell` or `refund`) and number."""
        self.next_refund = self.next_charge = self.next_payout = ""
        """How the next one ends, where not well."""
        self.is_swift = False
        """Refunds, charges and payouts are over when they are answered."""
        self._number = 0
        self.merchants = {MERCHANT: SECRET}

    def _check_merchant(self, body: Mapping[str, Any]) -> None:
        if not body.get("sbpMerchantId"):
            raise Rejected("ERROR.SBP_MERCHANT_ID_IS_MISSING")
        if body["sbpMerchantId"] not in self.merchants:
            raise Rejected("ERROR.MERCHANT_NOT_REGISTERED")

    def _new_qr(self, order: str, amount: Decimal | None, expires: datetime, kind: str) -> dict[str, Any]:
        qr_id = "AD" + hashlib.sha256(f"{order} {len(self.qrs)}".encode()).hexdigest()[:30].upper()
        total = "" if amount is None else f"&sum={int(amount * 100)}&cur=RUB"
        host = "sub" if kind == "03" else "qr"
        qr = {
            "qrId": qr_id,
            "payload": f"https://{host}.nspk.ru/{qr_id}?type={kind}&bank=100000000007{total}&crc=AB75",
            "qrUrl": f"https://pay.raif.ru/api/sbp/v1/qr/{qr_id}/image",
            "order": order,
            "amount": amount,
            "expires": expires,
            "status": "NEW",
            "payment": "NO_INFO",
            "created": self._moment(),
        }
        self.qrs[qr_id] = qr
        return qr

    def finish(self) -> None:
        """Let all running operations end."""
        for refund in self.refunds.values():
            if refund["refundStatus"] == "IN_PROGRESS":
                refund["refundStatus"] = refund["end"]
        for charge in self.charges.values():
            if charge["paymentStatus"] == "IN_PROGRESS":
                charge["paymentStatus"] = self.qrs[charge["qrId"]]["payment"] = charge["end"]
        for payout in self.payouts.values():
            if payout["status"]["value"] == "IN_PROGRESS":
                payout["status"] = payout["end"]

    def _hurry(self) -> None:
        if self.is_swift:
            self.finish()

    def _moment(self) -> str:
        return self.now().astimezone(MOSCOW).isoformat(timespec="microseconds")


class FakePeople(FakeBooks):
    """Payers who subscribe, and people who are paid."""

    def _subscribe(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        self._check_merchant(body)
        number = number_in(body, "id")
        if body.keys() - {"id", "subscriptionPurpose", "sbpMerchantId"} or not body.get("subscriptionPurpose"):
            raise Rejected("ERROR.INVALID_REQUEST")
        check_texts(body, subscriptionPurpose=185)
        if number in self.subscriptions:
            raise Rejected("ERROR.INVALID_REQUEST")
        return self._new_subscription(number, self._new_qr("", None, self.now() + timedelta(days=90), "03"))

    def _new_subscription(self, number: str, qr: Mapping[str, Any]) -> dict[str, Any]:
        self.subscriptions[number] = {
            "id": number,
            "createDate": self._moment(),
            "status": "INACTIVE",
            "qr": {"id": qr["qrId"], "payload": qr["payload"], "url": qr["qrUrl"]},
        }
        return self.subscriptions[number]

    def _subscription(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        return {"bank": "100000000007", **found_in(self.subscriptions, parts["id"])}

    def _charge(self, parts: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        subscription = found_in(self.subscriptions, parts["id"])
        if body.keys() - {"account", "additionalInfo", "amount", "currency", "order", "paymentDetails"}:
            raise Rejected("ERROR.INVALID_REQUEST")
        order, amount = number_in(body, "order", "ERROR.INVALID_ORDER"), amount_in(body, "ERROR.INVALID_PAYMENT_AMOUNT")
        check_texts(body, additionalInfo=140, paymentDetails=185)
        if body.get("currency") != "RUB" or subscription["status"] != "SUBSCRIBED":
            raise Rejected("ERROR.INVALID_REQUEST")
        taken = [each for each in self.qrs.values() if (each["order"], each["payment"]) == (order, "SUCCESS")]
        if taken or self.charges.get(order, {}).get("paymentStatus") == "IN_PROGRESS":
            raise Rejected("ERROR.ORDER_NUMBER_ALREADY_REGISTERED")
        end, self.next_charge = self.next_charge or "SUCCESS", ""
        qr = self._new_qr(order, amount, self.now() + timedelta(days=3), "02")
        self._number += 1
        qr |= {"transaction": self._number, "at": self._moment(), "status": "PAID", "charge": True}
        self.charges[order] = {
            "additionalInfo": body.get("additionalInfo", ""),
            "paymentDetails": body.get("paymentDetails", ""),
            "amount": amount,
            "currency": "RUB",
            "order": order,
            "paymentStatus": "IN_PROGRESS",
            "qrId": qr["qrId"],
            "sbpMerchantId": MERCHANT,
            "end": end,
            "subscription": parts["id"],
        }
        self._hurry()
        return self._show_charge({"id": parts["id"], "order": order}, None)

    def _show_charge(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        charge = found_in(self.charges, parts["order"])
        if charge["subscription"] != parts["id"]:
            raise Rejected("ERROR.NOT_FOUND", 404)
        return {name: value for name, value in charge.items() if name not in ("end", "subscription")}

    def _pay_out(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        known = {"id", "account", "amount", "currency", "paymentDetails", "payoutMethod", "payoutParams", "extra"}
        params = body.get("payoutParams") or {}
        fits = re.fullmatch(r"[0-9]{10,15}", params.get("phone", "")) and params.get("bankAlias") in BANKS
        if body.keys() - known or params.keys() - {"phone", "bankAlias"} or not fits:
            raise Rejected("ERROR.INVALID_REQUEST")
        if body.get("payoutMethod") != "SBP" or body.get("currency") != "RUB":
            raise Rejected("ERROR.INVALID_REQUEST")
        if body.get("account") != ACCOUNT:
            raise Rejected("ERROR.ACCOUNT_IS_NOT_REGISTERED")
        check_texts(body, paymentDetails=140)
        amount, number = amount_in(body, "ERROR.INVALID_REQUEST"), body.get("id", "")
        if not _PAYOUT_ID.match(number) or number in self.payouts or amount > 600_000:
            raise Rejected("ERROR.INVALID_REQUEST")
        if self.next_payout == "INSUFFICIENT_FUNDS":
            self.next_payout = ""
            raise Rejected("ERROR.INSUFFICIENT_FUNDS")
        reason, self.next_payout, at = self.next_payout, "", self._moment()
        end = {"value": "DECLINED", "declineReason": reason} if reason else {"value": "COMPLETED"}
        status = {"value": "IN_PROGRESS", "date": at}
        self.payouts[number] = {**body, "createDate": at, "status": status, "end": {**end, "date": at}}
        self._hurry()
        return self._show_payout({"id": number}, None)

    def _show_payout(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        payout = found_in(self.payouts, parts["id"], status=404)
        return {name: value for name, value in payout.items() if name != "end"}
