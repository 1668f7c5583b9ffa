"""The imaginary provider that bank.py speaks to, as a fake for tests: it keeps its books in memory and posts notices;
what goes wrong on the wire is the FakeProvider's."""

import hashlib
import hmac
import json
from typing import Any

import httpx

from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest


class Provider(FakeProvider):
    """Every key makes one thing, however often it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.invoices: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.next_refund = "sent"
        """The status of the refunds to come."""
        self.on("GET", "/me", lambda _: ProviderAnswer.of_json({"account": "example"}))
        self.on("POST", "/invoices", self.make_invoice)
        self.on("GET", "/invoices/{id}", lambda request: _found(self._by_id(request.parts["id"])))
        self.on("GET", "/invoices/by-key", lambda request: _found(self.invoices.get(request.query["key"])))
        self.on("POST", "/refunds", self._refund)
        self.on("GET", "/refunds/by-key", lambda request: _found(self.refunds.get(request.query["key"])))

    @staticmethod
    def notice(key: str, token: str) -> tuple[bytes, dict[str, str]]:
        """Body and headers of what it posts about the operation of this key."""
        body = json.dumps({"event": "changed", "key": key}).encode()
        signature = hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
        return body, {"Content-Type": "application/json", "X-Signature": signature}

    async def post_notice(self, address: str, key: str, token: str) -> httpx.Response:
        """Post one to the address that was entered at the provider."""
        body, headers = self.notice(key, token)
        async with httpx.AsyncClient(timeout=10) as http:
            return await http.post(address, content=body, headers=headers)

    def pay(self, key: str, amount: int, at: str) -> None:
        """A payer pays."""
        invoice = self.invoices[key]
        invoice["status"] = "paid"
        invoice["transfers"].append({"id": f"tr-{len(invoice['transfers']) + 1}-{key}", "amount": amount, "at": at})

    def _by_id(self, reference: str) -> dict[str, Any] | None:
        return next((each for each in self.invoices.values() if each["id"] == reference), None)

    def make_invoice(self, request: ProviderRequest) -> ProviderAnswer:
        """Make one, or show the one of this key."""
        if json.loads(request.body)["amount"] <= 0:
            return _refused("amount")
        number = len(self.invoices) + 1
        made = {"id": f"inv-{number}", "qr": f"https://qr.nspk.example/{number}", "status": "new", "transfers": []}
        made["amount"] = json.loads(request.body)["amount"]
        return ProviderAnswer.of_json(self.invoices.setdefault(request.headers["idempotency-key"], made))

    def _refund(self, request: ProviderRequest) -> ProviderAnswer:
        body, key = json.loads(request.body), request.headers["idempotency-key"]
        if key in self.refunds:
            return ProviderAnswer.of_json(self.refunds[key])
        invoice = self._by_id(body["invoice"])
        if invoice is None:
            return _refused("not_found")
        came = sum(each["amount"] for each in invoice["transfers"])
        gone = sum(each["amount"] for each in self.refunds.values() if each["invoice"] == invoice["id"])
        if not came:
            return _refused("not_paid")
        if not 0 < body["amount"] <= came - gone:
            return _refused("amount")
        self.refunds[key] = {"status": self.next_refund, "amount": body["amount"], "invoice": invoice["id"]}
        return ProviderAnswer.of_json(self.refunds[key])


def _found(what: dict[str, Any] | None) -> ProviderAnswer:
    return ProviderAnswer(status=404) if what is None else ProviderAnswer.of_json(what)


def _refused(reason: str) -> ProviderAnswer:
    return ProviderAnswer.of_json({"reason": reason}, status=422)
