"""Further webhook endpoints: they receive every event that the merchant's main receiver gets (docs/webhooks.md "Further
endpoints")."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import Event
from tests.simulation.merchants import Merchant
from tests.simulation.network import key_of
from tests.simulation.receivers import Receiver

if TYPE_CHECKING:
    from tests.simulation.world import World

_CLOCKS_OFF = timedelta(minutes=20)
_MONEY = ("payment.", "refund.", "withdrawal.", "exchange.")
"""Events that are tried for days; others are given up after ten attempts."""


class FurtherEndpoint:
    """A further endpoint of a merchant."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self._merchant = merchant
        self._url = f"https://m{merchant.number}.example/further"
        self.receiver = Receiver(10 + merchant.number, None, world.fault, world.trace.tell)
        self.made_at: datetime | None = None
        world.receivers[self._url] = self.receiver

    async def make(self) -> None:
        """Create endpoints until an answer with the secret arrives; the service does not repeat the secret of a lost
        answer."""
        for attempt in range(20):
            key = key_of(self._world.plan.seed, "endpoint", self._merchant.number, attempt)
            answer = await self._merchant.insist("POST", "/api/v1/webhook-endpoints", {"url": self._url}, key)
            if answer.status not in (200, 201):
                self._world.fault(f"an endpoint of merchant {self._merchant.number}: {answer.status} {answer.body!r}")
                return
            if answer.json["secret"] is not None:
                self.receiver.secrets = [answer.json["secret"]]
                self.made_at = self._world.now()
                self._world.counts["endpoints"] += 1
                return
            await self._merchant.insist("DELETE", f"/api/v1/webhook-endpoints/{answer.json['id']}", None, None)

    async def judge(self) -> None:
        """Check that both endpoints got the same events."""
        if self.made_at is None:
            return
        own, further = self._merchant.receiver.told, self.receiver.told
        async with self._world.office.storage.unit() as unit:
            account_id = self._merchant.account.account_id
            events = await unit[Event].find(account_id=account_id, mode=Mode.LIVE, limit=10_000)
        since = {event.id for event in events if event.created_at > self.made_at + _CLOCKS_OFF}
        for event_id, told in own.items():
            other = further.get(event_id)
            if other is None and event_id in since and told.event.startswith(_MONEY):
                self._world.fault(f"receiver {self.receiver.number} was never told {event_id} ({told.event})")
            if other is not None and (other.raw, other.sequence) != (told.raw, told.sequence):
                self._world.fault(f"receiver {self.receiver.number} was told something else by {event_id}")
