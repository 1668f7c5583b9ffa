"""A bank's provider posts notifications to real processes: one on SQLite, and two that serve beside a worker on
Postgres (docs/adapters.md "Notifications"). The bank declares that it sends notifications, so the service does not poll
it before the deadline of 15 minutes: every paid payment here follows from a notification. All requests pass through
a trusted proxy, as behind nginx."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from cambist.core.domain.ledger import EntryKind, JournalEntry
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.notification_intake import HEAR
from cambist.frontends.settings import plugins
from cambist.ports.jobs import Job
from cambist.testing import ProviderAnswer, ProviderRequest
from examples.own_bank.bank import NAME
from examples.own_bank.provider import Provider
from tests.invariants import check_books, everything
from tests.redis_servers import own_redis
from tests.servers import database
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import WORKS, Installation, Service, eventually, installation

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-that-must-not-show"
PROVIDER_AT, STRANGER_AT = "203.0.113.5", "198.51.100.1"


@dataclass
class Bank:
    """The provider and its notifications."""

    provider: Provider
    address: str = ""
    """As it was entered in the provider's cabinet."""
    hasty: bool = False
    """It posts a notification about each invoice before it answers the call that makes it."""
    answers: list[int] = field(default_factory=list)

    async def make_invoice(self, request: ProviderRequest) -> ProviderAnswer:
        """Create the invoice as the fake does."""
        made = self.provider.make_invoice(request)
        if self.hasty:
            self.answers.append(await self.tell(request.headers["idempotency-key"]))
        return made

    async def tell(
        self, operation: str, *, token: str = TOKEN, peer: str = PROVIDER_AT, address: str | None = None
    ) -> int:
        """Post a notification, by the proxy; the status of the answer."""
        body, headers = self.provider.notification(operation, token)
        headers["X-Forwarded-For"] = peer
        async with (
            aiohttp.ClientSession() as client,
            client.post(address or self.address, data=body, headers=headers) as answer,
        ):
            assert answer.status != 200 or await answer.text() == "OK"
            return answer.status


@asynccontextmanager
async def open_bank() -> AsyncIterator[Bank]:
    """The provider answers inside."""
    async with Provider() as provider:
        bank = Bank(provider)
        provider.on("POST", "/invoices", bank.make_invoice)
        yield bank


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the example's bank is installed, for processes and for this one."""
    folder = tmp_path / "packages"
    info = folder / "examplebank-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: examplebank\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cambist.banks]\n{NAME} = examples.own_bank.bank:example\n")
    (folder / "examples").symlink_to(ROOT / "examples")
    point = EntryPoint(NAME, "examples.own_bank.bank:example", "cambist.banks")
    monkeypatch.setattr(plugins, "entry_points", lambda *, group: [point] if group == point.group else [])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


SETTINGS = {
    "banks": NAME,
    "base_url": "https://pay.example",
    "trusted_proxies": "127.0.0.1",
    "example_notification_networks": "203.0.113.0/28",
    "log_level": "debug",
    "access_log": "all",
}


@pytest.fixture(params=["one process on SQLite", "two and a worker on Postgres"])
def settings(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Return the settings that the processes share."""
    with ExitStack() as stack:
        chosen = dict(SETTINGS)
        if "Postgres" in request.param:
            chosen["database_url"] = stack.enter_context(database(request.getfixturevalue("server")))
            chosen["redis_url"] = stack.enter_context(own_redis()).url
            chosen["vault_key"], chosen["vault_pepper"] = secrets.token_hex(32), secrets.token_hex(32)
        yield chosen


@pytest.fixture
async def place(settings: dict[str, str], tmp_path: Path, package: Path) -> AsyncIterator[tuple[Installation, Bank]]:
    async with open_bank() as bank:
        with installation(tmp_path, **settings, example_url=bank.provider.url, example_token=TOKEN) as made:
            yield made, bank


async def begun(place: Installation) -> list[str]:
    """The service is up; where its processes accept requests."""
    if place.settings.redis_url is None:
        service = place.start_service()
        ports = [service]
    else:
        await place.migrate()
        ports = [place.start_api() for _ in range(2)]
        place.start("worker").said(WORKS)
    for each in ports:
        each.ready()
    return [f"http://127.0.0.1:{port_of(each.pid)}" for each in ports]


def port_of(pid: int) -> int:
    """Return the port at which a process listens; `base_url` names the proxy's."""
    sockets = {
        line.split()[9]: int(line.split()[1].rpartition(":")[2], 16)
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    links = [each.readlink() for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    found = {f"socket:[{inode}]": port for inode, port in sockets.items()}
    return next(found[str(link)] for link in links if str(link) in found)


async def status(edge: Merchant, payment: dict[str, Any]) -> str:
    return str((await edge.ask("GET", f"/payments/{payment['id']}")).json["status"])


async def all_asked(installed: Installation) -> bool:
    """Return whether every operation named by a notification was polled."""
    async with installed.app() as ports, ports.storage.unit() as unit:
        return not [job for job in await unit[Job].find(limit=1000) if job.kind == HEAR.kind]


async def test_providers_notifications_count_and_strangers_do_not(place: tuple[Installation, Bank]) -> None:
    installed, bank = place
    bases = await begun(installed)
    [row] = installed.call("notification", "list", "--json").document["data"]
    path = row["address"].removeprefix("https://pay.example")
    account = await installed.account()
    addresses = [f"{base}{path}" for base in bases]
    bank.address = addresses[0]
    async with AsyncExitStack() as stack:
        edges = [await stack.enter_async_context(merchant(base, account.live)) for base in bases]

        async def is_paid(payment: dict[str, Any]) -> bool:
            return await status(edges[0], payment) == "paid"

        # Told before the answer of the very call that makes it: harmless.
        bank.hasty = True
        payment = await edges[0].created()
        bank.hasty = False
        assert bank.answers == [200]
        await eventually(lambda: all_asked(installed))
        assert await status(edges[-1], payment) == "pending"

        bank.provider.pay(payment["id"], 100_00, "2026-08-08T12:00:00+00:00")
        # The service believes only the provider.
        assert await bank.tell(payment["id"], token="another") == 403
        assert await bank.tell(payment["id"], peer=STRANGER_AT) == 403
        assert await bank.tell(payment["id"], address=f"{addresses[0][:-1]}x") == 404
        assert await status(edges[-1], payment) == "pending"

        # Twice, at each process: it is paid once.
        for address in addresses * 2:
            assert await bank.tell(payment["id"], address=address) == 200
        await eventually(lambda: is_paid(payment))
        balance = (await edges[0].ask("GET", "/balance")).json
        assert balance["pending_rub"] == "100.00", balance

        # A new address is known to all processes; the former one still counts.
        former = path
        rotated = installed.call("notification", "rotate", NAME, "--json").document
        path = rotated["address"].removeprefix("https://pay.example")
        second = await edges[0].created()
        bank.provider.pay(second["id"], 100_00, "2026-08-08T12:00:00+00:00")

        async def is_known() -> bool:
            return {await bank.tell("pay_none", address=f"{base}{path}") for base in bases} == {200}

        await eventually(is_known)
        assert await bank.tell(second["id"], address=f"{bases[-1]}{former}") == 200
        await eventually(lambda: is_paid(second))
    [row] = installed.call("notification", "list", "--json").document["data"]
    assert row["last_notification"] is not None
    for process in installed.started:
        for text in (process.out, process.err) if "notification" not in str(process._out) else ():
            assert former.rpartition("/")[2] not in text, "a log tells the address"
            assert TOKEN not in text


PAID_AT = "2026-08-08T12:00:00+00:00"


def makes(request: ProviderRequest) -> bool:
    return (request.method, request.path) == ("POST", "/invoices")


def asks(request: ProviderRequest) -> bool:
    return request.method == "GET" and request.path.startswith("/invoices")


@pytest.mark.parametrize("settings", ["two and a worker on Postgres"], indirect=True)
async def test_notification_reaches_a_payment_in_hand_of_another_process(place: tuple[Installation, Bank]) -> None:
    """The notification lands at process A, while B waits for the bank's answer about the same payment, or died waiting:
    nothing is lost, and nothing is done twice."""
    installed, bank = place
    provider = bank.provider
    bases = await begun(installed)
    apis = [each for each in installed.started if isinstance(each, Service)]
    [row] = installed.call("notification", "list", "--json").document["data"]
    bank.address = f"{bases[0]}{row['address'].removeprefix('https://pay.example')}"
    account = await installed.account()
    async with AsyncExitStack() as stack:
        a, b = [await stack.enter_async_context(merchant(base, account.live)) for base in bases]

        async def is_paid(payment_id: str) -> bool:
            return await status(a, {"id": payment_id}) == "paid"

        async def paid(payment_id: str) -> None:
            """Let the payer pay, and let the bank notify A three times."""
            provider.pay(payment_id, 100_00, PAID_AT)
            assert [await bank.tell(payment_id) for _ in range(3)] == [200] * 3
            await eventually(lambda: is_paid(payment_id))

        # B waits for the answer to the call that makes the invoice; its payer was quick.
        held, key = provider.hold_next(matching=makes), str(uuid4())
        making = asyncio.create_task(b.create(key))
        await held.arrived()
        [first] = provider.invoices
        await paid(first)
        await held.release()
        made = await making
        assert (made.status, made.json["id"]) == (201, first)
        assert await is_paid(first), "what B was answered is older than what A heard"

        # The worker waits for an answer that was made before the payer paid.
        second = (await b.created())["id"]
        held = provider.hold_next(matching=asks)
        assert await bank.tell(second) == 200
        await held.arrived()
        provider.pay(second, 100_00, PAID_AT)
        assert await bank.tell(second) == 200
        await held.release()
        await eventually(lambda: is_paid(second))
        await eventually(lambda: all_asked(installed))
        assert await is_paid(second)

        # B dies while it waits: its merchant has no answer, and repeats at A.
        held, key = provider.hold_next(matching=makes), str(uuid4())
        making = asyncio.create_task(b.create(key))
        await held.arrived()
        third = list(provider.invoices)[-1]
        apis[1].kill()
        with pytest.raises(aiohttp.ClientError):
            await making
        await held.release()
        await paid(third)
        again = await a.create(key)
        assert (again.json["id"], again.json["status"]) == (third, "paid"), again.text

    assert list(provider.invoices) == [first, second, third], "one invoice a payment"
    async with installed.app() as ports:
        events = Counter((each.object_id, each.type) for each in await everything(ports, Event))
        assert events == {(each, "payment.status_changed"): 1 for each in (first, second, third)}
        booked = Counter(
            each.object_id for each in await everything(ports, JournalEntry) if each.kind is EntryKind.RECEIPT
        )
        assert booked == dict.fromkeys((first, second, third), 1)
        await check_books(ports)
