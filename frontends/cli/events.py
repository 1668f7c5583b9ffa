"""`cambist event …`: merchants' events and their deliveries."""

from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.delivery import AT_ONCE
from ...core.domain.webhooks.events import DeliveryStatus, EventType
from ...core.usecases.accounts.accounts import get_account
from ...core.usecases.actions.audit import on
from ...core.usecases.webhooks import events as usecases
from ...core.usecases.webhooks.events import EventQuery, Told
from ...core.usecases.webhooks.resends import resend_event, resend_range
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app

_TITLES = ("created_at", "event_id", "type", "object_id", "delivery_status", "attempts", "last_answer", "account_id")

_mode = click.option("--mode", type=click.Choice([each.value for each in Mode]), help="Only of this mode.")
_type = click.option(
    "--type", "event_type", type=click.Choice([each.value for each in EventType]), help="Only of this type."
)
_status = click.option(
    "--status", type=click.Choice([each.value for each in DeliveryStatus]), help="Only with this delivery status."
)
_since = click.option(
    "--from", "since", metavar="MOMENT", help="Created at this time or later, such as 2026-11-21T09:00:00Z."
)
_until = click.option("--to", "until", metavar="MOMENT", help="Created before this time.")


@group()
def event() -> None:
    """List and resend webhook events."""


@event.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@_mode
@_type
@click.option("--object", "object_id", metavar="ID", help="Only of this payment, refund or other object.")
@_status
@_since
@_until
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Largest number of events."
)
@answering
def list_events(
    account_id: str | None,
    mode: str | None,
    event_type: str | None,
    object_id: str | None,
    status: str | None,
    since: str | None,
    until: str | None,
    limit: int,
) -> Answer:
    """List events, newest first."""
    asked = EventQuery(type=event_type, object_id=object_id, delivery_status=status, since=since, until=until)
    of_mode = None if mode is None else Mode(mode)
    found = run_in_app(
        lambda ports: usecases.find_events(ports, asked, account_id=account_id, mode=of_mode, limit=limit)
    )
    documents = [_document(told) for told in found]
    rows = [[document[title] for title in _TITLES] for document in documents]
    return Answer(document={"data": documents}, text=table(_TITLES, rows))


@event.command("resend")
@click.argument("event_ids", metavar="ID...", nargs=-1)
@click.option("--account", "account_id", metavar="ACCOUNT", help="Account of the period from --from to --to.")
@_mode
@_type
@_status
@_since
@_until
@click.option(
    "--endpoint", "endpoint_id", metavar="ID", help="Resend to this further webhook endpoint instead of the first."
)
@answering
@reasoned
def resend(
    event_ids: tuple[str, ...],
    account_id: str | None,
    mode: str | None,
    event_type: str | None,
    status: str | None,
    since: str | None,
    until: str | None,
    endpoint_id: str | None,
) -> Answer:
    """Resend events: the given ones, or all events of an account in a period.

    They keep their ids, and the service sends them as soon as it runs.
    """
    asked = EventQuery(type=event_type, delivery_status=status, since=since, until=until)
    if event_ids:
        if account_id or mode or asked != EventQuery():
            raise click.UsageError("name events, or a range, not both")
        count = run_in_app(lambda ports: _resend_each(ports, event_ids, endpoint_id))
    else:
        if account_id is None or since is None or until is None:
            raise click.UsageError("name events, or --account, --from and --to")
        modes = list(Mode) if mode is None else [Mode(mode)]
        count = run_in_app(lambda ports: _resend_range(ports, account_id, modes, asked, endpoint_id))
    document = {"events": count}
    return Answer(document=document, text=fields({"events to be sent again": count}))


async def _resend_each(ports: Ports, event_ids: tuple[str, ...], endpoint_id: str | None) -> int:
    for event_id in event_ids:
        await resend_event(on(ports, event_id), None, event_id, endpoint_id)
    return len(event_ids)


async def _resend_range(
    ports: Ports, account_id: str, modes: list[Mode], asked: EventQuery, endpoint_id: str | None
) -> int:
    found = (await get_account(ports, account_id)).account
    if endpoint_id is not None:
        # A further endpoint belongs to one mode.
        modes = [mode for mode in modes if any(ref.id == endpoint_id for ref in found.further(mode))] or modes[:1]
    return sum([await resend_range(on(ports, account_id), account_id, mode, asked, endpoint_id) for mode in modes])


def _document(told: Told) -> dict[str, Any]:
    event, delivery, last = told.event, told.delivery, told.last
    return {
        "event_id": event.id,
        "account_id": event.account_id,
        "mode": event.mode.value,
        "type": event.type,
        "object_id": event.object_id,
        "created_at": iso(event.created_at),
        "delivery_status": delivery.status.value,
        "attempts": delivery.attempts,
        "next_attempt_at": None if delivery.due == AT_ONCE else iso_or_none(delivery.due),
        "last_answer": None if last is None else (last.answer if last.status is None else str(last.status)),
        "last_note": None if last is None else last.note,
        "delivered_at": iso_or_none(delivery.delivered_at),
    }
