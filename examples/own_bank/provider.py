"""The imaginary provider that bank.py speaks to, as a fake for tests: an httpx transport that keeps its books in
memory, posts notices, and can lose answers or be away."""

import hashlib
import hmac
import json
from typing import Any

import httpx


class Provider(httpx.AsyncBaseTransport):
    """Every key makes one thing, however often it is sent."""

    def __init__(self) -> None:
        self.invoices: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.away = False
        self.revoked = False
        """The token is not taken any more."""
        self.lose: bool | None = None
        """The next writing call gets no answer: True, it is carried out; False, it is not."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("no route", request=request)
        if self.revoked:
            return httpx.Response(401)
        parts = request.url.path.strip("/").split("/")
        if parts == ["me"]:
            return httpx.Response(200, json={"account": "example"})
        if request.method == "GET":
            books = self.invoices if parts[0] == "invoices" else self.refunds
            found = books.get(request.url.params["key"]) if parts[1] == "by-key" else self._by_id(parts[1])
            return httpx.Response(404) if found is None else httpx.Response(200, json=found)
        lose, self.lose = self.lose, None
        if lose is False:
            raise httpx.ReadTimeout("no answer", request=request)
        body = json.loads(await request.aread())
        key = request.headers["Idempotency-Key"]
        answer = self._invoice(key, body) if parts[0] == "invoices" else self._refund(key, body)
        if lose:
            raise httpx.ReadTimeout("no answer", request=request)
        return answer

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

    def _invoice(self, key: str, body: dict[str, Any]) -> httpx.Response:
        if body["amount"] <= 0:
            return httpx.Response(422, json={"reason": "amount"})
        number = len(self.invoices) + 1
        made = {"id": f"inv-{number}", "qr": f"https://qr.nspk.example/{number}", "status": "new", "transfers": []}
        return httpx.Response(200, json=self.invoices.setdefault(key, made))

    def _refund(self, key: str, body: dict[str, Any]) -> httpx.Response:
        if key in self.refunds:
            return httpx.Response(200, json=self.refunds[key])
        invoice = self._by_id(body["invoice"])
        if invoice is None:
            return httpx.Response(422, json={"reason": "not_found"})
        came = sum(each["amount"] for each in invoice["transfers"])
        gone = sum(each["amount"] for each in self.refunds.values() if each["invoice"] == invoice["id"])
        if not came:
            return httpx.Response(422, json={"reason": "not_paid"})
        if not 0 < body["amount"] <= came - gone:
            return httpx.Response(422, json={"reason": "amount"})
        self.refunds[key] = {"status": "sent", "amount": body["amount"], "invoice": invoice["id"]}
        return httpx.Response(200, json=self.refunds[key])
