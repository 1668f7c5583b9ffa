"""`cambist notification …`: provider notifications."""

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.days import iso_or_none
from ...core.usecases.notification_addresses import ShownAddress, list_addresses, rotate_address
from ...ports.faults import Fault
from ...ports.vault import VaultError
from ..settings.plugins import KINDS, named_by
from ..settings.settings import Settings
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app

AFTER_A_START = "known after the first start"
_TITLES = ("adapter", "address", "networks", "last_notification", "former_address_until")
_PATIENCE = 10.0
"""Seconds that `cambist config check` waits for the database."""


@group()
def notification() -> None:
    """Show and rotate the addresses for provider notifications."""


def address_document(shown: ShownAddress) -> dict[str, Any]:
    """Return the notification address of an adapter, whose last part is a secret."""
    return {
        "adapter": shown.adapter,
        "address": shown.address,
        "networks": [str(network) for network in shown.networks],
        "last_notification": iso_or_none(shown.received_at),
        "former_address_until": iso_or_none(shown.former_until),
    }


def address_table(shown: Sequence[ShownAddress]) -> str:
    """Return the addresses as a table for people."""
    documents = [address_document(each) for each in shown]
    for each in documents:
        each["address"] = each["address"] or AFTER_A_START
        each["networks"] = each["networks"] or "anywhere"
    return table(_TITLES, [tuple(each.values()) for each in documents])


@notification.command("list")
@answering
def list_all() -> Answer:
    """List the address for each provider's notifications: enter it at the provider, and keep it secret."""
    shown = run_in_app(list_addresses)
    return Answer(document={"data": [address_document(each) for each in shown]}, text=address_table(shown))


@notification.command("rotate")
@click.argument("adapter_id", metavar="ADAPTER")
@answering
@reasoned
def rotate(adapter_id: str) -> Answer:
    """Create a new address for an adapter's notifications; the present one works for another 24 hours."""
    document = address_document(run_in_app(lambda ports: rotate_address(ports, adapter_id)))
    return Answer(document=document, text=fields(document))


def known_addresses(settings: Settings) -> tuple[list[ShownAddress], str | None]:
    """Return the addresses that can be read without creating a database, and the reason when they cannot. Only adapters
    of packages receive notifications: if no setting names one, nothing is opened."""
    named = named_by(settings)
    hears = any(
        name not in KINDS[kind].built_in
        for kind in ("bank", "kyc")
        for setting in KINDS[kind].settings
        for name in named[setting]
    )
    if not hears:
        return [], None
    if not _is_there(settings):
        return [], f"addresses of notifications: {AFTER_A_START}"
    try:
        return asyncio.run(_read(settings)), None
    except (Fault, VaultError, OSError) as fault:
        return [], f"addresses of notifications are not known: {fault}"


def _is_there(settings: Settings) -> bool:
    from ..app.maintenance import key_file

    path, own = settings.sqlite_path, key_file(settings)
    if settings.storage_url == "memory://" or (own is not None and not own.exists()):
        return False
    return path is None or path.exists()


async def _read(settings: Settings) -> list[ShownAddress]:
    from ..app.compose import open_app

    async with asyncio.timeout(_PATIENCE), open_app(settings, patient=True, recognising=False) as app:
        return await list_addresses(app.ports)
