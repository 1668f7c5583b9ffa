"""POST /api/v1/notices/{adapter}/{secret}: receives provider notifications about payments, refunds and checks
(docs/adapters.md "Notifications").

It is not an operation for merchants: it has no keys and accepts any bytes, and the secret in the path identifies the
provider. The adapter chooses the answer, which is sent after the notification is stored. A refusal is a status without
a body.
"""

import asyncio
import logging
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request, post
from litestar.params import FromPath
from litestar.types import ASGIApp

from ...core.domain.accounts.rate_limit import Network, client_address, is_among
from ...core.usecases.accounts.rate_limits import NOTIFICATIONS, NOTIFICATIONS_PER_MINUTE, admit_stranger
from ...core.usecases.notification_addresses import is_address
from ...core.usecases.notification_intake import Taken, take_notification
from ...ports.bundle import Ports
from ...ports.faults import Fault, Forged
from ...ports.notifications import InboundNotification
from ...ports.vault import VaultError
from ..layers.guard.asker import present_asker
from ..telemetry.requests import RequestWatch
from .edge.answers import Answer
from .edge.errors import endpoint_not_found, refused
from .edge.headers import headers_of
from .edge.origin import origin
from .edge.routing import Router

LIMIT = 65_536
"""Largest body, in bytes."""
WITHIN = 8.0
"""Seconds to accept a notification: providers give up after 10."""
_TELL_EVERY = 60.0
"""Seconds between two log lines about one adapter and one outcome."""
_FIELDS = 1000
"""Largest number of fields in a query."""

log = logging.getLogger("cambist.notifications")


class NotificationEndpoint:
    """Receiver of provider notifications for one application."""

    def __init__(
        self,
        ports: Ports,
        watch: RequestWatch,
        trusted_proxies: Sequence[Network] = (),
        per_minute: int = NOTIFICATIONS_PER_MINUTE,
    ) -> None:
        self._ports = ports
        self._watch = watch
        self._trusted = trusted_proxies
        self._per_minute = per_minute
        self._told: dict[tuple[str, str], float] = {}
        self._under_way: set[asyncio.Task[Taken]] = set()

    async def answer(self, request: Request[Any, Any, Any], adapter: str, secret: str) -> Answer:
        """Return the answer to a notification from a provider, or from a sender that claims to be one."""
        networks = self._ports.notification_networks.get(adapter)
        known = "none" if networks is None else adapter
        found = await admit_stranger(self._ports, NOTIFICATIONS, origin(request, self._trusted), self._per_minute)
        if found.over:
            self._watch.hits.add(NOTIFICATIONS, found.minute)
            self._count(known, "limited")
            return Answer(b"", 429, ((b"retry-after", b"%d" % found.wait),), b"text/plain")
        try:
            if networks is None or not await is_address(self._ports, adapter, secret):
                self._tell(known, "wrong_secret", "whoever posted it does not know the address")
                return refused(endpoint_not_found())
        except (Fault, VaultError) as fault:
            self._tell(known, "failed", str(fault))
            return _refusal(503)
        address = self._address(request)
        if networks and (not address or not is_among(ip_address(address), networks)):
            self._tell(adapter, "wrong_network", f"it came from {address or 'an unknown address'}")
            return _refusal(403)
        body = await request.body()
        if len(body) > LIMIT:
            self._tell(adapter, "too_large", f"it is over {LIMIT} bytes")
            return _refusal(413)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers_of(request.scope).items()}
        return await self._hear(
            adapter, InboundNotification(headers=headers, body=body, query=_query(request), address=address)
        )

    async def _hear(self, adapter: str, notification: InboundNotification) -> Answer:
        try:
            taken = await self._in_time(adapter, notification)
        except Forged as forged:
            self._tell(adapter, "forged", str(forged))
            return _refusal(403)
        except (Fault, VaultError) as fault:
            self._tell(adapter, "failed", str(fault))
            return _refusal(503)
        if taken is None:
            self._tell(adapter, "late", f"it could not be taken within {WITHIN:.0f} s")
            return _refusal(503)
        self._count(adapter, "heard" if taken.named else "nothing")
        self._count_operations(adapter, taken)
        said = taken.answer
        return Answer(said.body, said.status, (), said.content_type.encode())

    async def _in_time(self, adapter: str, notification: InboundNotification) -> Taken | None:
        """Process the notification within the time limit. Return None when the limit expires. The write then continues
        in the background: it succeeds or fails as a whole, and the provider repeats the notification."""
        clock = self._ports.clock
        asker = present_asker()
        if asker is not None:
            asker.until = clock.monotonic() + WITHIN
        task = asyncio.ensure_future(take_notification(self._ports, adapter, notification))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        ended = asyncio.Event()
        task.add_done_callback(lambda _: ended.set())
        alarm = clock.call_later(WITHIN, ended.set)
        try:
            await ended.wait()
        finally:
            alarm.cancel()
        return task.result() if task.done() else None

    def _ended(self, task: "asyncio.Task[Taken]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # The exception is reported where a caller still waits for it.

    def _address(self, request: Request[Any, Any, Any]) -> str:
        client, forwarded = request.scope.get("client"), headers_of(request.scope).get(b"x-forwarded-for")
        told = None if forwarded is None else forwarded.decode("latin-1")
        found = client_address(client[0] if client else None, told, self._trusted)
        return "" if found is None else str(found)

    def _tell(self, adapter: str, outcome: str, why: str) -> None:
        """Count a refused notification, and log it once a minute."""
        self._count(adapter, outcome)
        now = self._ports.clock.monotonic()
        last = self._told.get((adapter, outcome))
        if last is None or now >= last + _TELL_EVERY:
            self._told[adapter, outcome] = now
            log.warning("a notification for %s was not taken (%s): %s", adapter, outcome, why)

    def _count(self, adapter: str, outcome: str) -> None:
        if self._watch.telemetry is not None:
            self._watch.telemetry.counters.notifications.add(adapter, outcome)

    def _count_operations(self, adapter: str, taken: Taken) -> None:
        if self._watch.telemetry is None:
            return
        counter = self._watch.telemetry.counters.notification_operations
        for outcome, times in (("asked_about", taken.named), ("ignored", taken.ignored)):
            if times:
                counter.add(adapter, outcome, times=times)


def notifications_router(edge: NotificationEndpoint) -> Router:
    """Return the router of POST /api/v1/notices/{adapter}/{secret}."""

    @post("/{adapter:str}/{secret:str}", status_code=200, include_in_schema=False)
    async def take(request: Request[Any, Any, Any], adapter: FromPath[str], secret: FromPath[str]) -> ASGIApp:
        return await edge.answer(request, adapter, secret)

    return Router("/api/v1/notices", route_handlers=[take])


def _query(request: Request[Any, Any, Any]) -> dict[str, str]:
    text = request.scope.get("query_string", b"").decode("latin-1")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError:
        return {}


def _refusal(status: int) -> Answer:
    return Answer(b"", status, (), b"text/plain")
