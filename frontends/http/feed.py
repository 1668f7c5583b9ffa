"""HTTP API of the feed of test events, which `cambist listen` follows (docs/cli.md "Commands"). Test keys only."""

import re
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso
from ...core.domain.errors import shape_error
from ...core.domain.webhooks.events import EventType
from ...core.usecases.webhooks.feed import BEGINNING, NOW, Fed, FedLetter, listening_secret, read_feed, read_types
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation, Query
from .edge.streams import Seat, WindowStreams

LONGEST_WAIT = 30
"""Longest wait of a request for an event, in seconds. It is below the idle timeouts of proxies and clients."""
_POLL = 0.5
"""Seconds between two reads of the feed while a request waits."""

_WAIT = re.compile(r"[0-9]{1,2}\Z", re.ASCII)


class LetterView(msgspec.Struct, frozen=True, kw_only=True):
    """An event with the headers of a webhook sent now. `body` is exactly the signed text."""

    cursor: Annotated[str, Meta(description="Pass it as `after` to continue")]
    id: Annotated[str, shared.ID]
    type: Annotated[str, Meta(description="Type of the event"), shared.among(EventType)]
    object_id: Annotated[str, Meta(description="Id of the payment, refund, subscription or other object of the event")]
    sequence: Annotated[
        int, Meta(description="Increases for each object: an event with a lower number than you have seen is older")
    ]
    created_at: Annotated[str, shared.CREATED_AT]
    resent: Annotated[bool, Meta(description="Whether it was resent by hand")]
    headers: Annotated[dict[str, str], Meta(description="Headers of the webhook, including signatures")]
    body: Annotated[str, Meta(description="The exact text that is signed and sent")]


class LettersView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed; continue after `cursor`."""

    data: Annotated[list[LetterView], shared.DATA]
    cursor: Annotated[str, Meta(description="Pass it as `after` to continue")]
    more: Annotated[bool, Meta(description="Whether there are more; read again at once")]
    signing_secret: Annotated[
        str | None, Meta(description="Secret that signs the events while you have no webhook secret; else null")
    ]


def _letter_view(letter: FedLetter) -> LetterView:
    event = letter.event
    return LetterView(
        cursor=letter.cursor,
        id=event.id,
        type=event.type,
        object_id=event.object_id,
        sequence=event.sequence,
        created_at=iso(event.created_at),
        resent=letter.resent,
        headers=letter.headers,
        body=letter.body.decode(),
    )


def letters_view(ports: Ports, caller: Caller, fed: Fed) -> LettersView:
    """Return the answer."""
    own = caller.account.webhook_secret is not None
    return LettersView(
        data=[_letter_view(letter) for letter in fed.letters],
        cursor=fed.cursor,
        more=fed.more,
        signing_secret=None if own else listening_secret(ports.vault, caller.account_id),
    )


def _seconds(text: str | None) -> int:
    if text is None:
        return 0
    if not _WAIT.match(text) or int(text) > LONGEST_WAIT:
        raise shape_error("wait", f"must be a whole number of seconds from 0 to {LONGEST_WAIT}")
    return int(text)


async def _next_letters(
    ports: Ports,
    streams: WindowStreams,
    address: str,
    caller: Caller,
    after: str,
    types: frozenset[EventType] | None,
    seconds: int,
) -> Fed:
    """Return the events after a cursor as soon as there are any. Return none after `seconds`, when the service stops,
    or when too many requests wait already: the client then asks again."""
    until = ports.clock.monotonic() + seconds
    fed = await read_feed(ports, caller, after, types)
    seat = Seat(page=caller.account_id, address=address)
    if not streams.is_free(seat):
        return fed
    with streams.taken(seat):
        while not fed.letters and not fed.more and after != NOW and ports.clock.monotonic() < until:
            if not await streams.pause(ports.clock, _POLL):
                break
            fed = await read_feed(ports, caller, fed.cursor, types)
    return fed


async def letters(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    query = request.query
    after, seconds, types = query.get("after", BEGINNING), _seconds(query.get("wait")), read_types(query.get("types"))
    fed = await _next_letters(ports, request.context.streams, request.address, caller, after, types, seconds)
    return answer(letters_view(ports, caller, fed))


LETTERS = (
    Operation(
        "list_letters",
        "get",
        "/api/v1/sandbox/letters",
        "Sandbox",
        "List signed test events after a cursor",
        letters,
        answer=LettersView,
        query=(
            Query("after", "A cursor, `beginning` (the default) or `now`."),
            Query("wait", "Seconds to wait for an event.", {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT}),
            Query("types", "Event types, separated by commas; all where absent."),
        ),
        refusals={404: ("NOT_FOUND",)},
    ),
)
