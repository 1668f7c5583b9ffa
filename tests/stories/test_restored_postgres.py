"""A Postgres database that is a copy is recognised by its place, whatever way it came there."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.installation import Because
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.common.quarantine import read_hold
from cambist.core.usecases.installation.marking import mark_anew
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.payments.payments import create_payment
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.app.maintenance import open_beside
from cambist.frontends.process.marking import marks_kept
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Fault
from tests.servers import client_programs, database, own_postgres
from tests.stories.processes import eventually


@pytest.fixture
def original(server: str, postgres_template: str, tmp_path: Path) -> Iterator[str]:
    """A database with a payment of live mode."""
    with database(server, postgres_template) as url:
        asyncio.run(fill(settings(url, tmp_path)))
        yield url


def settings(url: str, folder: Path) -> Settings:
    return Settings(database_url=url, data_dir=folder)


async def fill(own: Settings) -> None:
    await migrate(own)
    async with open_app(own) as app:
        made = await create_account(app.ports, "Tea")
        account = await app.ports.storage.get(Account, made.account_id)
        assert account is not None
        caller = Caller(account=account, mode=Mode.LIVE, key_id="a-key")
        await create_payment(app.ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))


async def why_held(own: Settings) -> Because | None:
    async with open_app(own) as app:
        found = await read_hold(app.ports)
    return None if found is None else found.held_because


def dumped(url: str, target: str, *more: str) -> None:
    """Copy one database into another by pg_dump and pg_restore."""
    programs = client_programs(url)
    dump = subprocess.run([programs / "pg_dump", "--format=custom", url], check=True, capture_output=True)
    subprocess.run([programs / "pg_restore", "--no-owner", *more, f"--dbname={target}"], input=dump.stdout, check=True)


def test_database_that_stays_in_place_is_not_quarantined(original: str, tmp_path: Path) -> None:
    own = settings(original, tmp_path)

    async def marked() -> None:
        async with open_app(own) as app:
            await mark_anew(app.ports.storage, app.ports.vault, open_beside(own), app.ports.clock, app.ports.ids)

    asyncio.run(marked())
    assert asyncio.run(why_held(own)) is None


def test_a_dump_that_was_restored_elsewhere_is_held_until_it_is_resumed(
    original: str, server: str, tmp_path: Path
) -> None:
    with database(server) as copy:
        dumped(original, copy)
        own = settings(copy, tmp_path)
        assert asyncio.run(why_held(own)) is Because.COPIED
        assert asyncio.run(why_held(settings(original, tmp_path))) is None

        async def let_go() -> None:
            async with open_app(own) as app:
                await resume(app.ports, open_beside(own))

        asyncio.run(let_go())
        assert asyncio.run(why_held(own)) is None


def test_a_dump_that_was_restored_over_the_database_itself_is_held(original: str, tmp_path: Path) -> None:
    """Same cluster, same timeline, same name: only the table is another one."""
    dumped(original, original, "--clean", "--if-exists")
    assert asyncio.run(why_held(settings(original, tmp_path))) is Because.COPIED


def test_a_server_that_was_promoted_is_held_while_processes_go_on(tmp_path: Path) -> None:
    """The promoted server may lack the former primary's last commits, and a timeline does not show it."""
    with own_postgres() as server:
        own = settings(server.url, tmp_path)
        asyncio.run(fill(own))
        assert asyncio.run(why_held(own)) is None

        async def noticed() -> Because | None:
            async with open_app(own) as app, marks_kept(app):
                await asyncio.to_thread(server.promote)

                async def look() -> Because | None:
                    try:
                        found = await read_hold(app.ports)
                    except Fault:
                        return None
                    return None if found is None else found.held_because

                return await eventually(look)

        assert asyncio.run(noticed()) is Because.COPIED
        assert asyncio.run(why_held(own)) is Because.COPIED
