"""Banks that can be paid to, as a provider lists them (docs/adapters.md "Where a bank can pay to")."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.bank.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.browse.gateways import known_gateways
from cambist.core.usecases.gateways.members import READ_MEMBERS, known_members
from cambist.core.usecases.gateways.watch import health_id
from cambist.frontends.compose import Adapters
from cambist.frontends.console.kinds.gateways import _facts
from cambist.ports.faults import NotConfigured, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.members import MemberBank
from cambist.ports.notes import ProviderNote
from tests.exchange_house import BANK_ID, ExchangeHouse, open_exchange_house, told
from tests.houses import TestHouse
from tests.invariants import everything

LISTED = MemberBank(id=BANK_ID, name="Alfa", bic="044525593")
OTHER = MemberBank(id="bank100000000111", name="Sber")
UNKNOWN = (400, "VALIDATION_ERROR")


class Listing(SimulatedBank):
    """A bank of test mode that lists members. It is made by the house's ports, once there are any."""

    members: Sequence[MemberBank] = (LISTED, OTHER)
    asked = 0
    fault: Exception | None = None

    async def banks(self) -> Sequence[MemberBank]:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.members


def listing(name: str, house: TestHouse | None = None, **capabilities: Any) -> Listing:
    ports: Any = house and house.ports
    return Listing(name, ports and ports.storage, ports and ports.clock, ports and ports.ids)


@pytest.fixture
def bank() -> Listing:
    return listing("lists")


@pytest.fixture
async def house(bank: Listing) -> AsyncIterator[ExchangeHouse]:
    async with open_exchange_house(adapters=Adapters(banks={Mode.TEST: [bank]})) as opened:
        bank.__init__("lists", opened.ports.storage, opened.ports.clock, opened.ports.ids)  # type: ignore[misc]
        yield opened


async def asked(house: ExchangeHouse, bank_id: str = BANK_ID, number: int = 1) -> tuple[int, str | None]:
    answer = await house.post({"client_bank_id": bank_id, "client_phone": f"+7000000000{number}"})
    return (201, None) if answer.status_code == 201 else told(answer)


async def test_the_first_exchange_is_taken_as_it_is_and_the_next_is_held_against_the_list(
    house: ExchangeHouse, bank: Listing
) -> None:
    assert await asked(house, "bank5") == (201, None)
    assert bank.asked == 0, "no merchant waits for it"
    await house.house.work(1)
    assert bank.asked == 1
    assert await asked(house, "bank5", 2) == UNKNOWN
    assert await asked(house, BANK_ID, 2) == (201, None)


async def test_it_is_asked_once_a_day_while_somebody_wants_to_know(house: ExchangeHouse, bank: Listing) -> None:
    await asked(house)
    await house.house.work(24 * 3600)
    assert bank.asked == 1, "nobody wanted to know"
    await asked(house, number=2)
    await house.house.work(1)
    assert bank.asked == 2
    for number in (3, 4):
        await asked(house, number=number)
        await house.house.work(1)
    assert bank.asked == 2


@pytest.mark.parametrize("fault", [Unavailable("away"), NotConfigured("no"), ValueError("broken")], ids=str)
async def test_a_read_that_fails_refuses_nobody_and_ends(house: ExchangeHouse, bank: Listing, fault: Exception) -> None:
    bank.fault = fault
    assert await asked(house, "bank5") == (201, None)
    await house.house.work(0.5)
    assert bank.asked == 1, "not five times at once"
    await house.house.work(24 * 3600)
    assert bank.asked == 5
    assert await house.ports.storage.get(ProviderNote, health_id("lists")) is None, (
        "a gateway of test mode is not judged"
    )
    assert [job for job in await everything(house.ports, Job) if job.kind == "bank.members"] == []
    assert await asked(house, "bank6", 2) == (201, None)
    bank.fault = None
    await house.house.work(1)
    assert await asked(house, "bank6", 3) == UNKNOWN


async def test_that_of_live_mode_is_judged_by_it_as_by_all_it_answers() -> None:
    bank = listing("lists")
    async with open_exchange_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as house:
        bank.__init__("lists", house.ports.storage, house.ports.clock, house.ports.ids)  # type: ignore[misc]
        bank.fault = Unavailable("away")
        await known_members(house.ports, Mode.LIVE)
        await house.house.work(1)
        assert bank.asked == 1
        assert await house.ports.storage.get(ProviderNote, health_id("lists")) is not None


@pytest.mark.parametrize("name", ["nobody", "simulator-live"])
async def test_whoever_lists_none_any_more_is_not_asked(house: ExchangeHouse, name: str) -> None:
    now = house.ports.clock.now()
    async with house.ports.storage.unit() as unit:
        await READ_MEMBERS.plan(unit, name, now, now)
        await unit.commit()
    await house.run_due()
    assert [job for job in await everything(house.ports, Job) if job.kind == READ_MEMBERS.kind] == []


async def test_a_list_is_used_while_it_cannot_be_read_anew_and_no_longer_than_a_week(
    house: ExchangeHouse, bank: Listing
) -> None:
    await asked(house)
    await house.house.work(1)
    bank.fault = Unavailable("away")
    await house.house.clock.advance((timedelta(days=7) - timedelta(seconds=2)).total_seconds())
    assert await asked(house, "bank5", 2) == UNKNOWN
    await house.house.clock.advance(1)
    assert await asked(house, "bank5", 2) == (201, None)


async def test_what_is_no_id_of_ours_is_left_out_and_one_bank_comes_once(house: ExchangeHouse, bank: Listing) -> None:
    bank.members = (LISTED, LISTED, MemberBank(id="100000000008", name="Bare"), MemberBank(id="bankX", name="No"))
    await known_members(house.ports, Mode.TEST)
    await house.house.work(1)
    assert await known_members(house.ports, Mode.TEST) == frozenset({BANK_ID})
    [shown] = await known_gateways(house.ports, Mode.TEST)
    assert dict(_facts(shown))["pays to"].startswith("1 banks, listed ")


@pytest.mark.parametrize("members", [(), (MemberBank(id="bare", name="Bare"),)], ids=["empty", "of no use"])
async def test_an_empty_list_refuses_nobody(house: ExchangeHouse, bank: Listing, members: Any) -> None:
    bank.members = members
    await asked(house)
    await house.house.work(1)
    assert await asked(house, "bank5", 2) == (201, None)


async def test_a_list_that_cannot_be_read_from_the_storage_refuses_nobody(house: ExchangeHouse, bank: Listing) -> None:
    async with house.ports.storage.unit() as unit:
        note = ProviderNote(id="lists:members", provider="lists", body=b"{}", created_at=house.ports.clock.now())
        unit[ProviderNote].add(note)
        await unit.commit()
    assert await asked(house, "bank5") == (201, None)
    await house.house.work(1)
    assert await asked(house, "bank5", 2) == UNKNOWN


async def test_while_a_bank_that_pays_has_no_list_nobody_is_refused() -> None:
    first, second = listing("first"), SimulatedBank("second", None, None, None)  # type: ignore[arg-type]
    async with open_exchange_house(adapters=Adapters(banks={Mode.TEST: [first, second]})) as house:
        for each in (first, second):
            each.__init__(each.name, house.ports.storage, house.ports.clock, house.ports.ids)  # type: ignore[misc]
        await asked(house)
        await house.house.work(1)
        assert first.asked == 1
        assert await asked(house, "bank5", 2) == (201, None)


async def test_a_payout_goes_by_a_bank_that_lists_the_client_s() -> None:
    first, second = listing("first"), listing("second")
    first.members = (OTHER,)
    async with open_exchange_house(adapters=Adapters(banks={Mode.TEST: [first, second]})) as house:
        for each in (first, second):
            each.__init__(each.name, house.ports.storage, house.ports.clock, house.ports.ids)  # type: ignore[misc]
        await known_members(house.ports, Mode.TEST)
        await house.house.work(1)
        await known_members(house.ports, Mode.TEST)
        await house.house.work(1)
        made = await house.made()
        await house.send(made.id)
        await house.house.work(60)
        assert ((await house.exchange(made.id)).status, (await house.exchange(made.id)).bank) == ("completed", "second")
