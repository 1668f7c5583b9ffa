"""A promoted server is taken over without a person only where marks prove that it lacks nothing
(docs/operations.md "Failover")."""

from datetime import UTC, datetime, timedelta

import msgspec

from cambist.core.usecases.installation.failovers import GONE_AFTER, Proof, proof
from cambist.ports.witnesses import Witness
from tests.tables import table

FORMER, PRESENT = "timeline 1", "timeline 2"
AT = datetime(2026, 11, 28, 12, tzinfo=UTC)


def before(process: str, number: int = 7, **given: object) -> Witness:
    """The mark of a process on the former server."""
    made = Witness(
        process=process,
        number=number,
        is_whole=True,
        since=FORMER,
        place=FORMER,
        marked_at=AT,
        is_synchronous=True,
    )
    return msgspec.structs.replace(made, **given)


def after(process: str, number: int = 8, **given: object) -> Witness:
    """Its mark on the promoted one."""
    named = {"place": PRESENT, "marked_at": AT + timedelta(seconds=9), **given}
    return before(process, number, **named)


A, B = before("a"), before("b")
ASYNC = {"is_synchronous": False}


@table(
    ("found", "known", "now", "overdue"),
    [
        # All that lived marked themselves there: nothing is missing.
        ([after("a"), after("b")], [A, B], Proof.COMPLETE, Proof.COMPLETE),
        ([after("a", **ASYNC), after("b", **ASYNC)], [before("a", **ASYNC), B], Proof.COMPLETE, Proof.COMPLETE),
        # Another one found a gap, whoever asks.
        ([after("a"), after("b", is_whole=False)], [A, B], Proof.NONE, Proof.NONE),
        # It is not there yet. Later it counts as dead, and only a synchronous standby has what it confirmed.
        ([after("a"), B], [A, B], Proof.OPEN, Proof.COMPLETE),
        ([after("a"), before("b", **ASYNC)], [A, B], Proof.OPEN, Proof.NONE),
        ([after("a"), B], [before("a", **ASYNC), B], Proof.OPEN, Proof.NONE),
        # Its mark is older than we saw, or missing: the server lags.
        ([after("a"), before("b", 6)], [A, B], Proof.NONE, Proof.NONE),
        ([after("a")], [A, B], Proof.NONE, Proof.NONE),
        # It ended in order, or had died before: our own last mark covers it.
        ([after("a"), before("b", **ASYNC, has_left=True)], [A, B], Proof.COMPLETE, Proof.COMPLETE),
        (
            [after("a"), before("b", **ASYNC, marked_at=AT - GONE_AFTER)],
            [A, before("b", marked_at=AT - GONE_AFTER)],
            Proof.COMPLETE,
            Proof.COMPLETE,
        ),
        # It came after the promotion, and knows nothing; neither does one that was never seen.
        ([after("a"), after("b", since=PRESENT)], [A], Proof.COMPLETE, Proof.COMPLETE),
        ([after("a"), B], [A], Proof.OPEN, Proof.COMPLETE),
        # We came after it ourselves, or have no mark from before it.
        ([after("a", since=PRESENT), B], [], Proof.OPEN, Proof.NONE),
        ([after("a"), after("b")], [], Proof.OPEN, Proof.NONE),
        # A second failover: marks of the first promoted server are no proof.
        ([after("a", place="timeline 1.5")], [A], Proof.OPEN, Proof.NONE),
    ],
)
def test_promoted_server_needs_every_mark(
    found: list[Witness], known: list[Witness], now: Proof, overdue: Proof
) -> None:
    marks = {mark.process: mark for mark in known}
    assert proof("a", PRESENT, found, marks, is_overdue=False) is now
    assert proof("a", PRESENT, found, marks, is_overdue=True) is overdue
