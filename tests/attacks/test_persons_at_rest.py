"""A reader of the database, the uploads, a backup or the log cannot learn who a person is (docs/security.md).

The tests run every flow of live mode with canaries: a payer whom the merchant and the bank name, a client who passes
KYC with documents and exchanges, and a subscriber; some webhooks are delivered and some fail. Then they search
everything on the disk for the canaries, in every spelling in which such data are usually kept.
"""

import base64
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import httpx
import msgspec
import pytest

from cambist.adapters.clock import SystemClock
from cambist.adapters.deposits.simulator import SimulatedDeposits
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.request_log import RequestBatch
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.common.encrypted import open_event_body
from cambist.core.usecases.operators.client_forgetting import forget_client
from cambist.core.usecases.operators.doctor import check_vault
from cambist.core.usecases.operators.findings import Level
from cambist.frontends.operations.backup import back_up
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.kyc import CheckStatus
from tests.apps import TestApp, open_test_app
from tests.exchange_app import BANK_ID
from tests.invariants import everything, noted
from tests.kyc_kit import KycApp
from tests.servers import service_url
from tests.subscription_app import bound
from tests.tables import table
from tests.usecases.webhooks.test_deliveries import BAD

PHONE = "+79161237788"
CANARIES = {
    "phone": PHONE[1:],
    "phone of another payer": "79163214455",
    "e-mail": "kanareika@payer.example",
    "name": "Канарейкина Мария",
    "name as the bank has it": "КАНАРЕЙКИНА М. П.",
    "document number": "CANARY4509",
    "document": "THE-FACE-OF-A-CANARY-0123456789",
    "e-mail of the client": "client-canary@mail.example",
}
FACE = b"\xff\xd8\xff\xe0" + CANARIES["document"].encode() * 20_000
"""An upload of several parts."""


def spellings(text: str) -> Iterator[bytes]:
    """Yield the bytes in which a text may lie somewhere."""
    plain = text.encode()
    yield plain
    yield text.encode("utf-16-le")
    yield text.encode("utf-16-be")
    yield plain.hex().encode()
    yield plain.hex().upper().encode()
    yield quote(text).encode()
    yield msgspec.json.encode(text)[1:-1]
    yield "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text).encode()
    for shift in range(3):
        # Whichever of three bytes it begins at; the signs at both ends depend on what stands beside it.
        encoded = base64.b64encode(bytes(shift) + plain)
        yield encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4]


def found_in(content: bytes) -> list[str]:
    """Return the names of the canaries that lie in it."""
    return [name for name, text in CANARIES.items() if any(each in content for each in spellings(text))]


@table("text", CANARIES.values())
def test_search_finds_every_spelling(text: str) -> None:
    """Otherwise the searches below would miss data that is there."""
    for before in range(3):
        assert found_in(base64.b64encode(b"x" * before + text.encode() + b"yz"))
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert found_in(b"x" + text.encode(encoding) + b"y")
    assert found_in(text.encode().hex().encode())


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, "sqlite", tmp_path)


@pytest.fixture
async def watch() -> RequestWatch:
    """The process's record of requests, written every few seconds."""
    return RequestWatch(SystemClock(), access_log="all")


@pytest.fixture
async def app(url: str, tmp_path: Path, watch: RequestWatch) -> AsyncIterator[TestApp]:
    async with open_test_app(database_url=url, data_dir=tmp_path / "data", log_level="debug") as opened:
        opened.made_up = True
        watch.clock = opened.ports.clock
        asgi: Any = create_app(opened.ports, watch=watch)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as http:
            opened.http = http
            yield opened


async def post(app: TestApp, path: str, body: Any, mode: str = "live") -> dict[str, Any]:
    headers = app.headers(mode, Idempotency_Key=str(uuid4()))
    answer = await app.http.post(f"/api/v1{path}", json=body, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    made: dict[str, Any] = answer.json()
    return made


async def play(app: TestApp) -> None:
    """Play every story of live mode that takes a person's data."""
    kyc = KycApp(app)
    await kyc.set(exchange="true", refunds="true", refund_approval="auto")
    app.postman.answers.extend([BAD] * 3)
    await _paid_and_refunded(app)
    order = {"amount_rub": "300.00", "interval": "month", "description": "tea", "client_phone": PHONE}
    await post(app, "/subscriptions", order)
    await bound(app, client_phone=PHONE)
    await kyc.set(kyc="required")
    await _verified(kyc)
    await _exchanged(app)
    await _refused(app)
    await app.work(60)


async def _verified(kyc: KycApp) -> None:
    """A client who is refused, and then verified; with documents, and by a form with an e-mail address."""
    for status in (CheckStatus.FAILED, CheckStatus.VERIFIED):
        keys = [await kyc.uploaded(FACE) for _ in range(2)]
        answer = await kyc.register(
            {"phone": PHONE, "selfie_key": keys[0], "document_key": keys[1], "email": CANARIES["e-mail of the client"]}
        )
        assert answer.status_code == 200, answer.text
        await kyc.decide(status, PHONE)


async def _paid_and_refunded(app: TestApp) -> None:
    payer = {"full_name": CANARIES["name"], "document_number": CANARIES["document number"]}
    whole = {"client_email": CANARIES["e-mail"], "payer": payer, "client_info": {"ip": "192.0.2.7", "name": "x"}}
    for phone in (PHONE, f"+{CANARIES['phone of another payer']}"):
        made = await post(app, "/payments", {"amount_rub": "100.00", "client_phone": phone, **whole})
        name = CANARIES["name as the bank has it"]
        await app.told(made["id"], Simulation(status=InvoiceStatus.PAID, payer_name=name))
        await app.work(5)
        assert (await app.get(f"/payments/{made['id']}", mode="live")).json()["payer_name"] == name
    await post(app, "/refunds", {"payment_id": made["id"], "amount_rub": "40.00"})
    await app.work(5)


async def _exchanged(app: TestApp) -> None:
    made = await post(app, "/exchanges", {"amount_usdt": "100", "client_phone": PHONE, "client_bank_id": BANK_ID})
    [exchange] = [each for each in await everything(app.ports, Exchange) if each.id == made["id"]]
    watcher = app.ports.deposits.of_mode("live")
    assert isinstance(watcher, SimulatedDeposits)
    assert exchange.crypto_deposit_address is not None
    await watcher.simulate_deposit(exchange.crypto_deposit_address, exchange.amount_usdt.units)
    await app.work(60)


async def _refused(app: TestApp) -> None:
    """Send requests that are refused and name the person, too."""
    headers = app.headers("live", Idempotency_Key=str(uuid4()))
    for body in ({"client_phone": f"{PHONE}x"}, {CANARIES["name"]: 1}, {"payer": {"full_name": CANARIES["name"]}}):
        answer = await app.http.post("/api/v1/payments", json={"amount_rub": "100.00", **body}, headers=headers)
        assert answer.status_code in (400, 422)
    await app.http.get(f"/api/v1/exchange-clients?q={CANARIES['phone']}", headers=app.headers("live"))


async def stored_of(url: str) -> dict[str, bytes]:
    """Return what the database holds, by the file or table that holds it."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        return {each.name: each.read_bytes() for each in path.parent.glob(f"{path.name}*")}
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = {}
        for (name,) in tables:
            found = await connection.fetch(f'SELECT t::text FROM "{name}" t')
            rows[name] = "\n".join(each[0] for each in found).encode()
        return rows
    finally:
        await connection.close()


async def test_no_person_is_found_in_database_uploads_backup_or_log(
    app: TestApp, watch: RequestWatch, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await play(app)
    for book in (watch.hits, watch.uses, watch.requests, watch.written):
        await book.flush(app.ports)
    assert await everything(app.ports, RequestBatch), "no request was written down"
    bodies = b"".join(open_event_body(app.ports.vault, each) for each in await everything(app.ports, Event))
    notes = b"".join(note.body for note in await noted(app.ports))
    assert CANARIES["phone"].encode() in bodies, "the stories put nobody into events"
    assert CANARIES["name as the bank has it"].encode() in bodies
    assert CANARIES["name as the bank has it"].encode() in notes, "nobody is in the notes of the simulated bank"
    assert (await check_vault(app.ports)).level is Level.OK
    stored = await stored_of(url)
    assert any("wal" in name for name in stored) or not url.startswith("sqlite")
    assert len(b"".join(stored.values())) > 20_000
    uploads = [*(tmp_path / "data" / "uploads").iterdir()]
    assert len(uploads) == 4
    # The client of the test logs the addresses that it asks.
    said = "\n".join(f"{each.getMessage()} {each.exc_text}" for each in caplog.records if each.name != "httpx").encode()
    assert b"POST" in said, "the access log is empty"
    lying = {**stored, **{each.name: each.read_bytes() for each in uploads}, "log": said}
    if url.startswith("sqlite"):
        settings = Settings(database_url=url, data_dir=tmp_path / "data")
        await back_up(settings, tmp_path / "backup", lambda _: None)
        copied = [each for each in (tmp_path / "backup").rglob("*") if each.is_file()]
        assert len(copied) >= 2 + len(uploads)
        lying |= {f"backup/{each.name}": each.read_bytes() for each in copied}
    assert {name: found for name, content in lying.items() if (found := found_in(content))} == {}


async def test_a_forgotten_client_is_in_no_event_and_no_document(app: TestApp, tmp_path: Path) -> None:
    await play(app)
    [client] = [each for each in await everything(app.ports, Client) if each.mode is Mode.LIVE]
    await forget_client(app.ports, client.id)
    left = [open_event_body(app.ports.vault, each) for each in await everything(app.ports, Event)]
    assert not any(CANARIES["phone"].encode() in body for body in left)
    assert [*(tmp_path / "data" / "uploads").iterdir()] == []
