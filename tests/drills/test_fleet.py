"""A fleet of two cells (docs/cells.md "The drill"): primaries die, a cell dies, and accounts move, under load.

`nox -s fleet` runs it. Without root, Patroni, etcd, HAProxy and Postgres of Debian it is left out.
"""

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg
import pytest

from tests.drills.acknowledged import Book, confirms, load, verdict
from tests.drills.fleet import Fleet, cpu_seconds, running_fleet
from tests.drills.machines import missing
from tests.drills.test_high_availability import happens
from tests.patience import FULL
from tests.servers import PostgresServer, own_postgres
from tests.stories.merchant import Merchant
from tests.stories.processes import eventually, installation

KILLS, MOVES = (int(each) for each in os.environ.get("CAMBIST_FLEET", "1,2").split(","))
PAYMENTS = int(os.environ.get("CAMBIST_FLEET_PAYMENTS", "400"))
MERCHANTS = 6
"""In each cell."""
SPREAD = 80
"""Merchants of a cell in the measurement, so many that no limit stops them."""
PAUSE = 5.0
"""Seconds for which a move may stop an account, with the repetitions of its merchant."""

left_out = pytest.mark.skipif(not FULL or missing() is not None, reason=f"nox -s fleet; {missing() or 'takes minutes'}")


@pytest.mark.drill
@left_out
@pytest.mark.timeout(3600)
async def test_fleet_outlives_primaries_and_cells_and_moves_accounts(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(running_fleet(tmp_path))
        client = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)))
        accounts = {name: await places[0].accounts(MERCHANTS) for name, places in fleet.places.items()}
        books = {name: Book() for name in accounts}
        shops = {
            name: [
                Merchant(client, fleet.base, each.live, {"X-Forwarded-For": f"203.0.{name[1]}.{number}"})
                for number, each in enumerate(found)
            ]
            for name, found in accounts.items()
        }
        async with load(books["c1"], shops["c1"], again=0.2), load(books["c2"], shops["c2"], again=0.2):
            pauses = [await kill_primary(fleet, books) for _ in range(KILLS)]
            print(f"\n{KILLS} kills: first 201 after {[round(each, 1) for each in sorted(pauses)]}")
            await kill_cell(fleet, books)
        seen = {name: dict(book.problems) for name, book in books.items()}
        confirmed = sum(len(book.confirmed) for book in books.values())
        print(f"{confirmed} confirmed; refused: {seen}; slowest {max(book.longest for book in books.values()):.1f} s")
        mover = accounts["c2"][0]
        found, others = Book(), Book()
        async with load(found, shops["c2"][:1], again=0.3), load(others, shops["c1"] + shops["c2"][1:], again=0.2):
            held = [await move(fleet, mover.account_id, ("c1", "c2")[number % 2], found) for number in range(MOVES)]
        print(f"{MOVES} moves: held {[each[0] for each in held]} s; gaps {[round(each[1], 1) for each in held]} s")
        print(f"{held[-1][2]} rows; refused: {dict(found.problems)}, of other accounts: {dict(others.problems)}")
        assert max(each[1] for each in held) <= PAUSE
        assert not others.problems.keys() - {"429"}
        for book in (*books.values(), found, others):
            await check_in_one_cell(fleet, book)
        for name, places in fleet.places.items():
            report = places[0].call("ledger", "verify", "--json")
            assert report.document["holds"], (name, report)


async def kill_primary(fleet: Fleet, books: dict[str, Book]) -> float:
    """Kill the machine of the first cell's primary. Return the seconds to the first confirmed payment after it."""
    book, other = books["c1"], books["c2"]
    await eventually(fleet.machines.is_whole)
    await confirms(book, MERCHANTS)
    before = sum(other.problems.values())
    began = await happens("machine killed", fleet.machines)
    await confirms(book, MERCHANTS)
    assert await verdict(fleet.machines) is None
    assert sum(other.problems.values()) == before, "the other cell must not notice"
    for each in fleet.machines.all:
        each.start()
    await eventually(fleet.machines.is_whole, every=0.5)
    return book.after_the_gap(began) - began


async def kill_cell(fleet: Fleet, books: dict[str, Book]) -> None:
    """Kill the database of the second cell. The first one goes on without an error, and the second one comes back."""
    await confirms(books["c2"], MERCHANTS)
    before = sum(books["c1"].problems.values())
    fleet.postgres.kill()
    await confirms(books["c1"], 8 * MERCHANTS)
    assert sum(books["c1"].problems.values()) == before
    assert books["c2"].problems
    fleet.postgres.start()
    await confirms(books["c2"], MERCHANTS)


async def move(fleet: Fleet, account_id: str, target: str, book: Book) -> tuple[float, float, int]:
    """Move an account. Return how long it was held, its longest time without a confirmed payment, and its rows."""
    await confirms(book, 2)
    began = len(book.times) - 1
    place = fleet.places["c1"][0]
    directory = str(fleet.folder / "cells.toml")
    arguments = ("account", "move", account_id, "--to", target, "--directory", directory, "--json")
    done = await asyncio.to_thread(place.call, *arguments)
    assert done.document.get("to") == target, done
    await confirms(book, 2)
    gap = max(after - before for before, after in pairwise(book.times[began:]))
    return done.document["held_seconds"], gap, done.document["rows"]


async def check_in_one_cell(fleet: Fleet, book: Book) -> None:
    """Every confirmed payment is in exactly one cell, and no order has two payments."""
    ids, orders = list(book.confirmed.values()), list(book.confirmed)
    for field, values in (("id", ids), ("external_id", orders)):
        question = f"SELECT count(*) FROM payments WHERE {field} = ANY($1)"
        counts = [await fleet.ask(cell, question, values) for cell in fleet.places]
        assert sum(counts) == len(values), (field, counts)


@pytest.mark.drill
@left_out
@pytest.mark.timeout(1800)
async def test_payment_costs_the_same_in_one_two_and_four_cells(tmp_path: Path) -> None:
    found = {count: await cost(tmp_path / str(count), count) for count in (1, 2, 4)}
    print("\nCPU ms a payment: " + ", ".join(f"{count} cells {1000 * each:.2f}" for count, each in found.items()))
    assert all(each < 1.05 * found[1] for each in found.values()), found


async def cost(folder: Path, count: int) -> float:
    """Return the CPU seconds of a payment with its service and Postgres, in so many cells with the same load each."""
    folder.mkdir()
    async with AsyncExitStack() as stack:
        server = stack.enter_context(own_postgres())
        merchants: list[Merchant] = []
        roots = [server.pid]
        client = await stack.enter_async_context(aiohttp.ClientSession())
        for number in range(count):
            (folder / str(number)).mkdir()
            url = await new_database(server, f"cell{number}")
            given = {"database_url": url, "cell": f"c{number}", "trusted_proxies": "127.0.0.0/8"}
            place = stack.enter_context(installation(folder / str(number), **given))
            await place.migrate()
            accounts = await place.accounts(SPREAD)
            service, base = await asyncio.to_thread(place.serve)
            roots.append(service.pid)
            merchants += [
                Merchant(client, base, each.live, {"X-Forwarded-For": f"203.{number}.0.{index}"})
                for index, each in enumerate(accounts)
            ]
        await create(merchants, PAYMENTS // 2 * count)  # statements are planned once per connection
        began = cpu_seconds(roots)
        await create(merchants, PAYMENTS * count)
        return (cpu_seconds(roots) - began) / (PAYMENTS * count)


async def new_database(server: PostgresServer, name: str) -> str:
    """Return the URL of a new database, which goes with its server."""
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return server.url.rpartition("/")[0] + f"/{name}"


async def create(merchants: Sequence[Merchant], payments: int) -> None:
    """Create payments, eight at once in each cell, over all merchants in turn."""
    todo = iter(range(payments))

    async def work() -> None:
        for number in todo:
            merchant = merchants[number % len(merchants)]
            while (answer := await merchant.create(str(uuid4()), external_id=secrets.token_hex(6))).status == 429:
                await asyncio.sleep(0.2)
            assert answer.status == 201, answer.text

    await asyncio.gather(*(work() for _ in range(8 * len(merchants) // SPREAD)))
