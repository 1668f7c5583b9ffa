"""A tour through every operation. `docs/generate.py` uses its requests and answers as the examples of the OpenAPI
document.

The clock stands still and randomness is seeded, so every run of the tour gives the same real answers.
"""

import re
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx
import msgspec

from cambist.adapters.chain.simulator import SimulatedChain
from cambist.adapters.script import ChainScript
from cambist.adapters.storage.encrypted_notes import EncryptedNotes
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.core.usecases.common.encrypted import open_event_body
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.recurring_jobs import RECURRING_JOBS, start_recurring_jobs
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.settings.settings import VaultKeys
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from cambist.ports.kyc import CheckStatus
from tests.apps import TestApp, open_test_app
from tests.exchange_app import BANK_ID, WALLET
from tests.http.documents import Document
from tests.kyc_kit import JPEG, KycApp
from tests.proof_kit import HASH, exchange_terminal

Examples = dict[str, Any]

CLIENT = "+70000000001"
DAY = 24 * 3600
EXAMPLES = Path(__file__).parents[1] / "frontends" / "http" / "openapi" / "examples.json"

_ENCRYPTED_FIELDS = re.compile(rb"(session|sig)=[\w%-]+")
"""Values signed or encrypted with the keys of this app."""
_VAULT = VaultKeys(keys={1: bytes(range(32))}, current=1, pepper=bytes(range(32)))
"""Fixed, because examples contain proofs by these keys."""
_KEYS = UUID("6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11")
_EMPTY: tuple[Any, Any] = ({}, [])


class Tour:
    """A merchant who calls everything once."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.operations: Examples = {}
        self._document = Document(openapi_document("https://pay.example"))
        self._keys = 0

    async def ask(self, method: str, path: str, body: Any = None, *, mode: str = "test", new: bool = False) -> Any:
        """One call, kept as the example of its operation if it is the first good one; `new`: with a fresh key."""
        headers = self.app.headers(mode)
        if new:
            self._keys += 1
            headers["Idempotency-Key"] = str(uuid5(_KEYS, str(self._keys)))
        response = await self.app.http.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.text}"
        self.keep(response, body)
        return response.json()

    def keep(self, response: httpx.Response, body: Any = None) -> None:
        """Record an example: the first response of the operation, or the first with content."""
        operation = self._document.operation(response.request.method, response.request.url.path)
        assert operation is not None
        said = f"{response.request.method} {response.request.url.path} -> {response.status_code}"
        assert str(response.status_code) in operation["responses"], f"{said} is not documented"
        kept = self.operations.setdefault(operation["operationId"], {"responses": {}})
        if body is not None:
            kept.setdefault("request", body)
        answers, answer = kept["responses"], response.json()
        status = str(response.status_code)
        if status not in answers or answers[status] in _EMPTY:
            answers[status] = answer

    async def payment(self, amount: str = "1500.00", outcome: str | None = "paid", **order: Any) -> str:
        """The id of a new payment that came to this outcome."""
        made = await self.ask("POST", "/payments", {"amount_rub": amount, **order}, new=True)
        if outcome is not None:
            await self.ask("POST", f"/sandbox/payments/{made['id']}/simulate", {"outcome": outcome})
        return str(made["id"])


async def recorded() -> bytes:
    """Return the examples in their stored form, one a line: operations by id, webhooks by event."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_test_app(data_dir=Path(folder), vault=_VAULT) as app:
            tour = Tour(app)
            await accounts.set_settings(
                app.ports,
                app.account.account_id,
                {"refunds": "true", "exchange": "true", "direct_links": "true", "recurring": "true"},
            )
            for part in (
                _health,
                _payments,
                _links,
                _refunds,
                _receipts,
                _subscriptions,
                _exchanges,
                _money,
                _proofs,
                _kyc,
                _events,
                _requests,
            ):
                await part(tour)
            events = await _bodies(app)
            await _end(tour)
            app.made_up = True  # the tests of each subject check the books
    parts = {"operations": dict(sorted(tour.operations.items())), "webhooks": events}
    texts = [b'"%s": {\n%s\n}' % (name.encode(), _lines(part)) for name, part in parts.items()]
    return b"{\n" + b",\n".join(texts) + b"\n}\n"


def _lines(part: Examples) -> bytes:
    lines = [msgspec.json.encode(name) + b": " + msgspec.json.encode(each) for name, each in part.items()]
    return b",\n".join(_ENCRYPTED_FIELDS.sub(rb"\1=...", line) for line in lines)


async def _bodies(app: TestApp) -> Examples:
    """Return one event of each type, the one with the most content."""
    found: dict[str, dict[str, Any]] = {}
    async for batch in app.ports.storage.scan(Event):
        for event in batch:
            body = msgspec.json.decode(open_event_body(app.ports.vault, event))
            known = found.get(event.type)
            if known is None or _said(body) > _said(known):
                found[event.type] = body
    return dict(sorted(found.items()))


def _said(body: dict[str, Any]) -> int:
    return sum(value is not None for value in body.values())


async def _health(tour: Tour) -> None:
    ports = tour.app.ports
    await start_recurring_jobs(ports)
    for path in ("/health", "/api/v1/health"):
        tour.keep(await tour.app.http.get(path))
    async with ports.storage.unit() as unit:  # leave recurring jobs out of the tour
        for job_id in RECURRING_JOBS:
            if (job := await unit[Job].get(job_id)) is not None:
                unit[Job].remove(job)
        await unit.commit()


async def _payments(tour: Tour) -> None:
    order: dict[str, Any] = {"external_id": "order-1", "description": "Two tickets", "metadata": {"table": "7"}}
    paid = await tour.payment(**order)
    same = {"Idempotency_Key": str(uuid5(_KEYS, "1"))}
    headers = tour.app.headers("test", **same)
    tour.keep(await tour.app.http.post("/api/v1/payments", json={}, headers=headers))
    wrong = await tour.payment("900.00", "amount_mismatch")
    await tour.ask("POST", f"/sandbox/payments/{wrong}/resolve", {"outcome": "paid"})
    await tour.payment("404.01", "failed")
    waiting = await tour.payment("250.00", None)
    await tour.ask("GET", f"/payments/{waiting}/sbp-link")
    await tour.ask("GET", f"/payments/{paid}/transfers")
    await tour.ask("GET", f"/payments/{paid}")
    await tour.ask("GET", "/payments?status=paid&per_page=1")


async def _links(tour: Tour) -> None:
    order = {"description": "Pottery class", "amount_rub": "2500.00", "external_id": "class-1", "reusable": True}
    fields = [{"label": "Your name"}, {"label": "E-mail for the receipt", "kind": "email", "required": False}]
    body = {**order, "payments_max": 12, "fields": fields, "success_text": "See you on Friday at 19:00."}
    made = await tour.ask("POST", "/payment-links", body, new=True)
    headers = tour.app.headers("test", Idempotency_Key=str(uuid5(_KEYS, str(tour._keys))))
    tour.keep(await tour.app.http.post("/api/v1/payment-links", json={}, headers=headers))
    path = f"/payment-links/{made['id']}"
    typed = {"attempt": str(uuid5(_KEYS, "pressed")), "field_0": "Anna"}
    pressed = await tour.app.http.post(f"/l/{made['id']}", data=typed)
    paid = pressed.headers["location"].rpartition("/")[2]
    await tour.ask("POST", f"/sandbox/payments/{paid}/simulate", {"outcome": "paid"})
    await tour.ask("GET", path)
    await tour.ask("GET", "/payment-links?per_page=1")
    await tour.ask("GET", f"{path}/payments?per_page=1")
    await tour.ask("POST", f"{path}/archive")


async def _refunds(tour: Tour) -> None:
    made = []
    for amount in ("100.00", "200.00", "300.00", "400.00"):
        payment = await tour.payment(amount)
        wish = {"payment_id": payment, "amount_rub": "50.00", "external_id": "return-1", "reason": "A seat was taken"}
        made.append(str((await tour.ask("POST", "/refunds", wish, new=True))["id"]))
    outcomes = ("completed", "rejected", "failed", "completed")
    for refund, outcome in zip([*made, made[-1]], (*outcomes, "reversed"), strict=True):
        await tour.ask("POST", f"/sandbox/refunds/{refund}/simulate", {"outcome": outcome})
    await tour.ask("GET", f"/refunds/{made[0]}")
    await tour.ask("GET", "/refunds?per_page=1")
    payment = await tour.payment("500.00")
    refund = (await tour.ask("POST", "/refunds", {"payment_id": payment}, new=True))["id"]
    await tour.ask("POST", f"/refunds/{refund}/cancel")


async def _receipts(tour: Tour) -> None:
    boots = {"name": "Boots", "price": "404.06", "vat": "22/122", "subject": "commodity", "method": "full_prepayment"}
    receipt = {"items": [boots], "tax_system": "osn", "customer": {"email": "buyer@example.com"}}
    order = {"amount_rub": "404.06", "external_id": "boots-1", "receipt": receipt}
    payment = (await tour.ask("POST", "/payments", order, new=True))["id"]
    await tour.ask("POST", f"/sandbox/payments/{payment}/simulate", {"outcome": "paid"})
    await tour.app.work(1)
    [failed] = (await tour.ask("GET", f"/receipts?payment_id={payment}"))["data"]
    await tour.ask("POST", f"/receipts/{failed['id']}/retry")
    await tour.app.work(1)
    await tour.ask("GET", f"/receipts/{failed['id']}")
    await tour.ask("POST", "/receipts", {"payment_id": payment}, new=True)


async def _subscriptions(tour: Tour) -> None:
    order = {"amount_rub": "490.00", "interval": "week", "description": "Coffee club", "external_id": "member-1"}
    made = await tour.ask("POST", "/subscriptions", order, new=True)
    path = f"/subscriptions/{made['id']}"
    sandbox = f"/sandbox{path}"
    await tour.ask("POST", f"{sandbox}/simulate", {"outcome": "confirm"})
    await tour.ask("GET", path)
    await tour.ask("GET", "/subscriptions?status=active")
    await tour.ask("GET", f"{path}/charge-window")
    await tour.ask("PATCH", path, {"amount_rub": "450.00"})
    await tour.app.work(7 * DAY)
    for attempt in range(4):
        await tour.ask("POST", f"{sandbox}/next-charge", {"result": "insufficient_funds"})
        charge = {"amount_rub": "450.00", "external_id": f"member-1-week-2-{attempt}"}
        headers = tour.app.headers("test", Idempotency_Key=str(uuid5(_KEYS, f"charge {attempt}")))
        await tour.app.http.post(f"/api/v1{path}/charges", json=charge, headers=headers)
        await tour.app.work(60)
    headers = tour.app.headers("test", Idempotency_Key=str(uuid5(_KEYS, "charge 5")))
    await tour.app.http.post(f"/api/v1{path}/charges", json={"amount_rub": "450.00"}, headers=headers)
    await tour.app.work(7 * DAY)
    await tour.ask("POST", f"{path}/charges", {"amount_rub": "450.00", "external_id": "member-1-week-3"}, new=True)
    await tour.app.work(60)
    await tour.ask("GET", f"{path}/charges?per_page=1")
    await tour.ask("POST", f"{sandbox}/simulate", {"outcome": "mandate_lost"})
    await tour.ask("POST", f"{path}/rebind", new=True)
    await tour.ask("POST", f"{path}/cancel")


async def _exchanges(tour: Tour) -> None:
    await tour.ask("POST", "/sandbox/exchange-clients", {"phone": CLIENT, "kyc_status": "verified"})
    order = {"amount_usdt": "100", "client_phone": CLIENT, "client_bank_id": BANK_ID, "external_id": "exchange-1"}
    first = await tour.ask("POST", "/exchanges", order, new=True)
    await tour.ask("POST", f"/sandbox/exchanges/{first['id']}/simulate", {"outcome": "usdt_received"})
    await tour.app.work(120)
    await tour.ask("GET", f"/exchanges/{first['id']}")
    second = await tour.ask("POST", "/exchanges", {**order, "external_id": "exchange-2"}, new=True)
    await tour.ask("POST", f"/exchanges/{second['id']}/cancel")
    await tour.ask("POST", "/sandbox/exchanges", {"amount_rub": "10000.00", "client_phone": CLIENT})
    await tour.ask("GET", "/exchanges?per_page=1")
    await tour.ask("GET", "/exchange-clients?q=0001")


async def _money(tour: Tour) -> None:
    await accounts.set_settings(tour.app.ports, tour.app.account.account_id, {"payout_wallet": WALLET})
    await tour.ask("GET", "/rates")
    settlement = await tour.ask("POST", "/sandbox/settlements")
    await tour.app.work(120)
    await tour.ask("GET", f"/settlements/{settlement['id']}")
    await tour.ask("GET", f"/settlements/{settlement['id']}/items?per_page=1")
    await tour.ask("GET", "/settlements?per_page=1")
    [payout, *_] = (await tour.ask("GET", "/withdrawals?per_page=1"))["data"]
    await tour.ask("POST", f"/sandbox/withdrawals/{payout['id']}/simulate", {"outcome": "completed"})
    await tour.ask("GET", f"/withdrawals/{payout['id']}")
    await tour.ask("GET", f"/withdrawals/{payout['id']}/items?per_page=1")
    await tour.ask("GET", "/shops/turnover")
    await tour.ask("GET", "/gateways")
    gateway = "/sandbox/gateways/simulator-test/simulate"
    await tour.ask("POST", gateway, {"status": "degraded"})
    await tour.app.work(120)
    await tour.ask("GET", "/balance")
    await tour.ask("GET", "/balance/movements?kind=settlement&per_page=1")
    order = {"kind": "payments", "format": "xlsx", "filter": {"status": "settled"}}
    export = await tour.ask("POST", "/exports", order, new=True)
    await tour.ask("GET", f"/exports/{export['id']}")
    await tour.ask("GET", "/exports")
    await tour.ask("DELETE", f"/exports/{export['id']}")
    today = tour.app.clock.now().date().isoformat()
    report = await tour.ask("POST", "/reports", {"first_day": today, "last_day": today}, new=True)
    await tour.app.work(1)
    await tour.ask("GET", f"/reports/{report['id']}")
    await tour.ask("GET", "/reports?kind=period")
    await tour.ask("GET", f"/balance/at?at={today}T00:00:00Z")


async def _requests(tour: Tour) -> None:
    """Plant the request records that a process writes, in the same form."""
    app, log = tour.app, RequestLog()
    now = app.clock.monotonic()
    log.note(
        Noted(
            app.account.account_id,
            Mode.TEST,
            app.account.test.api_key,
            "GET",
            "/api/v1/payments/{payment_id}",
            (f"pay_{uuid5(_KEYS, 'asked')}",),
            404,
            "PAYMENT_NOT_FOUND",
            now - 0.012,
            now,
            str(uuid5(_KEYS, "request")),
        )
    )
    await log.flush(app.ports)
    await tour.ask("GET", "/requests?status=404")
    await tour.ask("GET", "/account")


async def _proofs(tour: Tour) -> None:
    """In live mode: in test mode no hash is accepted."""
    app = tour.app
    chain = SimulatedChain(EncryptedNotes(app.ports.storage, app.ports.vault), app.clock, script=ChainScript())
    app.ports = msgspec.structs.replace(app.ports, chain=chain)
    method = await exchange_terminal(app, app.account.account_id)
    await tour.ask("GET", "/payment-methods", mode="live")
    order = {"amount_rub": "10000.00", "method_id": method}
    headers = app.headers("live", Idempotency_Key=str(uuid5(_KEYS, "proof")))
    payment = (await app.http.post("/api/v1/payments", json=order, headers=headers)).json()
    await _paid(app, payment["id"])
    path = f"/payments/{payment['id']}/delivery-proof"
    await tour.ask("POST", path, {"network": "TRC20", "tx_hash": HASH}, mode="live")
    await tour.ask("GET", path, mode="live")
    headers = app.headers("live", Idempotency_Key=str(uuid5(_KEYS, "reminded")))
    payment = (await app.http.post("/api/v1/payments", json=order, headers=headers)).json()
    await _paid(app, payment["id"])
    await app.work(25 * 3600)


async def _paid(app: TestApp, payment_id: str) -> None:
    async with app.ports.storage.unit() as unit:
        payment = await unit[Payment].get(payment_id)
    assert payment is not None
    await simulate_payment(app.ports, payment, Simulation(status=InvoiceStatus.PAID))


async def _kyc(tour: Tour) -> None:
    kyc = KycApp(tour.app)
    await kyc.set(kyc="required")
    await tour.ask("POST", "/kyc/check", {"phone": CLIENT}, mode="live")
    keys = []
    for _ in range(2):
        grant = await tour.ask("POST", "/kyc/upload-url", {"content_type": "image/jpeg"}, mode="live")
        await kyc.put(grant["upload_url"], JPEG)
        keys.append(grant["file_key"])
    body = {"phone": CLIENT, "selfie_key": keys[0], "document_key": keys[1]}
    await tour.ask("POST", "/kyc/register", body, mode="live")
    await kyc.decide(CheckStatus.VERIFIED, CLIENT)
    await run_due(tour.app.ports)


async def _events(tour: Tour) -> None:
    await tour.app.work(60)
    [event, *_] = (await tour.ask("GET", "/events?type=payment.status_changed&per_page=1"))["data"]
    await tour.ask("GET", f"/events/{event['id']}")
    await tour.ask("POST", f"/events/{event['id']}/resend")
    wish = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    await tour.ask("POST", "/events/resend", wish)
    await tour.ask("GET", "/webhook-endpoint")
    await tour.ask("POST", "/webhook-endpoint/test")
    await _endpoints(tour, event["id"])


async def _endpoints(tour: Tour, event_id: str) -> None:
    wish = {"url": "https://books.example/hooks", "description": "books"}
    made = await tour.ask("POST", "/webhook-endpoints", wish, new=True)
    one = f"/webhook-endpoints/{made['id']}"
    await tour.ask("POST", f"/events/{event_id}/resend?endpoint_id={made['id']}")
    await tour.app.work(5)
    await tour.ask("GET", "/webhook-endpoints")
    await tour.ask("GET", one)
    await tour.ask("GET", f"{one}/events")
    await tour.ask("PATCH", one, {"event_types": ["*"], "description": "bookkeeping"})
    await tour.ask("POST", f"{one}/test")
    await tour.ask("POST", f"{one}/rotate-secret")
    await tour.ask("DELETE", one)
    webhooks = await tour.ask("GET", "/sandbox/letters?after=beginning")
    tour.operations["list_letters"]["responses"]["200"] = {**webhooks, "data": webhooks["data"][:1]}


async def _end(tour: Tour) -> None:
    await tour.ask("GET", "/sandbox/clock")
    await tour.ask("POST", "/sandbox/clock/advance", {"seconds": 3600})
    await tour.ask("DELETE", "/sandbox/data")
    await start_recurring_jobs(tour.app.ports)
    await tour.app.work(36 * 3600)
    [day, *_] = (await tour.app.get("/reports?kind=day")).json()["data"]
    await tour.ask("GET", f"/reports/{day['id']}/proof")
    await tour.ask("GET", "/report-heads?per_page=1")
