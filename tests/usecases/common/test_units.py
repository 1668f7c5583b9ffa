"""A unit that loses a race reads again, in a fair queue with the other losers (ARCHITECTURE.md "Units and jobs"). With
any number of concurrent changes of one record, each of them succeeds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from cambist.adapters.storage import account_time
from cambist.core.domain.exchanges.exchanges import DirectionSwitch
from cambist.core.usecases.common.units import TRIES, retrying
from cambist.ports.faults import Conflict, Stale, Unavailable
from cambist.ports.storage import Queueing, Storage, Unit
from tests.apps import TestApp
from tests.refund_app import begin, open_refund_app
from tests.tables import table

MANY = TRIES + 5
"""More than one unit could lose races against."""


async def test_many_refunds_of_a_merchant_at_once_all_take_their_money(url: str, tmp_path: Path) -> None:
    """Each takes from the one balance, which a settlement has just filled."""
    async with open_refund_app(database_url=url, data_dir=tmp_path, receiver=False) as refunds:
        paid = [await refunds.paid() for _ in range(MANY)]
        await refunds.app.clock.advance(1)
        await refunds.settle()
        made = [await refunds.make(payment_id, "10.00") for payment_id in paid]
        begun = await asyncio.gather(*(begin(refunds.ports, refund.id) for refund in made))
        assert [is_fresh for _, is_fresh in begun] == [True] * MANY


async def test_each_of_many_simultaneous_units_loses_twice_at_most(app: TestApp) -> None:
    """Without turns all would try as often as there are others: the work would grow with the square of their number."""
    tries = 0

    async def work(unit: Unit) -> None:
        nonlocal tries
        tries += 1
        present = await unit[DirectionSwitch].get("a")
        await asyncio.sleep(0)  # all read before the first of them commits
        if present is None:
            unit[DirectionSwitch].add(DirectionSwitch(id="a", is_on=True, since=app.clock.now()))
        else:
            unit[DirectionSwitch].save(msgspec.structs.replace(present, is_on=not present.is_on))

    again_on = ("direction_switches_id",)
    await asyncio.gather(*(retrying(app.ports.storage, work, again_on=again_on) for _ in range(MANY)))
    async with app.ports.storage.unit() as unit:
        present = await unit[DirectionSwitch].get("a")
    assert present is not None
    assert (present.version, tries) == (MANY - 1, MANY + (MANY - 1) + (MANY - 2))


async def test_retrying_inside_retrying_is_a_slip_that_shows(app: TestApp) -> None:
    """A task that holds the lock and requests it again would wait for itself."""
    storage = app.ports.storage
    assert isinstance(storage, Queueing)
    async with storage.turn():
        with pytest.raises(RuntimeError, match="asks for it again"):
            async with storage.turn():
                pass
        others = asyncio.create_task(storage.turn().__aenter__())
        await asyncio.sleep(0)
        assert not others.done()
    await others


async def test_a_turn_that_does_not_come_is_not_waited_for_without_end(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_time, "_PATIENCE", 0.0)
    storage = app.ports.storage
    assert isinstance(storage, Queueing)

    async def wait() -> None:
        async with storage.turn():
            pass

    async with storage.turn():
        with pytest.raises(Unavailable, match="too many units"):
            await asyncio.create_task(wait())
    await wait()


class Losing:
    """A storage whose units lose some times, and that knows no turns."""

    def __init__(self, lost: Stale | Conflict, times: int) -> None:
        self.lost = lost
        self.left = times

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        yield self

    async def commit(self, *, durable: bool = True) -> None:
        if self.left:
            self.left -= 1
            raise self.lost


async def nothing(unit: Unit) -> str:
    return f"done {unit is not None}"


@table("lost", [Stale("moved"), Conflict("a_rule")])
async def test_unit_that_keeps_losing_gives_up_and_names_the_conflict(lost: Stale | Conflict) -> None:
    storage = Losing(lost, TRIES)
    with pytest.raises(Unavailable, match=f"{TRIES} times") as given_up:
        await retrying(cast("Storage", storage), nothing, again_on=("a_rule",))
    assert (given_up.value.__cause__, storage.left) == (lost, 0)


async def test_the_last_try_counts() -> None:
    storage = Losing(Stale("moved"), TRIES - 1)
    assert await retrying(cast("Storage", storage), nothing) == "done True"


async def test_another_broken_rule_is_no_lost_race() -> None:
    storage = Losing(Conflict("another_rule"), 1)
    with pytest.raises(Conflict):
        await retrying(cast("Storage", storage), nothing, again_on=("a_rule",))
