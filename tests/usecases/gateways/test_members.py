"""Banks that can be paid to, as a provider lists them (docs/adapters.md "Where a bank can pay to")."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.browse.gateways import known_gateways
from cambist.core.usecases.gateways.members import READ_MEMBERS, known_members
from cambist.core.usecases.gateways.watch import health_id
from cambist.frontends.app.compose import Adapters
from cambist.frontends.console.kinds.gateways import _facts
from cambist.ports.faults import NotConfigured, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.members import MemberBank
from cambist.ports.notes import ProviderNote
from tests.apps import TestApp
from tests.exchange_app import BANK_ID, ExchangeApp, open_exchange_app, told
from tests.invariants import everything

LISTED = MemberBank(id=BANK_ID, name="Alfa", bic="044525593")
OTHER = MemberBank(id="bank100000000111", name="Sber")
UNKNOWN = (400, "VALIDATION_ERROR")


class Listing(SimulatedBank):
    """A bank of test mode that lists members. It is made by the app's ports, once there are any."""

    members: Sequence[MemberBank] = (LISTED, OTHER)
    asked = 0
    fault: Exception | None = None

    async def banks(self) -> Sequence[MemberBank]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.members


def listing(name: str, app: TestApp | None = None, **capabilities: Any) -> Listing:
    ports: Any = app and app.ports
    return Listing(name, ports and ports.storage, ports and ports.clock, ports and ports.ids)


@pytest.fixture
def bank() -> Listing:
    return listing("lists")


@pytest.fixture
async def app(bank: Listing) -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(adapters=Adapters(banks={Mode.TEST: [bank]})) as opened:
        bank.__init__("lists", opened.ports.storage, opened.ports.clock, opened.ports.ids)  # type: ignore[misc]
        yield opened


async def asked(app: ExchangeApp, bank_id: str = BANK_ID, number: int = 1) -> tuple[int, str | None]:
    answer = await app.post({"client_bank_id": bank_id, "client_phone": f"+7000000000{number}"})
    return (201, None) if answer.status_code == 201 else told(answer)


async def test_first_exchange_needs_no_list_and_the_next_is_checked_against_it(app: ExchangeApp, bank: Listing) -> None:
    assert await asked(app, "bank5") == (201, None)
    assert bank.asked == 0, "no merchant waits for it"
    await app.app.work(1)
    assert bank.asked == 1
    assert await asked(app, "bank5", 2) == UNKNOWN
    assert await asked(app, BANK_ID, 2) == (201, None)


async def test_list_is_fetched_once_a_day_while_it_is_used(app: ExchangeApp, bank: Listing) -> None:
    await asked(app)
    await app.app.work(24 * 3600)
    assert bank.asked == 1, "nobody wanted to know"
    await asked(app, number=2)
    await app.app.work(1)
    assert bank.asked == 2
    for number in (3, 4):
        await asked(app, number=number)
        await app.app.work(1)
    assert bank.asked == 2


@pytest.mark.parametrize("fault", [Unavailable("away"), NotConfigured("no"), ValueError("broken")], ids=str)
async def test_a_read_that_fails_refuses_nobody_and_ends(app: ExchangeApp, bank: Listing, fault: Exception) -> None:
    bank.fault = fault
    assert await asked(app, "bank5") == (201, None)
    await app.app.work(0.5)
    assert bank.asked == 1, "not five times at once"
    await app.app.work(24 * 3600)
    assert bank.asked == 5
    assert await app.ports.storage.get(ProviderNote, health_id("lists")) is None, "a gateway of test mode is not judged"
    assert [job for job in await everything(app.ports, Job) if job.kind == "bank.members"] == []
    assert await asked(app, "bank6", 2) == (201, None)
    bank.fault = None
    await app.app.work(1)
    assert await asked(app, "bank6", 3) == UNKNOWN


async def test_live_bank_is_judged_by_its_list_as_by_any_answer() -> None:
    bank = listing("lists")
    async with open_exchange_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        bank.__init__("lists", app.ports.storage, app.ports.clock, app.ports.ids)  # type: ignore[misc]
        bank.fault = Unavailable("away")
        await known_members(app.ports, Mode.LIVE)
        await app.app.work(1)
        assert bank.asked == 1
        assert await app.ports.storage.get(ProviderNote, health_id("lists")) is not None


@pytest.mark.parametrize("name", ["nobody", "simulator-live"])
async def test_bank_that_no_longer_lists_members_is_not_asked(app: ExchangeApp, name: str) -> None:
    now = app.ports.clock.now()
    async with app.ports.storage.unit() as unit:
        await READ_MEMBERS.plan(unit, name, now, now)
        await unit.commit()
    await app.run_due()
    assert [job for job in await everything(app.ports, Job) if job.kind == READ_MEMBERS.kind] == []


async def test_unrefreshed_list_is_used_for_at_most_a_week(app: ExchangeApp, bank: Listing) -> None:
    await asked(app)
    await app.app.work(1)
    bank.fault = Unavailable("away")
    await app.app.clock.advance((timedelta(days=7) - timedelta(seconds=2)).total_seconds())
    assert await asked(app, "bank5", 2) == UNKNOWN
    await app.app.clock.advance(1)
    assert await asked(app, "bank5", 2) == (201, None)


async def test_foreign_ids_are_left_out_and_each_bank_is_listed_once(app: ExchangeApp, bank: Listing) -> None:
    bank.members = (LISTED, LISTED, MemberBank(id="100000000008", name="Bare"), MemberBank(id="bankX", name="No"))
    await known_members(app.ports, Mode.TEST)
    await app.app.work(1)
    assert await known_members(app.ports, Mode.TEST) == frozenset({BANK_ID})
    [shown] = await known_gateways(app.ports, Mode.TEST)
    assert dict(_facts(shown))["pays to"].startswith("1 banks, listed ")


@pytest.mark.parametrize("members", [(), (MemberBank(id="bare", name="Bare"),)], ids=["empty", "of no use"])
async def test_an_empty_list_refuses_nobody(app: ExchangeApp, bank: Listing, members: Any) -> None:
    bank.members = members
    await asked(app)
    await app.app.work(1)
    assert await asked(app, "bank5", 2) == (201, None)


async def test_a_list_that_cannot_be_read_from_the_storage_refuses_nobody(app: ExchangeApp, bank: Listing) -> None:
    async with app.ports.storage.unit() as unit:
        note = ProviderNote(id="lists:members", provider="lists", body=b"{}", created_at=app.ports.clock.now())
        unit[ProviderNote].add(note)
        await unit.commit()
    assert await asked(app, "bank5") == (201, None)
    await app.app.work(1)
    assert await asked(app, "bank5", 2) == UNKNOWN


async def test_unknown_bank_is_accepted_while_a_paying_bank_has_no_list() -> None:
    first, second = listing("first"), SimulatedBank("second", None, None, None)  # type: ignore[arg-type]
    async with open_exchange_app(adapters=Adapters(banks={Mode.TEST: [first, second]})) as app:
        for each in (first, second):
            each.__init__(each.name, app.ports.storage, app.ports.clock, app.ports.ids)  # type: ignore[misc]
        await asked(app)
        await app.app.work(1)
        assert first.asked == 1
        assert await asked(app, "bank5", 2) == (201, None)


async def test_a_payout_goes_by_a_bank_that_lists_the_client_s() -> None:
    first, second = listing("first"), listing("second")
    first.members = (OTHER,)
    async with open_exchange_app(adapters=Adapters(banks={Mode.TEST: [first, second]})) as app:
        for each in (first, second):
            each.__init__(each.name, app.ports.storage, app.ports.clock, app.ports.ids)  # type: ignore[misc]
        await known_members(app.ports, Mode.TEST)
        await app.app.work(1)
        await known_members(app.ports, Mode.TEST)
        await app.app.work(1)
        made = await app.made()
        await app.send(made.id)
        await app.app.work(60)
        assert ((await app.exchange(made.id)).status, (await app.exchange(made.id)).bank) == ("completed", "second")
