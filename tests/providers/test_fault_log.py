"""Faults of providers are logged once a minute for each kind (docs/operations.md "Logs")."""

import logging

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.frontends.layers.guard.fault_log import FaultLog
from cambist.ports.faults import (
    BulkheadFull,
    Fault,
    Held,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from tests.quiesce import at_rest

ASKED = "bank theirs: create_invoice"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(settle=at_rest)


@pytest.mark.parametrize(
    ("fault", "level"),
    [
        (Unavailable("no route"), "WARNING"),
        (OutcomeUnknown("cut off"), "WARNING"),
        (NotConfigured("set THE_TOKEN"), "ERROR"),
        (Refused("too much", reason="amount"), "INFO"),
        (NotSupported("no refunds"), None),
        (BulkheadFull("full"), None),
        (Held("a copy"), None),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else None,
)
def test_each_fault_is_logged_at_its_level(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture, fault: Fault, level: str | None
) -> None:
    caplog.set_level(logging.INFO, "cambist.providers")
    FaultLog(clock).tell(ASKED, fault)
    assert [each.levelname for each in caplog.records] == ([] if level is None else [level])
    assert all(ASKED in each.message and str(fault) in each.message for each in caplog.records)


async def test_one_line_a_minute_says_how_many_there_were(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    told = FaultLog(clock)
    for _ in range(5):
        told.tell(ASKED, Unavailable("no route"))
        told.tell("bank theirs: invoice_state", Unavailable("no route"))
    await clock.advance(59)
    told.tell(ASKED, Unavailable("no route"))
    assert len(caplog.records) == 2, "each operation by itself"
    await clock.advance(1)
    told.tell(ASKED, Unavailable("another word"))
    assert caplog.records[-1].message == f"{ASKED}: Unavailable: another word (5 more since the last line)"


def test_a_providers_words_are_cut(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    FaultLog(clock).tell(ASKED, Unavailable("x" * 5000))
    assert len(caplog.records[0].message) < 400
