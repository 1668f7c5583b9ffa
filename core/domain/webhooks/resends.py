"""Resends of many events, which a merchant's people start, watch and stop (docs/dashboard.md "For developers")."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from ..errors import Refusal

RESEND_RUN = "rsn_"
RESEND_MOST = 10_000
"""Most events of one run."""
RUNS_KEPT = 20
"""Runs of an account and mode that stay listed, the newest."""


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class ResendRun(msgspec.Struct, frozen=True, kw_only=True):
    """One resend of a span of time, with its progress. An account has at most one running in each mode."""

    id: str
    account_id: str
    mode: Mode
    person: str
    """Id of the person who started it."""
    low: datetime
    high: datetime
    total: int
    """Events when it started."""
    created_at: datetime
    endpoint_id: str | None = None
    """Further endpoint; None: the account's own."""
    type: str | None = None
    status: str | None = None
    """Only deliveries of this status; None: all."""
    sent: int = 0
    """Events scheduled for delivery so far."""
    slot: str | None = None
    """Account and mode while it is running: unique."""
    ended_at: datetime | None = None
    stopped: bool = False
    """Whether a person ended it early."""
    version: int = 0

    @property
    def state(self) -> RunState:
        if self.ended_at is None:
            return RunState.RUNNING
        return RunState.STOPPED if self.stopped else RunState.DONE


def slot_of(account_id: str, mode: Mode) -> str:
    """Return the slot that a running resend occupies."""
    return f"{account_id}:{mode}"


def new_run(run: ResendRun) -> ResendRun:
    """Return the run as it is stored first: without events it has ended. Raises: Refusal RESEND_TOO_LARGE."""
    if run.total > RESEND_MOST:
        details = {"events": run.total, "most": RESEND_MOST}
        text = f"The span has {run.total} events, and one resend at most {RESEND_MOST}: choose a shorter span"
        raise Refusal("RESEND_TOO_LARGE", text, details=details)
    if not run.total:
        return msgspec.structs.replace(run, ended_at=run.created_at)
    return msgspec.structs.replace(run, slot=slot_of(run.account_id, run.mode))


def advanced(run: ResendRun, sent: int, now: datetime, *, over: bool) -> ResendRun:
    """Return the run after a batch."""
    after = msgspec.structs.replace(run, sent=run.sent + sent)
    return msgspec.structs.replace(after, slot=None, ended_at=now) if over else after


def stopped(run: ResendRun, now: datetime) -> ResendRun:
    """Return the run that a person ended; events already scheduled are still sent. Raises: Refusal INVALID_STATE for a
    run that has ended."""
    if run.ended_at is not None:
        raise Refusal("INVALID_STATE", "The resend has ended already")
    return msgspec.structs.replace(run, slot=None, ended_at=now, stopped=True)


def check_span(low: datetime, high: datetime, kept: timedelta, now: datetime) -> None:
    """Check the span of a run. Raises: Refusal VALIDATION_ERROR."""
    if low >= high:
        raise Refusal("VALIDATION_ERROR", "The end must be later than the beginning")
    if high <= now - kept:
        raise Refusal("VALIDATION_ERROR", f"Events are kept for {kept.days} days: choose a later span")
