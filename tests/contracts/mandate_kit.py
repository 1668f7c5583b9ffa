"""Bindings, mandates and charges for the tests of what banks must do with them; the bank itself is of bank_kit.py."""

from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports.bank import RefundRequest
from cambist.ports.faults import Refused
from cambist.ports.mandates import (
    BindingRequest,
    ChargeRequest,
    ChargeState,
    MandateBank,
    MandateEvent,
    MandateSimulation,
    MandateState,
    MandateStatus,
)
from tests.contracts.bank_kit import START

BINDING = "bind_1"
CHARGE = "pay_7"
FIRST = 100_00
LIFETIME = timedelta(hours=24)


def binding(first: int | None = FIRST, operation: str = BINDING) -> BindingRequest:
    """Ask for a mandate, and 100 RUB with it."""
    return BindingRequest(
        operation=operation, first_charge_kopecks=first, purpose="Coffee club", expires_at=START + LIFETIME
    )


async def tell(bank: SimulatedBank, *events: MandateEvent, operation: str = BINDING, **more: Any) -> None:
    """The payer or the bank does this, one after the other."""
    for event in events:
        await bank.simulate_mandate(operation, MandateSimulation(event=event, **more))


async def state_of(bank: MandateBank, operation: str = BINDING) -> MandateState:
    found = await bank.find_binding(operation)
    assert found is not None
    return await bank.mandate_state(found.reference)


async def bound(bank: SimulatedBank, operation: str = BINDING, first: int | None = FIRST) -> MandateState:
    """A mandate that a payer has just given."""
    await bank.bind(binding(first, operation))
    await tell(bank, MandateEvent.CONFIRM, operation=operation)
    state = await state_of(bank, operation)
    assert state.status is MandateStatus.ACTIVE
    return state


def debit(mandate: MandateState, kopecks: int = 250_00, operation: str = CHARGE, **more: Any) -> ChargeRequest:
    """Charge this mandate 250 RUB."""
    fields: dict[str, Any] = {"reference": mandate.reference, "token": mandate.token, **more}
    return ChargeRequest(operation=operation, amount_kopecks=kopecks, purpose="Coffee club", **fields)


async def charge_of(bank: MandateBank, operation: str = CHARGE) -> ChargeState:
    found = await bank.find_charge(operation)
    assert found is not None
    return found


async def is_refused(bank: MandateBank, request: ChargeRequest, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        await bank.charge(request)
    assert refused.value.reason == reason
    assert await bank.find_charge(request.operation) is None


async def has_debited(bank: MandateBank, reference: str, kopecks: int) -> None:
    """Check that the bank debited exactly this much, by refunding it."""
    for number, amount in enumerate((kopecks + 1, kopecks)):
        request = RefundRequest(operation=f"ref_{reference}_{number}", reference=reference, amount_kopecks=amount)
        if amount > kopecks:
            with pytest.raises(Refused):
                await bank.refund(request)
        else:
            await bank.refund(request)
