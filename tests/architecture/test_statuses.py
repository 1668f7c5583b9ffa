"""One function a subject writes the status of its records, by their state table, and the sequence of their events."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from cambist.core.domain.kyc.clients import KYC_MOVES
from cambist.core.domain.machine import Moves
from tests.tables import table

ROOT = Path(__file__).parents[2]

FIELDS = {"status", "kyc", "sequence"}
COPIES = {"replace", "change", "changed", "increase", "force_setattr", "setattr"}
"""The calls by which a record is given another field."""

CHANGES = {"changes", "said", "after"}
"""Names of the variables that collect the fields which such a call takes as `**changes`."""

WRITERS = {
    "payments/payments.py": {"moved_to", "announced"},
    "refunds/refunds.py": {"moved_to"},
    "receipts/receipts.py": {"moved_to"},
    "settlement/withdrawals.py": {"moved_to"},
    "exchanges/exchanges.py": {"moved_to"},
    "exchanges/payouts.py": {"_moved_to"},
    "exchanges/returns.py": {"return_moved"},
    "subscriptions/moves.py": {"moved_to", "announced", "untold"},
    "payments/proofs.py": {"moved_to"},
    "kyc/clients.py": {"moved_to", "staged"},
    "exports/exports.py": {"moved_to"},
    # Observed or counted statuses, without a table of transitions.
    "gateways/gateways.py": {"changed", "announced"},
    "operators/pending_actions.py": {"approved", "decided"},
    "reconciliation/reconciliation.py": {"started", "compared", "failed"},
    "webhooks/delivery.py": {"after_attempt", "sent_anew", "_ended"},
}
"""Functions that may change a status, by the file in core/domain: `moved_to`, or the subject's name for it, and those
for an event without a status change."""


def writes(tree: ast.Module) -> Iterator[str]:
    """The names of the top-level functions that give a record one of FIELDS; `<module>` outside of all."""
    for top in tree.body:
        name = top.name if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else "<module>"
        if any(_writes(node) for node in ast.walk(top)):
            yield name


def _writes(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in COPIES:
            named = {keyword.arg for keyword in node.keywords}
            said = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
            return bool(FIELDS & (named | said)) or any(_names_field(keyword.value) for keyword in node.keywords)
        case ast.Assign(targets=[target], value=value):
            return _is_field(target) or (_holds_changes(target) and _names_field(value))
        case ast.AugAssign(target=target, value=value):
            return _is_field(target) or (_holds_changes(target) and _names_field(value))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _holds_changes(target) and _names_field(value)
        case _:
            return False


def _names_field(value: ast.expr) -> bool:
    return isinstance(value, ast.Dict) and any(
        isinstance(key, ast.Constant) and key.value in FIELDS for key in value.keys
    )


def _holds_changes(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id in CHANGES


def _is_field(target: ast.expr) -> bool:
    match target:
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return owner != "self" and name in FIELDS
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=name)):
            return owner in CHANGES and name in FIELDS
        case _:
            return False


def test_a_state_table_says_once_where_a_trigger_leads() -> None:
    with pytest.raises(ValueError, match="says once"):
        Moves((*KYC_MOVES.rows, KYC_MOVES.rows[0]))


def test_only_the_listed_functions_write_a_status_or_a_sequence() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "core").rglob("*.py")):
        functions = set(writes(ast.parse(path.read_text("utf-8"))))
        if functions:
            found[str(path.relative_to(ROOT))] = functions
    assert found == {f"core/domain/{name}": functions for name, functions in WRITERS.items()}


@table(
    "line",
    [
        "msgspec.structs.replace(payment, status=after)",
        "replace(payment, amount=1, sequence=payment.sequence + 1)",
        "unit[Payment].change(payment, status=after)",
        "changed(subscription, now, status=after)",
        "unit[Payment].increase(payment.id, 'sequence', 1)",
        "changes = {'status': after}",
        "changes['kyc'] = after",
        "changes |= {'status': after}",
        "changes: dict[str, object] = {'sequence': 1}",
        "replace(payment, **{'status': after})",
        "payment.status = after",
        "payment.sequence += 1",
        "setattr(payment, 'status', after)",
    ],
)
def test_every_way_of_writing_one_is_seen(line: str) -> None:
    assert list(writes(ast.parse(f"def slip():\n    {line}"))) == ["slip"]


@table(
    "line",
    [
        "Payment(status=first)",
        "find(status=first)",
        "replace(payment, amount=1)",
        "seen.status is first",
        "asked = {'status': first}",
    ],
)
def test_making_and_reading_a_record_is_no_writing(line: str) -> None:
    assert list(writes(ast.parse(f"def fine():\n    {line}"))) == []
