"""Initial state of a world: merchants with their settings, verified clients, and the actions that the plan gives
them."""

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.frontends.app.notification_addresses import begin_receiving
from cambist.ports.storage import Storage
from tests.simulation.clocks import Sandbox
from tests.simulation.endpoints import FurtherEndpoint
from tests.simulation.exchanges import Desk
from tests.simulation.journeys import travel
from tests.simulation.kyc import DOCUMENTS, REDIRECT, Registry
from tests.simulation.memberships import Club
from tests.simulation.merchants import Merchant
from tests.simulation.network import Network, ProcessClock, ProcessIds, ProviderWay
from tests.simulation.plan import CALENDAR
from tests.simulation.proofs import Till
from tests.simulation.receivers import Receiver
from tests.simulation.rotations import rotate
from tests.simulation.weather import FINE, Chance

if TYPE_CHECKING:
    from tests.simulation.world import World


async def keep_office(world: "World", opened: Any) -> None:
    """An app of the operators, which nothing befalls: it makes the merchants, and reads the books at the end."""
    fine = Network(world.loop, msgspec.structs.replace(world.plan, weather=FINE), Chance("fine"), world.trace)
    way = ProviderWay(fine, "office", world.deliver, world.post_to)
    clock = ProcessClock(world.loop, 0.0)
    ids = ProcessIds(clock, world.chance.of("ids/office"))

    async def storage(_: Any) -> Storage:
        return world.database

    async with world.app(clock, ids, way, storage) as app:
        await begin_receiving(app.settings, app.ports)
        for shown in await list_addresses(app.ports):
            assert shown.address is not None
            world.post.addresses[shown.adapter] = shown.address.removeprefix("https://pay.example")
        opened.set_result(app.ports)
        await world.loop.create_future()


async def make_merchants(world: "World") -> None:
    """Create the merchants through the office, which has no faults."""
    for number in range(world.plan.merchants):
        made = await accounts.create_account(world.office, f"Merchant {number}")
        receiver = Receiver(number, f"secret-of-merchant-{number}-long-enough", world.fault, world.trace.tell)
        url = f"https://m{number}.example/hooks"
        world.receivers[url] = receiver
        merchant = Merchant(world, number, made, receiver, tron_address(bytes([number + 1]) * 20))
        await accounts.set_settings(world.office, made.account_id, _settings(merchant, url))
        world.merchants.append(merchant)
        world.clubs.append(Club(world, merchant))
        world.desks.append(Desk(world, merchant))
        world.registries.append(Registry(world, merchant))
        world.sandboxes.append(Sandbox(world, merchant))
        world.tills.append(Till(world, merchant))
        if any(handover.merchant == number for handover in world.plan.handovers):
            await world.tills[number].open()
        if number in (DOCUMENTS, REDIRECT):
            merchant.payer_phone = f"+7997{number:07d}"
            await world.desks[number].know(merchant.payer_phone)


def _settings(merchant: Merchant, url: str) -> dict[str, str]:
    number = merchant.number
    return {
        "webhook_url": url,
        "webhook_secret": merchant.receiver.secrets[0],
        "refunds": "true",
        "recurring": "true",
        "refund_approval": "manual" if number == 2 else "auto",
        "payout_wallet": merchant.wallet,
        "refund_overdraft_usdt": str(merchant.overdraft),
        "subscription_scheme": "calendar" if number == CALENDAR else "window",
        "exchange": "true",
        "exchange_markup_percent": ("2", "0", "0.5")[number % 3],
        "kyc": "required" if number in (DOCUMENTS, REDIRECT) else "off",
        "kyc_flow": "documents" if number == DOCUMENTS else "redirect",
    }


async def begin_wishes(world: "World") -> None:
    """Schedule the actions of the plan."""
    plan = world.plan
    for swap in plan.swaps:
        await world.desks[swap.merchant].know(swap.phone)
        _at(world, swap.at, world.desks[swap.merchant].exchange, swap)
    for handover in plan.handovers:
        _at(world, handover.at, world.tills[handover.merchant].hand_over, handover)
    for rehearsal in plan.rehearsals:
        _at(world, rehearsal.at, world.sandboxes[rehearsal.merchant].rehearse, rehearsal)
    for order in plan.orders:
        _at(world, order.at, world.merchants[order.merchant].sell, order)
    for applicant in plan.applicants:
        _at(world, applicant.at, world.registries[applicant.merchant].verify, applicant)
    for number in plan.endpoints:
        world.endpoints.append(FurtherEndpoint(world, world.merchants[number]))
        world.begin(world.endpoints[-1].make())
    for journey in plan.journeys:
        _at(world, journey.at, partial(travel, world), journey)
    for rotation in plan.rotations:
        _at(world, rotation.at, partial(rotate, world), rotation)
    for member in plan.memberships:
        _at(world, member.at, world.clubs[member.merchant].enrol, member)


def _at(world: "World", moment: float, work: Any, wish: Any) -> None:
    world.network.soon(max(0.0, moment - world.loop.time()), partial(_begun, world, work, wish))


def _begun(world: "World", work: Any, wish: Any) -> None:
    world.begin(work(wish))
