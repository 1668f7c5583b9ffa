"""The second receipt, at delivery after a prepayment (docs/receipts.md "Second receipt")."""

from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.receipts import PaymentMode, ReceiptTerms, Vat
from ..masked import Masked
from .carts import Cart
from .orders import ReceiptOrder


class SecondReceiptOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /receipts."""

    _shown = ("payment_id",)

    payment_id: Annotated[str, shared.PAYMENT_ID]
    receipt: Annotated[
        ReceiptOrder | None,
        Meta(description="What is delivered; if absent, the items of the payment, with `full_payment` and plain rates"),
    ] = None


PREPAID = frozenset((PaymentMode.FULL_PREPAYMENT, PaymentMode.PREPAYMENT, PaymentMode.ADVANCE))

PLAIN_RATES = {
    Vat.VAT_5_105: Vat.VAT_5,
    Vat.VAT_7_107: Vat.VAT_7,
    Vat.VAT_10_110: Vat.VAT_10,
    Vat.VAT_20_120: Vat.VAT_20,
    Vat.VAT_22_122: Vat.VAT_22,
}
"""The rate at delivery by the calculated rate of the prepayment."""


def modes_of(terms: ReceiptTerms, cart: Cart | None) -> frozenset[PaymentMode]:
    """Return the payment methods of a payment's first receipt."""
    return frozenset((terms.mode,)) if cart is None else frozenset(line.mode for line in cart.items)


def delivered(cart: Cart) -> Cart:
    """Return the second receipt of a cart: everything is delivered now, at plain rates."""
    items = (
        msgspec.structs.replace(line, mode=PaymentMode.FULL_PAYMENT, vat=PLAIN_RATES.get(line.vat, line.vat))
        for line in cart.items
    )
    return msgspec.structs.replace(cart, items=tuple(items))
