"""HTTP API of a test account's clock, for test keys only (docs/sandbox.md "The clock")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso, iso_or_none
from ...core.domain.sandbox_clock import ClockWish
from ...core.usecases.jobs import do
from ...core.usecases.sandbox.clock import ClockStanding, advance, read_clock
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class ClockView(msgspec.Struct, frozen=True, kw_only=True):
    """State of the clock. While it is `advancing` towards `to`, the counts grow; afterwards they are those of the last
    advance."""

    now: Annotated[str, Meta(description="Present time of the account")]
    advancing: Annotated[bool, Meta(description="Whether the clock is still moving")]
    to: Annotated[str | None, Meta(description="Time to which the clock moves")]
    jobs_run: Annotated[int, Meta(description="Number of jobs run while the clock moved")]
    events_emitted: Annotated[int, Meta(description="Number of the account's events created while the clock moved")]


def _view(standing: ClockStanding) -> ClockView:
    return ClockView(
        now=iso(standing.now),
        advancing=standing.target is not None,
        to=iso_or_none(standing.target),
        jobs_run=standing.jobs_run,
        events_emitted=standing.events_emitted,
    )


async def read(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer(_view(await read_clock(ports, caller)))


async def move(ports: Ports, caller: Caller, request: ApiRequest[ClockWish]) -> ASGIApp:
    return answer(_view(await advance(ports, caller, request.read(), do)))


SANDBOX_CLOCK = (
    Operation(
        "get_clock",
        "get",
        "/api/v1/sandbox/clock",
        "Sandbox",
        "Get the clock of the test account",
        read,
        answer=ClockView,
    ),
    Operation(
        "advance_clock",
        "post",
        "/api/v1/sandbox/clock/advance",
        "Sandbox",
        "Move the clock of the test account forward and run everything that becomes due",
        move,
        body=ClockWish,
        answer=ClockView,
        refusals={404: ("NOT_FOUND",), 409: ("INVALID_STATE",)},
    ),
)
