"""Keys and webhook secrets that are exchanged while requests fly: the old ones work until their end, and not after it
(docs/concepts.md "Accounts, keys, modes")."""

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.accounts import KeyPair
from cambist.core.usecases.accounts.keys import rotate_key
from tests.simulation.merchants import KNOWN_IN
from tests.simulation.network import BEGINNING, NoAnswer
from tests.simulation.plan import FAULTS_END
from tests.simulation.rotation_plans import Rotation

if TYPE_CHECKING:
    from tests.simulation.merchants import Merchant
    from tests.simulation.world import World

_SIGNS = 24 * 3600.0
"""Seconds for which the secret before signs X-Webhook-Signature (docs/webhooks.md "Changing the secret")."""


async def rotate(world: "World", rotation: Rotation) -> None:
    """Rotate the key, and check the result."""
    merchant = world.merchants[rotation.merchant]
    world.counts["rotations"] += 1
    if rotation.of_secret:
        await _rotate_secret(world, merchant, rotation)
    else:
        await _rotate_key(world, merchant, rotation)


async def _rotate_secret(world: "World", merchant: "Merchant", rotation: Rotation) -> None:
    secret = f"secret-{rotation.number}-of-merchant-{merchant.number}-long-enough"
    world.trace.tell(f"operator: another webhook secret of merchant {merchant.number}")
    await accounts.set_settings(world.office, merchant.account.account_id, {"webhook_secret": secret})
    slack = KNOWN_IN + world.plan.clocks_off
    await world.network.sleep(_SIGNS - slack)
    merchant.receiver.secrets.append(secret)
    await world.network.sleep(2 * slack)
    merchant.receiver.secrets.pop(0)


async def _rotate_key(world: "World", merchant: "Merchant", rotation: Rotation) -> None:
    old = merchant.pair
    world.trace.tell(
        f"operator: another key of merchant {merchant.number}, {rotation.overlap:.0f} s beside the old one"
    )
    made = await rotate_key(world.office, merchant.account.account_id, Mode.LIVE, timedelta(seconds=rotation.overlap))
    ends_at = next(each.ends_at for each in made.replaced if each.api_key == old.api_key)
    ends = (ends_at - BEGINNING).total_seconds()
    slack = KNOWN_IN + world.plan.clocks_off
    # The old key may have ended by then by some process's clock.
    switches = min(rotation.switches_after, max(0.0, rotation.overlap - slack))
    world.network.soon(switches, lambda: merchant.use(made.pair))
    await world.network.sleep(KNOWN_IN)
    await _expect(world, merchant, made.pair, 200)
    if ends - slack > world.loop.time():
        await world.network.sleep((ends - slack - world.loop.time()) * 0.9)
        await _expect(world, merchant, old, 200, until=ends - slack)
    await world.network.sleep(max(0.0, ends + slack - world.loop.time()))
    await _expect(world, merchant, old, 401)


async def _expect(world: "World", merchant: "Merchant", pair: KeyPair, status: int, until: float = FAULTS_END) -> None:
    """A read with a pair is answered so, once it is answered at all."""
    while world.loop.time() < until:
        began = world.loop.time()
        with suppress(NoAnswer):
            answer = await merchant.ask("GET", "/api/v1/balance", None, None, pair)
            if answer.status in (200, 401) and began < until:
                if answer.status != status:
                    world.fault(f"merchant {merchant.number}: a key was answered {answer.status}, not {status}")
                return
        await world.network.sleep(0.5)
