"""The process dies just before or after each commit of the adapter. The repeated operation still makes one QR, one
charge and one payout."""

from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
import pytest

from cambist.adapters.bank.raiffeisen.adapter import RaiffeisenBank
from cambist.adapters.clock import SystemClock
from cambist.ports import BindingRequest, ChargeRequest, ChargeStatus, InvoiceStatus, RemittanceRequest
from cambist.ports.operations import short_operation
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.harness import RaiffeisenHarness, adapter, new_tools

OPERATION = "pay_0198c3f2-7d1a-7e4b-9f60-000000000001"
BINDING = "sub_0198c3f2-7d1a-7e4b-9f60-000000000001:0198c3f2-7d1a-7e4b-9f60-000000000002"
COMMITS = 3
"""One more than any operation has: then it lives."""

pytestmark = [
    pytest.mark.parametrize("at", range(1, COMMITS + 1)),
    pytest.mark.parametrize("after", [False, True], ids=["before", "after"]),
]


class Dying:
    """A harness, and an adapter beside it that dies at a commit."""

    def __init__(self, harness: RaiffeisenHarness, at: int, *, after: bool) -> None:
        self.harness = harness
        self.bank = harness.banks[0]
        self.fuse = CrashPoint(at, after=after)
        storage = CrashingStorage(harness.tools.storage, self.fuse)
        self.dying: RaiffeisenBank = adapter(msgspec.structs.replace(harness.tools, storage=storage), harness.books)
        harness.banks.append(self.dying)


@pytest.fixture
async def world(at: int, after: bool) -> AsyncIterator[Dying]:
    async with Raiffeisen() as books:
        made = Dying(RaiffeisenHarness(new_tools(SystemClock()), books), at, after=after)
        yield made
        for bank in made.harness.banks:
            await bank.close()


async def test_one_qr_is_handed_out(world: Dying) -> None:
    request = world.harness.request(OPERATION)
    with suppress(Killed):
        await world.dying.create_invoice(request)
    found = await world.bank.search_invoice(request, world.harness.clock.now())
    made = await world.bank.create_invoice(request)
    assert found is None or found == made
    assert await world.bank.create_invoice(request) == made
    world.harness.books.pay(made.reference.split("/")[2])
    assert (await world.bank.invoice_state(made.reference)).status is InvoiceStatus.PAID


@pytest.mark.parametrize("first", [None, 100_00])
async def test_one_mandate_is_charged_once(world: Dying, first: int | None) -> None:
    books = world.harness.books
    request = BindingRequest(
        operation=BINDING,
        first_charge_kopecks=first,
        purpose="Coffee club",
        expires_at=world.harness.request(OPERATION).expires_at,
    )
    with suppress(Killed):
        await world.dying.bind(request)
    made = await world.bank.bind(request)
    assert len(books.subscriptions) == 1
    books.subscribe(short_operation(BINDING))
    mandate = await world.bank.mandate_state(made.reference)
    charge = ChargeRequest(
        operation=OPERATION,
        reference=mandate.reference,
        token=mandate.token or "",
        amount_kopecks=250_00,
        purpose="Coffee club",
    )
    world.fuse.commits = 0
    with suppress(Killed):
        await world.dying.charge(charge)
    await world.bank.charge(charge)
    books.finish()
    assert (await world.bank.charge(charge)).status is ChargeStatus.PAID
    assert len(books.charges) == 1


async def test_one_payout_goes(world: Dying) -> None:
    request = RemittanceRequest(
        operation=OPERATION, phone=world.harness.phone, bank_id=world.harness.bank_id, amount_kopecks=100_00
    )
    with suppress(Killed):
        await world.dying.remit(request)
    await world.bank.remit(request)
    assert await world.harness.remitted() == 100_00
