"""The clock of a test account over HTTP, for test keys only (docs/sandbox.md "The clock")."""

import msgspec
from litestar import Response, get, post

from ...core.domain.days import iso, iso_or_none
from ...core.domain.sandbox_clock import ClockWish
from ...core.usecases.jobs import do
from ...core.usecases.sandbox.clock import ClockStanding, advance, read_clock
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import body_reader
from .door.routing import Router


class ClockView(msgspec.Struct, frozen=True, kw_only=True):
    """How the clock stands. While it is `advancing`, towards `to`, the counts grow; then they are those of the last
    advance."""

    now: str
    advancing: bool
    to: str | None
    jobs_run: int
    events_emitted: int


def sandbox_clock_router(ports: Ports) -> Router:
    """GET /sandbox/clock, POST /sandbox/clock/advance."""

    @get("/")
    async def read(request: ApiRequest) -> Response[bytes]:
        return answer(_view(await read_clock(ports, request.auth)))

    @post("/advance", status_code=200)
    async def move(request: ApiRequest) -> Response[bytes]:
        wish = (await body_reader(request, ClockWish))()
        return answer(_view(await advance(ports, request.auth, wish, do)))

    return Router("/sandbox/clock", route_handlers=[read, move], guards=[require_test_mode])


def _view(standing: ClockStanding) -> ClockView:
    return ClockView(
        now=iso(standing.now),
        advancing=standing.target is not None,
        to=iso_or_none(standing.target),
        jobs_run=standing.jobs_run,
        events_emitted=standing.events_emitted,
    )
