"""A live bank whose calls never return and cannot be cancelled: everything else continues, and the process ends on
SIGTERM."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.usecases.accounts.accounts import NewAccount, set_settings
from tests.drills.receivers import Receivers
from tests.patience import FULL, drill_of, promised
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import Installation, Service, eventually

MERCHANTS = 8
EACH = 10
"""Live payments of each merchant: together more than a worker has slots."""
SLOTS = 64

BANK = '''
"""A bank in this process: well until there is a file `hangs`, and then as bad as can be."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import cambist
from cambist.ports.bank import BankCapabilities, Invoice, InvoiceState, InvoiceStatus, RefundState, RefundStatus

HERE = Path(__file__).parent


class Bank:
    name = "hanging"
    capabilities = BankCapabilities()

    async def answer(self):
        if not (HERE / "hangs").exists():
            return
        with (HERE / "calls").open("a") as calls:
            calls.write("x")
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    async def create_invoice(self, request):
        await self.answer()
        return Invoice(reference=request.operation, payload="qr", link="https://bank.example/qr", check_after=1.0)

    async def find_invoice(self, operation):
        await self.answer()
        return Invoice(reference=operation, payload="qr", link="https://bank.example/qr")

    async def invoice_state(self, reference):
        await self.answer()
        return InvoiceState(reference=reference, status=InvoiceStatus.OPEN)

    async def refund(self, request):
        await self.answer()
        return RefundState(status=RefundStatus.DONE)

    async def find_refund(self, operation):
        await self.answer()
        return None


def make(tools: cambist.Tools) -> Bank:
    return Bank()
'''


def with_bank(folder: Path) -> Installation:
    """An installation whose live bank is that one, installed as pip would leave it."""
    place = Installation(folder, banks="hanging", trusted_proxies="127.0.0.0/8")
    packages = folder / "packages"
    described = packages / "hangingbank-1.0.dist-info"
    described.mkdir(parents=True)
    (packages / "hangingbank.py").write_text(BANK)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: hangingbank\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[cambist.banks]\nhanging = hangingbank:make\n")
    place.environ["PYTHONPATH"] = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    return place


class Beside:
    """Traffic of other merchants meanwhile, in test mode."""

    def __init__(self, place: Installation, shop: Merchant, receivers: Receivers) -> None:
        self.place = place
        self.shop = shop
        self.receivers = receivers

    async def told(self) -> float:
        """Return the seconds from a payment's success to its webhook."""
        payment = await self.shop.created()
        await self.shop.simulate(payment["id"], outcome="paid")
        paid = time.monotonic()

        async def arrived() -> float | None:
            return self.receivers.arrived["0"].get(payment["id"])

        return await eventually(arrived) - paid

    async def refunded(self) -> float:
        """Return the seconds from a refund's application until the bank has it; two of them are a deliberate pause."""
        payment = await self.shop.paid()
        applied = await self.shop.ask("POST", "/refunds", key=str(uuid4()), body={"payment_id": payment["id"]})
        assert applied.status == 201, applied.text
        began = time.monotonic()

        async def is_under_way() -> bool:
            found = await self.shop.ask("GET", f"/refunds/{applied.json['id']}")
            return found.json.get("status") in ("processing", "completed")

        await eventually(is_under_way, every=0.25)
        return time.monotonic() - began


@asynccontextmanager
async def merchants(base: str, accounts: list[NewAccount], mode: str) -> AsyncIterator[list[Merchant]]:
    """Return merchants with an address each, because the limits are per address."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                merchant(base, getattr(each, mode), {"X-Forwarded-For": f"203.0.113.{number}"})
            )
            for number, each in enumerate(accounts)
        ]


async def hang(place: Installation) -> None:
    """The bank hangs from now on; returns when as many of its calls are under way as a worker has slots."""
    packages = place.folder / "packages"
    (packages / "hangs").touch()

    async def are_many() -> bool:
        calls = packages / "calls"
        return calls.exists() and calls.stat().st_size >= SLOTS

    await eventually(are_many)


async def end(service: Service) -> tuple[float, int]:
    """Send SIGTERM, and return the seconds until the end and the exit status."""
    began = time.monotonic()
    status = await asyncio.to_thread(service.terminate)
    return time.monotonic() - began, status


@pytest.mark.drill
@drill_of("tests/providers/test_bulkheads.py")
async def test_a_bank_that_hangs_takes_nothing_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receivers() as receivers:
        place = with_bank(tmp_path)
        monkeypatch.syspath_prepend(tmp_path / "packages")
        try:
            await drill(place, receivers)
        finally:
            for process in place.started:
                process.kill()


async def drill(place: Installation, receivers: Receivers) -> None:
    await place.migrate()
    accounts = await place.accounts(MERCHANTS)
    async with place.app() as ports:
        wish = {"webhook_url": receivers.shared(0), "webhook_secret": "s" * 32, "refunds": "true"}
        await set_settings(ports, accounts[0].account_id, wish)
    service, base = place.serve()
    async with merchants(base, accounts, "live") as live, merchants(base, accounts[:1], "test") as [tester]:
        beside = Beside(place, tester, receivers)
        usual = await beside.told(), await beside.refunded()
        created = {each["id"] for each in await asyncio.gather(*(shop.created() for shop in live for _ in range(EACH)))}
        await hang(place)
        began = time.monotonic()
        creating = asyncio.create_task(live[0].create())
        hanging = await beside.told(), await beside.refunded()
        assert hanging[0] < promised(5), "a letter does not wait for a bank"
        assert hanging[1] < promised(10), "nor does a refund of another mode"
        answered = None
        if FULL:
            answer = await creating
            answered = time.monotonic() - began
            assert (answer.status, answer.json["error"]["code"]) == (502, "PROVIDER_ERROR")
            assert answered < 25
            hanging = await beside.told(), await beside.refunded()
            assert hanging[1] < promised(10), "also when its calls were given up, and the next ones hang"
            creating = asyncio.create_task(live[0].create())
            await asyncio.sleep(1)
        took, status = await end(service)
        await asyncio.gather(creating, return_exceptions=True)
    assert status == 0, service.err
    assert took < promised(10)
    (place.folder / "packages" / "hangs").unlink()
    again, base = place.serve()
    async with merchants(base, accounts[:1], "test") as [tester]:
        after = await Beside(place, tester, receivers).told()
    assert again.terminate() == 0
    assert place.call("ledger", "verify").status == 0
    async with place.app() as ports, ports.storage.unit() as unit:
        refunds = await unit[Refund].find()
        assert {each.status for each in refunds} <= {RefundStatus.PROCESSING, RefundStatus.COMPLETED}
        payments = {each.id: each for each in await unit[Payment].find(limit=1000)}
    assert {payments[each].status for each in created} == {PaymentStatus.PENDING}
    assert all(payments[each].bank_reference for each in created)
    print(
        f"{len(created)} live payments at a bank that hangs: a letter after {usual[0]:.2f} s before, "
        f"{hanging[0]:.2f} s meanwhile, {after:.2f} s after; a refund in test mode {usual[1]:.1f} and "
        f"{hanging[1]:.1f} s; POST /payments answered after {answered and round(answered, 1)} s; SIGTERM ended it "
        f"within {took:.1f} s, with status {status}"
    )
