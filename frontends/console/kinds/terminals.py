"""Terminals of an account: payment methods with their own rules. After creation they can only be enabled and
disabled."""

from typing import Any

from ....core.domain.accounts.terminals import Terminal
from ....core.usecases.accounts.terminals import disable_terminal, enable_terminal
from ....core.usecases.browse.browse import merged
from ....core.usecases.browse.leaves import Way
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, Kind, Wish, by_id, switches


async def _read(ports: Ports, wish: Wish, after: Terminal | None, limit: int) -> list[Terminal]:
    account = wish.of("account")
    by = "id" if account is None else "created_at"
    criteria = {} if account is None else {"account_id": account}
    async with ports.storage.unit() as unit:
        newest_first = wish.order == "newest"
        return await merged(unit, [Way(Terminal, criteria)], after, limit, by=by, newest_first=newest_first)


_get = by_id(Terminal)


def _facts(each: Terminal) -> list[tuple[str, Any]]:
    return [
        ("label", each.label),
        ("method_id", each.id),
        ("account", each.account_id),
        ("method", each.payment_method),
        ("kind", each.kind),
        ("requires", ", ".join(each.required_fields) or "nothing"),
        ("own lifetime", each.own_lifetime),
        ("direct link", each.direct_link),
        ("credit after receipt", each.credit_follows_receipt),
        ("banks", ", ".join(each.routes) or "the mode's order"),
        ("enabled", each.enabled),
        ("created", each.created_at),
    ]


TERMINALS = Kind(
    name="terminal",
    title="Terminals",
    key="",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="label", cell=lambda each: each.label, width=17, broad=24),
        Column(title="method", cell=lambda each: each.payment_method, width=6),
        Column(title="kind", cell=lambda each: each.kind, width=8),
        Column(title="enabled", cell=lambda each: each.enabled, width=7),
        merchant(13, 20),
        Column(title="terminal", cell=lambda each: each.id, width=36, wide=True),
        Column(title="requires", cell=lambda each: ", ".join(each.required_fields) or None, width=20, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(ACCOUNT,),
    orders=("oldest", "newest"),
    actions=switches("terminal", disable_terminal, enable_terminal, ends="no new payments by it"),
)
