"""Writes the pages that say what the code says: `python docs/generate.py`, or `nox -s generate`.

- docs/errors.md, from the catalogue of refusals and the rows of the operations;
- docs/ru/errors.md, docs/ru/payloads.md and docs/ru/states.md, the same in the words of docs/russian.py;
- docs/payloads.md, from the schemas of events' bodies;
- the table of docs/cli.md, from the commands;
- the signatures of docs/embedding.md, from the public classes;
- docs/settings.md, from the settings of the installation and of shipped adapters;
- docs/states.md and docs/images/states-*.svg, from the tables of moves; drawing needs Graphviz (its `dot`);
- frontends/http/openapi/examples.json, from a tour through every operation;
- frontends/http/openapi/client_calls.json, the Python client's calls that send those examples.

All are committed, so that they can be read without building anything; `tests/docs/test_generated.py` says when one is
stale. A drawing carries its source, by which it is told.
"""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cambist.core.domain.accounts.rate_limit import API  # noqa: E402
from cambist.core.domain.errors import CATALOGUE, Entry, Retry  # noqa: E402
from cambist.core.domain.exchanges.exchanges import EXCHANGE_MOVES, Direction  # noqa: E402
from cambist.core.domain.kyc.clients import KYC_MOVES  # noqa: E402  (the program need not be installed)
from cambist.core.domain.machine import Moves  # noqa: E402
from cambist.core.domain.payloads import EVENT_PAYLOADS  # noqa: E402
from cambist.core.domain.payments.payments import PAYMENT_MOVES  # noqa: E402
from cambist.core.domain.payments.proofs import PROOF_MOVES  # noqa: E402
from cambist.core.domain.receipts.receipts import RECEIPT_MOVES  # noqa: E402
from cambist.core.domain.refunds.refunds import REFUND_MOVES  # noqa: E402
from cambist.core.domain.settlement.withdrawals import WITHDRAWAL_MOVES  # noqa: E402
from cambist.core.domain.subscriptions.subscriptions import SUBSCRIPTION_MOVES  # noqa: E402
from cambist.core.domain.webhooks.events import EventType  # noqa: E402
from cambist.frontends.cli.main import cli  # noqa: E402
from cambist.frontends.http.edge.operation import Operation  # noqa: E402
from cambist.frontends.http.openapi.openapi import openapi_document  # noqa: E402
from cambist.frontends.http.operations import OPERATIONS  # noqa: E402
from cambist.frontends.settings.plugins import KINDS, declared  # noqa: E402
from cambist.frontends.settings.settings import OPTIONS, Settings  # noqa: E402
from cambist.frontends.settings.shipped import SHIPPED  # noqa: E402
from cambist.ports.settings import Option  # noqa: E402
from docs import english, russian  # noqa: E402
from docs.signatures import HEADING, signatures  # noqa: E402

DOCS = ROOT / "docs"
CLIENT_CALLS = ROOT / "frontends" / "http" / "openapi" / "client_calls.json"
IMAGES = DOCS / "images"

TABLES: Mapping[str, tuple[str, Moves[Any, Any], str]] = {
    "payment": ("Payment", PAYMENT_MOVES, "payments.md"),
    "refund": ("Refund", REFUND_MOVES, "refunds.md"),
    "receipt": ("Receipt", RECEIPT_MOVES, "receipts.md"),
    "subscription": ("Subscription", SUBSCRIPTION_MOVES, "subscriptions.md"),
    "exchange-usdt-rub": ("Exchange, USDT to RUB", EXCHANGE_MOVES[Direction.USDT_TO_RUB], "exchanges.md"),
    "exchange-rub-usdt": ("Exchange, RUB to USDT", EXCHANGE_MOVES[Direction.RUB_TO_USDT], "exchanges.md"),
    "withdrawal": ("Payout", WITHDRAWAL_MOVES, "settlement.md"),
    "delivery-proof": ("Delivery proof", PROOF_MOVES, "payments.md#delivery-proofs"),
    "kyc": ("Verification of an end client (inside)", KYC_MOVES, "kyc.md"),
}
"""Every table of moves that a merchant meets: its object, the table, and the page that explains it."""

PAYLOADS: Mapping[str, str] = {
    "PaymentPayload": "Payment",
    "ProofReminderPayload": "Delivery proof reminder",
    "RefundPayload": "Refund",
    "SubscriptionPayload": "Subscription",
    "ChargeExhaustedPayload": "Charge exhausted",
    "ExchangePayload": "Exchange",
    "WithdrawalPayload": "Payout",
    "KycPayload": "KYC",
    "GatewayPayload": "Gateway",
}
"""Every schema of an event's body, with its title."""

_COMMANDS = """## Commands

| Command | What it does |
|---|---|
"""
_NOTE = "<!-- Made by docs/generate.py: edit the code it names, not this page. -->\n"


def errors_page() -> str:
    """docs/errors.md."""
    return _errors(english, {each.code: each.meaning for each in CATALOGUE.values()}, "with")


def russian_errors_page() -> str:
    """docs/ru/errors.md."""
    meanings = {each.code: russian.MEANINGS.get(each.code, each.meaning) for each in CATALOGUE.values()}
    return _errors(russian, meanings, "с")


def _errors(words: ModuleType, meanings: Mapping[str, str], with_: str) -> str:
    rows = sorted(CATALOGUE.values(), key=lambda each: each.status)
    lines = [_error_row(entry, meanings[entry.code], words.DO, with_) for entry in rows]
    calls = [_call_row(operation) for operation in OPERATIONS if operation.refusals]
    return "".join([_NOTE, words.ERRORS_HEAD, "\n".join(lines), words.ERRORS_BY_CALL, "\n".join(calls), "\n"])


def _call_row(operation: Operation[Any]) -> str:
    codes = [f"{status} `{code}`" for status, each in sorted(operation.refusals.items()) for code in each]
    return f"| `{operation.method.upper()} {operation.path.removeprefix(API)}` | {', '.join(codes)} |"


def _error_row(entry: Entry, meaning: str, advice: Mapping[Retry, str], with_: str) -> str:
    statuses = (entry.status, *entry.variants)
    shown = ", ".join(map(str, statuses))
    do = advice[entry.retry]
    do += "".join(
        f"; {with_} {status}: {advice[entry.retry_at(status)]}"
        for status in entry.variants
        if entry.retry_at(status) is not entry.retry
    )
    return f"| {shown} | `{entry.code}` | {meaning} | {do} |"


def states_page() -> str:
    """docs/states.md."""
    parts = [_NOTE, english.STATES_HEAD]
    for name, (title, moves, page) in TABLES.items():
        triggers = [row.trigger for row in moves.rows]
        image = f"![States: {title}](images/states-{name}.svg)"
        more = f"[{page.partition('#')[0]}]({page})"
        parts += _states(english, title, image, moves, triggers, more)
    return "\n".join(parts).rstrip() + "\n"


def russian_states_page() -> str:
    """docs/ru/states.md. Raises: KeyError, for a table that has no Russian title."""
    parts = [_NOTE, russian.STATES_HEAD]
    for name, (_, moves, _) in TABLES.items():
        title, linked, page = russian.STATES[name]
        triggers = [russian.TRIGGERS.get(row.trigger, row.trigger) for row in moves.rows]
        image = f"![Состояния: {title}](../images/states-{name}.svg)"
        parts += _states(russian, title, image, moves, triggers, f"[{linked}]({page})")
    return "\n".join(parts).rstrip() + "\n"


def _states(
    words: ModuleType, title: str, image: str, moves: Moves[Any, Any], triggers: Sequence[str], more: str
) -> Iterator[str]:
    yield f"## {title}\n\n{image}\n"
    yield f"{words.STATES_COLUMNS}\n|---|---|---|"
    for row, trigger in zip(moves.rows, triggers, strict=True):
        yield f"| `{row.before}` | `{row.after}` | {trigger} |"
    yield f"\n{words.STATES_MORE}: {more}\n"


def payloads_page() -> str:
    """docs/payloads.md."""
    return _payloads(english, {title: title for title in PAYLOADS.values()}, {})


def russian_payloads_page() -> str:
    """docs/ru/payloads.md. Raises: KeyError, for a body that has no Russian title."""
    return _payloads(russian, russian.PAYLOADS, russian.FIELDS)


def _payloads(words: ModuleType, titles: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    """Return the page of payloads. `meanings` translates meanings of fields; others stay English."""
    document = openapi_document("https://pay.example")
    parts = [_NOTE, words.PAYLOADS_HEAD]
    for name, title in PAYLOADS.items():
        events = [event.value for event in EventType if EVENT_PAYLOADS[event].__name__ == name]
        schema = document["components"]["schemas"][name]
        lines = [f"## {titles[title]}\n", ", ".join(f"`{event}`" for event in events) + ".\n"]
        lines += [words.PAYLOADS_COLUMNS, "|---|---|---|---|"]
        for field, each in schema["properties"].items():
            required = words.YES if field in schema["required"] else words.NO
            kind = _kind(each, document["components"]["schemas"], words)
            meaning = meanings.get(each["description"], each["description"])
            lines.append(f"| `{field}` | {required} | {kind} | {meaning} |")
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any], words: ModuleType) -> str:
    """The type of a field in words, or its values where they are listed."""
    if "anyOf" in schema:
        kinds = [_kind(each, schemas, words) for each in schema["anyOf"] if each.get("type") != "null"]
        return f" {words.OR} ".join([*kinds, "null"])
    if "$ref" in schema:
        return _kind(schemas[schema["$ref"].rpartition("/")[2]], schemas, words)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "minimum" in schema:
        return f"{schema['type']}, {words.BETWEEN.format(schema['minimum'], schema['maximum'])}"
    return str(schema["type"])


def cli_page() -> str:
    """docs/cli.md: as it is written, with the table of commands at its end."""
    rows = [f"| `{usage}` | {summary} |" for usage, summary in _commands(cli, "cambist")]
    written = (DOCS / "cli.md").read_text("utf-8").partition(_COMMANDS)[0]
    return written + _COMMANDS + "\n".join(rows) + "\n"


def embedding_page() -> str:
    """docs/embedding.md: as it is written, with the signatures at its end."""
    return (DOCS / "embedding.md").read_text("utf-8").partition(HEADING)[0] + signatures()


def settings_page() -> str:
    """docs/settings.md."""
    shared: dict[str, Option] = {}
    parts = [_NOTE, english.SETTINGS_HEAD, _settings("The installation", _own_settings())]
    for kind, adapters in SHIPPED.items():
        for name in adapters:
            options = [option for option in declared(kind, name) if option.name not in shared]
            shared |= {option.name: option for option in options}
            if options:
                setting = KINDS[kind].settings[0]
                parts.append(_settings(f"`{setting}`: `{name}`", options))
    return "\n".join(parts)


def _own_settings() -> list[Option]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    return [option.with_default(defaults.get(name)) for name, option in OPTIONS.items()]


def _settings(title: str, options: Iterable[Option]) -> str:
    rows = [
        f"| `{option.variable}` | {option.meaning.replace('|', chr(92) + '|').replace('*', chr(92) + '*')} "
        f"| {'yes' if option.secret else ''} |"
        for option in options
    ]
    return "\n".join([f"## {title}\n", "| Setting | Meaning | Secret |", "|---|---|---|", *rows, ""])


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield each command with its arguments and the first sentences of its help."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None  # noqa: S101 - a group has what it lists
            yield from _commands(found, f"{name} {each}")
        return
    arguments = [each.human_readable_name.upper() for each in command.params if isinstance(each, click.Argument)]
    summary = " ".join((command.help or "").partition("\n\n")[0].split())
    yield " ".join([name, *arguments]), summary.replace("|", "\\|")


def diagram(moves: Moves[Any, Any]) -> str:
    """The table as a graph, in Graphviz's language."""
    states = list(dict.fromkeys(state for row in moves.rows for state in (row.before, row.after)))
    lines = [
        "digraph states {",
        '  graph [rankdir=TB nodesep=0.45 ranksep=0.5 bgcolor="white" pad=0.3 fontname="sans-serif"]',
        '  node [shape=box style="rounded,filled" color="#2152d9" fontname="sans-serif" fontsize=12]',
        '  edge [color="#566073" fontcolor="#404858" fontname="sans-serif" fontsize=10 arrowsize=0.7]',
    ]
    lines += [
        f'  "{state}" [penwidth={2.5 if moves.is_final(state) else 1} fillcolor="{_fill(moves, state)}"]'
        for state in states
    ]
    lines += [f'  "{row.before}" -> "{row.after}" [label=" {_broken(row.trigger)} "]' for row in moves.rows]
    return "\n".join([*lines, "}", ""])


def _fill(moves: Moves[Any, Any], state: Any) -> str:
    return "#f1f4f9" if moves.is_final(state) else "#eef3ff"


def _broken(text: str, width: int = 22) -> str:
    """A label of several short lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\\n".join(lines)


def source_mark(source: str) -> str:
    """Return the element that ties a drawing to its source."""
    return f"<desc>{escape(source)}</desc>"


def is_drawn(path: Path, source: str) -> bool:
    """Whether the drawing there is of this graph."""
    return path.exists() and source_mark(source) in path.read_text("utf-8")


def draw(source: str) -> str:
    """The drawing of a graph, as SVG that carries its source."""
    done = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True)  # noqa: S607
    head, found, rest = done.stdout.partition("<g id=")
    return f"{head}{source_mark(source)}\n{found}{rest}"


def calls_page() -> bytes:
    """frontends/http/openapi/client_calls.json."""
    from docs.client_calls import client_calls

    calls = client_calls(openapi_document("https://pay.example"))
    return msgspec.json.format(msgspec.json.encode(calls), indent=1) + b"\n"


def main() -> None:
    """Write everything; without Graphviz all but the drawings, and fail where one of them is stale."""
    from tests.openapi_tour import EXAMPLES, recorded

    IMAGES.mkdir(exist_ok=True)
    (DOCS / "errors.md").write_text(errors_page(), "utf-8")
    (DOCS / "ru" / "errors.md").write_text(russian_errors_page(), "utf-8")
    (DOCS / "states.md").write_text(states_page(), "utf-8")
    (DOCS / "ru" / "states.md").write_text(russian_states_page(), "utf-8")
    (DOCS / "payloads.md").write_text(payloads_page(), "utf-8")
    (DOCS / "ru" / "payloads.md").write_text(russian_payloads_page(), "utf-8")
    (DOCS / "cli.md").write_text(cli_page(), "utf-8")
    (DOCS / "embedding.md").write_text(embedding_page(), "utf-8")
    (DOCS / "settings.md").write_text(settings_page(), "utf-8")
    EXAMPLES.write_bytes(asyncio.run(recorded()))
    CLIENT_CALLS.write_bytes(calls_page())
    sources = {IMAGES / f"states-{name}.svg": diagram(moves) for name, (_, moves, _) in TABLES.items()}
    if shutil.which("dot") is None:
        if stale := [path.name for path, source in sources.items() if not is_drawn(path, source)]:
            sys.exit(f"not drawn anew: {', '.join(stale)}; there is no `dot`: install Graphviz (apt install graphviz)")
        return
    for path, source in sources.items():
        path.write_text(draw(source), "utf-8")


if __name__ == "__main__":
    main()
