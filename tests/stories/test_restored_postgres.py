"""A Postgres database that is a copy is recognised by its place, whatever way it came there."""

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.installation import Because
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.actions.audit import list_audit
from cambist.core.usecases.common.quarantine import read_hold, read_installation
from cambist.core.usecases.installation.marking import mark_anew
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.payments.payments import create_payment
from cambist.frontends.app.compose import App, migrate, open_app
from cambist.frontends.app.maintenance import open_beside
from cambist.frontends.process.marking import marks_kept
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Fault, Unavailable
from cambist.ports.witnesses import Witness
from tests.payout_kit import WALLET
from tests.servers import _execute, client_programs, database, own_postgres
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


async def until_marked(app: App, *, times: int = 1) -> None:
    """Wait until this process has marked itself so often in the database."""
    witnessed = app.witnessed
    assert witnessed is not None
    mine = witnessed.process

    async def marked() -> bool:
        with contextlib.suppress(Fault):
            return any(each.process == mine and each.number >= times for each in await witnessed.witnesses())
        return False

    await eventually(marked)


async def held_now(app: App) -> Because | None:
    """Return why it is held for longer than a promoted server is examined."""
    with contextlib.suppress(Fault):
        found = await read_hold(app.ports)
        if found is not None and found.held_because is not Because.PROMOTED:
            return found.held_because
    return None


def test_promoted_server_with_every_commit_is_not_held(tmp_path: Path) -> None:
    """A process lived through the failover and finds all of its commits. The audit log says so."""
    with own_postgres() as server:
        own = settings(server.url, tmp_path)
        asyncio.run(fill(own))

        async def story() -> AuditEntry:
            async with open_app(own) as app, marks_kept(app):
                await until_marked(app, times=2)
                await asyncio.to_thread(server.promote)

                async def accepted() -> list[AuditEntry]:
                    with contextlib.suppress(Fault):
                        return await list_audit(app.ports, operator="cambist", limit=9)
                    return []

                (entry,) = await eventually(accepted)
                assert await read_hold(app.ports) is None
                return entry

        entry = asyncio.run(story())
        assert (entry.action, "timeline 00000002" in entry.after) == ("failover.accept", True)
        assert asyncio.run(why_held(own)) is None


def test_server_that_lacks_a_commit_is_held_until_it_is_resumed(tmp_path: Path) -> None:
    with own_postgres() as server:
        own = settings(server.url, tmp_path)
        asyncio.run(fill(own))

        async def story() -> Because | None:
            async with open_app(own) as app, marks_kept(app):
                await until_marked(app, times=2)
                await _execute(server.url, "UPDATE commit_marks SET number = number - 1")
                because = await eventually(lambda: held_now(app))
                await resume(app.ports, open_beside(own))
                await until_marked(app, times=3)
                assert await read_hold(app.ports) is None
                return because

        assert asyncio.run(story()) is Because.INCOMPLETE


def test_promoted_server_that_nobody_lived_through_is_held(tmp_path: Path) -> None:
    with own_postgres() as server:
        own = settings(server.url, tmp_path)
        asyncio.run(fill(own))
        server.promote()
        assert asyncio.run(why_held(own)) is Because.COPIED


def test_promoted_server_sends_nothing_until_it_is_examined(tmp_path: Path) -> None:
    """A command finds that a process may have lived through the failover, and leaves the decision to it."""
    with own_postgres() as server:
        own = settings(server.url, tmp_path)
        asyncio.run(fill(own))

        async def story() -> tuple[Because | None, bool]:
            async with open_app(own) as app:
                assert app.witnessed is not None
                await app.witnessed.mark()
                await asyncio.to_thread(server.promote)
                async with open_app(own) as command:
                    found = await read_hold(command.ports)
                    with pytest.raises(Unavailable, match="promoted"):
                        await command.ports.senders.of_mode("live").sign("wd_1", WALLET, 1_000_000)
                    stored = await read_installation(command.ports.storage, command.ports.vault)
                assert stored is not None
                return None if found is None else found.held_because, stored.is_held

        assert asyncio.run(story()) == (Because.PROMOTED, False)


def test_server_that_hides_its_location_is_served_without_marks(tmp_path: Path) -> None:
    """Hosted services may refuse `pg_control_system`."""
    with own_postgres() as server:
        asyncio.run(fill(settings(server.url, tmp_path)))
        for statement in (
            "CREATE ROLE tenant LOGIN",
            "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO tenant",
        ):
            asyncio.run(_execute(server.url, statement))
        own = settings(server.url.replace("postgres@", "tenant@"), tmp_path)

        async def story() -> Sequence[Witness]:
            async with open_app(own) as app:
                before = await read_installation(app.ports.storage, app.ports.vault)
                async with marks_kept(app):

                    async def renewed() -> bool:
                        return await read_installation(app.ports.storage, app.ports.vault) != before

                    await eventually(renewed)
                assert app.witnessed is not None
                return await app.witnessed.witnesses()

        assert asyncio.run(story()) == []
