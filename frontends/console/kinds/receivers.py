"""Webhook receivers with failures: breakers, abandoned events, and resending them."""

from typing import Any

import msgspec

from ....core.domain import ids
from ....core.domain.webhooks.breaker import Breaker, new_breaker
from ....core.domain.webhooks.endpoints import EndpointKey, WebhookEndpoint
from ....core.domain.webhooks.events import Delivery
from ....core.usecases.accounts.accounts import storable
from ....core.usecases.browse.events import TrackedEndpoint, browse_receivers, given_up, resend_given_up, track_endpoint
from ....core.usecases.browse.timeline import Moment, read_actions
from ....core.usecases.webhooks.results import ask_now
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .events import next_probe, receiver_state
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Filter, Kind, Wish
from .wishes import wanted

_LISTED = 100


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver and its abandoned deliveries, oldest first."""

    id: str
    version: int
    account_id: str
    breaker: Breaker
    failed: tuple[Delivery, ...]
    endpoint: TrackedEndpoint

    @property
    def count(self) -> str:
        if len(self.failed) == 1:
            return "1 webhook"
        return f"{len(self.failed)}{'+' if len(self.failed) == _LISTED else ''} webhooks"


async def _read(ports: Ports, wish: Wish, after: Breaker | None, limit: int) -> list[Breaker]:
    return await browse_receivers(ports, wanted(wish), after, limit, is_open=wish.of("state") == "open")


async def _key(ports: Ports, receiver_id: str) -> EndpointKey | None:
    """Return the endpoint of a breaker's id or of an additional endpoint's id."""
    if ids.is_prefixed(ids.ENDPOINT, receiver_id):
        found = await ports.storage.get(WebhookEndpoint, receiver_id)
        return None if found is None else found.key
    try:
        return EndpointKey.of(receiver_id) if storable(receiver_id) else None
    except ValueError:
        return None


async def _get(ports: Ports, receiver_id: str) -> _Shown | None:
    key = await _key(ports, receiver_id)
    if key is None:
        return None
    breaker, endpoint = await ports.storage.get(Breaker, key.id), await track_endpoint(ports, key)
    if breaker is None and endpoint.url is None:
        return None
    # A receiver has no breaker before its first webhook.
    breaker = breaker or new_breaker(key.account_id, key.mode, key.further)
    failed = await given_up(ports, key, _LISTED)
    return _Shown(
        id=breaker.id,
        version=breaker.version,
        account_id=breaker.account_id,
        breaker=breaker,
        failed=tuple(failed),
        endpoint=endpoint,
    )


def _state(each: Breaker) -> str:
    if each.is_open:
        return "open"
    return "failing" if each.failures else "closed"


def _answer(each: Breaker) -> str | None:
    return None if each.last_answer is None else str(each.last_status or each.last_answer)


def _named(receiver_id: str) -> str:
    return EndpointKey.of(receiver_id).further or "the account's own"


def _facts(shown: _Shown) -> list[tuple[str, Any]]:
    each, endpoint = shown.breaker, shown.endpoint
    return [
        ("address", endpoint.url or "not set"),
        ("endpoint", _named(each.id)),
        ("switched off", endpoint.disabled_at),
        ("wants", "all events" if endpoint.event_types is None else ", ".join(endpoint.event_types)),
        ("breaker", _state(each)),
        ("receiver", receiver_state(each)),
        ("given up", shown.count if shown.failed else "none"),
        ("failures", each.failures or None),
        ("opened", each.opened_at),
        ("next probe", each.next_probe_at),
        ("probes", each.probes or None),
        ("last answer", _answer(each)),
        ("note", each.last_note or None),
        ("last failure", each.last_failure_at),
        ("last success", each.last_success_at),
        ("closed by hand", each.reset_at),
        ("mode", each.mode),
        ("account", each.account_id),
        (
            "others",
            ", ".join(EndpointKey.of(other).further or "the account's own" for other in endpoint.others) or None,
        ),
    ]


async def _timeline(ports: Ports, shown: _Shown) -> list[Moment]:
    """Return links to the abandoned events, and operator actions."""
    failed = [
        Moment(
            at=each.created_at,
            source="event",
            text=f"{each.type}: given up after {each.attempts}",
            detail=each.event_id,
            of="event",
            object_id=each.event_id,
        )
        for each in shown.failed
    ]
    async with ports.storage.snapshot() as seen:
        named = (shown.id, EndpointKey.of(shown.id).further)
        actions = [action for each in named if each is not None for action in await read_actions(seen, each)]
    return sorted([*failed, *actions], key=lambda moment: moment.at)


def _endpoint(each: Breaker) -> str:
    return EndpointKey.of(each.id).further or "own"


async def _resend(doing: Doing) -> str:
    count = await resend_given_up(doing.ports, EndpointKey.of(doing.record.id))
    return f"Sent again: {count}, the oldest first."


async def _ask(doing: Doing) -> str:
    await ask_now(doing.ports, EndpointKey.of(doing.record.id))
    return "It is asked now: what it answers stands above in a moment."


RECEIVERS = Kind(
    name="receiver",
    title="Receivers",
    key="R",
    columns=(
        when("last failure", lambda each: each.last_failure_at),
        Column(title="breaker", cell=_state, width=7),
        Column(title="answer", cell=_answer, width=10),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="endpoint", cell=_endpoint, width=20, broad=39, ends=True, wide=True),
        when("next probe", lambda each: each.next_probe_at),
        merchant(14, 24),
        Column(title="last success", cell=lambda each: each.last_success_at, width=19, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(Filter(name="state", choices=("open",)), MODE, ACCOUNT),
    orders=("last failure first",),
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="receiver.ask",
            title="Ask now",
            key="a",
            allowed=lambda each: each.breaker.is_open,
            changes=lambda each: [
                Change("next probe", next_probe(each.breaker), "now, with the oldest webhook that waits"),
                Change("if it answers", "-", "all that waits is sent, the oldest first"),
            ],
            run=_ask,
            guarded=False,
        ),
        ConsoleAction(
            name="event.resend",
            title="Send again what was given up",
            key="s",
            allowed=lambda each: bool(each.failed),
            changes=lambda each: [
                Change("given up", each.count, "none"),
                Change("they are", "failed", "pending, at once; same ids and bodies"),
            ],
            run=_resend,
            guarded=False,
        ),
    ),
)
