"""Closing an invoice that nobody shall pay any more (docs/adapters.md "What an invoice says")."""

from contextlib import suppress
from typing import cast

from ....ports.bank import CancellingBank
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from .watch import Banked, at_bank


async def close_invoice(ports: Ports, of: Banked, reference: str) -> None:
    """Close the invoice of something that is over, where its bank can, so that no late money comes. To be called when
    the bank has just called it open: so once, since the bank calls it closed from then on. What has no end is heard by
    the next look, which finds it closed, paid, or open still."""
    can = ports.banks.capabilities_of(of.bank)
    if can is None or not can.cancels_invoices:
        return
    with suppress(*NO_ANSWER):
        async with at_bank(ports, of) as bank:
            await cast("CancellingBank", bank).cancel_invoice(reference)
