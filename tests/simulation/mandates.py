"""A bank at which payers bind, too: mandates and charges in books of its own."""

import random
from dataclasses import dataclass
from datetime import datetime

import msgspec

from cambist.ports.bank import InvoiceStatus, Transfer
from cambist.ports.faults import Refused
from cambist.ports.mandates import (
    MANDATE_REVOKED,
    Binding,
    BindingRequest,
    ChargeRequest,
    ChargeState,
    ChargeStatus,
    MandateState,
    MandateStatus,
)
from tests.simulation.outside import InvoiceRow, Now, OwnBank, Soon, Told


@dataclass
class MandateRow:
    operation: str
    first_kopecks: int | None
    expires_at: datetime
    token: str
    status: MandateStatus = MandateStatus.OPEN


@dataclass
class ChargeRow:
    operation: str
    mandate: str
    kopecks: int
    status: ChargeStatus = ChargeStatus.PROCESSING
    failure: str | None = None
    transfer: Transfer | None = None


class BindingBank(OwnBank):
    """A bank that records the money of a binding or a charge as an invoice of its operation, so that it can be refunded
    like any other."""

    def __init__(self, name: str, now: Now, soon: Soon, chance: random.Random, told: Told) -> None:
        super().__init__(name, now, soon, chance, told)
        self.capabilities = msgspec.structs.replace(self.capabilities, mandates=True, mandate_charges=True)
        self.mandates: dict[str, MandateRow] = {}
        self.charges: dict[str, ChargeRow] = {}
        self.fails_charges = 0.0

    def bind(self, request: BindingRequest) -> Binding:
        row = self.mandates.get(request.operation)
        if row is None:
            row = MandateRow(
                request.operation,
                request.first_charge_kopecks,
                request.expires_at,
                f"token-{self._chance.getrandbits(64):016x}",
            )
            self.mandates[request.operation] = row
        return self._binding(row)

    def find_binding(self, operation: str) -> Binding | None:
        row = self.mandates.get(operation)
        return None if row is None else self._binding(row)

    def mandate_state(self, reference: str) -> MandateState:
        row = self._mandate(reference)
        if row.status is MandateStatus.OPEN and self._now() >= row.expires_at:
            row.status = MandateStatus.CLOSED
        link, invoice = self._binding(row).link, self.invoices.get(row.operation)
        return MandateState(
            reference=reference,
            status=row.status,
            link=link,
            payload=link,
            token=row.token if row.status is MandateStatus.ACTIVE else None,
            transfers=tuple(invoice.transfers) if invoice else (),
        )

    def revoke(self, reference: str) -> None:
        row = self._mandate(reference)
        if row.status is MandateStatus.OPEN:
            row.status = MandateStatus.CLOSED
        elif row.status in (MandateStatus.ACTIVE, MandateStatus.LOST):
            row.status = MandateStatus.ENDED

    def confirm(self, operation: str) -> bool:
        """The payer binds: money and mandate come one after the other, in any order. False: it is not open."""
        row = self.mandates.get(operation)
        if row is None or row.status is not MandateStatus.OPEN or self._now() >= row.expires_at:
            return False
        halves = [self._pay_first, self._activate] if row.first_kopecks else [self._activate]
        self._chance.shuffle(halves)
        for number, half in enumerate(halves):
            self._soon(number * self._chance.choice((0.0, 1.0, 20.0)), lambda half=half: half(row))  # type: ignore[misc]
        return True

    def lose(self, reference: str) -> bool:
        """Revoke the mandate, as the payer does: the bank then rejects its token. False if there is no mandate."""
        return self._turned(reference, MandateStatus.ACTIVE, MandateStatus.LOST)

    def regain(self, reference: str) -> bool:
        """It is accepted again. False: it ended meanwhile."""
        return self._turned(reference, MandateStatus.LOST, MandateStatus.ACTIVE)

    def _turned(self, reference: str, before: MandateStatus, after: MandateStatus) -> bool:
        row = self._mandate(reference)
        if row.status is not before:
            return False
        row.status = after
        self._told(self.name, row.operation)
        return True

    def _pay_first(self, row: MandateRow) -> None:
        self._take(row.operation, row.first_kopecks or 0, row.expires_at)
        self._told(self.name, row.operation)

    def _activate(self, row: MandateRow) -> None:
        if row.status is MandateStatus.OPEN:
            row.status = MandateStatus.ACTIVE
        self._told(self.name, row.operation)

    def _take(self, operation: str, kopecks: int, expires_at: datetime) -> Transfer:
        transfer = Transfer(id=f"{operation}/1", amount_kopecks=kopecks, at=self._now())
        self.invoices[operation] = InvoiceRow(operation, kopecks, expires_at, InvoiceStatus.PAID, [transfer])
        return transfer

    def charge(self, request: ChargeRequest) -> ChargeState:
        row = self.charges.get(request.operation)
        if row is None:
            mandate = self._mandate(request.reference)
            if mandate.token != request.token:
                raise Refused("that is not its token", reason="not_found")
            row = ChargeRow(request.operation, mandate.operation, request.amount_kopecks)
            self.charges[request.operation] = row
            if mandate.status is not MandateStatus.ACTIVE:
                row.status, row.failure = ChargeStatus.FAILED, MANDATE_REVOKED
            else:
                self._soon(self._chance.uniform(0.2, 90.0), lambda: self._end_charge(row))
        return self._charge_state(row)

    def find_charge(self, operation: str) -> ChargeState | None:
        row = self.charges.get(operation)
        return None if row is None else self._charge_state(row)

    def _end_charge(self, row: ChargeRow) -> None:
        if self._chance.random() < self.fails_charges:
            row.status, row.failure = ChargeStatus.FAILED, "insufficient_funds"
        else:
            row.status, row.transfer = ChargeStatus.PAID, self._take(row.operation, row.kopecks, self._now())
        self._told(self.name, row.operation)

    def _charge_state(self, row: ChargeRow) -> ChargeState:
        return ChargeState(
            reference=f"{self.name}:{row.operation}", status=row.status, failure=row.failure, transfer=row.transfer
        )

    def _mandate(self, reference: str) -> MandateRow:
        row = self.mandates.get(reference.removeprefix(f"{self.name}:"))
        if row is None:
            raise Refused("there is no such mandate", reason="not_found")
        return row

    def _binding(self, row: MandateRow) -> Binding:
        link = f"https://qr.nspk.example/bind/{row.operation}"
        return Binding(reference=f"{self.name}:{row.operation}", link=link, payload=link)
