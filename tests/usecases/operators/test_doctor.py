"""Findings of `cambist doctor` from the storage: ok if all is well, otherwise the problem."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cambist.adapters.vault.aes import AesVault
from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode, Settings
from cambist.core.domain.chains import ChainHead
from cambist.core.domain.ledger import LedgerAccount
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common.chains import CHAINS, tagged
from cambist.core.usecases.common.encrypted import tag_key
from cambist.core.usecases.operators.doctor import CHECKS, clocks_apart
from cambist.core.usecases.operators.findings import Finding, Level
from cambist.core.usecases.operators.thorough import THOROUGH
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.ports.payouts import Senders
from tests.apps import TestApp, open_test_app
from tests.http.test_webhook_endpoints import made
from tests.planting import beneath
from tests.tables import table
from tests.usecases.alarms.test_alarms import FewNodes
from tests.usecases.operators.test_reencrypt import blank


async def found(app: TestApp, name: str) -> Finding:
    return await CHECKS[name](app.ports)


async def test_a_app_that_works_is_well(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    await app.created()
    await app.work()
    levels = {name: (await check(app.ports)).level for name, check in CHECKS.items()}
    assert levels == dict.fromkeys(CHECKS, Level.OK)
    for name, check in THOROUGH.items():
        assert name in CHECKS, "it stands for the quick one"
        assert (await check(app.ports, lambda _: None)).level is Level.OK


@table(
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
async def test_jobs_that_nobody_does(app: TestApp, late: int, level: Level) -> None:
    await app.work()
    due = await app.ports.storage.next_due()
    assert due is not None
    await app.clock.advance((due - app.clock.now()).total_seconds() + late)
    assert (await found(app, "jobs")).level is level


async def test_missing_recurring_job_is_reported(app: TestApp) -> None:
    assert (await found(app, "standing")).level is Level.WARNING, "an installation that no worker ever began on"
    await app.created()
    finding = await found(app, "standing")
    assert finding.level is Level.FAILED
    assert "settlement.daily" in finding.message
    await start_recurring_jobs(app.ports)
    assert (await found(app, "standing")).level is Level.OK


async def test_deliveries_given_up_are_counted(app: TestApp) -> None:
    app.made_up = True
    async with app.ports.storage.unit() as unit:
        for number, (mode, status) in enumerate(
            [(Mode.LIVE, DeliveryStatus.FAILED), (Mode.TEST, DeliveryStatus.FAILED), (Mode.LIVE, DeliveryStatus.HELD)]
        ):
            unit[Delivery].add(
                blank(Delivery, f"evt-{number}", account_id=app.account.account_id, mode=mode, status=status)
            )
        await unit.commit()
    finding = await found(app, "deliveries")
    assert finding.level is Level.WARNING
    assert finding.message.startswith("2 deliveries")
    endpoint = (await made(app))["id"]
    of = {"account_id": app.account.account_id, "mode": Mode.TEST, "status": DeliveryStatus.FAILED}
    async with app.ports.storage.unit() as unit:
        unit[EndpointDelivery].add(blank(EndpointDelivery, f"evt-0/{endpoint}", endpoint_id=endpoint, **of))
        await unit.commit()
    assert (await found(app, "deliveries")).message.startswith("3 deliveries"), "further endpoints count"


async def test_money_in_suspense_is_reported(app: TestApp) -> None:
    app.made_up = True
    async with app.ports.storage.unit() as unit:
        unit[Suspense].add(blank(Suspense, "sus-1", resolved_at=None))
        await unit.commit()
    assert (await found(app, "suspense")).message.startswith("1 transfers")


async def test_balances_that_do_not_sum_to_zero_fail(app: TestApp) -> None:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    app.made_up = True
    async with beneath(app.ports).unit() as unit:
        [row, *_] = await unit[LedgerAccount].find()
        unit[LedgerAccount].increase(row.id, "balance", 1)
        await unit.commit()
    finding = await found(app, "ledger")
    assert (finding.level, "off zero" in finding.message) == (Level.FAILED, True)
    assert (await THOROUGH["ledger"](app.ports, lambda _: None)).level is Level.FAILED


async def test_unencrypted_webhooks_are_named_by_account() -> None:
    async with open_test_app(receiver=False) as app:
        assert (await found(app, "webhooks")).level is Level.OK, "no address is no fault"
        await set_settings(app.ports, app.account.account_id, {"webhook_url": "http://merchant.example/secret-path"})
        finding = await found(app, "webhooks")
        assert finding.level is Level.WARNING
        assert app.account.account_id in finding.message
        assert "secret-path" not in finding.message


async def test_thorough_check_reads_every_kind_of_row_and_shows_its_progress(app: TestApp) -> None:
    for _ in range(2):
        await app.created()
    told: list[str] = []
    assert (await THOROUGH["rows"](app.ports, told.append)).level is Level.OK
    assert {"2 of Payment", "1 of Account"} <= set(told)


@table(("count", "more"), [(4, ""), (5, ""), (6, " and 1 more")])
async def test_five_accounts_are_named_and_further_ones_counted(count: int, more: str) -> None:
    async with open_test_app(receiver=False) as app:
        app.made_up = True
        names = [f"acc_{number}" for number in range(count)]
        settings = Settings(webhook_url="http://merchant.example")
        async with beneath(app.ports).unit() as unit:
            for name in names:
                unit[Account].add(blank(Account, name, settings=settings))
            await unit.commit()
        told = f"webhooks go unencrypted to {count} accounts: {', '.join(names[:5])}{more}"
        assert (await found(app, "webhooks")).message == told


class TestVault:
    pepper = bytes(32)
    old, new = bytes([1]) * 32, bytes([2]) * 32

    async def seal_with(self, app: TestApp, vault: AesVault) -> None:
        async with app.ports.storage.unit() as unit:
            [account] = await unit[Account].find()
            sealed = vault.encrypt(b"a-webhook-secret-of-the-tests", f"accounts.webhook_secret:{account.id}")
            unit[Account].save(msgspec.structs.replace(account, webhook_secret=sealed))
            for chain in CHAINS:
                head = await unit[ChainHead].get(chain.head_id)
                assert head is not None
                unit[ChainHead].save(tagged(vault, chain, head))
            for key in await unit[ApiKey].find():
                unit[ApiKey].save(tag_key(vault, key))
            await unit.commit()
        app.made_up = True

    @table("check", ["quick", "thorough"])
    async def test_a_key_that_is_missing_fails_and_an_older_one_in_use_warns(self, check: str) -> None:
        async with open_test_app() as app:
            await self.seal_with(app, AesVault({1: self.old}, 1, self.pepper))

            async def look(vault: AesVault) -> Finding:
                ports = msgspec.structs.replace(app.ports, vault=vault)
                return await (CHECKS["vault"](ports) if check == "quick" else THOROUGH["vault"](ports, lambda _: None))

            assert (await look(AesVault({1: self.old}, 1, self.pepper))).level is Level.OK
            both = await look(AesVault({1: self.old, 2: self.new}, 2, self.pepper))
            assert both.level is Level.WARNING
            assert both.remedy == "run `cambist vault reencrypt`"
            if check == "quick":
                assert both.message.startswith("key 2 seals, and 1 stored values that were looked at open, ")
            lost = await look(AesVault({2: self.new}, 2, self.pepper))
            assert lost.level is Level.FAILED


async def test_a_wallet_that_cannot_be_asked_what_it_sent_is_warned_of(app: TestApp) -> None:
    blind: Any = SimpleNamespace(name="blind")
    for wallets, level in (({"blind": blind}, Level.WARNING), ({}, Level.OK)):
        senders = Senders(senders=wallets, modes={"live": "blind"})
        app.ports = msgspec.structs.replace(app.ports, senders=senders)
        assert (await found(app, "wallets")).level is level


async def test_too_few_nodes_that_agree_fail_the_check(app: TestApp) -> None:
    network = FewNodes()
    app.ports = msgspec.structs.replace(app.ports, chain=network)
    assert (await found(app, "nodes")).level is Level.OK
    network.since = app.clock.now()
    finding = await found(app, "nodes")
    assert finding.level is Level.FAILED
    assert "payouts wait: tron: 1 of 2 nodes answer" in finding.message
