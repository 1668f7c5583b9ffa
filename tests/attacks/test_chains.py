"""An attacker who can write to the database, but has no vault key, cannot forge history in the ledger or the audit log
(SECURITY.md). The attacker recomputes every link, head and balance."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from cambist.core.domain.chains import heads_in
from cambist.core.domain.ledger import LEDGER
from cambist.core.domain.movements import Movement
from cambist.core.domain.operators.audit import AUDIT, OperatorAction
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.actions.audit import note
from cambist.core.usecases.common.chains import ALTERED, NO_HEAD, UNTAGGED, extend_audit, present_head
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.ledger.watch import ledger_faults
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker, multiplied, without
from tests.invariants import everything
from tests.usecases.settlement.test_settlement import paid

LINES = 5


@pytest.fixture(autouse=True)
async def lived_in(attacked: TestApp) -> None:
    """Five payments and five acts, all chained."""
    for number in range(LINES):
        await paid(attacked, f"{100 + number}.00")
        action = OperatorAction(
            operator="vera", name="client.look", object_id=f"cli_{number}", reason=f"reason {number}"
        )
        await note(attacked.ports, action)
    assert await list_all(attacked.ports) == LINES
    assert await extend_audit(attacked.ports) == LINES
    assert (await verify_ledger(attacked.ports)).holds


Attack = Callable[[Attacker], Awaitable[None]]


async def _more(attacker: Attacker) -> None:
    rows = await attacker.rows(LEDGER)
    rows[2] = multiplied(rows[2], 1000)
    await attacker.forge(LEDGER, rows, tags=OWN)


async def _more_with_the_old_tags(attacker: Attacker) -> None:
    rows, head = await attacker.rows(LEDGER), await attacker.head(LEDGER)
    tags = [row.seal[32:] for row in rows]
    rows[2] = multiplied(rows[2], 1000)
    await attacker.forge(LEDGER, rows)
    for row, tag in zip(await attacker.rows(LEDGER), tags, strict=True):
        await attacker.write(msgspec.structs.replace(row, seal=row.seal + tag))
    await attacker.write(msgspec.structs.replace(await attacker.head(LEDGER), tag=head.tag))


async def _more_as_if_of_before(attacker: Attacker) -> None:
    rows = await attacker.rows(LEDGER)
    await attacker.forge(LEDGER, [rows[0], rows[1], multiplied(rows[2], 1000), *rows[3:]])


async def _less(attacker: Attacker) -> None:
    rows = await attacker.rows(LEDGER)
    await attacker.forge(LEDGER, without(rows, rows[2]), tags=OWN)


async def _cut_off(attacker: Attacker) -> None:
    """The remaining rows have true tags; the last one's tag replaces the head's."""
    rows, head = await attacker.rows(LEDGER), await attacker.head(LEDGER)
    await attacker.delete(*rows[3:])
    link, tag = rows[2].seal[:32], rows[2].seal[32:]
    await attacker.write(msgspec.structs.replace(head, number=3, seal=link, tag=tag))
    await attacker.balance()


async def _unsealed(attacker: Attacker) -> None:
    """As if nothing had ever been chained: the next run would take all of it for new."""
    [*rows] = await attacker.rows(LEDGER)
    for row in (multiplied(rows[0], 1000), *rows[1:]):
        await attacker.write(msgspec.structs.replace(row, number=None, seal=None))
    await attacker.delete(await attacker.head(LEDGER))
    await attacker.balance()


LEDGERS: dict[str, tuple[Attack, int | None, str]] = {
    "an amount, tagged by other keys": (_more, 1, "is not what the vault tagged"),
    "an amount, under the tags of before": (_more_with_the_old_tags, 3, "is not what the vault tagged"),
    "an amount, as if of before there were tags": (_more_as_if_of_before, None, UNTAGGED),
    "an entry left out": (_less, 1, "is not what the vault tagged"),
    "the end cut off": (_cut_off, None, ALTERED),
    "all of it unsealed": (_unsealed, None, NO_HEAD),
}


@pytest.mark.parametrize("case", LEDGERS)
async def test_a_ledger_made_anew_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    attack, number, reason = LEDGERS[case]
    await attack(attacker)
    report = await verify_ledger(attacked.ports)
    assert not report.bad_balances, "he counts as we do"
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.number, report.first_bad_entry.reason) == (number, reason)
    assert any(fault.startswith("ledger:") for fault in await ledger_faults(attacked.ports))


@pytest.mark.parametrize("case", ["all of it unsealed", "an amount, as if of before there were tags"])
async def test_no_job_seals_what_he_calls_old_or_new(attacked: TestApp, attacker: Attacker, case: str) -> None:
    """Neither the hourly chaining nor the first account of a seemingly empty installation tags the forgery."""
    await LEDGERS[case][0](attacker)
    await paid(attacked)
    assert await list_all(attacked.ports) == 0
    await create_account(attacked.ports, "Another")
    assert await list_all(attacked.ports) == 0
    assert not (await verify_ledger(attacked.ports)).holds


async def _action_altered(attacker: Attacker) -> None:
    rows = await attacker.rows(AUDIT)
    rows[2] = msgspec.structs.replace(rows[2], operator="somebody else")
    await attacker.forge(AUDIT, rows, tags=OWN)


async def _action_altered_alone(attacker: Attacker) -> None:
    await attacker.run("UPDATE audit SET operator = 'somebody else' WHERE number = 3")


async def _action_deleted(attacker: Attacker) -> None:
    await attacker.run("DELETE FROM audit WHERE number = 3")


async def _actions_deleted(attacker: Attacker) -> None:
    rows = await attacker.rows(AUDIT)
    await attacker.forge(AUDIT, without(rows, rows[2]), tags=OWN)


async def _action_inserted(attacker: Attacker) -> None:
    rows = await attacker.rows(AUDIT)
    await attacker.write(msgspec.structs.replace(rows[2], id=f"{rows[2].id}0"))


async def _actions_reordered(attacker: Attacker) -> None:
    rows = await attacker.rows(AUDIT)
    one, two = rows[2], rows[3]
    await attacker.write(
        msgspec.structs.replace(one, number=4, seal=two.seal), msgspec.structs.replace(two, number=3, seal=one.seal)
    )


async def _actions_cut_off(attacker: Attacker) -> None:
    await attacker.run("DELETE FROM audit WHERE number > 3")


async def _actions_unsealed(attacker: Attacker) -> None:
    await attacker.run("DELETE FROM audit WHERE number = 3")
    await attacker.run("UPDATE audit SET number = NULL, seal = NULL")
    await attacker.run("DELETE FROM ledger_heads WHERE id = 'audit'")


ACTIONS: dict[str, tuple[Attack, int | None, str]] = {
    "altered": (_action_altered_alone, 3, "is not what was chained"),
    "altered, all made anew": (_action_altered, 1, "is not what the vault tagged"),
    "deleted": (_action_deleted, 3, "is missing from the chain"),
    "deleted, all made anew": (_actions_deleted, 1, "is not what the vault tagged"),
    "inserted": (_action_inserted, 3, "has a number that is not its own"),
    "reordered": (_actions_reordered, 3, "is not what was chained"),
    "the last deleted": (_actions_cut_off, 4, "the chain should end at number 5"),
    "all unsealed": (_actions_unsealed, None, NO_HEAD),
}


@pytest.mark.parametrize("case", ACTIONS)
async def test_an_audit_log_made_anew_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    attack, number, reason = ACTIONS[case]
    await attack(attacker)
    report = await verify_ledger(attacked.ports)
    assert (report.holds, report.first_bad_entry) == (False, None)
    assert report.first_bad_action is not None
    assert (report.first_bad_action.number, report.first_bad_action.reason) == (number, reason)
    assert await extend_audit(attacked.ports) == 0


async def test_former_state_passes_except_against_a_later_published_head(attacked: TestApp, attacker: Attacker) -> None:
    """Rows and heads of an earlier moment have true tags, so only a head recorded elsewhere exposes them."""
    former = [(chain, await attacker.rows(chain), await attacker.head(chain)) for chain in (LEDGER, AUDIT)]
    kinds = (Payment, Movement)
    before = {each.id for kind in kinds for each in await everything(attacked.ports, kind)}
    early = await present_head(attacked.ports)
    await paid(attacked, "900.00")
    await note(attacked.ports, OperatorAction(operator="vera", name="client.look", object_id="cli_9"))
    assert (await list_all(attacked.ports), await extend_audit(attacked.ports)) == (1, 1)
    late = await present_head(attacked.ports)

    for kind in kinds:
        await attacker.delete(*(each for each in await everything(attacked.ports, kind) if each.id not in before))
    for chain, rows, head in former:
        kept = {row.id for row in rows}
        await attacker.delete(*(row for row in await attacker.rows(chain) if row.id not in kept))
        await attacker.write(head)
    await attacker.balance()
    assert (await verify_ledger(attacked.ports)).holds
    assert (await verify_ledger(attacked.ports, against=heads_in(early))).holds
    shortened = await verify_ledger(attacked.ports, against=heads_in(f"{early}\n{late}"))
    assert (shortened.holds, shortened.first_bad_entry) == (False, None)
    assert shortened.differing == (
        "the head ledger=6 has no place in it: the chain ends at 5",
        "the head audit=6 has no place in it: the chain ends at 5",
    )

    await paid(attacked, "901.00")
    await note(attacked.ports, OperatorAction(operator="vera", name="client.look", object_id="cli_10"))
    assert (await list_all(attacked.ports), await extend_audit(attacked.ports)) == (1, 1)
    assert (await verify_ledger(attacked.ports)).holds
    replaced = await verify_ledger(attacked.ports, against=heads_in(late))
    assert replaced.differing == tuple(
        f"the head {name}=6 is of another history: this one was written anew, or replaced"
        for name in ("ledger", "audit")
    )
