"""`cambist listen`: test events for a developer whose machine cannot receive webhooks."""

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.domain.accounts.accounts import KEY_PREFIXES, Mode
from ...core.domain.days import iso
from ...core.domain.errors import Refusal
from ...core.domain.web_addresses import WEB_ADDRESS, is_web_address
from ...core.usecases.webhooks.feed import BEGINNING, NOW, read_types
from .output import printed, shown
from .session import guarded, loaded_settings

if TYPE_CHECKING:
    from .listening import Handed


def web_address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    if value is None:
        return None
    if not is_web_address(value):
        raise click.BadParameter(WEB_ADDRESS)
    return value


def test_key(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 - click's signature
    if not value.startswith(KEY_PREFIXES[Mode.TEST]):
        raise click.BadParameter(f"must be a test key ({KEY_PREFIXES[Mode.TEST]}…): live events cannot be followed")
    return value


def _types(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    try:
        read_types(value)
    except Refusal as refusal:
        raise click.BadParameter(refusal.message) from None
    return value


def _start(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    if value is not None and value not in (NOW, BEGINNING) and not (value.isascii() and value.isdigit()):
        raise click.BadParameter(f"must be a cursor, {NOW} or {BEGINNING}")
    return value


@click.command()
@click.option("--forward-to", metavar="URL", callback=web_address, help="Post every event to this address, signed.")
@click.option("--api-key", envvar="CAMBIST_API_KEY", required=True, callback=test_key, help="A test key.")
@click.option(
    "--api-secret",
    envvar="CAMBIST_API_SECRET",
    required=True,
    help="The secret of the key; better set in CAMBIST_API_SECRET.",
)
@click.option(
    "--base-url",
    metavar="URL",
    envvar="CAMBIST_URL",
    callback=web_address,
    help="Address of the service, or CAMBIST_URL. Default: from the settings.",
)
@click.option(
    "--from", "start", metavar="CURSOR", callback=_start, help=f"Start after this cursor, or at {NOW} or {BEGINNING}."
)
@click.option("--types", metavar="TYPE,…", callback=_types, help="Only events of these types.")
@click.option(
    "--cursor-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the cursor. Default: a file in ~/.config/cambist.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
def listen(
    forward_to: str | None,
    api_key: str,
    api_secret: str,
    base_url: str | None,
    start: str | None,
    types: str | None,
    cursor_file: Path | None,
    as_json: bool,
) -> None:
    """Follow the account's test events, including resent ones, and forward each to a local address.

    The position is stored in a file: a restart continues where it stopped. The first run begins with new events.
    """

    def run() -> None:
        # Imports aiohttp, which the help of all commands need not load.
        from .listening import CursorFile, Follower, Wish

        address = (base_url or loaded_settings().settings.base_url).rstrip("/")
        wish = Wish(base_url=address, api_key=api_key, api_secret=api_secret, forward_to=forward_to, types=types)
        cursors = CursorFile(cursor_file or usual_file(address, api_key))
        begin = start or cursors.read() or NOW

        def tell(handed: "Handed") -> None:
            click.echo(printed(_document(handed), indent=-1) if as_json else _line(handed))

        def say(text: str) -> None:
            click.echo(shown(text), err=True)

        from ..app.compose import system_clock

        say(f"listening to {address} from {begin}" + ("" if forward_to is None else f", handing on to {forward_to}"))
        asyncio.run(Follower(wish, cursors, system_clock(), tell=tell, say=say).follow(begin))

    guarded(run, as_json=as_json)


def usual_file(base_url: str, api_key: str) -> Path:
    """Return the cursor file of a service and key."""
    name = hashlib.sha256(f"{base_url} {api_key}".encode()).hexdigest()[:16]
    return Path.home() / ".config" / "cambist" / f"listen-{name}"


def _line(handed: "Handed") -> str:
    letter = handed.letter
    answer = handed.error or ("" if handed.status is None else str(handed.status))
    parts = [
        handed.at.strftime("%H:%M:%S"),
        letter.type,
        letter.object_id,
        handed.object_status or "-",
        *(["(resent)"] if letter.resent else []),
        *([f"-> {answer}"] if answer else []),
    ]
    return "  ".join(shown(part) for part in parts)


def _document(handed: "Handed") -> dict[str, Any]:
    letter = handed.letter
    return {
        "at": iso(handed.at),
        "id": letter.id,
        "type": letter.type,
        "object_id": letter.object_id,
        "sequence": letter.sequence,
        "status": handed.object_status,
        "resent": letter.resent,
        "cursor": letter.cursor,
        "answer": {"status": handed.status, "error": handed.error},
    }
