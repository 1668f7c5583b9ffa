"""`cambist logs …`: requests of merchants."""

import asyncio
from datetime import timedelta

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.accounts.request_log import RequestEntry
from ...core.domain.days import iso
from ...core.usecases.accounts.accounts import find_account
from ...core.usecases.accounts.request_list import follow_requests
from ...ports.bundle import Ports
from .arguments import Duration
from .groups import group
from .output import printed, shown
from .session import guarded, loaded_settings

_PAUSE = 1.0
"""Seconds between two reads, equal to the interval at which requests are written."""
_LATE = timedelta(seconds=30)
"""Period within which another process may still write a request older than the newest one seen."""


@group()
def logs() -> None:
    """Show requests of merchants."""


@logs.command("tail")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), required=True)
@click.option("--since", type=Duration(), default="0s", help="Start this long ago (1h).")
@click.option("--failed", is_flag=True, help="Only requests answered 4xx or 5xx.")
@click.option("--no-follow", is_flag=True, help="Print the present requests and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
def tail(account_id: str, mode: str, since: timedelta, *, failed: bool, no_follow: bool, as_json: bool) -> None:
    """Follow an account's requests until Ctrl-C: method, path, status, code, key, time and request id."""

    def tell(entry: RequestEntry) -> None:
        if not failed or entry.status >= 400:
            click.echo(printed(_document(entry), indent=-1) if as_json else _line(entry))

    async def follow(ports: Ports) -> None:
        async with ports.storage.unit() as unit:
            await find_account(unit, account_id)
        seen: set[RequestEntry] = set()
        begin = ports.clock.now() - since
        while True:
            found = await follow_requests(ports, account_id, Mode(mode), begin)
            for entry in found:
                if entry not in seen:
                    tell(entry)
            if no_follow:
                return
            seen, begin = {*found}, max(begin, ports.clock.now() - _LATE)
            await ports.clock.sleep(_PAUSE)

    async def inside() -> None:
        from ..app.compose import open_app

        async with open_app(loaded_settings().settings, patient=True) as app:
            await follow(app.ports)

    guarded(lambda: asyncio.run(inside()), as_json=as_json)


def _line(entry: RequestEntry) -> str:
    path = entry.path if entry.object_id is None else f"{entry.path} {entry.object_id}"
    parts = [
        iso(entry.at),
        str(entry.status),
        entry.method,
        path,
        *([entry.code] if entry.code else []),
        f"{entry.took_ms} ms",
        entry.key_id,
        entry.request_id,
    ]
    return "  ".join(shown(part) for part in parts)


def _document(entry: RequestEntry) -> dict[str, object]:
    return {
        "request_id": entry.request_id,
        "method": entry.method,
        "path": entry.path,
        "object_id": entry.object_id,
        "status": entry.status,
        "code": entry.code,
        "api_key": entry.key_id,
        "took_ms": entry.took_ms,
        "created_at": iso(entry.at),
    }
