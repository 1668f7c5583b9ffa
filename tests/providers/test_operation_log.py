"""Adapters remember pages and count them (docs/adapters.md "Notes of an adapter")."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import cambist
from cambist.ports import ProviderNote, Unavailable
from cambist.ports.operation_log import NumberedOperations, OperationLog
from cambist.ports.storage import Storage
from tests.apps import TestApp, open_test_app


class Page(msgspec.Struct, frozen=True):
    """The record that these tests keep."""

    qr: str
    polls: int = 0


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[TestApp]:
    async with open_test_app(receiver=False, database_url=url, data_dir=tmp_path) as opened:
        yield opened


def operation_log(app: TestApp) -> OperationLog[Page]:
    return OperationLog("desk", Page, app.ports.storage, app.clock)


async def test_page_is_found_by_operation_and_reference(app: TestApp) -> None:
    notes = operation_log(app)
    assert (await notes.read("pay_1"), await notes.operation_of("inv-1")) == (None, None)
    for polls in (0, 1):
        await notes.remember("pay_1", Page(qr="a", polls=polls), reference="inv-1")
    assert await notes.read("pay_1") == Page(qr="a", polls=1)
    assert await notes.operation_of("inv-1") == "pay_1"
    assert await notes.read("inv-1") is None


async def test_a_reference_is_of_one_operation(app: TestApp) -> None:
    notes = operation_log(app)
    await notes.remember("pay_1", Page(qr="a"), reference="inv-1")
    with pytest.raises(ValueError, match="another"):
        await notes.remember("pay_2", Page(qr="b"), reference="inv-1")
    assert await notes.read("pay_2") is None


async def test_simultaneous_writes_all_succeed_and_changes_all_count(app: TestApp) -> None:
    notes = operation_log(app)
    await asyncio.gather(*(notes.remember("pay_1", Page(qr="a"), reference="inv-1") for _ in range(8)))

    def turn(page: Page) -> Page:
        return msgspec.structs.replace(page, polls=page.polls + 1)

    await asyncio.gather(*(notes.change("pay_1", turn) for _ in range(8)))
    assert await notes.read("pay_1") == Page(qr="a", polls=8)


async def test_a_page_is_bounded(app: TestApp) -> None:
    with pytest.raises(ValueError, match="64 KB"):
        await operation_log(app).remember("pay_1", Page(qr="a" * 65_536))
    assert await operation_log(app).read("pay_1") is None


async def test_pages_may_be_dicts(app: TestApp) -> None:
    notes = OperationLog("desk", dict[str, int], app.ports.storage, app.clock)
    await notes.remember("pay_1", {"polls": 1})
    assert await notes.read("pay_1") == {"polls": 1}


def counter(app: TestApp, what: str = "addresses") -> NumberedOperations:
    return NumberedOperations("desk", what, app.ports.storage, app.clock)


async def test_each_operation_has_a_number_of_its_own_without_gaps(app: TestApp) -> None:
    """Two processes count at once, and ask for the same ones."""
    asked = [f"exch_{number}" for number in range(12)]
    numbers = await asyncio.gather(*(each.number(op) for each in (counter(app), counter(app)) for op in asked))
    assert numbers[:12] == numbers[12:]
    assert sorted(numbers[:12]) == list(range(12))
    assert [await counter(app).number(operation) for operation in asked] == numbers[:12]
    assert await counter(app, "others").number("exch_0") == 0


async def test_a_counter_that_too_many_use_says_so(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = counter(app)

    async def never(mine: str, last: str) -> None: ...

    monkeypatch.setattr(slow, "_give", never)
    with pytest.raises(Unavailable):
        await slow.number("exch_1")


async def test_tools_have_both() -> None:
    async with cambist.open() as service:
        tools = service.tools()
        await tools.operation_log("desk", Page).remember("pay_1", Page(qr="a"))
        assert await tools.counter("desk", "addresses").number("pay_1") == 0
        storage: Storage = tools.storage
        async with storage.unit() as unit:
            notes = await unit[ProviderNote].find(provider="desk")
    assert {note.id for note in notes} == {"desk:pay_1", "desk:#addresses", "desk:#addresses/pay_1"}
