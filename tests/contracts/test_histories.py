"""All storages give equal answers to any sequence of calls: histories drawn from seeds, some of them here and many by
`nox -s storages` (tests/histories)."""

import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE
from tests.histories.comparing import difference, shortest
from tests.histories.places import installed_plain, places
from tests.histories.steps import drawn
from tests.histories.values import drawn_record

HISTORIES = (*range(0, 10_000, 200), 5552)


async def test_storages_answer_drawn_histories_alike(kit_sqlite: Path, kit_postgres: str, tmp_path: Path) -> None:
    file = tmp_path / "kit.db"
    shutil.copy(kit_sqlite, file)
    with installed_plain(tmp_path):
        async with places(file, kit_postgres) as every:
            for seed in HISTORIES:
                found = await difference(every, drawn(seed))
                assert found is None, str(await shortest(every, found))


async def test_deviating_storage_is_found_and_its_history_shortened(
    kit_sqlite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the one in memory takes a job back to its worker however long its lease still lasts."""
    file = tmp_path / "kit.db"
    shutil.copy(kit_sqlite, file)
    taken = MemoryStorage.claim

    async def forgets_leases(self: MemoryStorage, limit: int, lease: float, **which: Any) -> Any:
        return await taken(self, limit, lease / 1000, **which)

    monkeypatch.setattr(MemoryStorage, "claim", forgets_leases)
    async with places(file, None, plug_in=False) as every:
        found = None
        for seed in range(200):
            found = await difference(every, drawn(seed))
            if found is not None:
                break
        assert found is not None
        short = await shortest(every, found)
    assert len(short.history.steps) <= 3
    assert f"--seed {short.history.seed} --steps " in str(short)


def test_histories_touch_every_table_and_draw_records_of_each() -> None:
    names = {name for seed in range(len(KIT_CATALOGUE)) for name in drawn(seed).tables}
    assert names == {table.name for table in KIT_CATALOGUE}
    for table in KIT_CATALOGUE:
        chance = random.Random(table.name)
        drawn_ones = [drawn_record(table.kind, chance) for _ in range(20)]
        assert len({msgspec.json.encode(each) for each in drawn_ones if _is_text(each)}) > 10


def _is_text(record: Any) -> bool:
    try:
        msgspec.json.encode(record)
    except ValueError:
        return False
    return True
