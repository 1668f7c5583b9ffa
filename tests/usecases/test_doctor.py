"""Findings of `cambist doctor` from the storage: ok if all is well, otherwise the problem."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cambist.adapters.vault.sealed import SealedVault
from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode, Settings
from cambist.core.domain.chains import ChainHead
from cambist.core.domain.ledger import LedgerAccount
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.chains import CHAINS, tagged
from cambist.core.usecases.operators.doctor import CHECKS, clocks_apart
from cambist.core.usecases.operators.findings import Finding, Level
from cambist.core.usecases.operators.thorough import THOROUGH
from cambist.core.usecases.sealed import tag_key
from cambist.core.usecases.standing import start_standing
from cambist.ports.payouts import Senders
from tests.houses import TestHouse, open_test_house
from tests.http.test_webhook_endpoints import made
from tests.planting import beneath
from tests.usecases.test_alarms import FewNodes
from tests.usecases.test_reseal import blank


async def found(house: TestHouse, name: str) -> Finding:
    return await CHECKS[name](house.ports)


async def test_a_house_that_works_is_well(house: TestHouse) -> None:
    await start_standing(house.ports)
    await house.created()
    await house.work()
    levels = {name: (await check(house.ports)).level for name, check in CHECKS.items()}
    assert levels == dict.fromkeys(CHECKS, Level.OK)
    for name, check in THOROUGH.items():
        assert name in CHECKS, "it stands for the quick one"
        assert (await check(house.ports, lambda _: None)).level is Level.OK


@pytest.mark.parametrize(
    ("seconds", "level"),
    [
        (0.4, Level.OK),
        (-0.9, Level.OK),
        (1, Level.OK),
        (2, Level.WARNING),
        (-2, Level.WARNING),
        (30, Level.WARNING),
        (31, Level.FAILED),
        (-31, Level.FAILED),
    ],
)
def test_clocks_that_differ(seconds: float, level: Level) -> None:
    finding = clocks_apart("ours", "theirs", timedelta(seconds=seconds))
    assert finding.level is level
    assert (finding.remedy is None) is (level is Level.OK)


@pytest.mark.parametrize(
    ("late", "level"), [(5, Level.OK), (30, Level.OK), (60, Level.WARNING), (300, Level.WARNING), (600, Level.FAILED)]
)
async def test_jobs_that_nobody_does(house: TestHouse, late: int, level: Level) -> None:
    await house.work()
    due = await house.ports.storage.next_due()
    assert due is not None
    await house.clock.advance((due - house.clock.now()).total_seconds() + late)
    assert (await found(house, "jobs")).level is level


async def test_a_standing_job_that_is_not_there_is_missed(house: TestHouse) -> None:
    assert (await found(house, "standing")).level is Level.WARNING, "an installation that no worker ever began on"
    await house.created()
    finding = await found(house, "standing")
    assert finding.level is Level.FAILED
    assert "settlement.daily" in finding.message
    await start_standing(house.ports)
    assert (await found(house, "standing")).level is Level.OK


async def test_deliveries_given_up_are_counted(house: TestHouse) -> None:
    house.made_up = True
    async with house.ports.storage.unit() as unit:
        for number, (mode, status) in enumerate(
            [(Mode.LIVE, DeliveryStatus.FAILED), (Mode.TEST, DeliveryStatus.FAILED), (Mode.LIVE, DeliveryStatus.HELD)]
        ):
            unit[Delivery].add(
                blank(Delivery, f"evt-{number}", account_id=house.account.account_id, mode=mode, status=status)
            )
        await unit.commit()
    finding = await found(house, "deliveries")
    assert finding.level is Level.WARNING
    assert finding.message.startswith("2 deliveries")
    endpoint = (await made(house))["id"]
    of = {"account_id": house.account.account_id, "mode": Mode.TEST, "status": DeliveryStatus.FAILED}
    async with house.ports.storage.unit() as unit:
        unit[EndpointDelivery].add(blank(EndpointDelivery, f"evt-0/{endpoint}", endpoint_id=endpoint, **of))
        await unit.commit()
    assert (await found(house, "deliveries")).message.startswith("3 deliveries"), "further endpoints count"


async def test_money_in_suspense_is_told(house: TestHouse) -> None:
    house.made_up = True
    async with house.ports.storage.unit() as unit:
        unit[Suspense].add(blank(Suspense, "sus-1", resolved_at=None))
        await unit.commit()
    assert (await found(house, "suspense")).message.startswith("1 transfers")


async def test_balances_that_do_not_sum_to_zero_fail(house: TestHouse) -> None:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    house.made_up = True
    async with beneath(house.ports).unit() as unit:
        [row, *_] = await unit[LedgerAccount].find()
        unit[LedgerAccount].increase(row.id, "balance", 1)
        await unit.commit()
    finding = await found(house, "ledger")
    assert (finding.level, "off zero" in finding.message) == (Level.FAILED, True)
    assert (await THOROUGH["ledger"](house.ports, lambda _: None)).level is Level.FAILED


async def test_unencrypted_webhooks_are_named_by_account() -> None:
    async with open_test_house(receiver=False) as house:
        assert (await found(house, "webhooks")).level is Level.OK, "no address is no fault"
        await set_settings(
            house.ports, house.account.account_id, {"webhook_url": "http://merchant.example/secret-path"}
        )
        finding = await found(house, "webhooks")
        assert finding.level is Level.WARNING
        assert house.account.account_id in finding.message
        assert "secret-path" not in finding.message


async def test_a_thorough_look_reads_every_kind_of_row_and_tells_how_far_it_is(house: TestHouse) -> None:
    for _ in range(2):
        await house.created()
    told: list[str] = []
    assert (await THOROUGH["rows"](house.ports, told.append)).level is Level.OK
    assert {"2 of Payment", "1 of Account"} <= set(told)


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, ""), (6, " and 1 more")])
async def test_five_accounts_are_named_and_further_ones_counted(count: int, more: str) -> None:
    async with open_test_house(receiver=False) as house:
        house.made_up = True
        names = [f"acc_{number}" for number in range(count)]
        settings = Settings(webhook_url="http://merchant.example")
        async with beneath(house.ports).unit() as unit:
            for name in names:
                unit[Account].add(blank(Account, name, settings=settings))
            await unit.commit()
        told = f"webhooks go unencrypted to {count} accounts: {', '.join(names[:5])}{more}"
        assert (await found(house, "webhooks")).message == told


class TestVault:
    pepper = bytes(32)
    old, new = bytes([1]) * 32, bytes([2]) * 32

    async def seal_with(self, house: TestHouse, vault: SealedVault) -> None:
        async with house.ports.storage.unit() as unit:
            [account] = await unit[Account].find()
            sealed = vault.seal(b"a-webhook-secret-of-the-tests", f"accounts.webhook_secret:{account.id}")
            unit[Account].save(msgspec.structs.replace(account, webhook_secret=sealed))
            for chain in CHAINS:
                head = await unit[ChainHead].get(chain.head_id)
                assert head is not None
                unit[ChainHead].save(tagged(vault, chain, head))
            for key in await unit[ApiKey].find():
                unit[ApiKey].save(tag_key(vault, key))
            await unit.commit()
        house.made_up = True

    @pytest.mark.parametrize("check", ["quick", "thorough"])
    async def test_a_key_that_is_missing_fails_and_an_older_one_in_use_warns(self, check: str) -> None:
        async with open_test_house() as house:
            await self.seal_with(house, SealedVault({1: self.old}, 1, self.pepper))

            async def look(vault: SealedVault) -> Finding:
                ports = msgspec.structs.replace(house.ports, vault=vault)
                return await (CHECKS["vault"](ports) if check == "quick" else THOROUGH["vault"](ports, lambda _: None))

            assert (await look(SealedVault({1: self.old}, 1, self.pepper))).level is Level.OK
            both = await look(SealedVault({1: self.old, 2: self.new}, 2, self.pepper))
            assert both.level is Level.WARNING
            assert both.remedy == "run `cambist vault reseal`"
            if check == "quick":
                assert both.message.startswith("key 2 seals, and 1 stored values that were looked at open, ")
            lost = await look(SealedVault({2: self.new}, 2, self.pepper))
            assert lost.level is Level.FAILED


async def test_a_wallet_that_cannot_be_asked_what_it_sent_is_warned_of(house: TestHouse) -> None:
    blind: Any = SimpleNamespace(name="blind")
    for wallets, level in (({"blind": blind}, Level.WARNING), ({}, Level.OK)):
        senders = Senders(senders=wallets, modes={"live": "blind"})
        house.ports = msgspec.structs.replace(house.ports, senders=senders)
        assert (await found(house, "wallets")).level is level


async def test_too_few_nodes_that_agree_fail_the_check(house: TestHouse) -> None:
    network = FewNodes()
    house.ports = msgspec.structs.replace(house.ports, chain=network)
    assert (await found(house, "nodes")).level is Level.OK
    network.since = house.clock.now()
    finding = await found(house, "nodes")
    assert finding.level is Level.FAILED
    assert "payouts wait: tron: 1 of 2 nodes answer" in finding.message
