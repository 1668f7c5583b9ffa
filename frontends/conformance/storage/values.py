"""Contract of values (ports/storage.py): a value is read as it was written, and all storages refuse the same values."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from ....core.domain.accounts.accounts import Account, Settings
from ....core.domain.money import Rub, Usdt
from ....core.domain.payments.payments import Payment
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import START, Colour, Part, Sample, must_read, payment, put, read

_LEAST, _MOST = -(2**63), 2**63 - 1
_TEXTS = (
    "", " ", "Иван Петрович", "🧾💸", "a'b\"c;--", "ё\u0301\u202e", "\n\r\t\x01", "%_\\", "null",
    "\ufeff\uffff\U0010ffff",
)  # fmt: skip
_EDGES: dict[str, tuple[Any, ...]] = {
    "text": _TEXTS,
    "text_or_null": (None, *_TEXTS),
    "number": (_LEAST, -1, 0, _MOST),
    "number_or_null": (None, _LEAST, 0, _MOST),
    "flag": (True, False),
    "flag_or_null": (None, True, False),
    "blob": (b"", b"\x00", bytes(range(256))),
    "blob_or_null": (None, b"", b"\x00\xff"),
    "rub": (Rub(_LEAST), Rub(0), Rub(_MOST)),
    "rub_or_null": (None, Rub(0), Rub(_MOST)),
    "usdt": (Usdt(_LEAST), Usdt(0), Usdt(_MOST)),
    "usdt_or_null": (None, Usdt(0), Usdt(_MOST)),
    "moment": (datetime.min.replace(tzinfo=UTC), START, datetime.max.replace(tzinfo=UTC)),
    "moment_or_null": (None, START + timedelta(microseconds=1)),
    "colour": tuple(Colour),
    "colour_or_null": (None, *Colour),
    "part": (Part(""), Part("№", Rub(_MOST), (_LEAST, 0, _MOST))),
    "part_or_null": (None, Part("a", None, ())),
    "mapping": ({}, {"заказ": [1, None, 1.5, True, {"a": {}}], "": _MOST}),
    "mapping_or_null": (None, {}, {"a": []}),
    "listed": ([], ["", "ё", "🧾"]),
    "pair": (None, (_LEAST, "a"), (0, "")),
}
"""Values of each field type that are easily lost: extremes, empty values, null, and text that needs quoting."""


@pytest.mark.parametrize("field", _EDGES)
async def test_every_value_of_a_field_comes_back_the_same(storage: Storage, field: str) -> None:
    """Add and save each value, then read it by id, in a list, and by value if the field type can be a criterion."""
    must = "a value must be read and found as it was written"
    samples = [Sample(id=f"s{place:02}", **{field: value}) for place, value in enumerate(_EDGES[field])]
    async with storage.unit() as unit:
        for sample in samples:
            unit[Sample].save(unit[Sample].add(sample))
        await unit.commit()
    stored = [msgspec.structs.replace(sample, version=1) for sample in samples]
    async with storage.unit() as unit:
        assert [await unit[Sample].get(sample.id) for sample in samples] == stored, must
        assert await unit[Sample].find() == stored, must
        if field.removesuffix("_or_null") in ("part", "mapping", "listed", "pair"):
            return
        for sample in stored:
            assert await unit[Sample].find(**{field: getattr(sample, field)}) == [sample], f"{must}: {sample.id}"


def test_every_field_is_tried() -> None:
    """A new field type needs a row in _EDGES."""
    must = "each field of Sample needs a row in _EDGES"
    assert set(_EDGES) == set(Sample.__struct_fields__) - {"id", "version"}, must


async def test_times_come_back_in_utc(storage: Storage) -> None:
    must = "a time must come back in UTC, to the microsecond"
    moscow = timezone(timedelta(hours=3))
    await put(storage, payment("pay_1", created_at=datetime(2026, 1, 1, 3, 0, 0, 123456, tzinfo=moscow)))
    found = await must_read(storage, Payment, "pay_1")
    assert found.created_at == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC), must
    assert found.created_at.tzinfo is UTC, must


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
    """The storage raises ValueError at add and at save, before it writes anything."""
    must = "a value that a database refuses must be a ValueError at once, and nothing is written"
    await put(storage, Sample(id="s"))
    for why, fields in {**IMPOSSIBLE, "NUL in the id": {"id": "s\x00"}}.items():
        async with storage.unit() as unit:
            with must_raise(must, ValueError):
                unit[Sample].add(Sample(**({"id": "t"} | fields)))
            with must_raise(must, ValueError):
                unit[Sample].save(Sample(**({"id": "s"} | fields)))
            await unit.commit()
        assert await read(storage, Sample, "s") == Sample(id="s"), f"{must}: {why}"


async def test_values_of_another_type_are_refused_by_all(storage: Storage) -> None:
    """SQLite would store a value of any type. A wrong type is a bug of ours and must show in every test."""
    must = "a value of another type must be a TypeError at once"
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
            with must_raise(must, TypeError):
                unit[Sample].add(Sample(id="s", **fields))


async def test_changing_a_read_structure_does_not_change_the_stored_one(storage: Storage) -> None:
    must = "changing a structure that was read or added must not change the stored one"
    metadata: dict[str, Any] = {"a": [1]}
    await put(storage, payment("pay_1", metadata=metadata))
    metadata["a"].append(2)
    found = await must_read(storage, Payment, "pay_1")
    assert found.metadata is not None, must
    assert found.metadata == {"a": [1]}, must
    found.metadata["a"].append(3)
    assert (await must_read(storage, Payment, "pay_1")).metadata == {"a": [1]}, must


async def test_a_nested_settings_record_comes_back(storage: Storage) -> None:
    must = "a nested record must come back as it was added"
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
    assert await read(storage, Account, "acc_1") == made, must


async def test_a_long_value_is_kept_or_refused_without_being_quoted(storage: Storage) -> None:
    """A Postgres index cannot hold a value of that length. The storage then raises a ValueError that does not quote
    it."""
    must = "a long value must be stored, or refused with a ValueError that does not quote it"
    long = "".join(chr(0x400 + n * 7919 % 9000) for n in range(20_000))
    try:
        await put(storage, payment("pay_1", external_id=long))
    except ValueError as refused:
        quoted = long[:20] in str(refused) or refused.__cause__ is not None
        found = None
    else:
        quoted = False
        found = await must_read(storage, Payment, "pay_1")
    assert not quoted, must
    assert found is None or found.external_id == long, must
