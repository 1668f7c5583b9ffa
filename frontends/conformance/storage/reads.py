"""Contract of reads (ports/storage.py): criteria, order, pages, totals, snapshots, scans."""

from datetime import timedelta
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.money import Rub, Usdt
from ....core.domain.payments.payments import Payment
from ....ports.storage import AtLeast, AtMost, Below, Between, OneOf, Storage
from ..expectations import must_raise
from .kit import START, Colour, Sample, StorageLocation, payment, put, read

SAMPLES = (
    Sample(
        id="a",
        text="B",
        number=1,
        flag=True,
        blob=b"\x00",
        rub=Rub(5),
        usdt=Usdt(1),
        moment=START,
        colour=Colour.RED,
        text_or_null="x",
        number_or_null=5,
        rub_or_null=Rub(5),
        moment_or_null=START,
        colour_or_null=Colour.BLUE,
        flag_or_null=False,
    ),
    Sample(id="b", text="a", number=2, rub=Rub(10), moment=START + timedelta(microseconds=1), colour=Colour.BLUE),
    Sample(id="c", text="ё", number=2, blob=b"\xff", rub=Rub(-1), text_or_null="", number_or_null=0),
    Sample(id="D", text="", number=-3, usdt=Usdt(7), number_or_null=-9, rub_or_null=Rub(9), flag_or_null=True),
)

CRITERIA: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "Dabc"),
    ({"text": "B"}, "a"),
    ({"text": "b"}, ""),
    ({"text": ""}, "D"),
    ({"flag": True}, "a"),
    ({"flag": False}, "Dbc"),
    ({"blob": b"\xff"}, "c"),
    ({"rub": Rub(10)}, "b"),
    ({"usdt": Usdt(7)}, "D"),
    ({"moment": START + timedelta(microseconds=1)}, "b"),
    ({"colour": Colour.RED}, "Dac"),
    ({"text_or_null": None}, "Db"),
    ({"text_or_null": ""}, "c"),
    ({"flag_or_null": False}, "a"),
    ({"flag_or_null": None}, "bc"),
    ({"colour_or_null": Colour.BLUE}, "a"),
    ({"number": AtMost(1)}, "Da"),
    ({"number": AtLeast(2)}, "bc"),
    ({"number": Below(1)}, "D"),
    ({"number_or_null": AtMost(0)}, "Dc"),
    ({"number_or_null": AtLeast(-100)}, "Dac"),
    ({"number_or_null": Below(5)}, "Dc"),
    ({"rub_or_null": AtMost(Rub(5))}, "a"),
    ({"moment_or_null": AtMost(START + timedelta(days=400))}, "a"),
    ({"text": AtLeast("a")}, "bc"),
    ({"text": Below("a")}, "Da"),
    ({"number": OneOf((1, -3, 99))}, "Da"),
    ({"number": OneOf(())}, ""),
    ({"text_or_null": OneOf(("x", None))}, "Dab"),
    ({"text_or_null": OneOf((None,))}, "Db"),
    ({"colour": OneOf((Colour.RED, Colour.BLUE))}, "Dabc"),
    ({"number": Between(1, 2)}, "a"),
    ({"number": Between(1)}, "abc"),
    ({"number": Between(high=2)}, "Da"),
    ({"number_or_null": Between(-9, 5)}, "Dc"),
    ({"number_or_null": Between()}, "Dabc"),
    ({"moment": Between(START, START + timedelta(microseconds=1))}, "Dac"),
    ({"number": 2, "rub": Rub(10)}, "b"),
    ({"number": AtLeast(2), "text_or_null": None, "flag": False}, "b"),
)


async def test_find_total_and_scan_meet_all_criteria(storage: Storage) -> None:
    """ports/storage.py: "Criteria are `field=value` (None matches null) or one of the criterion structs". Ids are
    ordered by code point."""
    must = "`find`, `total` and `scan` must give exactly the records that meet all criteria"
    await put(storage, *SAMPLES)
    for criteria, expected in CRITERIA:
        async with storage.unit() as unit:
            assert "".join(found.id for found in await unit[Sample].find(**criteria)) == expected, f"{must}: {criteria}"
            assert await unit[Sample].total(**criteria) == len(expected), f"{must}: {criteria}"
        batches = [[each.id for each in batch] async for batch in storage.scan(Sample, batch=2, **criteria)]
        assert "".join("".join(batch) for batch in batches) == expected, f"{must}: {criteria}"


ORDERS = {
    "id": "Dabc",
    "-id": "cbaD",
    "text": "Dabc",
    "-text": "cbaD",
    "number": "Dabc",
    "-number": "cbaD",
    "flag": "Dbca",
    "rub": "cDab",
    "colour": "bDac",
    "-colour": "caDb",
    "text_or_null": "caDb",
    "-text_or_null": "bDac",
    "number_or_null": "Dcab",
    "-number_or_null": "bacD",
    "moment_or_null": "aDbc",
    "-moment_or_null": "cbDa",
}


async def test_order_goes_by_the_field_with_ties_by_id(storage: Storage) -> None:
    """Equal values are ordered by id in the same direction, text by code point, and null counts as the largest
    value."""
    must = "records must be in the order of the field, equal ones by id, and null must count as the largest value"
    await put(storage, *SAMPLES)
    for order, expected in ORDERS.items():
        async with storage.unit() as unit:
            found = await unit[Sample].find(order=order)
            pages = [await unit[Sample].page(number, 1, order=order) for number in range(1, 6)]
        assert "".join(each.id for each in found) == expected, f"{must}: {order}"
        assert ["".join(each.id for each in page) for page in pages] == [*expected, ""], f"{must}: {order}"


async def test_records_with_a_null_field_are_found_until_it_is_filled(storage: Storage) -> None:
    """A process fills null fields in batches, in the order of another field. A partial index over nulls must follow
    values that are set and values that become null again."""
    must = "a record must be found by a null field exactly while the field is null"
    moments = {"a": 3, "b": 1, "c": 2, "d": 1}
    await put(
        storage, *(Sample(id=name, text="x", moment=START + timedelta(hours=hour)) for name, hour in moments.items())
    )
    await put(storage, Sample(id="other", text="y"), Sample(id="set", text="x", number_or_null=0))

    async def waiting(limit: int = 10, **criteria: Any) -> list[Sample]:
        async with storage.unit() as unit:
            return await unit[Sample].find(
                number_or_null=None, text="x", order="moment", limit=limit, quick=True, **criteria
            )

    assert [each.id for each in await waiting()] == ["b", "d", "c", "a"], must
    assert [each.id for each in await waiting(moment=AtLeast(START + timedelta(hours=2)))] == ["c", "a"], must
    async with storage.unit() as unit:
        for number, each in enumerate(await waiting(3), 1):
            unit[Sample].change(each, number_or_null=number)
        await unit.commit()
    assert [each.id for each in await waiting()] == ["a"], must
    async with storage.unit() as unit:
        given = await unit[Sample].get("d")
        assert given is not None, must
        unit[Sample].change(given, number_or_null=None)
        await unit.commit()
    assert [each.id for each in await waiting()] == ["d", "a"], must


async def test_find_returns_at_most_limit(storage: Storage) -> None:
    must = "`find` must return the first records, at most `limit`, and refuse a negative limit"
    await put(storage, *(payment(f"pay_{n}") for n in range(5)))
    async with storage.unit() as unit:
        assert [found.id for found in await unit[Payment].find(limit=2)] == ["pay_0", "pay_1"], must
        assert await unit[Payment].find(limit=0) == [], must
        with must_raise(must, ValueError):
            await unit[Payment].find(limit=-1)


async def test_pages_count_from_1_and_are_empty_past_the_end(storage: Storage) -> None:
    """Pages (docs/concepts.md "Lists"); `-id` is newest first, because ids are ordered by time."""
    must = "pages must count from 1, continue without a gap or a repeat, and be empty past the end"
    await put(storage, *(payment(f"pay_{n}", mode=Mode.LIVE if n == 3 else Mode.TEST) for n in range(6)))
    async with storage.unit() as unit:
        repository = unit[Payment]
        assert [found.id for found in await repository.page(1, 2, mode=Mode.TEST)] == ["pay_5", "pay_4"], must
        assert [found.id for found in await repository.page(2, 2, mode=Mode.TEST)] == ["pay_2", "pay_1"], must
        assert [found.id for found in await repository.page(3, 2, mode=Mode.TEST)] == ["pay_0"], must
        assert await repository.page(4, 2, mode=Mode.TEST) == [], must
        assert [found.id for found in await repository.page(2, 2, skip=1, mode=Mode.TEST)] == ["pay_1", "pay_0"], must
        assert await repository.page(250_000, 100, mode=Mode.TEST) == [], must
        with must_raise(must, ValueError):
            await repository.page(0, 2)


async def test_a_field_may_be_named_as_an_argument_of_page(storage: Storage) -> None:
    must = "a field with the name of an argument must be usable as a criterion"
    await put(storage, *SAMPLES)
    async with storage.unit() as unit:
        assert [found.id for found in await unit[Sample].page(1, 5, number=2)] == ["c", "b"], must


async def test_a_field_that_is_not_there_or_holds_a_structure_is_refused(storage: Storage) -> None:
    must = "a criterion or an order by such a field must be a TypeError"
    async with storage.unit() as unit:
        wrong: tuple[dict[str, Any], ...] = (
            {"garbage": 1},
            {"metadata": {}},
            {"order": "garbage"},
            {"order": "metadata"},
        )
        for criteria in wrong:
            with must_raise(must, TypeError):
                await unit[Payment].find(**criteria)


async def test_a_criterion_that_no_record_could_meet_is_refused(storage: Storage) -> None:
    """All storages refuse the same values. Postgres itself refuses NUL and more than 64 bits; SQLite would find
    nothing, or too much."""
    must = "a criterion that no record could meet must be a ValueError"
    async with storage.unit() as unit:
        impossible: tuple[dict[str, Any], ...] = (
            {"external_id": "a\x00"},
            {"sequence": AtMost(2**63)},
            {"external_id": OneOf(("\ud800",))},
        )
        for criteria in impossible:
            with must_raise(must, ValueError):
                await unit[Payment].find(**criteria)


async def test_two_storages_on_one_database_see_each_others_commits_at_once(shared_location: StorageLocation) -> None:
    """API, worker, command line and console share one database (docs/decisions.md "Storage")."""
    must = "a commit must be seen at once by other storages on the database"
    one, other = await shared_location.open(), await shared_location.open()
    for n in range(20):
        writer, reader = (one, other) if n % 2 else (other, one)
        await put(writer, payment(f"pay_{n}"))
        assert await read(reader, Payment, f"pay_{n}") == payment(f"pay_{n}"), must
        async with reader.unit() as unit:
            assert await unit[Payment].total() == n + 1, must


async def test_reopening_keeps_everything(shared_location: StorageLocation) -> None:
    must = "a storage that is opened again must have everything"
    storage = await shared_location.open()
    await put(storage, *SAMPLES, payment("pay_1"))
    await storage.close()
    again = await shared_location.open()
    async with again.unit() as unit:
        assert await unit[Sample].find() == sorted(SAMPLES, key=lambda sample: sample.id), must
        assert await unit[Payment].find() == [payment("pay_1")], must
