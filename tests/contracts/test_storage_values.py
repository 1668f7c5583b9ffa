"""Our storages pass the shipped contract of values, and any value is read back unchanged."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.storage.table.codec import Codec
from cambist.core.domain.money import Rub, Usdt
from cambist.frontends.conformance.storage.values import *  # noqa: F403 - its tests
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import Colour, Part, Sample

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0, -1])
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.sampled_from(
    [
        "",
        " ",
        "Иван Петрович",
        "🧾💸",
        "a'b\"c;--",
        "ё\u0301\u202e",
        "\n\r\t\x01",
        "%_\\",
        "null",
        "\ufeff\uffff\U0010ffff",
    ]
)
MOMENTS = st.datetimes(timezones=st.just(UTC)) | st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis wants bounds without a zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - see above
    timezones=st.sampled_from([timezone(timedelta(hours=3)), timezone(timedelta(minutes=-1))]),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
PARTS = st.builds(Part, TEXTS, st.none() | st.builds(Rub, INTEGERS), st.lists(INTEGERS, max_size=3).map(tuple))
SAMPLES = st.fixed_dictionaries(
    {
        "text": TEXTS,
        "text_or_null": st.none() | TEXTS,
        "number": INTEGERS,
        "number_or_null": st.none() | INTEGERS,
        "flag": st.booleans(),
        "flag_or_null": st.none() | st.booleans(),
        "blob": st.binary(),
        "blob_or_null": st.none() | st.binary(),
        "rub": st.builds(Rub, INTEGERS),
        "rub_or_null": st.none() | st.builds(Rub, INTEGERS),
        "usdt": st.builds(Usdt, INTEGERS),
        "usdt_or_null": st.none() | st.builds(Usdt, INTEGERS),
        "moment": MOMENTS,
        "moment_or_null": st.none() | MOMENTS,
        "colour": st.sampled_from(Colour),
        "colour_or_null": st.none() | st.sampled_from(Colour),
        "part": PARTS,
        "part_or_null": st.none() | PARTS,
        "mapping": st.dictionaries(TEXTS, JSON, max_size=3),
        "mapping_or_null": st.none() | st.dictionaries(TEXTS, JSON, max_size=3),
        "listed": st.lists(TEXTS, max_size=3),
        "pair": st.none() | st.tuples(INTEGERS, TEXTS),
    }
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(SAMPLES, min_size=1, max_size=4))
async def test_every_value_comes_back_the_same(storage: Storage, batch: list[dict[str, Any]]) -> None:
    """All types of field, added and then saved, read by id, by list and by value."""
    samples = [Sample(id=f"s{n}", **fields) for n, fields in enumerate(batch)]
    async with storage.unit() as unit:
        for old in await unit[Sample].find():
            unit[Sample].remove(old)
        for sample in samples:
            unit[Sample].save(unit[Sample].add(sample))
        await unit.commit()
    stored = [msgspec.structs.replace(sample, version=1) for sample in samples]
    async with storage.unit() as unit:
        assert [await unit[Sample].get(sample.id) for sample in samples] == stored
        assert await unit[Sample].find() == stored
        last = stored[-1]
        alike = {name: getattr(last, name) for name in ("text", "number_or_null", "blob", "rub", "moment", "colour")}
        assert last in await unit[Sample].find(**alike)


@given(fields=SAMPLES)
@settings(deadline=None)
def test_a_row_holds_plain_values_only(fields: dict[str, Any]) -> None:
    """Drivers then have nothing to round, shift or guess."""
    codec = Codec(Sample)
    row = codec.encode(Sample(id="s", **fields))
    assert {type(value) for value in row} <= {str, int, bool, bytes, type(None)}
    assert codec.decode(row) == Sample(id="s", **fields)


def test_a_record_without_id_or_of_an_unknown_type_has_no_codec() -> None:
    class Bare(msgspec.Struct):
        id: str

    class Odd(msgspec.Struct):
        id: str
        version: int
        rate: float

    class Both(msgspec.Struct):
        id: str
        version: int
        either: int | str

    for kind in (Bare, Odd, Both):
        with pytest.raises(TypeError):
            _ = Codec(kind).columns  # type: ignore[type-var]  # on purpose
