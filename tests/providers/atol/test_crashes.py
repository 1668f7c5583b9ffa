"""The process dies at any commit of the adapter, calls lose their answers, and notes are lost with a database. However
often a call is interrupted and repeated, ATOL has one document (docs/providers/atol.md "How a receipt goes")."""

import asyncio
import os
from contextlib import suppress
from random import Random

from cambist.adapters.receipts.atol.register import AtolRegister
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.registers import receipt_id, request_of
from cambist.frontends.fake_provider.faults import UNCLEAR
from cambist.ports.faults import Fault
from cambist.ports.receipts import ReceiptRequest, ReceiptStatus
from cambist.ports.storage import Storage
from cambist.testing import ProviderFault
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.providers.atol.harness import AtolHarness, open_harness

POINTS = int(os.environ.get("CAMBIST_TEST_CRASH_POINTS", "150"))
"""Interrupted calls of one run; 2 000 take a minute."""
_FAULTS = [
    *(fault for fault in UNCLEAR if fault not in (ProviderFault.HUGE, ProviderFault.ENDLESS)),
    ProviderFault.BUSY,
    ProviderFault.UNAUTHORIZED,
]


async def _interrupted(atol: AtolHarness, process: AtolRegister, request: ReceiptRequest, random: Random) -> None:
    """Call once, as a process that meets a fault of the wire, or dies."""
    if random.random() < 0.6:
        fault = random.choice(_FAULTS)
        atol.fake.next(fault, matching=atol.is_write)
    with suppress(Killed, Fault):
        if random.random() < 0.5 and await process.find_receipt(request) is not None:
            return
        await process.write_receipt(request)


async def test_interrupted_calls_leave_one_document_of_each_receipt() -> None:
    random, points = Random(53), 0
    async with open_harness() as atol:
        while points < POINTS:
            request = request_of(receipt_id(points), 100 + points)
            storage: Storage = atol.storage
            for _ in range(random.randint(1, 4)):
                points += 1
                fuse = CrashPoint(random.randint(1, 3), after=random.random() < 0.5)
                atol.storage = CrashingStorage(storage, fuse)  # type: ignore[assignment]
                calls = [_interrupted(atol, atol.another(), request, random) for _ in range(random.randint(1, 2))]
                await asyncio.gather(*calls)
                atol.fake.recover()
                if random.random() < 0.1:  # the database is restored from before
                    storage = MemoryStorage(atol.clock)
            atol.storage = storage  # type: ignore[assignment]
            alive = atol.another()
            if await alive.find_receipt(request) is None:
                await alive.write_receipt(request)
            atol.fake.write(request.operation)
            found = await alive.find_receipt(request)
            assert found is not None
            assert found.status is ReceiptStatus.DONE
            assert len(atol.fake.named(request.operation)) == 1
            for each in atol.opened:
                await each.close()
            atol.opened.clear()
