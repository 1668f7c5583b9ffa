"""Webhook endpoints: the account's own, which the operator sets, and further ones, which the merchant creates
(docs/webhooks.md "Further endpoints")."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Account, EndpointRef, Mode
from ..errors import Refusal, shape_error
from ..shapes import has_control
from ..web_addresses import is_web_address, web_address_fault
from .breaker import endpoint_id
from .events import Delivery, DeliveryStatus, EndpointDelivery, EventType
from .static_headers import StaticHeaders, read_static_headers, with_authorization, without_credentials
from .wanted import read_wanted, untaken

MOST = 5
"""Endpoints that an account may have in each mode, including its own."""

SECRET_OVERLAP_HOURS = 24
"""How long a replaced secret still signs in addition to the new one."""

DESCRIPTION_LONGEST = 256

ALL = "*"
"""Stands for all types, including future ones."""


class WebhookEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A further endpoint of one mode. Its secrets are encrypted; `previous_secret` signs in addition to the new one
    until it expires."""

    id: str
    account_id: str
    mode: Mode
    url: str
    event_types: tuple[str, ...] | None
    """Types of events that it receives; None: all."""
    description: str | None
    secret: bytes
    created_at: datetime
    previous_secret: bytes | None = None
    previous_secret_until: datetime | None = None
    disabled_at: datetime | None = None
    """When it was switched off; None: it is on."""
    headers: bytes | None = None
    """Its static headers, encrypted; None without any."""
    header_names: tuple[str, ...] | None = None
    """Names of these headers."""
    version: int = 0

    @property
    def enabled(self) -> bool:
        """Whether events are sent to it; otherwise they wait as `held`."""
        return self.disabled_at is None

    @property
    def key(self) -> "EndpointKey":
        return EndpointKey(self.account_id, self.mode, self.id)

    @property
    def ref(self) -> EndpointRef:
        """Its summary in the account's record."""
        return EndpointRef(id=self.id, mode=self.mode, event_types=self.event_types, enabled=self.enabled)

    @property
    def receiver(self) -> "Receiver":
        return Receiver(self.id, self.url, self.secret, self.previous_secret, self.previous_secret_until, self.headers)


class EndpointKey(msgspec.Struct, frozen=True):
    """Key of one endpoint of an account, in one mode."""

    account_id: str
    mode: Mode
    further: str | None = None
    """Id of a further endpoint; None: the account's own."""

    @classmethod
    def of(cls, text: str) -> "EndpointKey":
        """Parse an `id`. Raises: ValueError."""
        account_id, _, rest = text.rpartition(":")
        mode, _, further = rest.partition("/")
        return cls(account_id, Mode(mode), further or None)

    @classmethod
    def to(cls, delivery: Delivery) -> "EndpointKey":
        """Return the endpoint of this delivery."""
        further = delivery.endpoint_id if isinstance(delivery, EndpointDelivery) else None
        return cls(delivery.account_id, delivery.mode, further)

    @property
    def id(self) -> str:
        """Id of its breaker and of its sending job."""
        return endpoint_id(self.account_id, self.mode, self.further)

    @property
    def deliveries(self) -> type[Delivery]:
        """Record type of its deliveries."""
        return Delivery if self.further is None else EndpointDelivery

    def of_status(self, status: DeliveryStatus, **more: Any) -> dict[str, Any]:
        """Return criteria for its deliveries of a status."""
        if self.further is not None:
            return {"endpoint_id": self.further, "status": status, **more}
        return {"account_id": self.account_id, "mode": self.mode, "status": status, **more}

    def pending(self, **due: Any) -> dict[str, Any]:
        """Return criteria for its pending deliveries."""
        return self.of_status(DeliveryStatus.PENDING, **due)


class Receiver(msgspec.Struct, frozen=True):
    """Address of an endpoint's webhooks, and the secrets that sign them."""

    holder: str
    """Id of the record with the secrets: an account, or a further endpoint."""
    url: str
    secret: bytes
    """Encrypted, like the previous one."""
    previous_secret: bytes | None = None
    previous_until: datetime | None = None
    headers: bytes | None = None
    """Static headers, encrypted."""


def own_receiver(account: Account | None) -> Receiver | None:
    """Return the receiver of the account's own endpoint; None while it has none."""
    if account is None or account.webhook_secret is None or account.settings.webhook_url is None:
        return None
    return Receiver(
        account.id,
        account.settings.webhook_url,
        account.webhook_secret,
        account.previous_secret,
        account.previous_secret_until,
        account.webhook_headers,
    )


class EndpointOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /webhook-endpoints."""

    url: Annotated[
        str, Meta(description="Address for webhooks; https in live mode"), shared.limits(format="uri", maxLength=2048)
    ]
    event_types: Annotated[
        list[Annotated[str, shared.among((ALL, *EventType))]] | None,
        Meta(
            description="Types of events to send; absent, or with `*` in the list: all. Every event about money needs "
            "an endpoint"
        ),
    ] = None
    description: Annotated[
        Annotated[str, shared.limits(maxLength=DESCRIPTION_LONGEST)] | None,
        Meta(description="Your own note, at most 256 characters"),
    ] = None
    headers: Annotated[
        StaticHeaders | None,
        Meta(description="Your own headers, sent with every webhook, such as `Authorization`; at most 10"),
    ] = None


class EndpointPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH /webhook-endpoints/{id}: absent or null fields stay unchanged; an empty description removes
    it. `headers` replaces all static headers, and an empty object removes them."""

    url: Annotated[
        Annotated[str, shared.limits(format="uri", maxLength=2048)] | None,
        Meta(description="New address; https in live mode; a change closes the breaker"),
    ] = None
    event_types: Annotated[
        list[Annotated[str, shared.among((ALL, *EventType))]] | None,
        Meta(description="Types of events to send from now on; with `*` in the list: all"),
    ] = None
    description: Annotated[
        Annotated[str, shared.limits(maxLength=DESCRIPTION_LONGEST)] | None,
        Meta(description="Your own note; an empty text removes it"),
    ] = None
    enabled: Annotated[bool | None, Meta(description="False: events wait as `held`; true: they are sent")] = None
    headers: Annotated[
        StaticHeaders | None, Meta(description="Replaces all of your own headers; an empty object removes them")
    ] = None


def read_order(order: EndpointOrder | EndpointPatch, mode: Mode) -> dict[str, Any]:
    """Return the given fields in their stored form, static headers apart. Raises: Refusal VALIDATION_ERROR."""
    fields: dict[str, Any] = {}
    if order.url is not None:
        fields["url"] = _url(without_credentials(order.url)[0], mode)
    if order.event_types is not None:
        fields["event_types"] = _event_types(order.event_types)
    if order.description is not None:
        fields["description"] = _description(order.description)
    return fields


def read_headers(order: EndpointOrder | EndpointPatch) -> dict[str, str] | None:
    """Return the static headers that the body sets; None if it leaves them unchanged. User and password of the address
    become an `Authorization` header. Raises: Refusal VALIDATION_ERROR."""
    credentials = None if order.url is None else without_credentials(order.url)[1]
    if order.headers is None and credentials is None:
        return None
    return read_static_headers(with_authorization(order.headers or {}, credentials))


def _url(url: str, mode: Mode) -> str:
    if not is_web_address(url):
        raise shape_error("url", web_address_fault(url))
    if mode is Mode.LIVE and not url.lower().startswith("https:"):
        raise shape_error("url", "must be https in live mode")
    return url


def _event_types(names: Sequence[str]) -> tuple[str, ...] | None:
    try:
        return None if ALL in names else read_wanted(names)
    except ValueError as error:
        raise shape_error("event_types", str(error)) from None


def _description(text: str) -> str | None:
    if len(text) > DESCRIPTION_LONGEST or has_control(text):
        raise shape_error("description", f"has at most {DESCRIPTION_LONGEST} characters, none of control")
    return text or None


def switched(endpoint: WebhookEndpoint, now: datetime, *, enabled: bool) -> WebhookEndpoint:
    """Return the endpoint switched on or off, unchanged if it already is."""
    if enabled is endpoint.enabled:
        return endpoint
    return msgspec.structs.replace(endpoint, disabled_at=None if enabled else now)


def with_endpoint(account: Account, endpoint: WebhookEndpoint) -> Account:
    """Return the account with this endpoint added or replaced. Raises: Refusal WEBHOOK_ENDPOINT_LIMIT,
    INVALID_STATE."""
    others = tuple(each for each in account.endpoints or () if each.id != endpoint.id)
    # The account's own endpoint counts, whether set or not.
    if 1 + sum(each.mode is endpoint.mode for each in others) >= MOST:
        raise Refusal(
            "WEBHOOK_ENDPOINT_LIMIT",
            f"An account has at most {MOST} webhook endpoints in a mode, its own among them",
        )
    after = msgspec.structs.replace(account, endpoints=(*others, endpoint.ref))
    refuse_gap(account, after)
    return after


def without_endpoint(account: Account, endpoint_id: str) -> Account:
    """Return the account without this endpoint. Raises: Refusal INVALID_STATE."""
    left = tuple(each for each in account.endpoints or () if each.id != endpoint_id)
    after = msgspec.structs.replace(account, endpoints=left or None)
    refuse_gap(account, after)
    return after


def refuse_gap(before: Account, after: Account) -> None:
    """Refuse a change that leaves a mandatory type without an enabled endpoint in a mode.

    The account's own endpoint counts as enabled: without an address its events are held. The rule depends only on the
    account, so the account's version guards against two changes at once. Raises: Refusal INVALID_STATE.
    """
    for mode in Mode:
        lost = [each for each in _gap(after, mode) if each not in _gap(before, mode)]
        if lost:
            raise Refusal(
                "INVALID_STATE",
                f"No enabled webhook endpoint of {mode} mode would take {', '.join(lost)}: "
                "add these types to another endpoint first",
            )


def _gap(account: Account, mode: Mode) -> tuple[str, ...]:
    further = (each.event_types for each in account.further(mode) if each.enabled)
    return untaken((account.settings.webhook_events, *further))
