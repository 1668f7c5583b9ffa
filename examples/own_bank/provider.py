"""Fake of the imaginary provider in bank.py, for tests. It keeps its books in memory and posts notifications; the base
class FakeProvider simulates network faults."""

import hashlib
import hmac
import json
from typing import Any

import httpx2

from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest


class Provider(FakeProvider):
    """Each idempotency key creates one object, however often it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.invoices: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.next_refund = "sent"
        """Status of future refunds."""
        self.on("GET", "/me", lambda _: ProviderAnswer.of_json({"account": "example"}))
        self.on("POST", "/invoices", self.make_invoice)
        self.on("GET", "/invoices/{id}", lambda request: _found(self._by_id(request.parts["id"])))
        self.on("GET", "/invoices/by-key", lambda request: _found(self.invoices.get(request.query["key"])))
        self.on("POST", "/refunds", self._refund)
        self.on("GET", "/refunds/by-key", lambda request: _found(self.refunds.get(request.query["key"])))

    @staticmethod
    def notification(key: str, token: str) -> tuple[bytes, dict[str, str]]:
        """Build body and headers of a notification about the operation with this key."""
        body = json.dumps({"event": "changed", "key": key}).encode()
        signature = hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
        return body, {"Content-Type": "application/json", "X-Signature": signature}

    async def post_notification(self, address: str, key: str, token: str) -> httpx2.Response:
        """Post a notification to the address configured at the provider."""
        body, headers = self.notification(key, token)
        async with httpx2.AsyncClient(timeout=10) as http:
            return await http.post(address, content=body, headers=headers)

    def pay(self, key: str, amount: int, at: str) -> None:
        """Simulate a payment by the payer."""
        invoice = self.invoices[key]
        invoice["status"] = "paid"
        invoice["transfers"].append({"id": f"tr-{len(invoice['transfers']) + 1}-{key}", "amount": amount, "at": at})

    def _by_id(self, reference: str) -> dict[str, Any] | None:
        return next((each for each in self.invoices.values() if each["id"] == reference), None)

    def make_invoice(self, request: ProviderRequest) -> ProviderAnswer:
        """Create an invoice, or return the invoice of this key."""
        asked = json.loads(request.body)
        if asked["amount"] <= 0:
            return _refused("amount")
        number = len(self.invoices) + 1
        made = {"id": f"inv-{number}", "qr": f"https://qr.nspk.example/{number}", "status": "new", "transfers": []}
        made |= {name: asked.get(name) for name in ("amount", "purpose", "expires_at")}
        return ProviderAnswer.of_json(self.invoices.setdefault(request.headers["idempotency-key"], made))

    def _refund(self, request: ProviderRequest) -> ProviderAnswer:
        body, key = json.loads(request.body), request.headers["idempotency-key"]
        if key in self.refunds:
            return ProviderAnswer.of_json(self.refunds[key])
        invoice = self._by_id(body["invoice"])
        if invoice is None:
            return _refused("not_found")
        if not invoice["transfers"]:
            return _refused("not_paid")
        came = [each for each in invoice["transfers"] if body["transfer"] in (None, each["id"])]
        if not came:
            return _refused("not_found")
        if not 0 < body["amount"] <= self._left(invoice, None) or body["amount"] > self._left(
            invoice, body["transfer"]
        ):
            return _refused("amount")
        self.refunds[key] = {**body, "status": self.next_refund}
        return ProviderAnswer.of_json(self.refunds[key])

    def _left(self, invoice: dict[str, Any], transfer: str | None) -> int:
        """Return how much of this transfer, or of all, has not been sent back."""
        came: int = sum(each["amount"] for each in invoice["transfers"] if transfer in (None, each["id"]))
        sent = [r for r in self.refunds.values() if r["invoice"] == invoice["id"] and r["status"] != "failed"]
        gone: int = sum(each["amount"] for each in sent if transfer in (None, each["transfer"]))
        return came - gone


def _found(what: dict[str, Any] | None) -> ProviderAnswer:
    return ProviderAnswer(status=404) if what is None else ProviderAnswer.of_json(what)


def _refused(reason: str) -> ProviderAnswer:
    return ProviderAnswer.of_json({"reason": reason}, status=422)
