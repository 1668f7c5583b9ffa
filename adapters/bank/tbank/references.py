"""What the core knows a payment, a charge or a binding at T-Bank by, and what T-Bank knows them by."""

import re

import msgspec

from ....ports.faults import Refused
from ....ports.operations import short_operation

_FORM = re.compile(
    r"(?P<terminal>[A-Za-z0-9]{1,20})/(?P<payment>[0-9]{1,20})/(?P<kopecks>[0-9]{1,15})(/(?P<key>[A-Za-z0-9-]{1,64}))?\Z"
)
_PAYMENT = re.compile(r"pay_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")

NO_PAYMENT = "0"
"""Stands for a PaymentId where there is none: a binding that charges nothing, a charge that was never begun there."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """`terminal/PaymentId/kopecks`, and of a binding `/RequestKey`. The terminal says whose credentials to use; the
    amount is the one that was asked for, since after a refund T-Bank may tell what is left."""

    terminal: str
    payment_id: str
    kopecks: int
    request_key: str | None = None

    def __str__(self) -> str:
        end = "" if self.request_key is None else f"/{self.request_key}"
        return f"{self.terminal}/{self.payment_id}/{self.kopecks}{end}"

    @property
    def payment(self) -> str:
        """By which the payment's facts are noted."""
        return f"{self.terminal}/{self.payment_id}"


def find_reference(text: str) -> Reference | None:
    """The reference, or None for what is none of ours."""
    found = _FORM.match(text)
    if found is None:
        return None
    return Reference(
        terminal=found["terminal"],
        payment_id=found["payment"],
        kopecks=int(found["kopecks"]),
        request_key=found["key"],
    )


def read_reference(text: str) -> Reference:
    """The reference. Raises: Refused `not_found`."""
    found = find_reference(text)
    if found is None:
        raise Refused("tbank: no such reference", reason="not_found")
    return found


def order_id(operation: str) -> str:
    """What T-Bank is told as OrderId, 36 characters: a payment's own UUID, by which it is found in the cabinet, too; of
    any other operation its digest."""
    payment = _PAYMENT.match(operation)
    return short_operation(operation) if payment is None else payment[1]
