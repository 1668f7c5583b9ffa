"""Live updates: the page's script learns that something changed, and offers to reload the page (docs/dashboard.md "Live
pages")."""

import hashlib

from litestar import Response
from litestar.response import Stream

from ....core.domain.people.roles import PersonRight
from ....core.usecases.exports.exports import list_exports
from ....core.usecases.overview.changes import Watched, latest_change
from ....core.usecases.people.sessions import Actor, find_actor, may, require
from ...http.edge.streams import Seat, Sight, follow
from ..cookies import SESSION
from ..rows import Row
from ..texts import add
from ..web import HEADERS, Ask

_PAUSE = 3.0
"""Seconds between two reads. An open page is less urgent than a waiting payer."""

RIGHTS = {
    Watched.SETTLEMENTS: PersonRight.MONEY,
    Watched.EVENTS: PersonRight.LOGS,
    Watched.REQUESTS: PersonRight.LOGS,
}
"""Rights that a page needs beyond reading. The stream of its changes needs them, too."""

add(
    {
        "news": ("There is something new.", "Есть новое."),
        "news.show": ("Load it", "Показать"),
    }
)


async def stream(ask: Ask) -> Response[bytes] | Stream:
    """Stream a value that changes when something happens in the account. It ends with the session, and each read checks
    that the person still belongs to the account. It names no object, so the page itself decides what is shown."""
    wish = ask.query.get("about", "")
    is_of_exports = wish == "exports"
    watched = Watched(wish) if wish in [*Watched] else Watched.TRADE
    if not is_of_exports:
        ask.require_whole_account()
    if watched in RIGHTS:
        require(ask.actor, RIGHTS[watched])
    token, account, mode = ask.cookie(SESSION), ask.actor.account.id, ask.mode

    async def read() -> Sight | None:
        actor = await find_actor(ask.ports, token, is_active=False)
        if actor is None or (actor.account.id, actor.mode) != (account, mode):
            return None
        if watched in RIGHTS and not may(actor, RIGHTS[watched]):
            return None
        key = await (_own_exports(ask, actor) if is_of_exports else latest_change(ask.ports, actor.caller, watched))
        tag = hashlib.sha256(",".join(key).encode()).hexdigest()[:16]
        return Sight(wire={"news": tag}, key=key, is_final=False, pause=_PAUSE)

    seen = await read()
    seat = Seat(page=f"dashboard:{ask.actor.user.id}", address=ask.address)
    headers = {**HEADERS, "X-Accel-Buffering": "no"}
    if seen is None or not ask.site.streams.is_free(seat):
        return Response(b"", status_code=503, media_type="text/plain", headers={**headers, "Retry-After": "60"})
    if ask.request.method == "HEAD":
        return Response(b"", media_type="text/event-stream", headers=headers)
    return Stream(
        follow(ask.ports.clock, ask.site.streams, seat, seen, read), media_type="text/event-stream", headers=headers
    )


async def _own_exports(ask: Ask, actor: Actor) -> tuple[str, ...]:
    """Return a value that changes when one of the person's exports is ready or has failed."""
    return tuple([f"{each.id}:{each.status}" for each in await list_exports(ask.ports, actor)])


STREAM = (Row(method="GET", path="/stream", handler=stream, right=PersonRight.READ, is_stream=True),)
