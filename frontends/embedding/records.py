"""Objects that an embedding program gets: the records of the client, decoded from the API's objects, so that both have
one shape (docs/embedding.md "Records")."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ...core.domain import movements as _movements
from ...core.domain.payments import payments as _payments
from ...core.domain.refunds import refunds as _refunds
from ...core.domain.settlement import settlement as _settlement
from ...core.usecases.ledger import balance as _balance
from ...core.usecases.ledger.conversions import conversions_of
from ...ports.bundle import Ports
from ..client.money import Balance
from ..client.movements import Movement
from ..client.payments import Payment
from ..client.refunds import Refund
from ..client.settlements import Settlement
from ..http.records import balance_view, movement_view, payment_view, refund_view, settlement_view

T = TypeVar("T")


def payment_record(ports: Ports, payment: _payments.Payment) -> Payment:
    """Return a payment."""
    return _read(payment_view(ports, payment), Payment)


def refund_record(refund: _refunds.Refund) -> Refund:
    """Return a refund."""
    return _read(refund_view(refund), Refund)


def settlement_record(settlement: _settlement.Settlement) -> Settlement:
    """Return a statement."""
    return _read(settlement_view(settlement), Settlement)


async def movement_records(ports: Ports, movements: Sequence[_movements.Movement]) -> list[Movement]:
    """Return movements, with the conversions that caused them."""
    found = await conversions_of(ports, movements)
    return [_read(movement_view(each, found.get(each.number)), Movement) for each in movements]


def balance_record(balance: _balance.Balance) -> Balance:
    """Return a balance."""
    return _read(balance_view(balance), Balance)


def _read(view: msgspec.Struct, kind: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(view), type=kind)
