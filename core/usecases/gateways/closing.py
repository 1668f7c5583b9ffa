"""Closing of an invoice that must not be paid any more (docs/adapters.md "Fields of an invoice")."""

from contextlib import suppress
from typing import cast

from ....ports.bank import CancellingBank
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from .watch import Banked, at_bank


async def close_invoice(ports: Ports, of: Banked, reference: str) -> None:
    """Close the invoice of a finished object if its bank supports that, so that no late money comes.

    Call it when the bank has just reported the invoice as open. The bank reports it as closed afterwards, so this
    happens once. If the outcome is unknown, the next poll finds the invoice closed, paid or still open.
    """
    can = ports.banks.capabilities_of(of.bank)
    if can is None or not can.cancels_invoices:
        return
    with suppress(*NO_ANSWER):
        async with at_bank(ports, of) as bank:
            await cast("CancellingBank", bank).cancel_invoice(reference)
