"""What the suites ask of whoever brings an adapter: the adapter, and a hand on the world around it.

A provider's own sandbox, or a small fake of it on a local port, can play most of it. What a bench does not override is
skipped, and the run says so.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import NoReturn

import pytest

from ...adapters.clock import SystemClock
from ...ports.bank import Bank, Invoice, InvoiceRequest
from ...ports.clock import Clock
from ...ports.notifier import Notifier
from ...ports.rates import RateSource


def _unplayed(what: str) -> NoReturn:
    pytest.skip(f"this bench does not play: {what}")


class BankBench:
    """A bank that is tried. Make a fresh one for every test, with nothing in its books."""

    bank: Bank
    secrets: tuple[str, ...] = ()
    """Credentials that it was made with: none may show."""
    clock: Clock = SystemClock()
    LIFETIME = timedelta(minutes=15)

    def request(self, operation: str, kopecks: int = 100_00) -> InvoiceRequest:
        """An order of an invoice."""
        return InvoiceRequest(
            operation=operation, amount_kopecks=kopecks, purpose="Order 1", expires_at=self.clock.now() + self.LIFETIME
        )

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        """A payer pays so much for the invoice of this operation."""
        _unplayed("a payer")

    async def lose_next_answer(self, *, done: bool) -> None:
        """The next writing call gets no answer; `done`: the bank has carried it out all the same."""
        _unplayed("answers that are lost")

    async def be_away(self) -> None:
        """No connection to the bank can be made from now on."""
        _unplayed("a bank that is away")

    async def finish_refunds(self) -> None:
        """Whatever refund is in processing comes to a good end."""


class RatesBench:
    """A source of rates that is tried."""

    source: RateSource
    clock: Clock = SystemClock()

    async def say(self, rate: str) -> None:
        """The market says so from now on: RUB for 1 USDT, as its text has it."""
        _unplayed("a market")

    async def be_silent(self) -> None:
        """The market does not answer, or answers with a failure, from now on."""
        _unplayed("a market that is silent")

    def is_now(self, moment: datetime) -> bool:
        """Whether a quote of this moment is of now."""
        return abs((moment - self.clock.now()).total_seconds()) < 60

    def is_same(self, quoted: Decimal, rate: str) -> bool:
        """Whether the quote is what the market said; override it for a source that has fewer digits."""
        return quoted == Decimal(rate)


class NotifierBench:
    """A notifier that is tried."""

    notifier: Notifier
    url: str = "https://merchant.example/hook"
    """Where letters go."""

    async def received(self) -> list[bytes]:
        """The bodies that arrived, in order."""
        _unplayed("a receiver")

    async def answer(self, status: int) -> None:
        """The receiver answers so from now on. For notifiers of another kind: what stands for a good answer (200) and a
        bad one (500)."""
        _unplayed("answers of a receiver")

    async def be_away(self) -> None:
        """Nobody can be reached from now on."""
        _unplayed("a receiver that is away")
