"""Fills a database with payments as the service leaves them: real payments run through their life in memory, and their
rows are copied with other ids, accounts and times.

A copy has a valid tag and readable events. The journal is chained and the movements are listed by the service itself.
So the result is a sound installation, whatever tables a payment writes.
"""

import random
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import uuid4

import httpx
import msgspec

from benchmarks.rows import PostgresRows, SqliteRows, rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.codec import microseconds
from cambist.adapters.storage.table.table_map import TableMap, keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import key_id
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.ledger import JournalEntry, LedgerAccount, balances_moved
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.unsettled import unsettled_ids
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.common.encrypted import event_body_aad, pay_tag
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.app.compose import open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.vault import Vault

KEYS = VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32))
RETAINED = timedelta(days=30)
"""Age up to which events and their deliveries are there; `retain` deletes older ones."""
LARGEST = 0.3
"""Share of the first account in all payments."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_EVENTS = {"events", "deliveries", "attempts", "feed_entries"}
_LEFT_OUT = {"jobs", "known_rates", "movements", "ledger_heads", "feeds"}
"""Tables that the service fills by itself, or that say nothing of a payment."""
_ADDED: Mapping[str, tuple[str, ...]] = {
    "settlements": ("payments", "items", "amount", "fee", "credit"),
    "settlement_batches": (),
    "breakers": (),
}
"""Tables with one row for many payments, and the fields that add up; tables of sums say theirs in the catalogue."""
_AT_ONCE = 20_000


class Receiver:
    """Notifier whose receiver accepts everything."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Accept a webhook."""
        del webhook
        return DeliveryResult(answer=Answer.RESPONDED, status=200)

    async def close(self) -> None:
        """Close nothing."""


def settings_for(url: str) -> Settings:
    """Return the settings of an installation with a planted database."""
    return Settings(database_url=url, base_url="http://127.0.0.1:8080", vault=KEYS, workers=0)


class Merchant(msgspec.Struct):
    """An account, and what its rows contain."""

    account_id: str
    shop_id: str
    key_id: str
    headers: dict[str, str]


async def new_merchant(ports: Ports, number: int) -> Merchant:
    """Create an account with a webhook address."""
    made = await create_account(ports, f"Shop {number}")
    hook = {"webhook_url": "https://shop.example/hook", "webhook_secret": "a-secret-of-the-benchmark-0123456789"}
    await set_settings(ports, made.account_id, hook)
    return await merchant_of(ports, made)


async def merchant_of(ports: Ports, made: NewAccount) -> Merchant:
    """Return an account with the credentials of its live mode."""
    async with ports.storage.unit() as unit:
        [shop] = await unit[Shop].find(account_id=made.account_id)
    headers = {"X-Api-Key": made.live.api_key, "X-Api-Secret": made.live.api_secret}
    return Merchant(made.account_id, shop.id, made.live.api_key, headers)


class _Field(msgspec.Struct, frozen=True):
    """A column of a template: a text with gaps, or a moment to shift."""

    index: int
    text: str | None


class _Row(msgspec.Struct, frozen=True):
    """A row of a template."""

    table: Any
    """Its TableMap."""
    row: tuple[Any, ...]
    fields: tuple[_Field, ...]
    added: tuple[int, ...] | None
    """Indexes of the fields that add up, if many payments share the row."""

    def filled(self, values: Sequence[str], shift: int) -> list[Any]:
        """Return the row with these values in its gaps, at a later time in microseconds."""
        row = list(self.row)
        for field in self.fields:
            row[field.index] = row[field.index] + shift if field.text is None else field.text.format(*values)
        return row


class Template(msgspec.Struct):
    """The rows of one payment."""

    rows: list[_Row]
    gaps: list[str]
    """Texts that differ in every copy: account, shop, key, the settlement, the Moscow day, then ids of the payment."""
    at: int
    """Microseconds of its creation."""
    bodies: dict[str, str]
    """Payloads of its events, in plain text with gaps, by their ids with gaps."""


async def _template(outcome: str) -> Template:
    with TemporaryDirectory() as folder:
        path = Path(folder, "one.db")
        await migrate(f"sqlite:///{path}")
        async with open_app(settings_for(f"sqlite:///{path}"), notifier=Receiver()) as app:
            merchant = await new_merchant(app.ports, 0)
            before = {name: {each.id for each in records} for name, (_, records) in _records(path).items()}
            await _live(app.ports, merchant, outcome)
            found = {
                name: (mapped, [each for each in records if each.id not in before[name]])
                for name, (mapped, records) in _records(path).items()
                if name not in _LEFT_OUT
            }
            return _template_of(app.ports.vault, merchant, found)


def _records(path: Path) -> dict[str, tuple[TableMap[Any], list[Any]]]:
    """Return every record of a SQLite file, by table."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            mapped.name: (
                mapped,
                [
                    mapped.codec.decode(row)
                    for row in connection.execute(f"SELECT {', '.join(mapped.codec.names)} FROM {mapped.name}")
                ],
            )
            for mapped in keep(CATALOGUE).values()
        }


async def _live(ports: Ports, merchant: Merchant, outcome: str) -> None:
    transport = httpx.ASGITransport(cast("Any", create_app(ports)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080/api/v1") as client:
        order = {"amount_rub": "490.00", "external_id": str(uuid4())}
        headers = {**merchant.headers, "Idempotency-Key": str(uuid4())}
        payment_id = (await client.post("/payments", json=order, headers=headers)).raise_for_status().json()["id"]
    payment = await ports.storage.get(Payment, payment_id)
    assert payment is not None
    end = InvoiceStatus.FAILED if outcome == "failed" else InvoiceStatus.PAID
    await simulate_payment(ports, payment, Simulation(status=end))
    if outcome == "settled":
        await settle_now(ports, Mode.LIVE, cutoff=ports.clock.now() + timedelta(milliseconds=1))
    await run_due(ports)


def _template_of(vault: Vault, merchant: Merchant, found: Mapping[str, tuple[TableMap[Any], list[Any]]]) -> Template:
    """Return the records as a template."""
    [payment] = found["payments"][1]
    rows = [(mapped, mapped.codec.encode(record)) for mapped, records in found.values() for record in records]
    plain = {event.id: vault.decrypt(event.body, event_body_aad(event.id)).decode() for event in found["events"][1]}
    shared = [merchant.account_id, merchant.shop_id, merchant.key_id, payment.settlement_id or "\0"]
    shared.append(f"{payment.created_at.astimezone(MOSCOW):%Y-%m-%d}")
    texts = [*plain.values(), *(value for _, row in rows for value in row if isinstance(value, str))]
    own = dict.fromkeys(match for text in texts for match in _UUID.findall(text))
    gaps = [*shared, *(each for each in own if not any(each in text for text in shared))]
    gap = re.compile("|".join(re.escape(each) for each in sorted(gaps, key=len, reverse=True)))

    def with_gaps(text: str) -> str:
        escaped = text.replace("{", "{{").replace("}", "}}")
        return gap.sub(lambda match: f"{{{gaps.index(match[0])}}}", escaped)

    return Template(
        rows=[_row(mapped, row, with_gaps) for mapped, row in rows],
        gaps=gaps,
        at=microseconds(payment.created_at),
        bodies={with_gaps(event_id): with_gaps(text) for event_id, text in plain.items()},
    )


def _row(mapped: TableMap[Any], row: Sequence[Any], with_gaps: Callable[[str], str]) -> _Row:
    codec, fields, copied = mapped.codec, [], list(row)
    record = codec.decode(row)
    for index, name in enumerate(codec.names):
        if isinstance(getattr(record, name), datetime):
            fields.append(_Field(index, None))
        elif isinstance(row[index], str) and (text := with_gaps(row[index])) != row[index]:
            fields.append(_Field(index, text))
    if mapped.kind is JournalEntry:
        for name in ("number", "seal", "place"):
            copied[codec.index[name]] = None
    names = mapped.table.sums or _ADDED.get(mapped.name)
    added = None if names is None else tuple(codec.index[name] for name in names)
    return _Row(mapped, tuple(copied), tuple(fields), added)


class Planted(msgspec.Struct):
    """A database with payments."""

    merchants: list[Merchant]
    payments: int
    last: datetime
    """When its last payment was created."""


async def plant(
    url: str, payments: int, *, merchants: int, days: int, progress: Callable[[str], None], seed: int = 0
) -> Planted:
    """Fill a migrated, empty database with this many payments of the last days; the last day's are not settled.

    Its largest merchant has LARGEST of them. 85 % are paid, the others failed.
    """
    chance = random.Random(seed)
    settled, paid, failed = [await _template(outcome) for outcome in ("settled", "paid", "failed")]
    async with open_app(settings_for(url), notifier=Receiver()) as app:
        owners = [await new_merchant(app.ports, number) for number in range(merchants)]
        writer = await rows_into(url)
        copies = _Copies(app.ports.vault, chance, writer)
        end = datetime.now(UTC) - timedelta(minutes=1)
        for number in range(payments):
            at = end - timedelta(days=days) * (1 - (number + 1) / payments)
            owner = owners[0] if chance.random() < LARGEST else chance.choice(owners)
            done = settled if end - at > timedelta(days=1) else paid
            await copies.add(done if chance.random() < 0.85 else failed, owner, at, with_events=end - at < RETAINED)
            if number % 100_000 == 99_999:
                progress(f"{number + 1} of {payments} payments written")
        await copies.end()
        await writer.close()
        progress("chaining the journal, and listing movements")
        await list_all(app.ports)
    return Planted(owners, payments, end)


class _Copies:
    """Writes copies of templates in batches."""

    def __init__(self, vault: Vault, chance: random.Random, writer: SqliteRows | PostgresRows) -> None:
        self._vault = vault
        self._chance = chance
        self._writer = writer
        self._rows: dict[str, list[Any]] = {}
        self._maps: dict[str, TableMap[Any]] = {}
        self._shared: dict[str, dict[str, list[Any]]] = {}
        self._balances: dict[str, LedgerAccount] = {}
        self._settlements: dict[tuple[str, str], str] = {}
        self._count = 0

    async def add(self, template: Template, owner: Merchant, at: datetime, *, with_events: bool) -> None:
        """Add a copy for a merchant and a moment."""
        day = f"{at.astimezone(MOSCOW):%Y-%m-%d}"
        milliseconds = int(at.timestamp() * 1000)
        if (owner.account_id, day) not in self._settlements:
            noon = milliseconds + 43_200_000
            self._settlements[owner.account_id, day] = f"stl_{self._uuid(noon)}"
        values = [
            *(owner.account_id, owner.shop_id, owner.key_id, self._settlements[owner.account_id, day], day),
            *(self._uuid(milliseconds) for _ in template.gaps[5:]),
        ]
        shift = microseconds(at) - template.at
        key = key_id(owner.account_id, Mode.LIVE, self._uuid(milliseconds))
        bodies = {name.format(*values): text.format(*values) for name, text in template.bodies.items()}
        for each in template.rows:
            name = each.table.name
            if name in _EVENTS and not with_events:
                continue
            row = each.filled(values, shift)
            self._maps[name] = each.table
            if name == "ledger_accounts":
                continue
            if each.added is not None:
                known = self._shared.setdefault(name, {}).setdefault(row[0], row)
                for index in each.added if known is not row else ():
                    known[index] += row[index]
                continue
            if name == "payments":
                record = each.table.codec.decode(row)
                row[each.table.codec.index["pay_tag"]] = pay_tag(self._vault, record)
                row[each.table.codec.index["key_id"]] = key
            elif name == "idempotency_keys":
                row[0] = key
            elif name == "unsettled":
                # Its id contains the moment of creation as a number.
                span, _ = unsettled_ids(owner.account_id, Mode.LIVE, at)
                row[0] = f"{span}:{row[0].rpartition(':')[2]}"
            elif name == "events":
                body = bodies[row[0]].encode()
                row[each.table.codec.index["body"]] = self._vault.encrypt(body, event_body_aad(row[0]))
            elif name == "journal":
                self._book(each.table.codec.decode(row))
            self._rows.setdefault(name, []).append(row)
        self._count += 1
        if self._count % _AT_ONCE == 0:
            await self._write()

    async def end(self) -> None:
        """Write what is left, and the rows that many payments share."""
        await self._write()
        for name, rows in self._shared.items():
            await self._writer.write(self._maps[name], list(rows.values()))
        accounts = self._maps["ledger_accounts"]
        await self._writer.write(accounts, [accounts.codec.encode(each) for each in self._balances.values()])

    async def _write(self) -> None:
        for name, rows in self._rows.items():
            await self._writer.write(self._maps[name], rows)
        self._rows.clear()

    def _book(self, entry: JournalEntry) -> None:
        for moved in balances_moved(entry):
            known = self._balances.get(moved.id)
            balance = moved.balance + (0 if known is None else known.balance)
            self._balances[moved.id] = msgspec.structs.replace(moved, balance=balance)

    def _uuid(self, milliseconds: int) -> str:
        """Return a UUID of version 7."""
        tail = self._chance.getrandbits(74)
        number = milliseconds << 80 | 7 << 76 | (tail >> 62) << 64 | 2 << 62 | tail & (2**62 - 1)
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
