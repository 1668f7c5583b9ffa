"""Receipts as stored: the items of a payment or refund after defaults and discounts (docs/receipts.md). The fields have
the names and values of ports/receipts.py: Receipt."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.receipts import PaymentMode, PaymentSubject, ReceiptTerms, TaxSystem, Vat
from ..masked import Masked
from .sums import WHOLE, line_sum, priced, spread

AGENTS = (
    *("bank_agent", "bank_subagent", "payment_agent", "payment_subagent"),
    *("attorney", "commissioner", "agent"),
)
MARKS = ("unknown", "ean_8", "ean_13", "itf_14", "gs_1m", "short", "fur", "egais_20", "egais_30")


class ReceiptAgent(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """You sell the item for another (tags 1222, 1223)."""

    type: Annotated[str, Meta(description="In which capacity you sell for the supplier"), shared.among(AGENTS)]
    operation: Annotated[str | None, Meta(description="Bank agents: the operation, up to 24 characters")] = None
    phones: Annotated[tuple[str, ...] | None, Meta(description="Bank and payment agents: phones of the agent")] = None
    receiver_phones: Annotated[
        tuple[str, ...] | None, Meta(description="Payment agents: phones of the operator that receives payments")
    ] = None
    transfer_phones: Annotated[
        tuple[str, ...] | None, Meta(description="Bank agents: phones of the money transfer operator")
    ] = None
    operator_name: Annotated[str | None, Meta(description="Bank agents: up to 64 characters")] = None
    operator_address: Annotated[str | None, Meta(description="Bank agents: up to 243 characters")] = None
    operator_inn: Annotated[str | None, Meta(description="Bank agents: 10 or 12 digits")] = None


class ReceiptSupplier(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Supplier of an item that you sell as an agent (tags 1224, 1226)."""

    name: Annotated[str, Meta(description="Up to 200 characters")]
    inn: Annotated[str, Meta(description="10 or 12 digits")]
    phone: Annotated[shared.Phone, Meta(description="Phone of the supplier")]


class ReceiptMark(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Marking code of the item (tag 1163)."""

    format: Annotated[str, Meta(description="Format of the code"), shared.among(MARKS)]
    value: Annotated[str, Meta(description="The code as the scanner reads it, with its separators `\\u001d`")]


class ReceiptAttribute(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Additional attribute of the receipt (tag 1084)."""

    name: Annotated[str, Meta(description="Up to 64 characters")]
    value: Annotated[str, Meta(description="Up to 234 characters")]


class Line(Masked, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a receipt."""

    name: str
    price_kopecks: int
    """Price of one unit, after discounts."""
    thousandths: int = WHOLE
    measure: str = "piece"
    vat: Vat
    subject: PaymentSubject
    mode: PaymentMode
    agent: ReceiptAgent | None = None
    supplier: ReceiptSupplier | None = None
    mark: ReceiptMark | None = None
    excise_kopecks: int | None = None
    country: str | None = None
    customs_declaration: str | None = None
    additional: str | None = None

    @property
    def kopecks(self) -> int:
        return line_sum(self.price_kopecks, self.thousandths)


class Cart(Masked, frozen=True, kw_only=True, omit_defaults=True):
    """A receipt with its items. It holds personal data: it is stored encrypted only."""

    items: tuple[Line, ...]
    tax_system: TaxSystem
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    inn: str | None = None
    attribute: ReceiptAttribute | None = None

    @property
    def kopecks(self) -> int:
        return sum(line.kopecks for line in self.items)

    @property
    def terms(self) -> ReceiptTerms:
        """Return the terms of the first item, which the payment shows."""
        first = self.items[0]
        return ReceiptTerms(tax_system=self.tax_system, vat=first.vat, subject=first.subject, mode=first.mode)


def lines_of(line: Line, kopecks: int) -> Iterator[Line]:
    """Yield the line at this sum: as one line if a price exists, otherwise as several of different prices."""
    for price, thousandths in priced(kopecks, line.thousandths):
        yield msgspec.structs.replace(line, price_kopecks=price, thousandths=thousandths)


_UNMARKED = {
    PaymentSubject.MARKED: PaymentSubject.NON_MARKED,
    PaymentSubject.MARKED_EXCISE: PaymentSubject.NON_MARKED_EXCISE,
}


def part_of(cart: Cart, kopecks: int) -> Cart:
    """Return the receipt of another amount: each line in proportion, without marking codes, because a part of the price
    returns no marked goods (docs/receipts.md "Refunds")."""
    if kopecks == cart.kopecks:
        return cart
    shares = spread(kopecks, [line.kopecks for line in cart.items])
    items = [
        part
        for line, share in zip(cart.items, shares, strict=True)
        if share > 0
        for part in lines_of(_without_mark(line), share)
        if part.price_kopecks > 0
    ]
    if len(items) <= MOST_LINES:
        return msgspec.structs.replace(cart, items=tuple(items))
    # Each line by itself would need too many prices: one line of its whole sum each instead.
    whole = [
        msgspec.structs.replace(_without_mark(line), price_kopecks=share, thousandths=WHOLE)
        for line, share in zip(cart.items, shares, strict=True)
        if share > 0
    ]
    return msgspec.structs.replace(cart, items=tuple(whole))


MOST_LINES = 100
"""Most lines of a receipt at the banks."""


def _without_mark(line: Line) -> Line:
    subject = _UNMARKED.get(line.subject, line.subject)
    return msgspec.structs.replace(line, mark=None, excise_kopecks=None, subject=subject)
