"""Chains of before there were tags: migration 0019 writes none, because nothing tells them from forged ones, and an
operator takes them over, once (SECURITY.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.codec import microseconds
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import FIRST_LINK
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import LEDGER, EntryKind, JournalEntry, Purse, journal_entry
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.chains import NO_HEAD, UNTAGGED, extend_chain
from cambist.core.usecases.ledger.adoption import adopt
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.watch import ledger_faults
from cambist.frontends.compose import open_house
from cambist.frontends.settings import Settings
from tests.attacks.kit import KEYS, OWN, Attacker, multiplied
from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]

ELSEWHERE = tron_address(bytes(20))
WALLET = tron_address(bytes(range(20)))
AT = datetime(2026, 1, 1, tzinfo=UTC)
SEALED = 4


def receipt(number: int) -> JournalEntry:
    amounts = {Purse.BANK: -number, Purse.PENDING: number}
    return journal_entry(
        EntryKind.RECEIPT, f"pay_{number}", account_id="acc_1", mode=Mode.TEST, at=AT, postings=amounts
    )


def filled(connection: sa.Connection) -> None:
    """Four chained entries, one that is not yet, and an act, as a service with 0018 left them."""
    command.upgrade(steps_on(connection), "0018")
    known = sa.MetaData()

    def add(name: str, *rows: dict[str, Any]) -> None:
        connection.execute(sa.Table(name, known, autoload_with=connection).insert(), list(rows))

    last = FIRST_LINK
    for number in range(1, SEALED + 2):
        entry = receipt(number)
        sealed: dict[str, Any] = {"number": None, "seal": None}
        if number <= SEALED:
            last = LEDGER.link(entry, number, last)
            sealed = {"number": number, "seal": last}
        row = {name: getattr(entry, name) for name in ("id", "kind", "object_id", "revision", "account_id", "mode")}
        postings = msgspec.json.encode(entry.postings).decode()
        add("journal", {**row, "at": microseconds(AT), "postings": postings, "version": 0, **sealed})
    total = sum(range(1, SEALED + 2))
    balance = {"mode": "test", "version": 0}
    add(
        "ledger_accounts",
        {**balance, "id": "acc_1:test:pending:0", "owner": "acc_1", "purse": "pending", "balance": total},
        {**balance, "id": "service:test:bank:0", "owner": "service", "purse": "bank", "balance": -total},
    )
    add("ledger_heads", {"id": "head", "number": SEALED, "seal": last, "version": 1})
    act = {"id": "aud_1", "at": 1, "operator": "vera", "act": "hold", "object_id": None, "account_id": None}
    add("audit", {**act, "reason": "", "before": "", "after": "", "version": 0})
    settings = msgspec.json.encode({"payout_wallet": WALLET}).decode()
    account = {"id": "acc_1", "name": "A", "default_shop_id": "s", "created_at": 1, "settings": settings}
    add("accounts", {**account, "version": 0})
    payout = {"account_id": "acc_1", "mode": "live", "amount": 5, "wallet": WALLET, "sender": "w", "network": "TRON"}
    for name, wallet in (("pending", WALLET), ("cancelled", WALLET), ("pending_elsewhere", ELSEWHERE)):
        row = {**payout, "wallet": wallet, "id": f"wd_{name}", "status": name.partition("_")[0]}
        add("withdrawals", {**row, "created_at": 1, "sequence": 1, "version": 0})


async def test_what_was_sealed_before_is_taken_over_by_an_operator(old_url: str) -> None:
    await done_on(old_url, filled)
    await migrate(old_url)
    clock = VirtualClock(AT + timedelta(days=1))
    async with open_house(Settings(database_url=old_url, vault=KEYS), clock=clock) as house:
        ports = house.ports
        attacker = Attacker(old_url, ports)
        await attacker.balance()  # their stripes
        before = await verify_ledger(ports)
        assert before.first_bad_entry is not None
        assert before.first_bad_act is not None
        assert (before.first_bad_entry.reason, before.first_bad_act.reason) == (UNTAGGED, NO_HEAD)
        assert [(each.id, each.field) for each in before.bad_values] == [
            ("acc_1", "accounts.settings.payout_wallet"),
            ("wd_pending", "withdrawals.wallet"),
            ("wd_pending_elsewhere", "withdrawals.wallet"),
        ]
        assert len(await ledger_faults(ports)) == 2
        assert await extend_chain(ports, LEDGER) == 0

        done = await adopt(ports)
        assert (done.chains, done.entries, done.acts) == (("ledger", "audit"), SEALED + 1, 1)
        assert done.wallets == (("acc_1", WALLET),)
        report = await verify_ledger(ports)
        assert [each.id for each in report.bad_values] == ["wd_pending_elsewhere"], "nobody looked at that wallet"
        await attacker.run("DELETE FROM withdrawals WHERE id = 'wd_pending_elsewhere'")
        report = await verify_ledger(ports)
        assert (report.holds, report.unsealed, report.acts_unsealed) == (True, 0, 0)
        assert await ledger_faults(ports) == ()
        assert (await adopt(ports)).chains == ()

        rows = await attacker.rows(LEDGER)
        rows[1] = multiplied(rows[1], 10)
        await attacker.forge(LEDGER, rows)
        assert not (await verify_ledger(ports)).holds


@pytest.mark.parametrize("tags", [None, OWN])
async def test_a_history_that_was_tagged_is_not_taken_over_again(old_url: str, tags: Any) -> None:
    """Unless the operator insists: the keys were lost. Where no tag is left at all, only he knows."""
    await done_on(old_url, filled)
    await migrate(old_url)
    async with open_house(Settings(database_url=old_url, vault=KEYS), clock=VirtualClock(AT)) as house:
        attacker = Attacker(old_url, house.ports)
        await attacker.balance()
        await adopt(house.ports)
        rows = await attacker.rows(LEDGER)
        await attacker.write(msgspec.structs.replace(await attacker.head(LEDGER), tag=None))
        if tags is not None:
            await attacker.forge(LEDGER, rows, tags=tags)
        with pytest.raises(Refusal, match=r"before|do not hold"):
            await adopt(house.ports)
        if tags is None:
            assert (await adopt(house.ports, anyway=True)).chains == ("ledger",)
            report = await verify_ledger(house.ports)
            assert (report.first_bad_entry, report.first_bad_act) == (None, None)


async def test_books_that_do_not_hold_are_not_taken_over(old_url: str) -> None:
    await done_on(old_url, filled)
    await migrate(old_url)
    async with open_house(Settings(database_url=old_url, vault=KEYS), clock=VirtualClock(AT)) as house:
        with pytest.raises(Refusal, match="do not hold"):
            await adopt(house.ports)
