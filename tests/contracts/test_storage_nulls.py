"""New rows omit fields that are null (adapters/storage/sql/nulls.py)."""

import asyncio
from typing import Any

import msgspec

from cambist.adapters.storage.sql import nulls
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep, table_map_of
from cambist.core.domain.payments.payments import Payment
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import payment, put, read


def test_sets_of_left_out_fields_are_few() -> None:
    those, kept = nulls.Nulls(), table_map_of(keep(CATALOGUE), Payment)
    seen = set()
    for number in range(1, 30):
        columns = [[None if number >> place & 1 else 1, None] for place in range(5)]
        places, _ = those.written(kept, columns)
        seen.add(places)
        assert all(number >> place & 1 for place in range(5) if place not in places)
    assert len(seen) <= nulls._MASKS + 1


async def test_rows_that_are_written_together_keep_what_only_some_of_them_have(storage: Storage) -> None:
    """Holds on every storage, for any mix of null fields among rows written together."""

    def told(number: int, **more: Any) -> Payment:
        return msgspec.structs.replace(payment(f"pay_{number}"), **more)

    plain = [told(number) for number in range(20)]
    for number, fields in enumerate(({}, {"external_id": "x"}, {"description": "y"}, {"external_id": "z"}), start=1):
        mixed = [told(number * 100 + each, **(fields if each % 2 else {})) for each in range(20)]
        await asyncio.gather(*(put(storage, each) for each in mixed))
        plain += mixed
    await asyncio.gather(*(put(storage, each) for each in plain[:20]))
    for each in plain:
        assert await read(storage, Payment, each.id) == each
