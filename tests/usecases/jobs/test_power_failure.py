"""The machine fails after a creation was answered. At a polled bank only the first unit of a payment is on disk by then
(ports/storage.py: Unit.commit). The payment returns with the link that the merchant has, and never with a second
invoice (ARCHITECTURE.md "Three outcomes")."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Script
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.usecases.accounts.accounts import NewAccount, create_account
from cambist.core.usecases.common.idempotency import Made
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.payments.opening import FIRST_POLL
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.notes import ProviderNote
from tests.apps import Postman, TestApp
from tests.invariants import check_books
from tests.power_failure import Image
from tests.quiesce import at_rest

KEY = str(UUID(int=7))
AT_THE_BANK, OPENED = 1, 2
"""Units written after the first one: the bank's page, and the bank's answer."""


class Machine:
    """A service on one file. It is started, and fails, as often as the test wants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = Settings(data_dir=folder, base_url="https://pay.example", test_banks=("simulator-asked",))
        self._clock = VirtualClock(settle=at_rest)
        self._starts = 0
        self._account: NewAccount | None = None

    @asynccontextmanager
    async def on(self) -> AsyncIterator[TestApp]:
        """A new process."""
        self._starts += 1
        ids, postman, script = SeededIds(self._starts), Postman(), Script()
        await migrate(self._settings)
        async with open_app(self._settings, clock=self._clock, ids=ids, notifier=postman, script=script) as app:
            self._account = self._account or await create_account(app.ports, "Merchant")
            client: Any = None
            yield TestApp(app.ports, self._clock, postman, script, client, self._account)

    async def answer(self) -> tuple[Payment, Image]:
        """Create a payment. Return it, and the disk at that moment."""
        async with self.on() as app:
            made = await create(app)
            return made.resource, Image(self._folder / "cambist.db")


async def create(app: TestApp) -> Made[Payment]:
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="svc_test_1")
    return await create_payment(app.ports, caller, KEY, lambda: PaymentOrder(amount_rub="100.00"))


async def invoices(app: TestApp) -> list[str]:
    async with app.ports.storage.unit() as unit:
        return [note.id for note in await unit[ProviderNote].find(provider="simulator-asked-test")]


def at_bank(payment: Payment) -> tuple[Any, ...]:
    return payment.bank, payment.bank_reference, payment.qr_payload, payment.bank_link, payment.expires_at


@pytest.fixture
async def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def test_a_creation_is_three_commits_the_first_of_which_is_on_disk(machine: Machine) -> None:
    """The other tests cut off exactly the units that need not be on disk."""
    _, image = await machine.answer()
    found = []
    for length in image.commits[-3:]:
        image.put_back(length)
        async with machine.on() as app:
            async with app.ports.storage.unit() as unit:
                [payment] = await unit[Payment].find()
            found.append((len(await invoices(app)), payment.opening))
    assert found == [(0, Opening.ASKING), (1, Opening.ASKING), (1, Opening.OPEN)]


@pytest.mark.parametrize("kept", [0, AT_THE_BANK, OPENED])
async def test_the_payment_comes_back_with_its_link_and_one_invoice(machine: Machine, kept: int) -> None:
    answered, image = await machine.answer()
    image.put_back(image.commits[kept - 3])
    async with machine.on() as app:
        await app.work(FIRST_POLL.total_seconds() + LEASE)
        present = await app.payment(answered.id)
        assert (present.status, present.opening) == (PaymentStatus.PENDING, Opening.OPEN)
        assert at_bank(present) == at_bank(answered)
        assert await invoices(app) == [answered.bank_reference]
        again = await create(app)
        assert again.replayed
        assert at_bank(again.resource) == at_bank(answered)
        paid = await simulate_payment(app.ports, present, Simulation(status=InvoiceStatus.PAID))
        assert (paid.status, paid.sequence) == (PaymentStatus.PAID, 1)
        await app.work(LEASE)
        await check_books(app.ports)


@pytest.mark.parametrize("kept", [AT_THE_BANK, OPENED])
async def test_a_payment_that_is_paid_before_it_was_found_again_is_paid_once(machine: Machine, kept: int) -> None:
    """The bank's notification finds the invoice as the watch would."""
    answered, image = await machine.answer()
    image.put_back(image.commits[kept - 3])
    async with machine.on() as app:
        present = await app.payment(answered.id)
        paid = await simulate_payment(app.ports, present, Simulation(status=InvoiceStatus.PAID, doubled=True))
        assert paid.status is PaymentStatus.PAID
        assert at_bank(paid) == at_bank(answered)
        await app.work(FIRST_POLL.total_seconds() + LEASE)
        present = await app.payment(answered.id)
        assert (present.status, present.sequence) == (PaymentStatus.PAID, 1)
        assert await invoices(app) == [answered.bank_reference]
        await check_books(app.ports)
