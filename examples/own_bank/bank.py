"""A small but complete bank adapter of your own, based on httpx2, for an imaginary provider with an HTTP/JSON API.

These rules make it correct. The operation id is the provider's idempotency key. Every call ends in one of three
outcomes. The provider's own id is noted beside our operation, so that it can be found after a crash. A notification is
verified by its signature, and even then only triggers a poll.

`pyproject.toml` of the package:

    [project.entry-points."cambist.banks"]
    example = "examples.own_bank.bank:example"

`cambist.toml` of the installation: `banks = ["example"]`. Its settings are `ExampleSettings`: CAMBIST_EXAMPLE_URL and
CAMBIST_EXAMPLE_TOKEN, which `cambist config check` shows like cambist's own. `cambist notification list` shows the
notification address to enter at the provider.
"""

import hashlib
import hmac
import ssl
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar

import httpx2
import msgspec

import cambist
from cambist.ports import (
    AdapterFactory,
    AdapterSettings,
    Bank,
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
    Received,
    RefundRequest,
    RefundState,
    RefundStatus,
    Refused,
    Transfer,
    Unavailable,
    read_address,
    read_credential,
    setting,
)

A = TypeVar("A")

NAME = "example"
"""Stored with every payment through this bank, so it must never change."""

_STATUSES = {
    "new": InvoiceStatus.OPEN,
    "paid": InvoiceStatus.PAID,
    "declined": InvoiceStatus.FAILED,
    "expired": InvoiceStatus.EXPIRED,
}
_REFUNDS = {
    "sent": RefundStatus.DONE,
    "failed": RefundStatus.FAILED,
    "returned": RefundStatus.REVERSED,
    "in_progress": RefundStatus.PROCESSING,
}
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class _Told(msgspec.Struct):
    """Notification of the provider."""

    key: str
    """Idempotency key of the object: our operation."""


class _Made(msgspec.Struct):
    """Answer about a new invoice. Answers are decoded into the required fields only; one without them is unreadable."""

    id: str
    qr: str


class _Came(msgspec.Struct):
    id: str
    amount: int
    at: datetime
    charged_back: bool = False


class _Shown(msgspec.Struct):
    status: str
    transfers: list[_Came]


class _Sent(msgspec.Struct):
    status: str
    error: str | None = None


class _Account(msgspec.Struct):
    account: str


@cache
def _authorities() -> ssl.SSLContext:
    """Load the machine's trust store once for all clients, because it takes 30 ms."""
    return ssl.create_default_context()


class ExampleSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of the bank. Both have no default, so they must be set."""

    url: Annotated[str, setting("address of the provider's API", read_address)]
    token: Annotated[str, setting("the API's token, which also signs notifications", read_credential, secret=True)]


class ExampleBank:
    """Implement cambist.ports.Bank and Notifications."""

    def __init__(self, tools: cambist.Tools, url: str, token: str) -> None:
        self._notes = tools.operation_log(NAME, Invoice)
        self._token = token
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=15, verify=_authorities())

    def __repr__(self) -> str:
        return "<ExampleBank>"

    @property
    def name(self) -> str:
        return NAME

    @property
    def capabilities(self) -> BankCapabilities:
        """Declare the adapter's capabilities. The core uses no others."""
        return BankCapabilities(own_lifetime=True, refunds=True, sends_notifications=True)

    @property
    def notification_networks(self) -> tuple[str, ...]:
        """The imaginary provider publishes no networks; its signature is the proof."""
        return ()

    async def receive(self, notification: InboundNotification) -> Received:
        """Verify the signature over the raw bytes before decoding them."""
        expected = hmac.new(self._token.encode(), notification.body, hashlib.sha256).hexdigest()
        told = notification.headers.get("x-signature", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(expected.encode(), told):
            raise Forged("the signature is wrong")
        try:
            operation = msgspec.json.decode(notification.body, type=_Told).key
        except (msgspec.DecodeError, RecursionError):
            raise Forged("it is no notification") from None
        return Received(notifications=(Notification(operation=operation),), body=b"OK")

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        body = {
            "amount": request.amount_kopecks,
            "purpose": request.purpose,
            "expires_at": request.expires_at.isoformat(),
        }
        invoice = _invoice(await self._write("/invoices", request.operation, body, _Made))
        with suppress(Unavailable):  # the provider can also be asked by our operation
            await self._notes.remember(request.operation, invoice)
        return invoice

    async def find_invoice(self, operation: str) -> Invoice | None:
        """Return the noted invoice if there is one, which saves a request to the provider at every poll."""
        noted = await self._notes.read(operation)
        if noted is not None:
            return noted
        found = await self._read("/invoices/by-key", _Made, key=operation)
        return None if found is None else _invoice(found)

    async def invoice_state(self, reference: str) -> InvoiceState:
        found = await self._read(f"/invoices/{reference}", _Shown)
        if found is None:
            raise Refused("the bank knows no such invoice", reason="not_found")
        status = _STATUSES.get(found.status, InvoiceStatus.PROCESSING)
        transfers = tuple(_transfer(each) for each in found.transfers)
        failure = "declined_by_bank" if status is InvoiceStatus.FAILED else None
        return InvoiceState(reference=reference, status=status, transfers=transfers, failure=failure)

    async def refund(self, request: RefundRequest) -> RefundState:
        body = {"invoice": request.reference, "amount": request.amount_kopecks, "transfer": request.transfer}
        return _refund(await self._write("/refunds", request.operation, body, _Sent))

    async def find_refund(self, operation: str) -> RefundState | None:
        found = await self._read("/refunds/by-key", _Sent, key=operation)
        return None if found is None else _refund(found)

    async def check(self) -> None:
        """Check that the provider accepts our token. The service calls this at the start, and so does `cambist
        doctor`."""
        if await self._read("/me", _Account) is None:
            raise NotConfigured("the bank knows no account of ours")

    async def close(self) -> None:
        """Close the connections. The app calls this for each adapter it creates."""
        await self._http.aclose()

    async def _write(self, path: str, operation: str, body: dict[str, Any], kind: type[A]) -> A:
        """Send one operation, with its three possible outcomes."""
        self._check_open()
        try:
            answer = await self._http.post(path, json=body, headers={"Idempotency-Key": operation})
        except _NOT_SENT as error:
            raise Unavailable("the bank cannot be reached") from error  # nothing was sent, so another bank may be tried
        except httpx2.HTTPError as error:
            raise OutcomeUnknown("the bank gave no answer") from error  # it may have been done
        _check_token(answer)
        if answer.status_code == 429:
            raise Unavailable("the bank is busy", retry_after=_retry_after(answer))  # the call was not executed
        if 400 <= answer.status_code < 500:
            raise Refused("the bank refused", reason=_reason(answer))
        if not answer.is_success:
            raise OutcomeUnknown(f"the bank answered {answer.status_code}")  # a 5xx, or an unexpected redirect
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (ValueError, RecursionError) as error:
            raise OutcomeUnknown("the bank's answer cannot be read") from error

    async def _read(self, path: str, kind: type[A], **params: str) -> A | None:
        """Read an object. Any failed read is Unavailable, because it says nothing about the operation. Only a rejected
        token is NotConfigured, because an operator must fix it."""
        self._check_open()
        try:
            answer = await self._http.get(path, params=params)
            _check_token(answer)
            if answer.status_code == 404:
                return None
            if answer.status_code == 429:
                raise Unavailable("the bank is busy", retry_after=_retry_after(answer))
            answer.raise_for_status()  # this raises for redirects too
            return msgspec.json.decode(answer.content, type=kind)
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise Unavailable("the bank did not answer a question") from error

    def _check_open(self) -> None:
        """Raise Unavailable for a call during shutdown, because it certainly was not sent."""
        if self._http.is_closed:
            raise Unavailable("the adapter is closed")


def _check_token(answer: httpx2.Response) -> None:
    if answer.status_code in (401, 403):
        raise NotConfigured("the bank does not take our token")


def _retry_after(answer: httpx2.Response) -> float | None:
    """Return the seconds of Retry-After. A date or any other text is ignored."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else None


def _invoice(said: _Made) -> Invoice:
    return Invoice(reference=said.id, payload=said.qr, link=said.qr)


def _transfer(said: _Came) -> Transfer:
    return Transfer(id=said.id, amount_kopecks=said.amount, at=said.at, taken_back=said.charged_back)


def _refund(said: _Sent) -> RefundState:
    return RefundState(status=_REFUNDS.get(said.status, RefundStatus.PROCESSING), failure=said.error)


def _reason(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        return "unknown"


def _make(tools: cambist.Tools, own: ExampleSettings) -> Bank:
    """Build the adapter. The return type is the protocol, so that mypy and pyright check the class against it."""
    return ExampleBank(tools, own.url, own.token)


example = AdapterFactory(settings=ExampleSettings, make=_make)
"""The entry point names it."""
