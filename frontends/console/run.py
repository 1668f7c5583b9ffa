"""Starts the console on the service's database or on a simulated service."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ..app.compose import open_app
from ..operations.signing_in import signed_in
from ..process.gc_pause import keep_for_good
from ..settings.settings import Settings
from .app import Console
from .context import ConsoleContext
from .demo import living

FULL_AFTER = 30
"""Three times the usual threshold: the console runs full collections itself while nobody types (app.py)."""


def run(settings: Settings, operator: str | None) -> None:
    """Run the console until the operator quits. `operator`: a name from the command line, if any.

    Raises: exceptions of `open_app` and `signed_in`.
    """

    async def inside() -> None:
        async with open_app(settings, patient=True) as app:
            keep_for_good(FULL_AFTER)
            name = await signed_in(app.ports, settings, operator)
            await Console(ConsoleContext(ports=app.ports, operator=name), owns_process=True).run_async()

    _quietly(inside())


def run_demo(operator: str) -> None:
    """Run the console on a temporary service in memory."""

    async def inside() -> None:
        async with living(operator) as shared:
            keep_for_good(FULL_AFTER)
            await Console(shared, owns_process=True).run_async()

    _quietly(inside())


def _quietly(main: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine without log output, which would overwrite the screen."""
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(main)
