"""Chains under a rotation of the vault's keys, and the printed form of heads (domain/chains.py)."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest

from cambist.core.domain.chains import Head, heads_in, told
from cambist.core.domain.ledger import LEDGER, JournalEntry
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.usecases.actions.audit import note
from cambist.core.usecases.common.chains import extend_audit, present_head
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.operators.reencrypt import reencrypt
from cambist.core.usecases.operators.retagging import retag
from cambist.frontends.telemetry.masking import masked
from cambist.ports.bundle import Ports
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.tables import table
from tests.usecases.ledger.test_ledger import book, entry
from tests.usecases.operators.test_reencrypt import AFTER, BEFORE, BETWEEN, keyed


async def grown(app: TestApp, ports: Ports, name: str) -> None:
    """One more entry and one more act, chained."""
    await book(app, entry(app, f"pay_{name}"))
    await note(ports, OperatorAction(operator="vera", name="look", object_id=name))
    assert (await list_all(ports), await extend_audit(ports)) == (1, 1)


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    """Without a receiver, whose secret would be sealed by the app's own key."""
    async with open_test_app(receiver=False) as opened:
        opened.made_up = True
        yield opened


async def test_chains_outlive_their_keys(app: TestApp) -> None:
    """Rows keep their old tags. The tags of the heads are made anew and stand for all rows, so heads published before a
    rotation hold after it, and an older key can be dropped."""
    old, both, new = (keyed(app.ports, vault) for vault in (BEFORE, BETWEEN, AFTER))
    await retag(old)  # the app's own key is another one
    await grown(app, old, "old")
    early = await present_head(old)
    report = await reencrypt(both)
    assert (report.old_in_use, report.unopened_count) == ((), 0)
    for ports in (both, new):
        assert (await verify_ledger(ports, against=heads_in(early))).holds
    await grown(app, new, "new")
    assert (await verify_ledger(new, against=heads_in(f"{early} {await present_head(new)}"))).holds
    blind = await verify_ledger(old)
    assert blind.first_bad_entry is not None
    assert "which this vault does not have" in blind.first_bad_entry.reason


async def test_an_entry_whose_key_was_dropped_is_found_by_the_next_tag(app: TestApp) -> None:
    old, both, new = (keyed(app.ports, vault) for vault in (BEFORE, BETWEEN, AFTER))
    await retag(old)
    await grown(app, old, "old")
    await reencrypt(both)
    await grown(app, new, "new")
    async with beneath(app.ports).unit() as unit:
        first, second = await unit[JournalEntry].find(order="number")
        forged = msgspec.structs.replace(first, account_id="acc_thief")
        link = LEDGER.link(forged, 1, bytes(32))
        unit[JournalEntry].save(msgspec.structs.replace(forged, seal=link + bytes((1,)) + bytes(32)))
        assert second.seal is not None
        after = LEDGER.link(second, 2, link)
        unit[JournalEntry].save(msgspec.structs.replace(second, seal=after + second.seal[32:]))
        await unit.commit()
    bad = (await verify_ledger(new)).first_bad_entry
    assert bad is not None
    assert (bad.number, bad.reason) == (2, "is not what the vault tagged, or one from number 1 on is not")


def test_head_is_read_from_any_text_that_holds_it() -> None:
    heads = [Head(chain=name, number=number, link=os.urandom(32)) for name, number in (("ledger", 12), ("audit", 0))]
    line = told(heads, datetime(2026, 11, 22, tzinfo=UTC))
    assert line.endswith(" at=2026-11-22T00:00:00.000Z")
    for text in (line, f'{{"head": "{line}", "x": 1}}', f"{line}\n{line}", f"holds  true\nhead   {line}\n"):
        found = heads_in(text)
        assert found[:2] == heads
        assert set(found) == set(heads)


@table(
    "text", ["", "ledger=", "ledger=1:abc", f"ledger=x:{'A' * 43}", f"ledger=1:{'A' * 44}", f"myledger=1:{'A' * 43}"]
)
def test_text_that_only_resembles_a_head_is_none(text: str) -> None:
    assert heads_in(text) == []


def test_logs_do_not_mask_a_head() -> None:
    """Logs mask hashes in hexadecimal, because they might be secrets, and numbers that could be card numbers."""
    for _ in range(2000):
        line = Head(chain="ledger", number=12, link=os.urandom(32)).told
        assert masked(line) == line
