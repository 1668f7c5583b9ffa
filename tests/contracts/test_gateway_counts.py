"""Numbers of a gateway's events on every storage (docs/decisions.md "Numbers of a gateway's events")."""

import asyncio

import msgspec

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.accounts import Settings as AccountSettings
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.gateways.announcements import TELL, Telling, tell_accounts
from cambist.core.usecases.gateways.gateways import GatewaySimulation, simulate_gateway
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import START

GATEWAY = "simulator-test"
TELLINGS = 3


async def test_simultaneous_events_of_a_gateway_have_distinct_sequence_numbers(storage: Storage) -> None:
    account = Account(
        id="acc_1",
        name="Merchant",
        default_shop_id="shop",
        created_at=START,
        settings=AccountSettings(webhook_url="https://merchant.example"),
        webhook_secret=b"sealed",
    )
    caller = Caller(account=account, mode=Mode.TEST, key_id="a-key")
    telling = Telling(
        gateway_id=GATEWAY,
        status=GatewayStatus.DOWN,
        previous=GatewayStatus.OPERATIONAL,
        reason=None,
        sequence=1,
        at=START,
    )
    argument = msgspec.json.encode(telling).decode()
    jobs = [Job(id=f"{TELL}:{n}", kind=TELL, argument=argument, due=START, created_at=START) for n in range(TELLINGS)]
    async with open_app(Settings(database_url="memory://")) as app:
        ports = msgspec.structs.replace(app.ports, storage=storage)
        async with storage.unit() as unit:
            unit[Account].add(account)
            for job in jobs:
                unit[Job].add(job)
            await unit.commit()
        await asyncio.gather(
            simulate_gateway(ports, caller, GATEWAY, GatewaySimulation(status="degraded")),
            *(tell_accounts(ports, job) for job in jobs),
        )
    async with storage.unit() as unit:
        events = await unit[Event].find(object_id=GATEWAY)
    assert sorted(event.sequence for event in events) == [*range(1, TELLINGS + 2)]
