"""References of payments, charges and bindings in the core, and their ids at T-Bank."""

import re

import msgspec

from ....ports.faults import Refused
from ....ports.operations import short_operation

_FORM = re.compile(
    r"(?P<terminal>[A-Za-z0-9]{1,20})/(?P<payment>[0-9]{1,20})/(?P<kopecks>[0-9]{1,15})(/(?P<key>[A-Za-z0-9-]{1,64}))?\Z"
)
_PAYMENT = re.compile(r"pay_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")

NO_PAYMENT = "0"
"""Placeholder where no PaymentId exists: for a binding without a first charge, or a charge that T-Bank never saw."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference `terminal/PaymentId/kopecks`, followed by `/RequestKey` for a binding.

    The terminal selects the credentials. The amount is the requested one, because after a refund T-Bank may show only
    the rest.
    """

    terminal: str
    payment_id: str
    kopecks: int
    request_key: str | None = None

    def __str__(self) -> str:
        end = "" if self.request_key is None else f"/{self.request_key}"
        return f"{self.terminal}/{self.payment_id}/{self.kopecks}{end}"

    @property
    def payment(self) -> str:
        """Key of the notes about the payment."""
        return f"{self.terminal}/{self.payment_id}"


def find_reference(text: str) -> Reference | None:
    """Parse a reference. Return None if it is not one of ours."""
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
    """Parse a reference. Raises: Refused `not_found`."""
    found = find_reference(text)
    if found is None:
        raise Refused("tbank: no such reference", reason="not_found")
    return found


def order_id(operation: str) -> str:
    """Return the OrderId for T-Bank, 36 characters. For a payment it is the payment's own UUID, so that it can be found
    in the cabinet; for other operations a digest."""
    payment = _PAYMENT.match(operation)
    return short_operation(operation) if payment is None else payment[1]
