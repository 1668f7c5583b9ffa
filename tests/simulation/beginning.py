"""Who is there when a world begins: merchants with their settings, and verified clients; and what they are going to do
by the plan."""

from functools import partial
from typing import TYPE_CHECKING, Any

from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts import accounts
from tests.simulation.exchanges import Desk
from tests.simulation.kyc import DOCUMENTS, REDIRECT, Registry
from tests.simulation.memberships import Club
from tests.simulation.merchants import Merchant
from tests.simulation.plan import CALENDAR
from tests.simulation.receivers import Receiver

if TYPE_CHECKING:
    from tests.simulation.world import World


async def make_merchants(world: "World") -> None:
    """By the office, which nothing befalls."""
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
        if number in (DOCUMENTS, REDIRECT):
            merchant.payer_phone = f"+7997{number:07d}"
            await world.desks[number].know(merchant.payer_phone)


def _settings(merchant: Merchant, url: str) -> dict[str, str]:
    number = merchant.number
    return {
        "webhook_url": url,
        "webhook_secret": merchant.receiver.secret,
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
    """Have everybody do at its moment what the plan says."""
    plan = world.plan
    for swap in plan.swaps:
        await world.desks[swap.merchant].know(swap.phone)
        _at(world, swap.at, world.desks[swap.merchant].exchange, swap)
    for order in plan.orders:
        _at(world, order.at, world.merchants[order.merchant].sell, order)
    for applicant in plan.applicants:
        _at(world, applicant.at, world.registries[applicant.merchant].verify, applicant)
    for member in plan.memberships:
        _at(world, member.at, world.clubs[member.merchant].enrol, member)


def _at(world: "World", moment: float, work: Any, wish: Any) -> None:
    world.network.soon(max(0.0, moment - world.loop.time()), partial(_begun, world, work, wish))


def _begun(world: "World", work: Any, wish: Any) -> None:
    world.begin(work(wish))
