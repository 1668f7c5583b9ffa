"""A bank that sends RUB to people, too, and knows payers' banks that take money back."""

import random
from dataclasses import dataclass

import msgspec

from cambist.ports.faults import Refused
from cambist.ports.remittances import RemittanceRequest, RemittanceState, RemittanceStatus
from tests.simulation.mandates import BindingBank
from tests.simulation.outside import Now, Soon, Told

MOST_KOPECKS = 100_000_00
"""Maximum of one remittance."""


@dataclass
class RemittanceRow:
    operation: str
    phone: str
    kopecks: int
    status: RemittanceStatus = RemittanceStatus.PROCESSING


class RemittingBank(BindingBank):
    """A bank with remittances as separate rows; an immediate refusal leaves no row."""

    def __init__(self, name: str, now: Now, soon: Soon, chance: random.Random, told: Told) -> None:
        super().__init__(name, now, soon, chance, told)
        self.capabilities = msgspec.structs.replace(
            self.capabilities, remittances=True, remittance_max_kopecks=MOST_KOPECKS
        )
        self.remittances: dict[str, RemittanceRow] = {}
        self.overlapping: list[str] = []
        """Remittances begun while another to the same phone was in flight."""
        self.fails_remittances = 0.0

    def remit(self, request: RemittanceRequest) -> RemittanceState:
        row = self.remittances.get(request.operation)
        if row is None:
            if not 0 < request.amount_kopecks <= MOST_KOPECKS:
                raise Refused("so much does not go at once", reason="amount")
            if request.operation in self.refusing or self._chance.random() < self.fails_remittances / 2:
                self.refusing.add(request.operation)
                raise Refused("nobody has this phone there", reason="recipient")
            under_way = (each for each in self.remittances.values() if each.status is RemittanceStatus.PROCESSING)
            if any(each.phone == request.phone for each in under_way):
                self.overlapping.append(request.operation)
            row = RemittanceRow(request.operation, request.phone, request.amount_kopecks)
            self.remittances[request.operation] = row
            self._soon(self._chance.uniform(0.2, 90.0), lambda: self._end_remittance(row))
        elif (row.phone, row.kopecks) != (request.phone, request.amount_kopecks):
            raise Refused("that operation was another one", reason="operation")
        return self._remittance_state(row)

    def find_remittance(self, operation: str) -> RemittanceState | None:
        row = self.remittances.get(operation)
        return None if row is None else self._remittance_state(row)

    def _end_remittance(self, row: RemittanceRow) -> None:
        fails = self._chance.random() < self.fails_remittances
        row.status = RemittanceStatus.FAILED if fails else RemittanceStatus.DONE
        self._told(self.name, row.operation)

    def _remittance_state(self, row: RemittanceRow) -> RemittanceState:
        failure = "recipient" if row.status is RemittanceStatus.FAILED else None
        return RemittanceState(status=row.status, failure=failure)

    def take_back(self, operation: str) -> bool:
        """Let the payer's bank take back the last money of an invoice. Return False if there is none."""
        row = self.invoices.get(operation)
        if row is None or self.sent_back(operation):
            return False
        for place, transfer in reversed(list(enumerate(row.transfers))):
            if not transfer.taken_back:
                row.transfers[place] = msgspec.structs.replace(transfer, taken_back=True)
                self._told(self.name, operation)
                return True
        return False
