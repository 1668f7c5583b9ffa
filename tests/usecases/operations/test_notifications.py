"""Dispatch of a bank's notifications: one table, by the form of the operation's id (docs/contributing/operation.md)."""

from typing import Any

from cambist.core.domain import ids
from cambist.core.domain.exchanges.exchanges import invoice_operation
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.exchanges.returns import rub_return_operation
from cambist.core.usecases.notifications import HANDLERS
from cambist.core.usecases.operation_kinds import OPERATION_KINDS
from cambist.core.usecases.operations.operation import Operation
from cambist.core.usecases.payments.recurring import binding_operation
from tests.tables import table

A, B = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"
EXCHANGE = ids.prefixed(ids.EXCHANGE, A)

OPERATIONS = [
    ids.prefixed(ids.REFUND, A),
    ids.operation("sus_", A, ids.tail("sus_simulator-test:transfer", 2)),
    rub_return_operation(f"{EXCHANGE}:transfer", 10),
    EXCHANGE,
    invoice_operation(EXCHANGE),
    part_operation(EXCHANGE, 3),
    binding_operation(ids.prefixed(ids.PAYMENT, B)),
    ids.prefixed(ids.PAYMENT, A),
    ids.operation("kyc_", A, 1),
    ids.operation("rcp_", A, 1),
]
"""An operation id of each form: a refund, suspense, RUB of an exchange, the exchange, its invoice and a part of its
payout, a binding, a payment or a charge, a check, a receipt."""


@table("operation", OPERATIONS)
def test_each_form_of_id_has_one_handler(operation: str) -> None:
    assert [handler.owns(operation) for handler in HANDLERS].count(True) == 1


def test_each_handler_has_its_form() -> None:
    """Apart from rows handled with another object: charges and parts of a payout."""
    used = {next(number for number, each in enumerate(HANDLERS) if each.owns(text)) for text in OPERATIONS}
    assert len(HANDLERS) - len(used) == 2


def test_kind_with_notifications_names_the_owner_of_its_operations() -> None:
    """Otherwise a notification of a test account would be handled in real time, not in the account's."""
    kinds: list[type[Operation[Any, Any, Any]]] = [type(kind) for kind in OPERATION_KINDS]
    owning = [kind for kind in kinds if kind.owns is not Operation.owns]
    assert owning
    assert [kind for kind in owning if kind.owner is Operation.owner] == []


@table("operation", ["", "pay_", "ref_x", "kyc_x", f"pay_{A}#2", f"{EXCHANGE}/x", "\0"])
def test_operation_of_a_foreign_form_has_no_handler(operation: str) -> None:
    assert not any(handler.owns(operation) for handler in HANDLERS)
