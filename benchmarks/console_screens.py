"""What the operators' console costs at a million payments: CPU of its process for each screen, each key, each filter.

    python -m benchmarks.console_screens --payments 1000000 [--folder FOLDER] [--reads]

makes a database in SQLite (about 2 GB; in FOLDER it is kept, and is not made again), sits down at the console on it,
and prints a row for each step: the screen's first paint, its next pages, filters, a search. Each is done three times.
Time is CPU of the whole process, the database's part and the painting in it: a wall clock tells of whatever else runs.
"""

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from uuid import UUID

import msgspec
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from benchmarks.rows import rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.ledger import EntryKind, JournalEntry, Posting, Purse, entry_id
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.domain.webhooks.delivery import attempt_id
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus, Event, EventType
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.browse.search import search
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.frontends.compose import open_house
from cambist.frontends.console.app import Console
from cambist.frontends.console.catalogue import KINDS
from cambist.frontends.console.context import ConsoleContext
from cambist.frontends.console.kinds.kinds import Kind, Wish
from cambist.frontends.console.listing import PAGE, ListScreen
from cambist.frontends.gc_pause import keep_for_good
from cambist.frontends.settings import Settings
from cambist.ports.bundle import Ports
from tests.console.seeds import everything_there_is
from tests.invariants import everything
from tests.refund_house import open_refund_house

START = datetime(2025, 12, 1, tzinfo=UTC)
SPREAD = timedelta(days=30)
BATCH = 20_000
MERCHANTS = 20
LIMIT_MS = 100
_TIMES = 3
_PAGES = 30
_S = PaymentStatus
_STATUSES, _WEIGHTS = (_S.PAID, _S.FAILED, _S.EXPIRED, _S.CANCELLED), (9_400, 300, 290, 10)
_RARE = 20_000
"""Of so many one is of a rare kind: an event, a delivery, a payment in review."""


class _World:
    """Who the rows are of, and what numbers they go on from."""

    def __init__(self, accounts: list[Account], count: int, chained: int) -> None:
        self.chance = random.Random(1)
        self.accounts = accounts
        self.count = count
        self.chained = chained
        self.counts: Counter[Tally] = Counter()

    def rows(self, number: int) -> Iterator[Any]:
        """A payment, and what comes with it."""
        moment, rare = START + SPREAD * (number / self.count), number % _RARE == 7
        payment = self._payment(number, moment, rare=rare)
        self.counts.update(tallies_of(payment, 1))
        yield payment
        kind = EventType.REFUND_FAILED if rare else EventType.PAYMENT_STATUS_CHANGED
        ended = number % _RARE != 11
        event = Event(
            id=self._id("evt_", moment), account_id=payment.account_id, mode=payment.mode, type=kind,
            object_id=payment.id, sequence=1, body=b'{"event":"payment.status_changed","data":{}}', created_at=moment,
        )  # fmt: skip
        yield event
        delivery = Delivery(
            id=event.id, account_id=payment.account_id, mode=payment.mode, type=kind, created_at=moment, attempts=1,
            status=DeliveryStatus.DELIVERED if ended else DeliveryStatus.FAILED,
        )  # fmt: skip
        yield delivery
        yield Attempt(
            id=attempt_id(delivery, 1), event_id=event.id, number=1, probe=False, sent_at=moment, answer="responded",
            status=200 if ended else 500, note="", took_ms=40,
        )  # fmt: skip
        yield self._entry(payment, moment)
        if number % 20 == 0:
            yield self._refund(payment, moment, number, rare=rare)
            yield AuditEntry(
                id=self._id("aud_", moment), at=moment, operator="ivan", act="refund.approve", object_id=payment.id,
                account_id=payment.account_id, reason="as agreed", before="status=pending", after="status=processing",
            )  # fmt: skip

    def _payment(self, number: int, moment: datetime, *, rare: bool) -> Payment:
        account = self.chance.choice(self.accounts)
        status = _S.AMOUNT_MISMATCH if rare else self.chance.choices(_STATUSES, _WEIGHTS)[0]
        amount, paid = Rub(self.chance.randrange(10_00, 99_999_99)), status is _S.PAID
        return Payment(
            id=self._id("pay_", moment), account_id=account.id, mode=Mode.TEST if number % 50 == 3 else Mode.LIVE,
            shop_id=account.default_shop_id, status=status, amount=amount, opening=Opening.OPEN,
            actual_amount=amount if paid else None, paid_at=moment if paid else None,
            payment_method="recurring" if number % 20 == 5 else "sbp", created_at=moment,
            expires_at=moment + timedelta(minutes=15), external_id=f"order-{number}", bank="simulator-live",
            payer_contact=f"***{number % 10_000:04}",
        )  # fmt: skip

    def _entry(self, payment: Payment, moment: datetime) -> JournalEntry:
        self.chained += 1
        moved = payment.amount.kopecks
        return JournalEntry(
            id=entry_id(EntryKind.RECEIPT, payment.id, 1), kind=EntryKind.RECEIPT, object_id=payment.id, revision=1,
            account_id=payment.account_id, mode=payment.mode, at=moment, number=self.chained, place=0, seal=b"x" * 64,
            postings=(
                Posting(purse=Purse.BANK, amount=-moved),
                Posting(purse=Purse.PENDING, amount=moved),
            ),
        )  # fmt: skip

    def _refund(self, payment: Payment, moment: datetime, number: int, *, rare: bool) -> Refund:
        return Refund(
            id=self._id("ref_", moment), payment_id=payment.id, account_id=payment.account_id, mode=payment.mode,
            shop_id=payment.shop_id, status=RefundStatus.REJECTED if rare else RefundStatus.COMPLETED,
            amount=payment.amount, reason="changed their mind", created_at=moment, external_id=f"back-{number}",
        )  # fmt: skip

    def _id(self, prefix: str, moment: datetime) -> str:
        stamp = int(moment.timestamp() * 1000)
        return f"{prefix}{UUID(int=stamp << 80 | 0x7 << 76 | 0b10 << 62 | self.chance.getrandbits(62))}"


async def fill(url: str, folder: Path, count: int) -> None:
    """One of everything there is, and so many payments of some merchants with what comes with them."""
    await migrate(url)
    async with open_refund_house(made_up=True, database_url=url, data_dir=folder) as refunds:
        await everything_there_is(refunds)
        made = [(await create_account(refunds.ports, f"Merchant {each}")).account_id for each in range(MERCHANTS)]
        accounts = [each for each in await everything(refunds.ports, Account) if each.id in made]
        entries = await everything(refunds.ports, JournalEntry)
    world = _World(accounts, count, max(each.number or 0 for each in entries) + 1000)
    maps, rows = keep(CATALOGUE), await rows_into(url)
    for first in range(0, count, BATCH):
        batch: dict[type[Any], list[Any]] = {}
        for number in range(first, min(first + BATCH, count)):
            for record in world.rows(number):
                batch.setdefault(type(record), []).append(maps[type(record)].codec.encode(record))
        for kind, made in batch.items():
            await rows.write(maps[kind], made)
    tallies = [msgspec.structs.replace(tally, count=number) for tally, number in world.counts.items()]
    await rows.write(maps[Tally], [maps[Tally].codec.encode(each) for each in tallies])
    await rows.close()


class Desk:
    """An operator at the console, who waits for each answer and writes down what it cost."""

    def __init__(self, app: Console, pilot: Pilot[None]) -> None:
        self._app = app
        self._pilot = pilot
        self.took: dict[str, list[float]] = {}

    async def press(self, *keys: str) -> None:
        """Press, and wait for all answers."""
        await self._pilot.press(*keys)
        await self._settle()

    async def step(self, name: str, *keys: str) -> None:
        """The same, and what it cost."""
        began = process_time()
        await self.press(*keys)
        self.took.setdefault(name, []).append((process_time() - began) * 1000)

    async def ask(self, name: str, kind: Kind, wish: Wish) -> None:
        """Open a list that is asked for something."""
        screen = ListScreen(self._app.shared, kind, wish)
        began = process_time()
        self._app.push_screen(screen)
        await self._pilot.pause()
        await self._settle()
        self.took.setdefault(name, []).append((process_time() - began) * 1000)
        await self.press("escape")

    async def _settle(self) -> None:
        while any(not each.is_finished for each in self._app.workers):
            try:
                await self._app.workers.wait_for_complete()
            except WorkerCancelled:
                continue
        await self._pilot.pause()


async def sit(desk: Desk, ports: Ports, count: int) -> None:
    """Through every screen, as an operator would."""
    for kind in KINDS:
        if kind.key:
            await desk.step(f"{kind.title}: first paint", kind.key)
            for _ in range(3):
                await desk.step(f"{kind.title}: page down", "pagedown")
            await desk.step(f"{kind.title}: a line down", "down")
            await desk.step(f"{kind.title}: an object", "enter")
            await desk.press("escape")
            await desk.press("0")
    await desk.step("home", "r")
    for name, text in (
        ("an order", f"order-{count // 2}"), ("the beginning of one", f"order-{count // 2}"[:-2]),
        ("nothing", "no such thing"), ("last digits of a phone", "1234"),
    ):  # fmt: skip
        await desk.press("slash", *text)
        await desk.step(f"search: {name}", "enter")
        await desk.press("escape", "escape", "0")
    account = next(each.id for each in await everything(ports, Account) if each.name == "Merchant 1")
    for kind, told, filters in asked(account, count):
        await desk.ask(f"{kind.title}: {told}", kind, Wish(filters=filters, order=kind.orders[0]))


def asked(account: str, count: int) -> Iterator[tuple[Kind, str, dict[str, str]]]:
    """What lists are asked for: each filter by itself, and the pairs that come up."""
    typed = {
        "account": account, "from": "2025-12-15", "to": "2025-12-16", "order": f"order-{count // 2}",
        "amount": "123.45", "name": "erchant 1", "operator": "ivan", "act": "refund.approve", "object": account,
    }  # fmt: skip
    for kind in KINDS:
        if not kind.key:
            continue
        for each in kind.filters:
            for value in each.choices or ((typed[each.name],) if each.name in typed else ()):
                yield kind, f"{each.name} {'' if value == account else value}", {each.name: value}
                if each.choices and any(other.name == "account" for other in kind.filters):
                    yield kind, f"{each.name} {value} of a merchant", {each.name: value, "account": account}
        names = {each.name: each for each in kind.filters}
        if {"status", "type"} <= names.keys():
            for status in names["status"].choices:
                for of_type in ("payment.status_changed", "refund.failed"):
                    yield kind, f"status {status}, type {of_type}", {"status": status, "type": of_type}


async def read(ports: Ports, count: int) -> dict[str, list[float]]:
    """What the same lists, objects and searches cost without a screen: the reads, and making records of rows."""
    took: dict[str, list[float]] = {}

    async def timed(name: str, ask: Callable[[], Awaitable[Any]]) -> Any:
        began = process_time()
        found = await ask()
        took.setdefault(name, []).append((process_time() - began) * 1000)
        return found

    account = next(each.id for each in await everything(ports, Account) if each.name == "Merchant 1")
    for kind in (each for each in KINDS if each.key):
        for order in kind.orders:
            last = None
            for number in range(_PAGES):
                page = partial(kind.read, ports, Wish(order=order), last, PAGE)
                found = await timed(f"{kind.title}: {order}, page {number + 1}", page)
                if number == 0 and found:
                    await timed(f"{kind.title}: an object", partial(_open, ports, kind, found[0].id))
                if len(found) < PAGE:
                    break
                last = found[-1]
    for kind, told, filters in asked(account, count):
        wish = Wish(filters=filters, order=kind.orders[0])
        await timed(f"{kind.title}: {told}", partial(kind.read, ports, wish, None, PAGE))
    for text in (f"order-{count // 2}", f"order-{count // 2}"[:-2], "no such thing", "1234"):
        await timed(f"search: {text}", partial(search, ports, text))
    await timed("home: action items", partial(read_action_items, ports))
    return took


async def _open(ports: Ports, kind: Kind, object_id: str) -> None:
    record = await kind.get(ports, object_id)
    if kind.figures is not None:
        await kind.figures(ports, record)
    await kind.timeline(ports, record)


@asynccontextmanager
async def console(url: str, folder: Path) -> AsyncIterator[tuple[Desk, Ports]]:
    """The console on the database, as `cambist console` opens it."""
    async with open_house(Settings(database_url=url, data_dir=folder)) as house:
        keep_for_good()
        app = Console(ConsoleContext(ports=house.ports, operator="olga"))
        app.animation_level = "none"
        async with app.run_test(size=(80, 24)) as pilot:
            desk = Desk(app, pilot)
            await desk.press("0")
            yield desk, house.ports


async def measured(folder: Path, count: int, *, reads_alone: bool) -> dict[str, list[float]]:
    """All steps some times; the database is made where there is none."""
    url = f"sqlite:///{folder / 'console.db'}"
    if not (folder / "console.db").exists():
        await fill(url, folder, count)
    async with console(url, folder) as (desk, ports):
        took = desk.took
        for _ in range(_TIMES):
            if reads_alone:
                for name, each in (await read(ports, count)).items():
                    took.setdefault(name, []).extend(each)
            else:
                await sit(desk, ports, count)
        return took


def main() -> None:
    """`python -m benchmarks.console_screens`."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--payments", type=int, default=1_000_000)
    given.add_argument("--folder", type=Path)
    given.add_argument("--reads", action="store_true", help="what is read, without the screens")
    told = given.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = told.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        steps = asyncio.run(measured(folder, told.payments, reads_alone=told.reads))
    for name, took in sorted(steps.items(), key=lambda each: -median(each[1])):
        late = "  over 100 ms" if median(took) > LIMIT_MS else ""
        print(f"{median(took):8.1f} ms  {max(took):8.1f} at most  {name}{late}")


if __name__ == "__main__":
    main()
