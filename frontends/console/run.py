"""Opening the console on a service's own database, or on a living demonstration."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ..compose import open_house
from ..gc_pause import keep_for_good
from ..settings import Settings
from ..signing_in import signed_in
from .app import Console
from .context import ConsoleContext
from .demo import living

FULL_AFTER = 30
"""Three times as many as usual: the console collects in full while nobody types (app.py)."""


def run(settings: Settings, operator: str | None) -> None:
    """Run the console beside a service, until it is left. `operator`: a name from the command line.

    Raises: what `open_house` and `signed_in` raise.
    """

    async def inside() -> None:
        async with open_house(settings, patient=True) as house:
            keep_for_good(FULL_AFTER)
            name = await signed_in(house.ports, settings, operator)
            await Console(ConsoleContext(ports=house.ports, operator=name), owns_process=True).run_async()

    _quietly(inside())


def run_demo(operator: str) -> None:
    """The console on a service in memory that is gone afterwards."""

    async def inside() -> None:
        async with living(operator) as shared:
            keep_for_good(FULL_AFTER)
            await Console(shared, owns_process=True).run_async()

    _quietly(inside())


def _quietly(main: Coroutine[Any, Any, None]) -> None:
    """Log lines would be written over the screen."""
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(main)
