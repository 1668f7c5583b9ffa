"""Exports of the dashboard: ordered, written in the background, downloaded by their person alone (docs/dashboard.md
"Exports")."""

import asyncio
import csv
import io
import re
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exports import exports as rules
from cambist.core.domain.exports.exports import Export, ExportChunk, ExportFailure, ExportFormat, ExportStatus
from cambist.core.domain.people.people import Membership, User
from cambist.core.domain.people.roles import Role
from cambist.core.usecases import retention
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.common import paging
from cambist.core.usecases.exports import writing
from cambist.core.usecases.exports.exports import create_export, decrypt_chunk, delete_export, list_exports, open_file
from cambist.core.usecases.exports.files import csv_text
from cambist.core.usecases.exports.rows import guarded
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.payments.list import PaymentFilter, PaymentSearch
from cambist.core.usecases.people.sessions import Actor
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.refunds.list import RefundFilter
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.spreadsheets import Cell, SheetColumn
from cambist.ports.vault import VaultError
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.people_kit import person
from tests.refund_app import RefundApp
from tests.tables import table

CSV, XLSX = ExportFormat.CSV, ExportFormat.XLSX
ALL = PaymentFilter()
NS = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


async def order(ports: Ports, actor: Actor, asked: Any = ALL, file_format: ExportFormat = CSV) -> Export:
    return await create_export(ports, actor, str(uuid4()), asked, file_format)


async def content(ports: Ports, actor: Actor, export: Export) -> bytes:
    ready, parts = await open_file(ports, actor, export.id)
    whole = b"".join([part async for part in parts])
    assert len(whole) == ready.size
    return whole


def csv_rows(file: bytes) -> list[dict[str, str]]:
    assert file.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"), newline="")))


def sheet(file: bytes) -> list[list[tuple[str, str | None]]]:
    """Type and value of the cells of each row: `inlineStr`, `n`."""
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        tree = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    return [
        [(cell.get("t", "n"), "".join(cell.itertext()) or None) for cell in row.iterfind("s:c", NS)]
        for row in tree.iterfind(".//s:row", NS)
    ]


def ids_of(export: Export, file: bytes) -> list[str]:
    """Ids of the rows, in their order."""
    if export.format is CSV:
        return [row["id"] for row in csv_rows(file)]
    return [str(row[0][1]) for row in sheet(file)[1:]]


async def saved(app: TestApp, export: Export) -> Export:
    found = await app.ports.storage.get(Export, export.id)
    assert found is not None
    return found


@pytest.fixture
def in_twos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and store two records at a time."""
    monkeypatch.setattr(paging, "WALKED_AT_ONCE", 2)


@pytest.mark.usefixtures("in_twos")
@pytest.mark.parametrize("file_format", ExportFormat)
async def test_export_has_every_payment_of_the_filter_on_every_storage(url: str, file_format: ExportFormat) -> None:
    async with open_test_app(database_url=url) as app:
        shop = await create_shop(app.ports, app.account.account_id, "=Shop", "0.03")
        await app.created()
        made = [await app.created({"shop_id": shop.id, "external_id": f"=b-{number}"}) for number in range(5)]
        owner = await person(app)
        export = await order(app.ports, owner, PaymentFilter(shop_id=shop.id), file_format)
        assert (export.status, export.total, export.rows) == (ExportStatus.COLLECTING, 5, 0)
        await app.clock.advance(1)
        late = await app.created({"shop_id": shop.id})
        await app.work(1)
        ready = await saved(app, export)
        assert (ready.status, ready.rows, ready.slot) == (ExportStatus.READY, 5, None)
        file = await content(app.ports, owner, export)
        assert ids_of(export, file) == [each["id"] for each in reversed(made)]
        assert late["id"] not in ids_of(export, file), "the file is of the moment when it was ordered"
        chunks = await everything(app.ports, ExportChunk)
        assert len(chunks) == ready.file_chunks, "the rows of a workbook go once it is built"
        assert not [each for each in await everything(app.ports, Job) if each.kind == "export.write"]


async def test_content_is_encrypted_for_its_place(app: TestApp) -> None:
    owner = await person(app)
    payment = await app.created({"external_id": "order-77"})
    export = await order(app.ports, owner)
    await app.work(1)
    [chunk] = await everything(app.ports, ExportChunk)
    assert b"order-77" in decrypt_chunk(app.ports.vault, chunk)
    assert payment["id"].encode() not in chunk.body
    moved = msgspec.structs.replace(chunk, id=chunk.id.replace("000000", "000001"))
    with pytest.raises(VaultError):
        decrypt_chunk(app.ports.vault, moved)
    assert repr(chunk) == f"ExportChunk({chunk.id!r}, ***)"
    assert export.id in chunk.id


async def test_csv_guards_texts_and_masks_the_phone(app: TestApp) -> None:
    owner = await person(app)
    await app.created({"external_id": "=1+1", "client_phone": "+79161234567"})
    export = await order(app.ports, owner)
    await app.work(1)
    [row] = csv_rows(await content(app.ports, owner, export))
    assert (row["external_id"], row["amount_rub"]) == ("'=1+1", "100.00")
    assert row["payer_phone"] == "***4567"


async def test_workbook_has_numbers_dates_and_texts(app: TestApp) -> None:
    owner = await person(app)
    payment = await app.created({"external_id": "=1+1"})
    export = await order(app.ports, owner, ALL, XLSX)
    await app.work(1)
    heading, row = sheet(await content(app.ports, owner, export))
    titles = [value for _, value in heading]
    assert titles[:4] == ["id", "external_id", "status", "amount_rub"]
    assert row[:4] == [("inlineStr", payment["id"]), ("inlineStr", "=1+1"), ("inlineStr", "pending"), ("n", "100.00")]
    created = [value for kind, value in row if kind == "n"][1]
    assert created is not None
    assert re.fullmatch(r"4\d{4}\.\d+", created), "a date of a sheet counts days"
    assert "created_at (UTC+3)" in titles


@pytest.mark.usefixtures("in_twos")
async def test_refunds_are_exported_with_their_order(app: TestApp) -> None:
    merchant = RefundApp(app)
    await merchant.set(refunds="true")
    payment = await merchant.paid("300.00")
    owner = await person(app)
    made = [await merchant.apply(payment, "10.00") for _ in range(3)]
    for file_format in ExportFormat:
        export = await order(app.ports, owner, RefundFilter(), file_format)
        await app.work(1)
        file = await content(app.ports, owner, export)
        assert sorted(ids_of(export, file)) == sorted(made)


async def test_search_is_exported_as_it_was_found(app: TestApp) -> None:
    owner = await person(app)
    found = [(await app.created({"amount_rub": "149.00", "client_phone": "+79161234567"}))["id"] for _ in range(2)]
    await app.created({"amount_rub": "150.00"})
    for asked, total in ((PaymentSearch(amount_rub="149.00"), None), (PaymentSearch(phone_tail="4567"), 2)):
        export = await order(app.ports, owner, asked)
        await app.work(1)
        assert (export.total, (await saved(app, export)).rows) == (total, 2)
        assert ids_of(export, await content(app.ports, owner, export)) == found[::-1]


async def test_export_of_nothing_is_a_heading(app: TestApp) -> None:
    owner = await person(app)
    for file_format in ExportFormat:
        export = await order(app.ports, owner, PaymentFilter(status="failed"), file_format)
        await app.work(1)
        file = await content(app.ports, owner, export)
        assert len(sheet(file)) == 1 if file_format is XLSX else csv_rows(file) == []
        assert file


async def test_repeated_key_is_the_same_export(app: TestApp) -> None:
    owner = await person(app)
    key = str(uuid4())
    first = await create_export(app.ports, owner, key, ALL, CSV)
    assert (await create_export(app.ports, owner, key, ALL, CSV)).id == first.id
    assert [each.id for each in await list_exports(app.ports, owner)] == [first.id]
    with pytest.raises(Refusal, match="must be a UUID"):
        await create_export(app.ports, owner, "again", ALL, CSV)


async def test_account_writes_a_few_exports_at_once(app: TestApp) -> None:
    owner, admin = await person(app), await person(app, Role.ADMIN)
    made = [await order(app.ports, who) for who in (owner, owner, admin)]
    with pytest.raises(Refusal) as refused:
        await order(app.ports, admin)
    assert refused.value.code == "EXPORTS_BUSY"
    await app.work(1)
    assert (await saved(app, made[0])).status is ExportStatus.READY
    await order(app.ports, admin)


async def test_slots_are_not_shared_by_concurrent_orders(app: TestApp) -> None:
    owner = await person(app)
    done = await asyncio.gather(*(order(app.ports, owner) for _ in range(6)), return_exceptions=True)
    made = [each for each in done if isinstance(each, Export)]
    assert len(made) == rules.OPEN_MOST
    assert len({each.slot for each in made}) == rules.OPEN_MOST
    assert {each.code for each in done if isinstance(each, Refusal)} == {"EXPORTS_BUSY"}


async def test_person_keeps_a_bounded_number_of_exports(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.exports.exports.KEPT_MOST", 2)
    owner = await person(app)
    first, _ = await order(app.ports, owner), await order(app.ports, owner)
    await app.work(1)
    with pytest.raises(Refusal, match="delete those"):
        await order(app.ports, owner)
    await delete_export(app.ports, owner, first.id)
    await order(app.ports, owner)


async def test_export_of_too_many_rows_is_refused_at_once(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.exports.exports.ROWS_MOST", {CSV: 2, XLSX: 1})
    owner = await person(app)
    for _ in range(2):
        await app.created()
    await order(app.ports, owner, ALL, CSV)
    with pytest.raises(Refusal) as refused:
        await order(app.ports, owner, ALL, XLSX)
    assert refused.value.code == "EXPORT_TOO_LARGE"


@pytest.mark.usefixtures("in_twos")
async def test_export_fails_when_more_rows_came_than_it_may_have(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await person(app)
    for _ in range(5):
        await app.created()
    export = await order(app.ports, owner)
    monkeypatch.setattr(writing, "ROWS_MOST", {CSV: 3})
    await app.work(1)
    assert await outcome(app, export) == (ExportStatus.FAILED, ExportFailure.TOO_MANY)
    assert await everything(app.ports, ExportChunk) == []


async def outcome(app: TestApp, export: Export) -> tuple[ExportStatus, ExportFailure | None]:
    found = await saved(app, export)
    return found.status, found.failure


@table("role, may", [(role, role in (Role.OWNER, Role.ADMIN, Role.FINANCE)) for role in Role])
async def test_roles_with_the_right_export(app: TestApp, role: Role, may: bool) -> None:
    who = await person(app, role, email=f"{role}@export.example")
    if may:
        assert (await order(app.ports, who)).owner_id == who.user.id
        await app.work(1)
    else:
        with pytest.raises(Refusal) as refused:
            await order(app.ports, who)
        assert refused.value.code == "PERSON_RIGHT_MISSING"


async def test_export_needs_a_recent_confirmation(app: TestApp) -> None:
    owner = await person(app)
    export = await order(app.ports, owner)
    await app.work(1)
    stale = msgspec.structs.replace(owner, stepped_up=False)
    for call in (order(app.ports, stale), open_file(app.ports, stale, export.id)):
        with pytest.raises(Refusal) as refused:
            await call
        assert refused.value.code == "STEP_UP_NEEDED"


async def test_file_is_only_its_persons(app: TestApp) -> None:
    owner, admin = await person(app), await person(app, Role.ADMIN)
    export = await order(app.ports, owner)
    with pytest.raises(Refusal) as refused:
        await open_file(app.ports, owner, export.id)
    assert refused.value.code == "EXPORT_NOT_FOUND", "it is not ready"
    await app.work(1)
    other_mode = msgspec.structs.replace(owner, session=msgspec.structs.replace(owner.session, mode=Mode.LIVE))
    for who, export_id in ((admin, export.id), (other_mode, export.id), (owner, "exp_none"), (owner, "pay_1")):
        for call in (open_file, delete_export):
            with pytest.raises(Refusal):
                await call(app.ports, who, export_id)
    assert await list_exports(app.ports, admin) == []
    assert await content(app.ports, owner, export)


async def change(app: TestApp, kind: Any, record_id: str, **changes: Any) -> None:
    async with app.ports.storage.unit() as unit:
        found: Any = await unit[kind].get(record_id)
        unit[kind].save(msgspec.structs.replace(found, **changes))
        await unit.commit()


@pytest.mark.usefixtures("in_twos")
@pytest.mark.parametrize("loss", ["role", "shops", "disabled", "removed"])
async def test_export_of_a_person_who_lost_the_right_fails(app: TestApp, loss: str) -> None:
    owner = await person(app)
    for _ in range(3):
        await app.created()
    export = await order(app.ports, owner)
    member = owner.membership.id
    if loss == "role":
        await change(app, Membership, member, role=Role.VIEWER)
    elif loss == "shops":
        await change(app, Membership, member, shops=("another",))
    elif loss == "disabled":
        await change(app, User, owner.user.id, disabled_at=app.clock.now())
    else:
        async with app.ports.storage.unit() as unit:
            unit[Membership].remove(await found_member(unit, member))
            await unit.commit()
    await app.work(1)
    assert await outcome(app, export) == (ExportStatus.FAILED, ExportFailure.RIGHTS)
    assert await everything(app.ports, ExportChunk) == []


async def found_member(unit: Any, member: str) -> Membership:
    found: Membership = await unit[Membership].get(member)
    return found


async def test_download_checks_the_shops_of_today(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Shop", "0.03")
    owner = await person(app)
    whole, part = await order(app.ports, owner), await order(app.ports, owner, PaymentFilter(shop_id=shop.id))
    await app.work(1)
    limited = msgspec.structs.replace(owner, caller=msgspec.structs.replace(owner.caller, shops=(shop.id,)))
    assert await content(app.ports, limited, part)
    with pytest.raises(Refusal, match="expired"):
        await open_file(app.ports, limited, whole.id)
    with pytest.raises(Refusal) as refused:
        await order(app.ports, limited)
    assert refused.value.code == "SHOP_NOT_FOUND"


async def test_file_ends_after_a_day_and_is_deleted(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    owner = await person(app)
    export = await order(app.ports, owner)
    await app.work(1)
    await app.work(timedelta(hours=23).total_seconds())
    assert await content(app.ports, owner, export)
    await app.work(timedelta(hours=1).total_seconds())
    with pytest.raises(Refusal, match="expired"):
        await open_file(app.ports, owner, export.id)
    assert await list_exports(app.ports, owner) == []
    await app.work(timedelta(hours=1).total_seconds())
    assert await everything(app.ports, Export) == []
    assert await everything(app.ports, ExportChunk) == []


@pytest.mark.usefixtures("in_twos")
async def test_deleted_export_leaves_nothing(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_CHUNKS", 1)
    owner = await person(app)
    for _ in range(5):
        await app.created()
    ready = await order(app.ports, owner)
    await app.work(1)
    waiting = await order(app.ports, owner)
    for export in (ready, waiting):
        await delete_export(app.ports, owner, export.id)
    assert await list_exports(app.ports, owner) == []
    await app.work(1)
    assert await everything(app.ports, Export) == []
    assert await everything(app.ports, ExportChunk) == []


class FullDisk:
    """Spreadsheets without room for a file."""

    @asynccontextmanager
    async def open(self, sheet: str, columns: Sequence[SheetColumn], /) -> AsyncIterator[Any]:
        yield self

    async def write(self, rows: Sequence[Sequence[Cell]], /) -> None:
        raise Unavailable("no room")


async def test_export_that_keeps_failing_is_given_up(app: TestApp) -> None:
    owner = await person(app)
    await app.created()
    app.ports = msgspec.structs.replace(app.ports, spreadsheets=FullDisk())
    export = await order(app.ports, owner, ALL, XLSX)
    await app.work(5)
    assert (await saved(app, export)).status is ExportStatus.PACKING
    await app.work(timedelta(hours=2).total_seconds())
    assert await outcome(app, export) == (ExportStatus.FAILED, ExportFailure.ERROR)
    assert (await saved(app, export)).slot is None
    assert await everything(app.ports, ExportChunk) == []


@pytest.mark.usefixtures("in_twos")
async def test_long_export_lets_other_jobs_run(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_BATCHES", 1)
    owner = await person(app)
    made = [await app.created() for _ in range(5)]
    export = await order(app.ports, owner)
    [job] = [each for each in await app.ports.storage.claim(100, LEASE) if each.kind == "export.write"]
    await writing.write_export(app.ports, job)
    assert ((await saved(app, export)).rows, (await saved(app, export)).total) == (2, 5)
    await app.work(1)
    assert ids_of(export, await content(app.ports, owner, export)) == [each["id"] for each in reversed(made)]


async def run_with_crash(file_format: ExportFormat, at: int, *, after: bool) -> int:
    """Order and write an export with a crash at commit `at`; then let a new process finish it. Return the commits."""
    async with open_test_app() as app:
        owner = await person(app)
        made = [(await app.created())["id"] for _ in range(5)]
        whole, fuse, key = app.ports, CrashPoint(at, after=after), str(UUID(int=7))
        with suppress(Killed):
            app.ports = fused(whole, fuse)
            await create_export(app.ports, owner, key, ALL, file_format)
            await app.work(1)
        app.ports = whole
        await app.work(LEASE + 30)
        export = await create_export(app.ports, owner, key, ALL, file_format)
        await app.work(LEASE)
        assert [each.id for each in await list_exports(app.ports, owner)] == [export.id]
        assert ids_of(export, await content(app.ports, owner, export)) == made[::-1]
        ready = await saved(app, export)
        assert (ready.rows, ready.slot) == (5, None)
        assert len(await everything(app.ports, ExportChunk)) == ready.file_chunks
        assert not [each for each in await everything(app.ports, Job) if each.kind == "export.write"]
        return fuse.commits


COMMITS = {CSV: 5, XLSX: 11}
"""The order, three batches and the end. A workbook is begun, an earlier one is deleted, the file is stored and ready;
then the rows and the job are deleted."""


@pytest.mark.usefixtures("in_twos")
@pytest.mark.parametrize("file_format", ExportFormat)
async def test_the_story_has_as_many_commits_as_are_swept(file_format: ExportFormat) -> None:
    assert await run_with_crash(file_format, 0, after=False) == COMMITS[file_format]


@pytest.mark.usefixtures("in_twos")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("file_format", "at"), [(kind, at) for kind, most in COMMITS.items() for at in range(1, most + 1)]
)
async def test_crash_at_any_commit_repeats_and_loses_no_row(file_format: ExportFormat, at: int, after: bool) -> None:
    await run_with_crash(file_format, at, after=after)


_FORMULAS = tuple("=+-@＝＋－＠")
_RISKY = st.text(st.sampled_from([*_FORMULAS, *"\t\r\n;,\"' a1"]), max_size=12)


@given(st.lists(st.tuples(_RISKY, _RISKY), max_size=4), st.sampled_from(",;\t"))
def test_no_cell_of_a_file_is_a_formula_by_any_separator(rows: list[tuple[str, str]], separator: str) -> None:
    text = csv_text([(guarded(first), guarded(second)) for first, second in rows])
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
        for cell in row:
            assert not cell.lstrip(' "').startswith(_FORMULAS), (cell, text)


@given(st.text(), st.text())
def test_guard_adds_apostrophes_and_changes_nothing_else(first: str, second: str) -> None:
    for text in (first, f"{first};={second}"):
        assert (guarded(text) or "").replace("'", "") == text.replace("'", "")
