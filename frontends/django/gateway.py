"""Calls of the service: over HTTP with the client, or to a service inside the process. The setting decides."""

import uuid
from collections.abc import Callable
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from . import conf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .models import PayableMixin

Amount = Decimal | int | str


class Gateway(Protocol):
    """What an order asks of the service."""

    def create(self, order: "PayableMixin") -> tuple[str, str, str]:
        """Create the order's payment, and return its id, page and status."""
        ...

    def status(self, payment_id: str) -> str:
        """Return the status of a payment."""
        ...

    def refund(self, payment_id: str, amount: Amount | None, key: uuid.UUID) -> str:
        """Refund a payment, and return the refund's id."""
        ...


def fields_of(order: "PayableMixin") -> dict[str, Any]:
    """Return the fields of the order's payment. The metadata name the order and its key, for events that come before
    the answer, or after another payment took its place."""
    given = order.cambist_fields()
    named = f"{order._meta.label_lower}:{order.pk}:{order.payment_key}"
    return {**given, "metadata": {**given.get("metadata", {}), "django": named}}


class ClientGateway:
    """Calls over HTTP."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def create(self, order: "PayableMixin") -> tuple[str, str, str]:
        made = self._client.payments.create(
            amount_rub=order.cambist_amount(), idempotency_key=str(order.payment_key), **fields_of(order)
        )
        return made.id, made.payment_url, str(made.status)

    def status(self, payment_id: str) -> str:
        return str(self._client.payments.get(payment_id).status)

    def refund(self, payment_id: str, amount: Amount | None, key: uuid.UUID) -> str:
        made = self._client.refunds.create(payment_id=payment_id, amount_rub=amount, idempotency_key=str(key))
        return str(made.id)


class EmbeddedGateway:
    """Calls of the service inside the process."""

    def __init__(self, merchant: Any) -> None:
        self._merchant = merchant

    def create(self, order: "PayableMixin") -> tuple[str, str, str]:
        made = self._merchant.create_payment(
            order.cambist_amount(), idempotency_key=order.payment_key, **fields_of(order)
        )
        return made.id, made.payment_url, str(made.status)

    def status(self, payment_id: str) -> str:
        return str(self._merchant.payment(payment_id).status)

    def refund(self, payment_id: str, amount: Amount | None, key: uuid.UUID) -> str:
        return str(self._merchant.refund(payment_id, amount, idempotency_key=key).id)


_given: list[Gateway] = []


def gateway() -> Gateway:
    """Return the gateway of the project's setting. Raises: ImproperlyConfigured."""
    return _given[-1] if _given else _of_settings()


@contextmanager
def gateway_replaced(by: Gateway) -> "Iterator[None]":
    """Use another gateway during the block, as tests do."""
    _given.append(by)
    try:
        yield
    finally:
        _given.remove(by)


@cache
def _of_settings() -> Gateway:
    given = conf.read()
    if "DATABASE" in given:
        return EmbeddedGateway(service().merchant(conf.account(), given.get("MODE", "test")))
    from ..client.clients import Client

    return ClientGateway(Client(given["URL"], given["API_KEY"], given["API_SECRET"]))


@cache
def service() -> Any:
    """Return the `cambist.SyncService` inside this project. It opens at its first use. Raises: ImproperlyConfigured."""
    from ..embedding.blocking import open_sync

    return open_sync(**_arguments(), on_event=_handled)


def wsgi(then: Callable[..., Any], *, prefix: str = "/pay") -> Any:
    """Return a WSGI application with the embedded service's API and payer window below `prefix`, and Django elsewhere.
    Raises: ImproperlyConfigured; NotInstalled."""
    return service().wsgi(prefix=prefix, then=then)


def asgi(then: Callable[..., Any], *, prefix: str = "/pay") -> Any:
    """Return an ASGI application with the API and the payer window below `prefix`, and Django elsewhere. It answers the
    lifespan, which Django does not. Orders and events stay with `service()`, so this part does no jobs.

    Raises: ImproperlyConfigured; NotInstalled.
    """
    from ..embedding.mount import Mount

    pay = Mount(**_arguments(), works=False)
    path = prefix.rstrip("/")

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await pay(scope, receive, send)
        elif scope["path"] == path or scope["path"].startswith(f"{path}/"):
            await pay({**scope, "root_path": scope.get("root_path", "") + path}, receive, send)
        else:
            await then(scope, receive, send)

    return serve


def _arguments() -> dict[str, Any]:
    given = conf.read()
    if "DATABASE" not in given:
        raise ImproperlyConfigured("CAMBIST lacks DATABASE: the service is not embedded")
    return {
        "database": given["DATABASE"],
        "base_url": given.get("BASE_URL", ""),
        "vault_key": given.get("VAULT_KEY", ""),
        "vault_pepper": given.get("VAULT_PEPPER", ""),
    }


def _handled(event: Any) -> None:
    from django.db import close_old_connections

    from .events import handle

    close_old_connections()
    try:
        handle(event.id, event.sequence, event.type.value, event.payload)
    finally:
        close_old_connections()
