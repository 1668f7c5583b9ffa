"""Contract of values: what is written comes back the same, and what one database refuses all refuse."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.storage.codec import Codec
from cambist.core.domain.accounts import Account, Settings
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments import Payment
from cambist.ports.faults import Conflict
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import START, Colour, Part, Sample, must_read, payment, put, read

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
    """So that drivers have nothing to round, shift or guess."""
    codec = Codec(Sample)
    row = codec.encode(Sample(id="s", **fields))
    assert {type(value) for value in row} <= {str, int, bool, bytes, type(None)}
    assert codec.decode(row) == Sample(id="s", **fields)


async def test_times_come_back_in_utc(storage: Storage) -> None:
    moscow = timezone(timedelta(hours=3))
    await put(storage, payment("pay_1", created_at=datetime(2026, 1, 1, 3, 0, 0, 123456, tzinfo=moscow)))
    found = await must_read(storage, Payment, "pay_1")
    assert found.created_at == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert found.created_at.tzinfo is UTC


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "NUL in text": {"text": "a\x00b"},
    "NUL in nullable text": {"text_or_null": "\x00"},
    "half a surrogate pair": {"text": "\ud83d"},
    "an integer beyond 64 bits": {"number": 2**63},
    "a nullable integer beyond 64 bits": {"number_or_null": -(2**63) - 1},
    "money beyond 64 bits": {"rub": Rub(2**63)},
    "nullable money beyond 64 bits": {"usdt_or_null": Usdt(2**70)},
    "a time without a zone": {"moment": datetime(2026, 1, 1)},  # noqa: DTZ001 - on purpose
    "a nullable time without a zone": {"moment_or_null": datetime(2026, 1, 1)},  # noqa: DTZ001 - on purpose
    "a time before the year 1 in UTC": {"moment": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=3)))},
    "half a surrogate pair in a structure": {"mapping": {"a": "\ud83d"}},
}


async def test_values_that_a_database_refuses_are_refused_by_all(storage: Storage) -> None:
    """The second wall: ValueError at add and at save, before anything is written."""
    await put(storage, Sample(id="s"))
    for why, fields in {**IMPOSSIBLE, "NUL in the id": {"id": "s\x00"}}.items():
        async with storage.unit() as unit:
            with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
                unit[Sample].add(Sample(**({"id": "t"} | fields)))
            with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
                unit[Sample].save(Sample(**({"id": "s"} | fields)))
            await unit.commit()
        assert await read(storage, Sample, "s") == Sample(id="s"), why


async def test_values_of_another_type_are_refused_by_all(storage: Storage) -> None:
    """SQLite would keep anything anywhere; a record with a wrong type is a slip of ours and must show in every test."""
    wrong: tuple[dict[str, Any], ...] = (
        {"text": 5},
        {"text": None},
        {"number": "5"},
        {"number": True},
        {"flag": 1},
        {"blob": "x"},
        {"rub": 5},
        {"rub_or_null": Usdt(5)},
        {"moment": None},
    )
    async with storage.unit() as unit:
        for fields in wrong:
            with pytest.raises(TypeError):
                unit[Sample].add(Sample(id="s", **fields))


async def test_what_a_reader_does_to_a_structure_does_not_change_the_stored_one(storage: Storage) -> None:
    metadata: dict[str, Any] = {"a": [1]}
    await put(storage, payment("pay_1", metadata=metadata))
    metadata["a"].append(2)
    found = await must_read(storage, Payment, "pay_1")
    assert found.metadata is not None
    assert found.metadata == {"a": [1]}
    found.metadata["a"].append(3)
    assert (await must_read(storage, Payment, "pay_1")).metadata == {"a": [1]}


async def test_a_nested_settings_record_comes_back(storage: Storage) -> None:
    made = Account(
        id="acc_1",
        name="ООО «Ромашка»",
        default_shop_id="shop_1",
        created_at=START,
        settings=Settings(webhook_url="https://m.example/h", amount_rub_max=Rub(5), acceptance=False),
        webhook_secret=b"\x00\xff",
        previous_secret_until=START,
    )
    await put(storage, made)
    assert await read(storage, Account, "acc_1") == made


async def test_a_long_value_is_kept_or_refused_without_being_quoted(storage: Storage) -> None:
    """An index of Postgres takes no value of that length; then it is a ValueError that does not repeat it."""
    long = "".join(chr(0x400 + n * 7919 % 9000) for n in range(20_000))
    try:
        await put(storage, payment("pay_1", external_id=long))
    except ValueError as refused:
        quoted = long[:20] in str(refused) or refused.__cause__ is not None
        found = None
    else:
        quoted = False
        found = await must_read(storage, Payment, "pay_1")
    assert not quoted
    assert found is None or found.external_id == long


async def test_a_conflict_does_not_quote_values(storage: Storage) -> None:
    """Brief: no secret in errors. Postgres' own message repeats the key that was taken."""
    await put(storage, payment("pay_1", description="тайна"))
    with pytest.raises(Conflict) as refused:
        await put(storage, payment("pay_1", description="тайна"))
    assert refused.value.__cause__ is None
    assert str(refused.value) == "unique rule payments_id would be broken"


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
            Codec(kind)  # type: ignore[type-var]  # on purpose
