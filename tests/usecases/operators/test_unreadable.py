"""Rows that cannot be read: they are set aside, reported, and processed once readable. Money waits rather than being
counted without such a row (docs/operations.md "Rows that cannot be read")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.request_log import RequestBatch
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.settlement.settlement import SettlementBatch
from cambist.core.usecases.accounts import request_list
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.core.usecases.common import long_lists
from cambist.core.usecases.common.long_lists import LongList, long_page
from cambist.core.usecases.kyc import clients
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_rows
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.health import SIGNS
from cambist.core.usecases.operators.thorough import read_everything
from cambist.core.usecases.operators.unreadable import count_unreadable, forget_unreadable, list_unreadable, take_up
from cambist.core.usecases.recurring_jobs import RECURRING_JOBS, start_recurring_jobs
from cambist.core.usecases.settlement.settlement import daily_id
from cambist.ports.faults import Unreadable
from cambist.ports.jobs import Job
from cambist.ports.storage import Between
from tests.planting import beneath
from tests.servers import service_url
from tests.spoiling import Spoilable, open_spoilable

BEYOND = 900_000_000_000_000_000


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, "sqlite", tmp_path)


@pytest.fixture
async def street(url: str, tmp_path: Path) -> AsyncIterator[Spoilable]:
    async with open_spoilable(url, tmp_path, "ours", "theirs") as opened:
        yield opened


async def put(street: Spoilable, job_id: str) -> None:
    now = street.ports.clock.now()
    async with street.ports.storage.unit() as unit:
        unit[Job].add(Job(id=job_id, kind="nobody.does", argument="", due=now + timedelta(days=9), created_at=now))
        await unit.commit()


async def noted(street: Spoilable) -> list[str]:
    """Wait until all rows that were met are recorded."""
    storage = street.ports.storage
    await storage.count_noted()  # type: ignore[attr-defined]  # a database's is SettingAside
    return [row.id for row in await list_unreadable(street.ports)]


async def test_a_job_that_somebody_reads_is_set_aside_before_it_is_due(street: Spoilable) -> None:
    """So a recurring job is written again, whatever its row contains."""
    await start_recurring_jobs(street.ports)
    name = next(iter(RECURRING_JOBS))
    await street.spoil(f"UPDATE jobs SET due = {BEYOND} WHERE id = '{name}'")
    with pytest.raises(Unreadable):
        await start_recurring_jobs(street.ports)
    assert await noted(street) == [f"jobs:{name}"]
    await start_recurring_jobs(street.ports)
    job = await street.ports.storage.get(Job, name)
    assert job is not None


async def test_a_job_that_can_be_read_again_goes_back_to_its_place(street: Spoilable) -> None:
    await put(street, "nobody.does:1")
    await street.spoil(f"UPDATE jobs SET created_at = {BEYOND} WHERE id = 'nobody.does:1'")
    with pytest.raises(Unreadable):
        await street.ports.storage.get(Job, "nobody.does:1")
    assert await noted(street) == ["jobs:nobody.does:1"]
    assert await take_up(street.ports) == 0
    assert await noted(street) == ["jobs:nobody.does:1"]
    # As recorded by a program that can read the row.
    await street.spoil(f"UPDATE unreadable_rows SET held = replace(held, '{BEYOND}', '1000000')")
    assert await take_up(street.ports) == 1
    assert await noted(street) == []
    job = await street.ports.storage.get(Job, "nobody.does:1")
    assert job is not None
    assert job.created_at.timestamp() == 1.0


async def test_a_job_that_was_written_anew_meanwhile_stays_as_it_is(street: Spoilable) -> None:
    await put(street, "nobody.does:1")
    await street.spoil(f"UPDATE jobs SET created_at = {BEYOND} WHERE id = 'nobody.does:1'")
    with pytest.raises(Unreadable):
        await street.ports.storage.get(Job, "nobody.does:1")
    await noted(street)
    await put(street, "nobody.does:1")
    await street.spoil(f"UPDATE unreadable_rows SET held = replace(held, '{BEYOND}', '1000000')")
    assert await take_up(street.ports) == 1
    job = await street.ports.storage.get(Job, "nobody.does:1")
    assert job is not None
    assert job.created_at.timestamp() > 1.0


async def test_unreadable_record_is_reported_until_it_can_be_read_again(street: Spoilable) -> None:
    """The health word, the doctor and the action items report it."""
    payment_id = await street.pay("ours")
    await street.clock.advance(1)
    other = await street.pay("ours")
    assert await SIGNS["unreadable"](street.ports)
    assert (await check_rows(street.ports)).level is Level.OK
    await street.spoil(f"UPDATE payments SET paid_at = paid_at + {BEYOND} WHERE id = '{payment_id}'")
    assert (await check_rows(street.ports)).level is Level.OK, "nobody met it yet"
    assert (await read_everything(street.ports, lambda _: None)).level is Level.FAILED
    assert await noted(street) == [f"payments:{payment_id}"]
    assert not await SIGNS["unreadable"](street.ports)
    assert (await check_rows(street.ports)).level is Level.FAILED
    [need] = [each for each in (await read_action_items(street.ports)).found if each.kind == "unreadable"]
    assert need.object_id == f"payments:{payment_id}"
    assert need.text == "cannot be read: paid_at (OverflowError)"
    # Found by index, by days from the nearer end, and from the other end.
    by_days = "created_from=2000-01-01T00:00:00Z"
    for query, shown in (("", [other]), (by_days, [other]), (f"{by_days}&per_page=1&page=2", [])):
        listed = (await street.call("ours", "GET", f"/payments?{query}")).json()
        assert [each["id"] for each in listed["data"]] == shown
        assert listed["pagination"]["total"] == 2
    await street.spoil(f"UPDATE payments SET paid_at = paid_at - {BEYOND} WHERE id = '{payment_id}'")
    assert await take_up(street.ports) == 1
    assert await SIGNS["unreadable"](street.ports)
    assert len((await street.call("ours", "GET", "/payments")).json()["data"]) == 2


async def test_unreadable_record_leaves_its_place_in_a_long_list_empty(
    street: Spoilable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a page would repeat an object of the next page."""
    monkeypatch.setattr(long_lists, "LONG", 1)
    monkeypatch.setattr(long_lists, "_NEAR", 0)
    paid = await street.ports.storage.get(Payment, await street.pay("ours"))
    assert paid is not None
    async with beneath(street.ports).unit() as unit:
        for day in range(4):
            at = paid.created_at - timedelta(days=day)
            unit[Payment].add(msgspec.structs.replace(paid, id=f"pay_{day}", mode=Mode.LIVE, created_at=at))
        await unit.commit()
    await street.spoil(f"UPDATE payments SET paid_at = {BEYOND} WHERE id = 'pay_1'")
    account = await street.ports.storage.get(Account, paid.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.LIVE, key_id="k")
    wanted = LongList(kind=Payment, caller=caller, name="payments", made=Between())
    pages = [await long_page(street.ports, wanted, number, 2) for number in (1, 2)]
    assert [[each.id for each in page.records] for page in pages] == [["pay_0"], ["pay_2", "pay_3"]]


async def test_unreadable_row_an_operator_forgot_is_no_longer_reported(street: Spoilable) -> None:
    await put(street, "nobody.does:1")
    await street.spoil(f"UPDATE jobs SET created_at = {BEYOND} WHERE id = 'nobody.does:1'")
    with pytest.raises(Unreadable):
        await street.ports.storage.get(Job, "nobody.does:1")
    await noted(street)
    await forget_unreadable(street.ports, "jobs:nobody.does:1")
    assert await count_unreadable(street.ports) == 0
    assert await street.ports.storage.get(Job, "nobody.does:1") is None


@pytest.mark.parametrize(("table", "field"), [("accounts", "created_at"), ("payments", "expires_at")])
async def test_settlement_stays_open_only_for_the_unreadable(street: Spoilable, table: str, field: str) -> None:
    ours, theirs = await street.pay("ours"), await street.pay("theirs")
    await street.work()
    row = street.merchants["ours"].account_id if table == "accounts" else ours
    await street.spoil(f"UPDATE {table} SET {field} = {field} + {BEYOND} WHERE id = '{row}'")
    await start_recurring_jobs(street.ports)
    for _ in range(12):
        await street.clock.advance(3 * 3600)
        await street.work()
    settled = await street.ports.storage.get(Payment, theirs)
    assert settled is not None
    assert settled.status is PaymentStatus.SETTLED
    run = street.ports.clock.now().replace(hour=9, minute=0)
    batch = await street.ports.storage.get(SettlementBatch, daily_id(Mode.TEST, run))
    assert batch is not None
    assert batch.completed_at is None
    await street.spoil(f"UPDATE {table} SET {field} = {field} - {BEYOND} WHERE id = '{row}'")
    await street.clock.advance(3600)
    await street.work()
    late = await street.ports.storage.get(Payment, ours)
    assert late is not None
    assert late.status is PaymentStatus.SETTLED
    closed = await street.ports.storage.get(SettlementBatch, daily_id(Mode.TEST, run))
    assert closed is not None
    assert closed.completed_at is not None


async def test_a_search_among_many_clients_shows_each_once(street: Spoilable, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds behind an unreadable client, too."""
    monkeypatch.setattr(clients, "_BATCH", 2)
    for number in range(4):
        body = {"phone": f"+7900123450{number}", "kyc_status": "verified"}
        assert (await street.call("ours", "POST", "/sandbox/exchange-clients", json=body)).status_code == 200
        await street.clock.advance(1)
    listed = (await street.call("ours", "GET", "/exchange-clients?q=9001234")).json()
    phones = [each["phone"] for each in listed["data"]]
    assert (len(phones), listed["pagination"]["total"]) == (4, 4)
    last = max(
        [client async for batch in street.ports.storage.scan(Client) for client in batch],
        key=lambda each: each.created_at,
    )
    await street.spoil(f"UPDATE clients SET updated_at = {BEYOND} WHERE id = '{last.id}'")
    listed = (await street.call("ours", "GET", "/exchange-clients?q=9001234")).json()
    assert ([each["phone"] for each in listed["data"]], listed["pagination"]["total"]) == (phones[1:], 3)


async def test_the_requests_of_a_busy_hour_are_shown_once(street: Spoilable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_list, "_BATCH", 2)
    log, account_id = RequestLog(), street.merchants["ours"].account_id
    for number in range(5):
        now = street.clock.monotonic()
        log.note(Noted(account_id, Mode.TEST, "key", "GET", "/p", (), 200, None, now, now, f"r{number}"))
        await log.flush(street.ports)
        await street.clock.advance(1)
    [_, second, *_] = [each async for batch in street.ports.storage.scan(RequestBatch) for each in batch]
    await street.spoil(f"UPDATE request_batches SET entries = 'x' WHERE id = '{second.id}'")
    listed = (await street.call("ours", "GET", "/requests")).json()
    assert [each["request_id"] for each in listed["data"]] == ["r4", "r3", "r1", "r0"]
