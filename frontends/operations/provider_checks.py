"""Check of every provider once when a process starts, in the background (docs/adapters.md "When the provider fails").
The guard logs their exceptions."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...core.usecases.operators.provider_checks import check_providers
from ...ports.bundle import Ports

log = logging.getLogger("cambist.providers")


@asynccontextmanager
async def providers_checked(ports: Ports) -> AsyncIterator[None]:
    """Check the providers while the block runs; its end does not wait for them."""
    asking = asyncio.create_task(_check(ports))
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.wait([asking])


async def _check(ports: Ports) -> None:
    try:
        checked = await check_providers(ports)
    except Exception as error:
        log.exception("the providers could not be asked whether they take our credentials: %s", type(error).__name__)
        return
    well = [str(each) for each in checked if each.is_checkable and each.fault is None]
    if well:
        log.info("take our credentials: %s", ", ".join(well))
