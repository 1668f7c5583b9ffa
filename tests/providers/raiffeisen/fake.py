"""Raiffeisenbank's SBP interface as a fake: as strict as its documents are, and where they are silent as unkind as it
may be. Registering a second QR for an order that nobody paid gives a second QR; a refund's, payout's or subscription's
number counts once; a declined charge is tried again when its order is sent again."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx

from cambist.testing import ProviderAnswer, ProviderRequest
from tests.providers.raiffeisen.fake_receipts import FakeReceipts
from tests.providers.raiffeisen.fake_rules import (
    MERCHANT,
    PAYOUT_SECRET,
    Rejected,
    amount_in,
    bank_list,
    check_texts,
    found_in,
    json_of,
    number_in,
    plain,
    posted,
    shown_qr,
    spelt_moment,
)

_QR_FIELDS = {
    *("qrType", "sbpMerchantId", "order", "amount", "currency", "qrExpirationDate", "additionalInfo", "paymentDetails"),
    *("redirectUrl", "account", "subscription", "extra", "qrDescription", "createDate"),
}


class Raiffeisen(FakeReceipts):
    """Its books in memory. `url` with `/api` is the base address."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(now)
        self.callback: str | None = None
        self.calls: Counter[str] = Counter()
        self.knows_orders = True
        """Whether an order can be looked up by its number; the bank's documents leave this open for registered QRs."""
        free, shop, paying = self._anybody, self._shop, self._payer_of_people
        self._endpoint("POST", "/sbp/v2/qrs", free, self._register)
        self._endpoint("GET", "/sbp/v2/qrs/{id}", shop, self._qr)
        self._endpoint("DELETE", "/sbp/v2/qrs/{id}", shop, self._cancel)
        self._endpoint("GET", "/sbp/v1/qr/{id}/payment-info", shop, self._payment_info, coded=True)
        self._endpoint("POST", "/sbp/v1/refund", shop, self._refund, coded=True)
        self._endpoint("GET", "/sbp/v1/refund/{id}", shop, self._show_refund, coded=True)
        self._endpoint("GET", "/payment/v1/orders/{id}", shop, self._order)
        self._endpoint("POST", "/sbp/v1/subscriptions", free, self._subscribe)
        self._endpoint("GET", "/sbp/v1/subscriptions/{id}", shop, self._subscription)
        self._endpoint("POST", "/sbp/v1/subscriptions/{id}/orders", shop, self._charge)
        self._endpoint("GET", "/sbp/v1/subscriptions/{id}/orders/{order}", shop, self._show_charge)
        self._endpoint("GET", "/payout/v1/sbp/banks", paying, lambda *_: bank_list())
        self._endpoint("POST", "/payout/v1/payouts", paying, self._pay_out)
        self._endpoint("GET", "/payout/v1/payouts/{id}", paying, self._show_payout)
        self._endpoint("POST", "/settings/v1/callback", shop, self._set_callback)
        for side in ("sell", "refund"):
            self._receipts(f"/fiscal/v1/receipts/{side}", side)

    def _receipts(self, path: str, side: str) -> None:
        shop = self._shop
        self._endpoint("POST", path, shop, lambda _, body: self._save_receipt(side, body))
        self._endpoint("PUT", f"{path}/{{id}}", shop, lambda parts, _: self._register_receipt(side, parts["id"]))
        self._endpoint("GET", f"{path}/{{id}}", shop, lambda parts, _: self._show_receipt(side, parts["id"]))

    def denial(self, status: int) -> ProviderAnswer:
        return ProviderAnswer.of_json({"status": status, "error": "Unauthorized", "path": "/api"}, status)

    def pay(self, qr_id: str) -> None:
        """Let a payer scan the QR and pay its amount."""
        qr = self.qrs[qr_id]
        assert self.shown(qr) == "NEW", f"nobody can pay a QR that is {self.shown(qr)}"
        self._number += 1
        qr |= {"status": "PAID", "payment": "SUCCESS", "transaction": self._number, "at": self._moment()}

    def decline(self, qr_id: str) -> None:
        """A payer scans it, and the payer's bank will not pay."""
        self.qrs[qr_id]["payment"] = "DECLINED"

    def subscribe(self, number: str, *, paying: bool = True) -> None:
        """A payer confirms a subscription, and pays its first charge where there is one."""
        subscription = self.subscriptions[number]
        if paying and self.qrs[subscription["qr"]["id"]]["amount"] is not None:
            self.pay(subscription["qr"]["id"])
        subscription["status"] = "SUBSCRIBED"

    def notification(self, order: str, amount: str | None = None) -> tuple[bytes, dict[str, str]]:
        """Return body and headers of the bank's notification about this order's payment. `amount` is copied
        literally."""
        qr = next((each for each in self.qrs.values() if each["order"] == order), {})
        spelt = amount or str(qr.get("amount", "1.00"))
        at, status = qr.get("at") or self._moment(), qr.get("payment", "SUCCESS")
        signed = f"{spelt}|{MERCHANT}|{order}|{status}|{at}"
        body = {
            "transactionId": 41,
            "qrId": qr.get("qrId", "AS100032PQ7739G58NCQ457RA2OG82JP"),
            "sbpMerchantId": MERCHANT,
            "merchantId": 123,
            "amount": "AMOUNT",
            "currency": "RUB",
            "transactionDate": at,
            "paymentStatus": status,
            "additionalInfo": None,
            "order": order,
            "createDate": at,
        }
        return posted(body, spelt, signed, self.merchants[MERCHANT])

    def payout_notification(self, number: str, amount: str = "0.01") -> tuple[bytes, dict[str, str]]:
        """Return body and headers of the bank's notification about this completed payout."""
        at = self._moment()
        payout = {
            "id": number,
            "amount": "AMOUNT",
            "currency": "RUB",
            "payoutMethod": "SBP",
            "payoutParams": {"phone": "79990000001", "bankAlias": "RAIFFEISEN"},
            "status": {"value": "COMPLETED", "date": at},
            "creationDate": at,
        }
        signed = f"{amount}|{number}|COMPLETED|{at}"
        return posted({"event": "payout", "payout": payout}, amount, signed, PAYOUT_SECRET)

    def subscription_notification(self, number: str) -> tuple[bytes, dict[str, str]]:
        """Return the bank's notification about this subscription. It is not signed."""
        told = {"event": "subscription", "subscription": self.subscriptions[number]}
        return json.dumps(told).encode(), {"Content-Type": "application/json"}

    async def post(self, address: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post a notification to the address that was entered in its cabinet."""
        async with httpx.AsyncClient(timeout=10) as http:
            return (await http.post(address, content=body, headers=headers)).status_code

    def _endpoint(
        self, method: str, path: str, who: Callable[[ProviderRequest], None], handler: Any, *, coded: bool = False
    ) -> None:
        """Serve an endpoint. `coded`: it belongs to the first API version, which answers status 200 with an error
        code."""

        def answer(request: ProviderRequest) -> ProviderAnswer:
            self.calls[f"{method} {path}"] += 1
            try:
                who(request)
                body = json_of(request) if method == "POST" else {}
                said = handler(request.parts, body)
            except PermissionError:
                return self.denial(401)
            except Rejected as no:
                told = {"code": no.code, "message": "Не выполнено"}
                return ProviderAnswer.of_json(told, 200 if coded else no.status)
            if said is None:
                return ProviderAnswer()
            return plain(({"code": "SUCCESS"} | said) if coded else said)

        self.on(method, f"/api{path}", answer)

    def _anybody(self, request: ProviderRequest) -> None:
        """Let registrations in without a key. A key that is sent has to be right."""
        if "authorization" in request.headers:
            self._shop(request)

    def _shop(self, request: ProviderRequest) -> None:
        if request.headers.get("authorization") not in {f"Bearer {key}" for key in self.merchants.values()}:
            raise PermissionError

    def _payer_of_people(self, request: ProviderRequest) -> None:
        if request.headers.get("authorization") != f"Bearer {PAYOUT_SECRET}":
            raise PermissionError

    def _register(self, _: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        if body.keys() - _QR_FIELDS or body.get("qrType") not in ("QRDynamic", "QRStatic"):
            raise Rejected("ERROR.INVALID_REQUEST")
        self._check_merchant(body)
        order = number_in(body, "order", "ERROR.INVALID_ORDER")
        if body["qrType"] == "QRDynamic" and "amount" not in body:
            raise Rejected("ERROR.DYNAMIC_QR_WITHOUT_AMOUNT")
        amount = amount_in(body, "ERROR.INVALID_PAYMENT_AMOUNT") if "amount" in body else None
        if body.get("currency", "RUB") != "RUB":
            raise Rejected("ERROR.INVALID_REQUEST")
        check_texts(body, additionalInfo=140, paymentDetails=185)
        expires = self._expiry(body)
        if any(each["order"] == order and each["payment"] == "SUCCESS" for each in self.qrs.values()):
            raise Rejected("ERROR.ORDER_NUMBER_ALREADY_REGISTERED")
        wished = body.get("subscription")
        if wished is not None and (wished["id"] in self.subscriptions or not wished["subscriptionPurpose"]):
            raise Rejected("ERROR.INVALID_REQUEST")
        qr = self._new_qr(order, amount, expires, "02")
        qr["paymentDetails"] = body.get("paymentDetails")
        if wished is not None:
            self._new_subscription(wished["id"], qr)
        return shown_qr(qr) | ({} if wished is None else {"subscriptionId": wished["id"]})

    def _expiry(self, body: Mapping[str, Any]) -> datetime:
        if "qrExpirationDate" not in body:
            return self.now() + timedelta(days=3)
        try:
            expires = datetime.fromisoformat(body["qrExpirationDate"])
        except ValueError:
            expires = self.now()
        if expires.tzinfo is None or expires <= self.now():
            raise Rejected("ERROR.QR_EXPIRATION_DATE_NOT_VALID")
        return expires

    def shown(self, qr: Mapping[str, Any]) -> str:
        return "EXPIRED" if qr["status"] == "NEW" and qr["expires"] <= self.now() else str(qr["status"])

    def _qr(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        qr = found_in(self.qrs, parts["id"])
        return {**shown_qr(qr), "qrStatus": self.shown(qr), "qrExpirationDate": spelt_moment(qr["expires"])}

    def _cancel(self, parts: Mapping[str, str], _: Any) -> None:
        qr = found_in(self.qrs, parts["id"])
        if self.shown(qr) != "NEW":
            raise Rejected("ERROR.WRONG_QR_STATUS")
        qr["status"] = "CANCELLED"

    def _payment_info(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        qr = found_in(self.qrs, parts["id"])
        paid = {} if "at" not in qr else {"transactionId": qr["transaction"], "transactionDate": qr["at"]}
        return {
            "amount": qr["amount"],
            "createDate": qr["created"],
            "currency": "RUB",
            "merchantId": 123,
            "order": qr["order"],
            "paymentStatus": qr["payment"],
            "qrId": qr["qrId"],
            "sbpMerchantId": MERCHANT,
            "qrExpirationDate": spelt_moment(qr["expires"]),
            **paid,
        }

    def _order(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        """A charge of a subscription is not found here."""
        asked = [each for each in self.qrs.values() if each["order"] == parts["id"] and "charge" not in each]
        qr = next(iter(asked), None)
        if qr is None or not self.knows_orders:
            raise Rejected("ORDER_NOT_FOUND", 404)
        status = {"value": self.shown(qr), "date": qr["created"]}
        return {"id": qr["order"], "amount": qr["amount"], "status": status, "qr": {"id": qr["qrId"]}}

    def _refund(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        if body.keys() - {"amount", "order", "refundId", "paymentDetails", "transactionId"}:
            raise Rejected("ERROR.INVALID_REQUEST")
        order, number = number_in(body, "order"), number_in(body, "refundId")
        amount = amount_in(body, "ERROR.INVALID_REQUEST")
        check_texts(body, paymentDetails=140)
        if number in self.refunds:
            raise Rejected("ERROR.INVALID_REQUEST")
        gone = [each for each in self.refunds.values() if each["order"] == order and each["end"] != "DECLINED"]
        left = self._came(order) - sum(each["amount"] for each in gone)
        if amount > left:
            raise Rejected("ERROR.REFUND_INSUFFICIENT_FUNDS")
        end, self.next_refund = self.next_refund or "COMPLETED", ""
        self.refunds[number] = {"amount": amount, "order": order, "refundStatus": "IN_PROGRESS", "end": end}
        self._hurry()
        return self._show_refund({"id": number}, None)

    def _came(self, order: str) -> Decimal:
        """Raises: Rejected where nothing came by this order."""
        paid = [each["amount"] for each in self.qrs.values() if (each["order"], each["payment"]) == (order, "SUCCESS")]
        if not paid:
            raise Rejected("ERROR.NOT_FOUND")
        return Decimal(sum(paid))

    def _show_refund(self, parts: Mapping[str, str], _: Any) -> dict[str, Any]:
        refund = found_in(self.refunds, parts["id"], "ERROR.REFUND_NOT_FOUND")
        return {"amount": refund["amount"], "refundStatus": refund["refundStatus"]}

    def _set_callback(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        if not str(body.get("callbackUrl", "")).startswith("https://"):
            raise Rejected("ERROR.INVALID_REQUEST")
        self.callback = body["callbackUrl"]
        return {"callbackUrl": self.callback}
