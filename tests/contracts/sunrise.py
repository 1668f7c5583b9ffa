"""A bank for tests of the shipped suites: an adapter that keeps every rule, its harness, and a fake of its provider.

The provider differs from that of examples/own_bank in all that makes adapters go wrong: amounts in roubles as text,
order numbers that are too short for our ids, transfers numbered within their invoice, a repeat that it answers with
"duplicate", and a signature over more than the body. Planted bugs change one step of the adapter each
(planted_bugs.py)."""

import hashlib
import hmac
import json
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import httpx2
import msgspec

import cambist
from cambist.conformance import Asked, BankHarness
from cambist.ports import (
    BankCapabilities,
    Forged,
    InboundNotification,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    NotConfigured,
    Notification,
    OutcomeUnknown,
    ProviderNote,
    Received,
    RefundRequest,
    RefundState,
    RefundStatus,
    Refused,
    Transfer,
    Unavailable,
    short_operation,
)
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

T = TypeVar("T")
NAME, TOKEN, SECRET = "sunrise", "a-token-that-must-not-show", "a-secret-that-must-not-show"
_LONGEST = 36
_STATUSES = {
    "new": InvoiceStatus.OPEN,
    "paid": InvoiceStatus.PAID,
    "declined": InvoiceStatus.FAILED,
    "expired": InvoiceStatus.EXPIRED,
}
_REFUNDS = {
    "working": RefundStatus.PROCESSING,
    "done": RefundStatus.DONE,
    "failed": RefundStatus.FAILED,
    "returned": RefundStatus.REVERSED,
}
_FAILURES = {"LIMIT": "declined_by_bank"}
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Came(msgspec.Struct):
    no: str
    rub: str
    fee: str
    at: datetime
    back: bool = False


class Bill(msgspec.Struct):
    id: str
    qr: str
    state: str
    rub: str
    payments: list[Came]
    reason: str | None = None


class Sent(msgspec.Struct):
    state: str


class Told(msgspec.Struct):
    order: str


class SunriseBank:
    """Implement cambist.ports.Bank and Notifications, one small method for each decision."""

    name = NAME
    capabilities = BankCapabilities(own_lifetime=True, sends_notifications=True, max_kopecks=10**15)
    notification_networks: tuple[str, ...] = ()
    timeout: float | None = 15
    follows = False

    def __init__(self, tools: cambist.Tools, url: str) -> None:
        self.notes = tools.operation_log(NAME, Told)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.http = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=self.timeout, follow_redirects=self.follows
        )

    def __repr__(self) -> str:
        return "<SunriseBank>"

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        order = self.order(request.operation)
        await self.note(request.operation, order)
        try:
            made = await self.write("/orders", self.bill(request, order), Bill)
        except Refused as refused:
            if refused.reason != "DUPLICATE":
                raise
            found = await self.after_duplicate(f"/orders/{order}", Bill)
            return self.invoice(found)
        return self.invoice(made)

    async def find_invoice(self, operation: str) -> Invoice | None:
        found = await self.read(f"/orders/{self.order(operation)}", Bill)
        return None if found is None else self.invoice(found)

    async def invoice_state(self, reference: str) -> InvoiceState:
        found = await self.read(f"/bills/{reference}", Bill)
        if found is None:
            raise Refused("sunrise knows no such bill", reason="not_found")
        return self.state(reference, found)

    async def refund(self, request: RefundRequest) -> RefundState:
        number = self.refund_number(request.operation)
        try:
            sent = await self.write("/refunds", self.back(request, number), Sent)
        except Refused as refused:
            if refused.reason != "DUPLICATE":
                raise
            sent = await self.after_duplicate(f"/refunds/{number}", Sent)
        return RefundState(status=self.refund_status(sent.state))

    async def find_refund(self, operation: str) -> RefundState | None:
        found = await self.read(f"/refunds/{self.refund_number(operation)}", Sent)
        return None if found is None else RefundState(status=self.refund_status(found.state))

    async def receive(self, notification: InboundNotification) -> Received:
        if not hmac.compare_digest(self.signature(notification), self.sent_signature(notification)):
            raise Forged("the signature is wrong")
        try:
            order = msgspec.json.decode(notification.body, type=Told).order
        except (msgspec.DecodeError, RecursionError):
            raise Forged("it is no notification") from None
        operation = await self.named(order)
        return Received(notifications=() if operation is None else (Notification(operation=operation),))

    async def check(self) -> None:
        await self.read("/me", dict[str, str])

    async def close(self) -> None:
        await self.http.aclose()

    def order(self, operation: str) -> str:
        return short_operation(operation)

    def refund_number(self, operation: str) -> str:
        return self.order(operation)

    def rub(self, kopecks: int) -> str:
        return f"{kopecks // 100}.{kopecks % 100:02d}" if kopecks >= 0 else "0.00"

    def kopecks(self, rub: str) -> int:
        return int(Decimal(rub) * 100)

    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        return {
            "order": order,
            "rub": self.rub(request.amount_kopecks),
            "note": request.purpose,
            "till": request.expires_at.isoformat(),
        }

    def back(self, request: RefundRequest, number: str) -> dict[str, Any]:
        rub = self.rub(request.amount_kopecks)
        return {"order": number, "bill": request.reference, "rub": rub, "payment": request.transfer}

    def invoice(self, bill: Bill) -> Invoice:
        return Invoice(reference=bill.id, payload=bill.qr, link=bill.qr)

    def state(self, reference: str, bill: Bill) -> InvoiceState:
        status = self.status(bill.state)
        failure = self.failure(bill.reason) if status is InvoiceStatus.FAILED else None
        return InvoiceState(reference=reference, status=status, transfers=self.transfers(bill), failure=failure)

    def status(self, word: str) -> InvoiceStatus:
        return _STATUSES.get(word, InvoiceStatus.PROCESSING)

    def failure(self, reason: str | None) -> str:
        return _FAILURES.get(reason or "", "unknown")

    def transfers(self, bill: Bill) -> tuple[Transfer, ...]:
        return tuple(self.transfer(each, bill) for each in bill.payments)

    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return Transfer(id=came.no, amount_kopecks=self.kopecks(came.rub), at=came.at, taken_back=came.back)

    def refund_status(self, word: str) -> RefundStatus:
        return _REFUNDS.get(word, RefundStatus.PROCESSING)

    async def note(self, operation: str, order: str) -> None:
        """Note whose order it is, before the provider can send a notification about it."""
        with suppress(Unavailable):
            await self.notes.remember(operation, Told(order), reference=order)

    async def named(self, order: str) -> str | None:
        return await self.notes.operation_of(order)

    def signature(self, notification: InboundNotification) -> bytes:
        at = notification.headers.get("x-at", "").encode("utf-8", "surrogatepass")
        return hmac.new(SECRET.encode(), at + b"." + notification.body, hashlib.sha256).hexdigest().encode()

    def sent_signature(self, notification: InboundNotification) -> bytes:
        return notification.headers.get("x-signature", "").encode("utf-8", "surrogatepass")

    async def after_duplicate(self, path: str, kind: type[T]) -> T:
        """Return what the first call made. The provider says that there is such an order, so nothing else is known."""
        try:
            found = await self.read(path, kind)
        except Unavailable as fault:
            raise OutcomeUnknown("sunrise has it, and does not show it") from fault
        if found is None:
            raise OutcomeUnknown("sunrise has it, and does not show it")
        return found

    async def write(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        self.check_open()
        try:
            answer = await self.http.post(path, json=body)
        except _NOT_SENT as error:
            raise Unavailable("sunrise cannot be reached") from error
        except httpx2.HTTPError as error:
            raise self.no_answer(error) from error
        self.check_answer(answer)
        if answer.status_code == 429:
            raise self.busy(answer)
        if 400 <= answer.status_code < 500:
            raise Refused("sunrise refused", reason=_code(answer))
        if not answer.is_success:
            raise self.failed(answer)
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (ValueError, RecursionError) as error:
            raise self.unreadable() from error

    async def read(self, path: str, kind: type[T]) -> T | None:
        self.check_open()
        try:
            answer = await self.http.get(path)
            self.check_answer(answer)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=kind)
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise Unavailable("sunrise did not answer a question") from error

    def check_open(self) -> None:
        if self.http.is_closed:
            raise Unavailable("the adapter is closed")

    def check_answer(self, answer: httpx2.Response) -> None:
        if answer.status_code in (401, 403):
            raise NotConfigured("sunrise does not take our token")

    def no_answer(self, error: Exception) -> Exception:
        return OutcomeUnknown("sunrise gave no answer")

    def busy(self, answer: httpx2.Response) -> Exception:
        said = answer.headers.get("Retry-After", "")
        return Unavailable("sunrise is busy", retry_after=float(said) if said.isdecimal() else None)

    def failed(self, answer: httpx2.Response) -> Exception:
        return OutcomeUnknown(f"sunrise answered {answer.status_code}")

    def unreadable(self) -> Exception:
        return OutcomeUnknown("sunrise's answer cannot be read")


def _code(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["code"])
    except (ValueError, KeyError, TypeError):
        return "unknown"


class Sunrise(FakeProvider):
    """The provider. It is strict: amounts are text of two decimals, and an order number counts once."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.next_refund = "done"
        self.on("POST", "/orders", self._order)
        self.on("GET", "/orders/{order}", lambda request: _found(self.orders.get(request.parts["order"])))
        self.on("GET", "/bills/{id}", lambda request: _found(self.of_id(request.parts["id"])))
        self.on("POST", "/refunds", self._refund)
        self.on("GET", "/refunds/{order}", lambda request: _found(self.refunds.get(request.parts["order"])))
        self.on("GET", "/me", lambda _: ProviderAnswer.of_json({"name": "shop"}))

    def of_id(self, bill_id: str) -> dict[str, Any] | None:
        return next((each for each in self.orders.values() if each["id"] == bill_id), None)

    def pay(self, order: str, kopecks: int, at: str) -> None:
        bill = self.orders[order]
        bill["state"] = "paid"
        number, rub = str(len(bill["payments"]) + 1), f"{kopecks // 100}.{kopecks % 100:02d}"
        bill["payments"].append({"no": number, "rub": rub, "fee": f"{kopecks * 4 // 100_000}.00", "at": at})

    def _order(self, request: ProviderRequest) -> ProviderAnswer:
        body = json.loads(request.body)
        if not 0 < len(body["order"]) <= _LONGEST:
            return _refused("ORDER")
        if body["order"] in self.orders:
            return _refused("DUPLICATE", 409)
        if _kopecks(body["rub"]) <= 0:
            return _refused("AMOUNT")
        bill_id = f"b{len(self.orders) + 1}"
        qr = f"https://qr.nspk.example/{bill_id}"
        made = {"id": bill_id, "qr": qr, "state": "new", "payments": [], "note": None, "till": None, **body}
        self.orders[body["order"]] = made
        return ProviderAnswer.of_json(made)

    def _refund(self, request: ProviderRequest) -> ProviderAnswer:
        body = json.loads(request.body)
        if body["order"] in self.refunds:
            return _refused("DUPLICATE", 409)
        bill = self.of_id(body["bill"])
        if bill is None:
            return _refused("not_found")
        if not bill["payments"]:
            return _refused("not_paid")
        if body["payment"] not in (None, *(each["no"] for each in bill["payments"])):
            return _refused("not_found")
        left = min(self._left(bill, None), self._left(bill, body["payment"]))
        if not 0 < _kopecks(body["rub"]) <= left:
            return _refused("amount")
        self.refunds[body["order"]] = {**body, "state": self.next_refund}
        return ProviderAnswer.of_json(self.refunds[body["order"]])

    def _left(self, bill: dict[str, Any], payment: str | None) -> int:
        came = [each for each in bill["payments"] if payment in (None, each["no"])]
        sent = [each for each in self.refunds.values() if each["bill"] == bill["id"] and each["state"] != "failed"]
        gone = [each for each in sent if payment in (None, each["payment"])]
        return sum(_kopecks(each["rub"]) for each in came) - sum(_kopecks(each["rub"]) for each in gone)


def _kopecks(rub: str) -> int:
    return round(Decimal(rub) * 100)


def _found(what: dict[str, Any] | None) -> ProviderAnswer:
    return ProviderAnswer(status=404) if what is None else ProviderAnswer.of_json(what)


def _refused(code: str, status: int = 422) -> ProviderAnswer:
    return ProviderAnswer.of_json({"code": code}, status=status)


class SunriseHarness(BankHarness):
    """The adapter over the fake, or an adapter with a bug."""

    secrets = (TOKEN, SECRET)
    ahead = timedelta(0)

    def __init__(self, tools: cambist.Tools, provider: Sunrise, kind: type[SunriseBank] = SunriseBank) -> None:
        self.tools, self.kind = tools, kind
        self.provider = self.books = provider
        self.banks: list[SunriseBank] = []
        self.bank = self.another()

    def another(self) -> SunriseBank:
        self.banks.append(self.kind(self.tools, self.books.url))
        return self.banks[-1]

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        self.books.pay(self._bill(invoice)["order"], kopecks, (self.clock.now() + self.ahead).isoformat())

    async def asked(self, operation: str) -> Asked:
        number = short_operation(operation)
        if number in self.books.refunds:
            return Asked(amount_kopecks=_kopecks(self.books.refunds[number]["rub"]), order=number)
        bill = self.books.orders[number]
        ends_at = bill["till"]
        return Asked(
            amount_kopecks=_kopecks(bill["rub"]),
            order=bill["order"],
            purpose=bill["note"],
            expires_at=ends_at and datetime.fromisoformat(ends_at),
        )

    async def decline(self, operation: str, invoice: Invoice) -> None:
        self._bill(invoice).update(state="declined", reason="LIMIT")

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        self._bill(invoice)["state"] = "expired"

    async def take_back(self, operation: str, invoice: Invoice) -> None:
        for payment in self._bill(invoice)["payments"]:
            payment["back"] = True

    async def reverse_refund(self, operation: str) -> None:
        self.books.refunds[short_operation(operation)]["state"] = "returned"

    async def say_unknown_status(self, operation: str) -> None:
        {**self.books.orders, **self.books.refunds}[short_operation(operation)]["state"] = "under_review"

    async def hold_next_refund(self) -> None:
        self.books.next_refund = "working"

    async def fail_next_refund(self) -> None:
        self.books.next_refund = "failed"

    async def finish_refunds(self) -> None:
        for refund in self.books.refunds.values():
            if refund["state"] == "working":
                refund["state"] = "done"

    async def notification(self, operation: str) -> InboundNotification:
        at, body = self.clock.now().isoformat(), json.dumps({"order": short_operation(operation)}).encode()
        signature = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"x-at": at, "x-signature": signature}
        return InboundNotification(headers=headers, body=body, query={}, address="203.0.113.5")

    def forge(self, notification: InboundNotification, operation: str, other: str) -> InboundNotification:
        return super().forge(notification, short_operation(operation), short_operation(other))

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def skew(self, span: timedelta) -> None:
        self.ahead = span

    async def pass_time(self, span: timedelta) -> None:
        """Do nothing: the provider knows its orders for ever."""

    def _bill(self, invoice: Invoice) -> dict[str, Any]:
        found = self.books.of_id(invoice.reference)
        assert found is not None, "the harness knows the invoice by its reference"
        return found
