"""A simulated identity verifier. Its results come from simulated events; by default everybody is verified.

Its checks are stored in the storage, so they survive a restart. It has no timers: each call derives the check's status
from the stored check and the clock. It stores no phone, no e-mail and no document.
"""

import binascii
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ...ports.clock import Clock
from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.kyc import Check, CheckNotification, CheckRequest, CheckStatus, DocumentState, NoAnswer, Purpose, Verdict
from ...ports.operation_log import OperationLog
from ...ports.storage import Storage
from ..script import UNKNOWN, Ending, Twist, VerifierScript, begin_write, end_write, fault, spoken

TAKES = timedelta(seconds=5)
"""Time until an undecided check is verified by itself."""


class CheckFile(msgspec.Struct, frozen=True, kw_only=True):
    """State of one check: the current status, and the status from `decides_at` on."""

    status: CheckStatus
    passport: DocumentState | None = None
    address: DocumentState | None = None
    with_address: bool = False
    decides_at: datetime | None = None
    """None: the status stays."""
    then: CheckStatus = CheckStatus.VERIFIED
    then_passport: DocumentState | None = None
    then_address: DocumentState | None = None


def as_of(file: CheckFile, now: datetime) -> CheckFile:
    """Return the check's state at this moment."""
    if file.decides_at is None or file.decides_at > now:
        return file
    return decided(file, file.then, file.then_passport, file.then_address)


def decided(
    file: CheckFile, status: CheckStatus, passport: DocumentState | None, address: DocumentState | None
) -> CheckFile:
    """Apply a result to the check. Documents without an explicit result get the matching one."""
    if status is CheckStatus.VERIFIED:
        passport = passport or DocumentState.PASSED
        address = address or (DocumentState.PASSED if file.with_address else None)
    elif status is CheckStatus.FAILED and address is not DocumentState.FAILED:
        passport = passport or DocumentState.FAILED
    return msgspec.structs.replace(file, status=status, passport=passport, address=address, decides_at=None)


class SimulatedVerifier:
    """Implement the ports KycVerifier and VerifierSimulator. The reference of a check is the id of its note."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        *,
        script: VerifierScript | None = None,
        form_base: str = "https://kyc.example/form",
        takes: timedelta = TAKES,
    ) -> None:
        """`form_base` is the start of form addresses in the redirect flow; `takes` is the time until an undecided check
        is verified."""
        self._files = OperationLog(name, CheckFile, storage, clock)
        self._clock = clock
        self._form_base = form_base
        self._takes = takes
        self.script = script or VerifierScript()
        self.away = False
        """While true, every call is Unavailable."""

    @property
    def name(self) -> str:
        """Name from the constructor. It is part of every note's id."""
        return self._files.provider

    async def register(self, request: CheckRequest) -> Check:
        """Begin a check, or return the state of this operation's check.

        Raises: Refused (`incomplete`) if a selfie and a document, or an e-mail and a user type, are missing;
        OutcomeUnknown also when the storage lost its answer; any error that the script sets.
        """
        self._must_be_there()
        twist = await begin_write(self._clock, self.script.register)
        file = await self._begin(request)
        await end_write(self._clock, twist)
        return self._check(request.operation, file)

    async def find_check(self, operation: str) -> Check | None:
        """Return the check of this operation, or None. Raises: errors that the script sets."""
        await self._answer_read(self.script.find)
        file = await self._files.read(operation)
        return None if file is None else self._check(operation, file)

    async def check_state(self, reference: str) -> Check:
        """Return the state of the check. Raises: Refused if no check has this reference; errors that the script
        sets."""
        await self._answer_read(self.script.state)
        operation = reference.removeprefix(self._files.page_id(""))
        file = await self._files.read(operation)
        if file is None:
            raise Refused(f"{self.name} has no check {reference}", reason="not_found")
        return self._check(operation, file)

    async def simulate(self, operation: str, verdict: Verdict) -> Sequence[CheckNotification]:
        """Apply a simulated decision to the check, and return the notifications that the verifier sends: one, none when
        silent, two when doubled. Another decision may follow each one, as with real verifiers."""
        now = self._clock.now()

        def processing(file: CheckFile) -> CheckFile:
            file = as_of(file, now)
            if verdict.decides_at is None or verdict.decides_at <= now:
                return decided(file, verdict.status, verdict.passport, verdict.address)
            return msgspec.structs.replace(
                file,
                decides_at=verdict.decides_at,
                then=verdict.status,
                then_passport=verdict.passport,
                then_address=verdict.address,
            )

        if await self._files.change(operation, processing) is None:
            await self._files.put(operation, processing(CheckFile(status=CheckStatus.PROCESSING)))
        if verdict.silent:
            return ()
        return (CheckNotification(operation=operation),) * (2 if verdict.doubled else 1)

    async def _begin(self, request: CheckRequest) -> CheckFile:
        present = await self._files.read(request.operation)
        if present is not None:
            return present
        purposes = {document.purpose for document in request.documents}
        if request.redirect:
            whole = request.email is not None and request.user_type is not None
        else:
            whole = {Purpose.SELFIE, Purpose.DOCUMENT} <= purposes
        if not whole:
            raise Refused(f"{self.name} needs more to begin a check", reason="incomplete")
        file = CheckFile(
            status=CheckStatus.FORM if request.redirect else CheckStatus.PROCESSING,
            with_address=Purpose.ADDRESS in purposes,
            decides_at=self._clock.now() + self._takes,
        )
        try:
            file, _ = await self._files.start(request.operation, file)
        except Unavailable as lost:
            raise OutcomeUnknown("the verifier's files did not answer") from lost
        return file

    async def _answer_read(self, twists: deque[Twist]) -> None:
        self._must_be_there()
        twist = await spoken(self._clock, twists)
        if twist.ending in UNKNOWN:
            raise NoAnswer("silent by the script")
        if twist.ending is not Ending.NORMAL:
            raise fault(twist, is_read=True)

    def _must_be_there(self) -> None:
        if self.away:
            raise Unavailable("the simulated verifier is away")

    def _check(self, operation: str, stored: CheckFile) -> Check:
        now = self._clock.now()
        file = as_of(stored, now)
        verified = file.status is CheckStatus.VERIFIED
        waits = None if file.decides_at is None else (file.decides_at - now).total_seconds()
        return Check(
            reference=self._files.page_id(operation),
            status=file.status,
            form_url=f"{self._form_base}/{operation}" if file.status is CheckStatus.FORM else None,
            account_number=_number(operation) if verified else None,
            level=0 if not verified else 2 if file.address is DocumentState.PASSED else 1,
            passport=file.passport,
            address=file.address,
            check_after=waits,
        )


def _number(operation: str) -> str:
    """Return a number in the form of an account number, always the same for the same check."""
    return f"40817810{binascii.crc32(operation.encode()):012d}"
