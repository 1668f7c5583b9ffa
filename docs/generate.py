"""Writes the pages that say what the code says: `python docs/generate.py`, or `nox -s generate`.

- docs/errors.md, from the catalogue of refusals;
- docs/states.md and docs/images/states-*.svg, from the tables of moves; drawing needs Graphviz (its `dot`);
- frontends/http/openapi_examples.json, from a tour through every operation.

All are committed, so that they can be read without building anything; `tests/docs/test_generated.py` says when one is
stale. A drawing carries its source, by which it is told.
"""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cambist.core.domain.clients import KYC_MOVES  # noqa: E402  (the program need not be installed)
from cambist.core.domain.errors import CATALOGUE, Entry, Retry  # noqa: E402
from cambist.core.domain.exchanges import EXCHANGE_MOVES, Direction  # noqa: E402
from cambist.core.domain.machine import Moves  # noqa: E402
from cambist.core.domain.payments import PAYMENT_MOVES  # noqa: E402
from cambist.core.domain.proofs import PROOF_MOVES  # noqa: E402
from cambist.core.domain.refunds import REFUND_MOVES  # noqa: E402
from cambist.core.domain.subscriptions import SUBSCRIPTION_MOVES  # noqa: E402
from cambist.core.domain.withdrawals import WITHDRAWAL_MOVES  # noqa: E402

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"

TABLES: Mapping[str, tuple[str, Moves[Any], str]] = {
    "payment": ("Payment", PAYMENT_MOVES, "payments.md"),
    "refund": ("Refund", REFUND_MOVES, "refunds.md"),
    "subscription": ("Subscription", SUBSCRIPTION_MOVES, "subscriptions.md"),
    "exchange-usdt-rub": ("Exchange, USDT to RUB", EXCHANGE_MOVES[Direction.USDT_TO_RUB], "exchanges.md"),
    "exchange-rub-usdt": ("Exchange, RUB to USDT", EXCHANGE_MOVES[Direction.RUB_TO_USDT], "exchanges.md"),
    "withdrawal": ("Payout", WITHDRAWAL_MOVES, "settlement.md"),
    "delivery-proof": ("Delivery proof", PROOF_MOVES, "payments.md#delivery-proofs"),
    "kyc": ("Verification of an end client (inside)", KYC_MOVES, "kyc.md"),
}
"""Every table of moves that a merchant meets: what it is of, the table, the page that explains it."""

_DO = {
    Retry.NEVER: "change the request",
    Retry.SAME_KEY: "again later, same key",
    Retry.NEW_KEY: "again, new key",
}
_NOTE = "<!-- Made by docs/generate.py: edit the code it names, not this page. -->\n"


def errors_page() -> str:
    """docs/errors.md."""
    rows = sorted(CATALOGUE.values(), key=lambda each: each.status)
    lines = [_error_row(entry) for entry in rows]
    return (
        _NOTE
        + """# Errors

Every error has one form, whatever went wrong:

```json
{"error": {"code": "AMOUNT_BELOW_MINIMUM", "message": "A one-off payment is at least 30 RUB"}}
```

- Go by `code` and by the HTTP status. `message` is for people and may change; do not show it to payers.
- `details` is there only where it says more: an array of `{path, message}` for fields, or an object (`missing_fields`,
  `next_allowed_at`).
- `X-Request-Id` is on every answer. Quote it when you ask the service's operator.
- A code that you do not know: treat it by its status. 4xx: change the request. 429 and 5xx: the same request again
  later, with the same `Idempotency-Key`.

"Same key": the key is not used up, and a repeat cannot create a second object. "New key": the key keeps this answer for
ever. "Change the request": a repeat gives the same answer until something is different; unless the table says
otherwise the key is free, so you may send the corrected request with it.

"Later" is what `Retry-After` says. Without that header: after 30 to 60 seconds for 5xx, and for the rest once what the
message names has happened. No answer at all (a timeout, a connection that broke) is like a 500: it may have been done,
so the same request with the same key. [The Python client](client.md#errors) does all of this by itself.

| HTTP | Code | Meaning | What to do |
|---|---|---|---|
"""
        + "\n".join(lines)
        + "\n"
    )


def _error_row(entry: Entry) -> str:
    statuses = (entry.status, *entry.variants)
    shown = ", ".join(map(str, statuses))
    do = _DO[entry.retry]
    do += "".join(
        f"; with {status}: {_DO[entry.retry_at(status)]}"
        for status in entry.variants
        if entry.retry_at(status) is not entry.retry
    )
    return f"| {shown} | `{entry.code}` | {entry.meaning} | {do} |"


def states_page() -> str:
    """docs/states.md."""
    parts = [
        _NOTE,
        "# States\n\nWhat may become of each object. A move that is not here does not happen. A thick frame marks a "
        "state that nothing leads out of.\n",
    ]
    for name, (title, moves, page) in TABLES.items():
        parts.append(f"## {title}\n\n![States: {title}](images/states-{name}.svg)\n")
        parts.append("| From | To | When |\n|---|---|---|")
        parts += [f"| `{row.before}` | `{row.after}` | {row.trigger} |" for row in moves.rows]
        parts.append(f"\nMore: [{page.partition('#')[0]}]({page})\n")
    return "\n".join(parts).rstrip() + "\n"


def diagram(moves: Moves[Any]) -> str:
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


def _fill(moves: Moves[Any], state: Any) -> str:
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
    """What a drawing carries of its source."""
    return f"<desc>{escape(source)}</desc>"


def draw(source: str) -> str:
    """The drawing of a graph, as SVG that carries its source."""
    done = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True)  # noqa: S607
    head, found, rest = done.stdout.partition("<g id=")
    return f"{head}{source_mark(source)}\n{found}{rest}"


def main() -> None:
    """Write everything."""
    from tests.openapi_tour import EXAMPLES, recorded

    IMAGES.mkdir(exist_ok=True)
    (DOCS / "errors.md").write_text(errors_page(), "utf-8")
    (DOCS / "states.md").write_text(states_page(), "utf-8")
    for name, (_, moves, _) in TABLES.items():
        (IMAGES / f"states-{name}.svg").write_text(draw(diagram(moves)), "utf-8")
    EXAMPLES.write_bytes(asyncio.run(recorded()))


if __name__ == "__main__":
    main()
