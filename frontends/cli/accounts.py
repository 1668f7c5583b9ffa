"""`cambist account …`: accounts of merchants."""

import asyncio
import os
import shlex
import sys
from collections.abc import Collection, Mapping
from typing import Any

import click
import msgspec

from ...core.domain.account_settings import ACCOUNT_SETTINGS, WEBHOOK_SECRET, plain_http_warning, shown_settings
from ...core.domain.accounts.accounts import Account, Settings
from ...core.domain.errors import Refusal
from ...core.domain.webhooks.events import DeliveryStatus
from ...core.usecases.accounts import accounts as usecases
from ...core.usecases.actions.audit import on
from ...core.usecases.webhooks.endpoint import set_own_headers
from ...core.usecases.webhooks.endpoints import list_all_endpoints, switch_endpoint
from ...ports.bundle import Ports
from .arguments import FROM_STDIN, assignments, read_secret
from .groups import group
from .output import Answer, fields, shown, table, warn
from .session import answering, loaded_settings, present_action, reasoned, run_in_app
from .views import account_document, key_document, keys_table

_SECRET_BYTES = 32
_LONGEST_HEADERS = 65_536
"""Characters of standard input that are read as headers."""
_ON_COMMAND_LINE = (
    f"warning: the secret stood on the command line, which histories keep and others see: {WEBHOOK_SECRET}=- reads it "
    "from standard input, and --generate-secret makes one"
)


@group()
def account() -> None:
    """Manage merchants' accounts and their settings."""


@account.command("endpoints")
@click.argument("account_id", metavar="ID")
@answering
def endpoints(account_id: str) -> Answer:
    """List the account's webhook endpoints and their state: its own in each mode, and further ones."""
    found = run_in_app(lambda ports: list_all_endpoints(ports, account_id))
    titles = ("endpoint", "mode", "url", "state", "breaker", "held", "pending", "failed", "event_types")
    rows = [
        (
            each.key.further or "own",
            each.key.mode.value,
            each.url,
            "on" if each.enabled else "off",
            "open" if each.breaker.is_open else "closed",
            each.backlog[DeliveryStatus.HELD],
            each.backlog[DeliveryStatus.PENDING],
            each.backlog[DeliveryStatus.FAILED],
            "all" if each.event_types is None else ",".join(each.event_types),
        )
        for each in found
    ]
    return Answer(document={"data": [dict(zip(titles, row, strict=True)) for row in rows]}, text=table(titles, rows))


@account.command("endpoint")
@click.argument("endpoint_id", metavar="ENDPOINT")
@click.option("--on/--off", "enabled", required=True, help="Off: events wait as `held` until it is on again.")
@answering
@reasoned
def endpoint(endpoint_id: str, *, enabled: bool) -> Answer:
    """Switch a further webhook endpoint off or on."""
    found = run_in_app(lambda ports: switch_endpoint(on(ports, endpoint_id), endpoint_id, enabled=enabled))
    document = {"endpoint": found.id, "state": "on" if found.enabled else "off"}
    return Answer(document=document, text=fields(document))


@account.command("move")
@click.argument("account_id", metavar="ID")
@click.option("--to", "target", metavar="CELL", required=True, help="Name of the other cell.")
@click.option("--directory", metavar="FILE", help="File that names the cells. Default: CAMBIST_CELLS, or ./cells.toml.")
@click.option("--undo", is_flag=True, help="End a move that did not happen: the account takes changes again.")
@answering
@reasoned
def move(account_id: str, *, target: str, directory: str | None, undo: bool) -> Answer:
    """Move an account to another cell, or finish a move that was interrupted."""
    from ..operations.cells import find_directory

    cells = find_directory(os.environ, directory)
    action = msgspec.structs.replace(present_action(), object_id=account_id)

    async def work() -> Answer:
        source = await cells.home(account_id)
        if source is None:
            raise Refusal("ACCOUNT_NOT_FOUND", f"No cell has an account of this id: {', '.join(cells.names)}")
        if undo:
            await cells.undo(account_id, source, target)
            return Answer(document={"account_id": account_id, "cell": source}, text=f"{account_id} stays in {source}")
        made = await cells.move(account_id, source, target, action)
        document = {
            "account_id": account_id,
            "from": made.source,
            "to": made.target,
            "rows": sum(made.rows.values()),
            "entries": made.entries,
            "held_seconds": round(made.held_seconds, 1),
            "resumed": made.resumed,
        }
        return Answer(document=document, text=fields(document))

    return asyncio.run(work())


@account.command("create")
@click.argument("name")
@click.option("--env", "as_env", is_flag=True, help='Print lines to evaluate in a shell: eval "$(…)".')
@answering
def create(name: str, *, as_env: bool) -> Answer:
    """Create an account. It takes payments at once; the secrets are shown only once."""
    made = run_in_app(lambda ports: usecases.create_account(ports, name))
    if as_env:
        return Answer(document=made, text=_as_env(made, loaded_settings().settings.base_url))
    pairs = {"live": made.live, "test": made.test}
    keys = table(("mode", "X-Api-Key", "X-Api-Secret"), [(m, p.api_key, p.api_secret) for m, p in pairs.items()])
    head = fields({"account": made.account_id, "default shop": made.default_shop_id})
    return Answer(document=made, text=f"{head}\n\n{keys}\n\nKeep the secrets: they cannot be shown again.")


def _as_env(made: usecases.NewAccount, base_url: str) -> str:
    """Return lines for a shell that export the test pair under the names used by the documentation, and with the
    service's address those used by `listen`, `mcp` and the examples. The live pair is in comments, so that no child
    process of the shell inherits it."""
    variables = {
        "ACCOUNT_ID": made.account_id,
        "API_KEY": made.test.api_key,
        "API_SECRET": made.test.api_secret,
        "CAMBIST_URL": base_url,
        "CAMBIST_API_KEY": made.test.api_key,
        "CAMBIST_API_SECRET": made.test.api_secret,
    }
    live = {"LIVE_API_KEY": made.live.api_key, "LIVE_API_SECRET": made.live.api_secret}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join(
        [*lines, "# The live pair, shown this once:", *(f"# {name}={value}" for name, value in live.items())]
    )


@account.command("list")
@answering
def list_all() -> Answer:
    """List all accounts, oldest first."""
    documents = [account_document(each) for each in run_in_app(usecases.list_accounts)]
    rows = [(each["account_id"], each["name"], each["created_at"]) for each in documents]
    return Answer(document={"data": documents}, text=table(("account", "name", "created"), rows))


@account.command("show")
@click.argument("account_id", metavar="ID")
@answering
def show(account_id: str) -> Answer:
    """Show an account with its settings and keys."""
    view = run_in_app(lambda ports: usecases.get_account(ports, account_id))
    keys = [key_document(key, view.uses.get(key.id)) for key in view.keys]
    document = account_document(view.account) | {"keys": keys}
    return Answer(document=document, text=f"{_text(document)}\n\n{keys_table(keys)}")


@account.command("headers")
@click.argument("account_id", metavar="ID")
@click.option("--clear", is_flag=True, help="Remove all static headers.")
@answering
@reasoned
def headers(account_id: str, *, clear: bool) -> Answer:
    """Set the static headers of the account's own webhook endpoint, read as lines `Name: value` from standard input."""
    wanted = {} if clear else _header_lines(sys.stdin.read(_LONGEST_HEADERS))
    after = run_in_app(lambda ports: set_own_headers(ports, account_id, wanted))
    names = list(after.webhook_header_names or ())
    return Answer(document={"account_id": after.id, "header_names": names}, text=fields({"headers": ", ".join(names)}))


def _header_lines(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon or name.strip() in found:
            raise click.UsageError("write each header once, as a line `Name: value`, or use --clear")
        found[name.strip()] = value.strip()
    if not found:
        raise click.UsageError("write the headers to standard input, as lines `Name: value`, or use --clear")
    return found


class _Set(click.Command):
    """Command whose help has a row for each setting."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        defaults = Settings()
        rows = []
        for name, setting in ACCOUNT_SETTINGS.items():
            default = shown(getattr(defaults, name, None))
            clears = "; may be empty" if setting.clearable else ""
            rows.append((name, f"{setting.meaning} ({setting.form}{clears}). Default: {default}"))
        with formatter.section("Settings"):
            formatter.write_dl(rows)


@account.command(
    "set",
    cls=_Set,
    help="Change settings of an account, all of them or none, and show the changes. An empty value clears an optional "
    f"setting. {WEBHOOK_SECRET}=- reads the secret from standard input without an echo, because other people can see "
    "command lines and shell histories.",
)
@click.argument("account_id", metavar="ID")
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1)
@click.option("--generate-secret", is_flag=True, help="Create a webhook secret and print it once.")
@answering
@reasoned
def set_settings(account_id: str, settings: tuple[str, ...], *, generate_secret: bool) -> Answer:
    texts = assignments(settings)
    if not texts and not generate_secret:
        raise click.UsageError("name a setting: NAME=VALUE")
    if generate_secret and WEBHOOK_SECRET in texts:
        raise click.UsageError(f"give {WEBHOOK_SECRET} or --generate-secret, not both")
    if texts.get(WEBHOOK_SECRET) == FROM_STDIN:
        texts[WEBHOOK_SECRET] = read_secret("Webhook secret")
    elif texts.get(WEBHOOK_SECRET):
        click.echo(_ON_COMMAND_LINE, err=True)

    async def change(ports: Ports) -> tuple[Account, Account]:
        if generate_secret:
            texts[WEBHOOK_SECRET] = ports.ids.secret(_SECRET_BYTES)
        before = (await usecases.get_account(ports, account_id)).account
        return before, await usecases.set_settings(ports, account_id, texts)

    before, after = run_in_app(change)
    warning = plain_http_warning(after.settings) if "webhook_url" in texts else None
    if warning is not None:
        warn(warning)
    document = account_document(after)
    text = _changes(before, after, texts)
    if not generate_secret:
        return Answer(document=document, text=text)
    made = {WEBHOOK_SECRET: texts[WEBHOOK_SECRET]}
    return Answer(
        document=document | made, text=f"{text}\n\n{fields(made)}\n\nKeep the secret: it cannot be shown again."
    )


def _changes(before: Account, after: Account, named: Collection[str]) -> str:
    """Return each named setting with its old and new value, or a note that it did not change."""
    was, now = shown_settings(before), shown_settings(after)
    told = {}
    for name in sorted(named):
        if name == WEBHOOK_SECRET:
            told[name] = "set" if after.webhook_secret is not None else "-"
        elif was[name] == now[name]:
            told[name] = f"{shown(now[name])} (as it was)"
        else:
            told[name] = f"{shown(was[name])} -> {shown(now[name])}"
    return fields(told)


def _text(document: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in document.items() if name not in ("settings", "keys")}
    return f"{fields(plain)}\n\n{fields(document['settings'])}"
