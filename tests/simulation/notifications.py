"""Notifications of providers to the service: lost, doubled, late, and posted again until they are taken."""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.network import HttpAnswer, NoAnswer

if TYPE_CHECKING:
    from tests.simulation.world import World


class NotificationPost:
    """Connection by which banks and the verifier send notifications."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.addresses: dict[str, str] = {}
        """Notification address of each provider."""
        self.told: dict[str, datetime] = {}
        """When the service last took a notification about an operation."""

    def notify(self, provider: str, operation: str) -> None:
        """Post a notification about an operation, and again until it is taken."""
        world, network = self._world, self._world.network
        network.soon(network.pause(0.1), lambda: world.begin(self._post(provider, operation)))
        if network.strikes("notification_doubled"):
            network.soon(network.pause(10.0), lambda: world.begin(self._post(provider, operation)))

    async def _post(self, provider: str, operation: str) -> None:
        world, network = self._world, self._world.network
        for _ in range(6):
            if network.strikes("notification_late"):
                await network.sleep(network.chance.of("notification_late").uniform(1.0, 300.0))
            if network.strikes("notification_lost"):
                return
            try:
                answer = await world.request("POST", self.addresses[provider], (), msgspec.json.encode(operation))
            except NoAnswer:
                answer = HttpAnswer(0, b"")
            if answer.status == 200:
                self.told[operation] = world.now()
                return
            await network.sleep(60.0)
