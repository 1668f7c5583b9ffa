"""The verifier of end clients, with checks in its own books. It approves a person, refuses, or asks for another
attempt; monitoring may revoke an approval at once or years later."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cambist.ports.faults import Refused
from cambist.ports.kyc import Check, CheckRequest, CheckStatus, DocumentState, Purpose
from tests.simulation.outside import Now, Soon, Told

_NEEDED = {Purpose.SELFIE, Purpose.DOCUMENT}


class Verdict(StrEnum):
    """Result of one check by the verifier."""

    GREEN = "green"
    RED = "red"
    RETRY = "retry"
    """Something is not readable. With a form: once more, in the same check; with documents it is refused."""
    REVOKED = "revoked"
    """Green, and taken back by monitoring some minutes later."""


@dataclass
class CheckRow:
    operation: str
    phone: str
    redirect: bool
    status: CheckStatus
    level: int = 0
    passport: DocumentState | None = None
    began: int = 0
    """Number of reviews that began."""
    was_green: bool = False
    revoked_at: datetime | None = None
    beside: bool = False
    """It was begun while another one of the same person was not refused."""


class OwnVerifier:
    """A verifier's own books."""

    def __init__(self, name: str, now: Now, soon: Soon, chance: random.Random, told: Told) -> None:
        self.name = name
        self.checks: dict[str, CheckRow] = {}
        self.verdicts: dict[str, list[Verdict]] = {}
        """Results of the checks by phone, in order; after the last one, and for other phones, green. A trusted phone is
        green from registration."""
        self.trusted: set[str] = set()
        self._now, self._soon, self._chance, self._told = now, soon, chance, told

    def expect(self, verdicts: Mapping[str, list[Verdict]]) -> None:
        """Set the future results by phone."""
        self.verdicts.update({phone: list(found) for phone, found in verdicts.items()})

    def register(self, request: CheckRequest) -> Check:
        row = self.checks.get(request.operation)
        if row is None:
            given = {document.purpose for document in request.documents}
            whole = bool(request.email and request.user_type) if request.redirect else given >= _NEEDED
            if not whole and request.phone not in self.trusted:
                raise Refused("more is needed", reason="incomplete")
            first = CheckStatus.FORM if request.redirect else CheckStatus.PROCESSING
            beside = any(
                each.phone == request.phone and each.status is not CheckStatus.FAILED for each in self.checks.values()
            )
            row = CheckRow(request.operation, request.phone, request.redirect, first, beside=beside)
            self.checks[request.operation] = row
            if request.phone in self.trusted:
                self._find(row, Verdict.GREEN)
            elif first is CheckStatus.PROCESSING:
                self._soon(self._chance.uniform(1.0, 400.0), lambda: self._look(row))
        return self._check(row)

    def find_check(self, operation: str) -> Check | None:
        row = self.checks.get(operation)
        return None if row is None else self._check(row)

    def check_state(self, reference: str) -> Check:
        row = self.checks.get(reference.removeprefix("applicant-"))
        if row is None:
            raise Refused("there is no such check", reason="not_found")
        return self._check(row)

    def fill_in(self, phone: str) -> bool:
        """Fill in the form as the person. False if the person has no form."""
        waiting = [row for row in self.checks.values() if row.phone == phone and row.status is CheckStatus.FORM]
        for row in waiting:
            row.status = CheckStatus.PROCESSING
            self._told(self.name, row.operation)
            self._soon(self._chance.uniform(1.0, 400.0), lambda row=row: self._look(row))  # type: ignore[misc]
        return bool(waiting)

    def _look(self, row: CheckRow) -> None:
        left = self.verdicts.get(row.phone, [])
        self._find(row, left.pop(0) if left else Verdict.GREEN)
        self._told(self.name, row.operation)

    def _find(self, row: CheckRow, verdict: Verdict) -> None:
        row.began += 1
        if verdict is Verdict.RETRY and row.redirect:
            row.status = CheckStatus.FORM
        elif verdict in (Verdict.RED, Verdict.RETRY):
            row.status, row.passport = CheckStatus.FAILED, DocumentState.FAILED
        else:
            row.status, row.passport, row.level = CheckStatus.VERIFIED, DocumentState.PASSED, 1
            row.was_green = True
        if verdict is Verdict.REVOKED:
            self._soon(self._chance.uniform(60.0, 2000.0), lambda: self._revoke(row))

    def _revoke(self, row: CheckRow) -> None:
        row.status, row.passport, row.level = CheckStatus.FAILED, DocumentState.FAILED, 0
        row.revoked_at = self._now()
        self._told(self.name, row.operation)

    def _check(self, row: CheckRow) -> Check:
        return Check(
            reference=f"applicant-{row.operation}",
            status=row.status,
            form_url=f"https://verifier.example/{row.operation}" if row.status is CheckStatus.FORM else None,
            level=row.level,
            passport=row.passport,
        )
