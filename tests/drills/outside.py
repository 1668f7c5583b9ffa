"""A bank and a wallet with a file of their own. No backup of the service holds that file, so moved money is never
forgotten. Processes find them by entry points, in the folder that `installed` makes; OUTSIDE names the file."""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cambist.ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
    SentRefund,
    Transfer,
)
from cambist.ports.chain import Network
from cambist.ports.faults import Refused, Unavailable
from cambist.ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from cambist.ports.tools import Tools

_TABLES = """
CREATE TABLE invoices (operation TEXT PRIMARY KEY, kopecks INTEGER);
CREATE TABLE refunds (operation TEXT PRIMARY KEY, reference TEXT, kopecks INTEGER, at TEXT);
CREATE TABLE transfers (tx_hash TEXT PRIMARY KEY, operation TEXT, address TEXT, units INTEGER, until TEXT, at TEXT);
CREATE TABLE away (name TEXT PRIMARY KEY);
"""
_HOUR = timedelta(hours=1)


class World:
    """The file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(_TABLES)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute one statement, immediately and durably."""
        with closing(sqlite3.connect(self._path, timeout=10, isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchall()

    def refunds(self) -> list[tuple[str, int]]:
        """Return operation and kopecks of all money sent back."""
        return [(row[0], row[1]) for row in self.ask("SELECT operation, kopecks FROM refunds ORDER BY at")]

    def transfers(self) -> list[tuple[str, str, int]]:
        """Return hash, operation and units of all payouts."""
        rows = self.ask("SELECT tx_hash, operation, units FROM transfers ORDER BY at")
        return [(row[0], row[1], row[2]) for row in rows]


class Bank:
    """A bank whose payers pay each invoice at once."""

    name = "outside"
    capabilities = BankCapabilities()

    def __init__(self, world: World) -> None:
        self._world = world

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        self._world.ask("INSERT OR IGNORE INTO invoices VALUES (?, ?)", request.operation, request.amount_kopecks)
        return self._invoice(request.operation)

    def _invoice(self, operation: str) -> Invoice:
        link = f"https://qr.nspk.example/{operation}"
        return Invoice(reference=operation, payload=link, link=link, check_after=1.0)

    async def find_invoice(self, operation: str) -> Invoice | None:
        found = self._world.ask("SELECT 1 FROM invoices WHERE operation = ?", operation)
        return self._invoice(operation) if found else None

    async def invoice_state(self, reference: str) -> InvoiceState:
        found = self._world.ask("SELECT kopecks FROM invoices WHERE operation = ?", reference)
        if not found:
            raise Refused("no such invoice", reason="not_found")
        paid = Transfer(id=f"{reference}-1", amount_kopecks=found[0][0], at=datetime.now(UTC))
        return InvoiceState(reference=reference, status=InvoiceStatus.PAID, transfers=(paid,))

    async def refund(self, request: RefundRequest) -> RefundState:
        values = (request.operation, request.reference, request.amount_kopecks, _now())
        self._world.ask("INSERT OR IGNORE INTO refunds VALUES (?, ?, ?, ?)", *values)
        return RefundState(status=RefundStatus.DONE)

    async def find_refund(self, operation: str) -> RefundState | None:
        found = self._world.ask("SELECT 1 FROM refunds WHERE operation = ?", operation)
        return RefundState(status=RefundStatus.DONE) if found else None

    async def refunds_since(self, moment: datetime) -> Sequence[SentRefund]:
        rows = self._world.ask(
            "SELECT operation, reference, kopecks FROM refunds WHERE at >= ?", moment.astimezone(UTC).isoformat()
        )
        return [SentRefund(operation=row[0], reference=row[1], amount_kopecks=row[2]) for row in rows]


class Wallet:
    """Signs another transfer at every call, as ports/payouts.py allows."""

    name = "outside-wallet"
    capabilities = SenderCapabilities(network=Network.TRON, decimals=6)

    def __init__(self, world: World) -> None:
        self._world = world

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        if self._world.ask("SELECT 1 FROM away"):
            raise Unavailable("the wallet is locked")
        blob = f"{address} {units}".encode()
        until = datetime.now(UTC) + _HOUR
        return SignedTransfer(operation=operation, tx_hash=secrets.token_hex(32), blob=blob, expires_at=until)

    async def broadcast(self, signed: SignedTransfer) -> None:
        address, units = signed.blob.decode().split()
        values = (signed.tx_hash, signed.operation, address, int(units), str(signed.expires_at), _now())
        self._world.ask("INSERT OR IGNORE INTO transfers VALUES (?, ?, ?, ?, ?, ?)", *values)

    async def state(self, signed: SignedTransfer) -> TransferState:
        found = self._world.ask("SELECT 1 FROM transfers WHERE tx_hash = ?", signed.tx_hash)
        return TransferState.FINAL if found else TransferState.UNSEEN

    async def find(self, operation: str) -> SentTransfer | None:
        rows = self._world.ask("SELECT * FROM transfers WHERE operation = ?", operation)
        return _sent(rows[0]) if rows else None

    async def sent_since(self, moment: datetime) -> Sequence[SentTransfer]:
        at = moment.astimezone(UTC).isoformat()
        return [_sent(row) for row in self._world.ask("SELECT * FROM transfers WHERE at >= ?", at)]


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _sent(row: tuple[Any, ...]) -> SentTransfer:
    tx_hash, operation, address, units, until, _ = row
    blob = f"{address} {units}".encode()
    signed = SignedTransfer(operation=operation, tx_hash=tx_hash, blob=blob, expires_at=datetime.fromisoformat(until))
    return SentTransfer(signed=signed, address=address, units=units)


def bank(_tools: Tools) -> Bank:
    """The entry point of the bank."""
    return Bank(World(Path(os.environ["OUTSIDE"])))


def wallet(_tools: Tools) -> Wallet:
    """The entry point of the wallet."""
    return Wallet(World(Path(os.environ["OUTSIDE"])))


def installed(folder: Path) -> dict[str, str]:
    """Make a package of this module in `folder`; the environment in which processes find it."""
    described = folder / "outside_drill-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-drill\nVersion: 1.0\n")
    points = "[cambist.banks]\noutside = outside_drill:bank\n[cambist.payouts]\noutside = outside_drill:wallet\n"
    (described / "entry_points.txt").write_text(points)
    (folder / "outside_drill.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
    return {"PYTHONPATH": str(folder), "OUTSIDE": str(folder / "outside.db")}
