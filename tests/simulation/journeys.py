"""Accounts that move to another cell and come back, while their merchants, payers and banks go on (docs/cells.md).

The other cell is a storage in memory without processes, so only the time between the two moves is quiet. A move may be
killed at any of its commits; the operator repeats it until it is done.
"""

from typing import TYPE_CHECKING

from cambist.adapters.storage.fence import SETTLED
from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.cells import AccountMove, Stage
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.usecases.cells.cell import Cell
from cambist.core.usecases.cells.moving import move_account
from cambist.ports.faults import Fault
from tests.cell_kit import Killed, Mortal, raw
from tests.simulation.journey_plans import Journey

if TYPE_CHECKING:
    from tests.simulation.world import World

ACTION = OperatorAction(operator="olga", name="account.move")
_AGAIN = 7.0
_OFTEN = 200
"""More tries than a world's outages may cost."""


async def travel(world: "World", journey: Journey) -> None:
    """Move the account there and back. An account that cannot move stays."""
    account_id = world.merchants[journey.merchant].account.account_id
    office, abroad = raw(world.office.storage), world.abroad
    world.trace.tell(f"operator: moves merchant {journey.merchant}")
    for names, storages, killed_at in (
        (("c1", "c2"), (office, abroad), journey.killed_at[0]),
        (("c2", "c1"), (abroad, office), journey.killed_at[1]),
    ):
        for number in range(_OFTEN):
            commits = [killed_at if number == 0 else 10**6]
            cells = [
                Cell(name=name, ports=world.office, storage=Mortal(storage, commits, written=killed_at % 2 == 0))
                for name, storage in zip(names, storages, strict=True)
            ]
            try:
                await move_account(cells[0], cells[1], account_id, action=ACTION, settled=SETTLED, switch=_nothing)
            except (Fault, Killed) as fault:
                world.trace.tell(f"operator: the move was interrupted: {type(fault).__name__}")
            except Refusal as refusal:
                if names[0] == "c1" and not await _is_under_way(world, account_id):
                    world.trace.tell(f"operator: it does not move: {refusal.message}")
                    return
            else:
                break
            await world.network.sleep(_AGAIN)
        else:
            world.fault(f"merchant {journey.merchant} could not be moved from {names[0]}")
        world.counts["journeys"] += 1
        await world.network.sleep(journey.stays)


async def _is_under_way(world: "World", account_id: str) -> bool:
    here = await raw(world.office.storage).get(AccountMove, account_id)
    there = await world.abroad.get(Account, account_id)
    return there is not None or (here is not None and here.stage is Stage.LEAVING)


async def _nothing() -> None:
    """No proxy leads to the world."""
