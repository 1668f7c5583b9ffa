"""The world outside the service: banks, a chain with a wallet, a market. Each keeps its own books in dictionaries,
independent of the service's; checkers compare the two.

A bank behaves as real banks do: it executes an operation once, for any number of requests at any time, and never
forgets money received. Nothing here fails by itself: faults occur on the way (links.py).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256

import msgspec

from cambist.ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
    SentRefund,
    Transfer,
)
from cambist.ports.chain import Network
from cambist.ports.faults import Refused
from cambist.ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from cambist.ports.rates import RateQuote

Now = Callable[[], datetime]
Told = Callable[[str, str], None]
"""Called with a bank's name and an operation about which the service gets a notification."""
Soon = Callable[[float, Callable[[], object]], None]
"""Calls something after so many seconds, in the world."""


@dataclass
class InvoiceRow:
    operation: str
    kopecks: int
    expires_at: datetime
    status: InvoiceStatus = InvoiceStatus.OPEN
    transfers: list[Transfer] = field(default_factory=list)


@dataclass
class Ask:
    """A request for an invoice."""

    operation: str
    at: datetime
    gave_up: datetime | None = None
    """Moment at which the caller had to report an unknown outcome."""


@dataclass
class RefundRow:
    operation: str
    invoice: str
    kopecks: int
    transfer: str | None
    at: datetime
    status: RefundStatus = RefundStatus.PROCESSING


def _kept(invoice: InvoiceRow) -> int:
    """Return the kopecks that arrived and were not taken back."""
    return sum(each.amount_kopecks for each in invoice.transfers if not each.taken_back)


class OwnBank:
    """A bank's own books. `refuses` and `ends` say what it decides about an invoice and about a refund."""

    def __init__(
        self,
        name: str,
        now: Now,
        soon: Soon,
        chance: random.Random,
        told: Told,
    ) -> None:
        self.name = name
        self.capabilities = BankCapabilities(own_lifetime=True, cancels_invoices=True, sends_notifications=True)
        self.invoices: dict[str, InvoiceRow] = {}
        self.refunds: dict[str, RefundRow] = {}
        self.asks: list[Ask] = []
        self.refusing: set[str] = set()
        """Operations that it refuses to begin, decided once."""
        self._now, self._soon, self._chance, self._told = now, soon, chance, told
        self.refuses_invoices = 0.0
        self.fails_refunds = 0.0
        self.reverses_refunds = 0.0
        self.paying_again: dict[str, list[int]] = {}
        """Kopecks that a payer sends again each time that the bank is polled about the invoice."""
        self.late_answers: set[str] = set()
        """References of which the answer is old when it comes: he paid again meanwhile."""

    def asked_for(self, operation: str) -> Ask:
        """Record that a request for an invoice began, whether it arrives here or not."""
        self.asks.append(Ask(operation, self._now()))
        return self.asks[-1]

    def gave_up(self, ask: Ask) -> None:
        """Record that the caller gave up waiting."""
        ask.gave_up = self._now()

    def create_invoice(self, request: InvoiceRequest) -> Invoice:
        row = self.invoices.get(request.operation)
        if row is None:
            if request.operation in self.refusing or self._chance.random() < self.refuses_invoices:
                self.refusing.add(request.operation)
                raise Refused("the bank takes no such invoice", reason="declined")
            row = InvoiceRow(request.operation, request.amount_kopecks, request.expires_at)
            self.invoices[request.operation] = row
        return self._invoice(row)

    def find_invoice(self, operation: str) -> Invoice | None:
        row = self.invoices.get(operation)
        return None if row is None else self._invoice(row)

    def invoice_state(self, reference: str) -> InvoiceState:
        row = self._row(reference)
        if row.status is InvoiceStatus.OPEN and self._now() >= row.expires_at:
            row.status = InvoiceStatus.EXPIRED
        if again := self.paying_again.get(row.operation):
            kopecks = again.pop()
            self.late_answers.add(reference)
            self._soon(0.0, lambda: self.pay(row.operation, kopecks))
        return InvoiceState(reference=reference, status=row.status, transfers=tuple(row.transfers))

    def cancel_invoice(self, reference: str) -> None:
        row = self._row(reference)
        if row.status is InvoiceStatus.PAID:
            raise Refused("it is paid", reason="state")
        if row.status is InvoiceStatus.OPEN:
            row.status = InvoiceStatus.CANCELLED

    def refund(self, request: RefundRequest) -> RefundState:
        row = self.refunds.get(request.operation)
        if row is None:
            row = self._begin_refund(request)
        return RefundState(status=row.status, failure="declined_by_bank" if row.status == "failed" else None)

    def _begin_refund(self, request: RefundRequest) -> RefundRow:
        invoice = self._row(request.reference)
        if not invoice.transfers:
            raise Refused("nobody paid it", reason="not_paid")
        left = _kept(invoice) - self.sent_back(invoice.operation)
        if not 0 < request.amount_kopecks <= left:
            raise Refused("so much is not left", reason="amount")
        row = RefundRow(request.operation, invoice.operation, request.amount_kopecks, request.transfer, self._now())
        self.refunds[request.operation] = row
        self._soon(self._chance.uniform(0.5, 120.0), lambda: self._end_refund(row))
        return row

    def _end_refund(self, row: RefundRow) -> None:
        failing = self._chance.random() < self.fails_refunds
        row.status = RefundStatus.FAILED if failing else RefundStatus.DONE
        self._told(self.name, row.operation)
        if not failing and self._chance.random() < self.reverses_refunds:
            self._soon(self._chance.uniform(1.0, 600.0), lambda: self._reverse(row))

    def _reverse(self, row: RefundRow) -> None:
        row.status = RefundStatus.REVERSED
        self._told(self.name, row.operation)

    def find_refund(self, operation: str) -> RefundState | None:
        row = self.refunds.get(operation)
        if row is None:
            return None
        return RefundState(status=row.status, failure="declined_by_bank" if row.status == "failed" else None)

    def refunds_since(self, moment: datetime) -> list[SentRefund]:
        return [
            SentRefund(operation=row.operation, reference=f"{self.name}:{row.invoice}", amount_kopecks=row.kopecks)
            for row in self.refunds.values()
            if row.at >= moment and row.status is not RefundStatus.FAILED
        ]

    def sent_back(self, invoice: str) -> int:
        """Kopecks of an invoice that went back, or are on their way."""
        gone = (RefundStatus.PROCESSING, RefundStatus.DONE)
        return sum(row.kopecks for row in self.refunds.values() if row.invoice == invoice and row.status in gone)

    def pay(self, operation: str, kopecks: int) -> bool:
        """A payer pays. False: there is no such invoice, or it takes no money."""
        row = self.invoices.get(operation)
        if row is None or row.status in (InvoiceStatus.CANCELLED, InvoiceStatus.FAILED):
            return False
        number = len(row.transfers) + 1
        row.transfers.append(Transfer(id=f"{operation}/{number}", amount_kopecks=kopecks, at=self._now()))
        row.status = InvoiceStatus.PAID
        self._told(self.name, operation)
        return True

    def _row(self, reference: str) -> InvoiceRow:
        row = self.invoices.get(reference.removeprefix(f"{self.name}:"))
        if row is None:
            raise Refused("there is no such invoice", reason="not_found")
        return row

    def _invoice(self, row: InvoiceRow) -> Invoice:
        link = f"https://qr.nspk.example/{row.operation}"
        return Invoice(reference=f"{self.name}:{row.operation}", payload=link, link=link)


class _Blob(msgspec.Struct, frozen=True, kw_only=True):
    operation: str
    address: str
    units: int
    expires_at: datetime
    nonce: int


@dataclass
class TransferRow:
    """A transaction as the network knows it."""

    signed: SignedTransfer
    address: str
    units: int
    included_at: datetime | None = None
    is_final: bool = False
    reorganisations: int = 0


class OwnChain:
    """A chain, and the service's wallet on it. A transfer is taken into a block until it expires, and is final some
    time after; a block can be taken back before that."""

    LIFETIME = timedelta(seconds=60)
    FINALITY = timedelta(seconds=20)

    def __init__(self, name: str, now: Now, soon: Soon, chance: random.Random, strikes: Callable[[str], bool]) -> None:
        """`strikes`: whether a fault of this kind happens now."""
        self.name = name
        self.capabilities = SenderCapabilities(network=Network.TRON, decimals=6)
        self.rows: dict[str, TransferRow] = {}
        self.signatures = 0
        self.signs_for = 0.0
        """Seconds that the wallet may take to sign, as one does that a person holds."""
        self._now, self._soon, self._chance, self._strikes = now, soon, chance, strikes

    def pause_to_sign(self) -> float:
        """Return the seconds that signing takes."""
        return self._chance.uniform(0.0, self.signs_for) if self.signs_for else 0.0

    def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        self.signatures += 1
        expires_at = self._now() + self.LIFETIME
        blob = msgspec.json.encode(
            _Blob(
                operation=operation,
                address=address,
                units=units,
                expires_at=expires_at,
                nonce=self._chance.getrandbits(48),
            )
        )
        return SignedTransfer(operation=operation, tx_hash=sha256(blob).hexdigest(), blob=blob, expires_at=expires_at)

    def broadcast(self, signed: SignedTransfer) -> None:
        body = msgspec.json.decode(signed.blob, type=_Blob)
        row = self.rows.get(signed.tx_hash)
        if row is None:
            if self._now() >= _end(signed):
                raise Refused("it has expired", reason="expired")
            row = self.rows[signed.tx_hash] = TransferRow(signed, body.address, body.units)
            self._soon(self._pause(), lambda: self._include(row))
        elif row.included_at is None and self._now() >= _end(signed):
            raise Refused("it has expired", reason="expired")

    def _pause(self) -> float:
        return self._chance.uniform(1.0, 90.0) if self._strikes("dropped") else self._chance.uniform(0.5, 5.0)

    def _include(self, row: TransferRow) -> None:
        if self._now() >= _end(row.signed):
            return  # no block takes it any more
        row.included_at = included = self._now()
        if row.reorganisations < 3 and self._strikes("reorganised"):
            self._soon(self._chance.uniform(1.0, 15.0), lambda: self._take_back(row))
        else:
            self._soon(self.FINALITY.total_seconds(), lambda: self._finish(row, included))

    def _take_back(self, row: TransferRow) -> None:
        row.included_at = None
        row.reorganisations += 1
        self._soon(self._chance.uniform(0.5, 30.0), lambda: self._include(row))

    def _finish(self, row: TransferRow, included: datetime) -> None:
        row.is_final = row.included_at == included

    def state(self, signed: SignedTransfer) -> TransferState:
        row = self.rows.get(signed.tx_hash)
        if row is not None and row.is_final:
            return TransferState.FINAL
        if row is not None and row.included_at is not None:
            return TransferState.IN_BLOCK
        # A final block is past its end, and it is in none.
        return TransferState.FAILED if self._now() >= _end(signed) + self.FINALITY else TransferState.UNSEEN

    def find(self, operation: str) -> SentTransfer | None:
        for row in self.rows.values():
            if row.signed.operation == operation and self.state(row.signed) is not TransferState.FAILED:
                return SentTransfer(signed=row.signed, address=row.address, units=row.units)
        return None

    def sent_since(self, moment: datetime) -> list[SentTransfer]:
        operations = dict.fromkeys(row.signed.operation for row in self.rows.values() if _end(row.signed) >= moment)
        found = [self.find(operation) for operation in operations]
        return [each for each in found if each is not None]

    def final(self) -> list[TransferRow]:
        """Return the final transfers."""
        return [row for row in self.rows.values() if row.is_final]


def _end(signed: SignedTransfer) -> datetime:
    assert signed.expires_at is not None  # as this chain signs them
    return signed.expires_at


class OwnMarket:
    """A price of USDT that wanders."""

    def __init__(self, name: str, now: Now, chance: random.Random) -> None:
        self.name = name
        self._now, self._chance = now, chance
        self._thousandths = 92_500

    def quote(self) -> RateQuote:
        self._thousandths += self._chance.randint(-50, 50)
        return RateQuote(rate=Decimal(self._thousandths) / 1000, at=self._now(), source=self.name)
