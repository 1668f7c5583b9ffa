"""The receipt in the body of POST /payments, its rules, and the cart that follows from it (docs/receipts.md)."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Settings
from ..accounts.receipts import PaymentMode, PaymentSubject, TaxSystem, Vat, is_email
from ..errors import value_error
from ..masked import Masked
from ..money import Rub
from .carts import (
    AGENTS,
    MARKS,
    MOST_LINES,
    Cart,
    Line,
    ReceiptAgent,
    ReceiptAttribute,
    ReceiptMark,
    ReceiptSupplier,
    lines_of,
)
from .sums import WHOLE, spread
from .texts import printed

MEASURES = (
    *("piece", "gram", "kilogram", "ton", "centimeter", "decimeter", "meter"),
    *("square_centimeter", "square_decimeter", "square_meter", "milliliter", "liter", "cubic_meter"),
    *("kilowatt_hour", "gigacalorie", "day", "hour", "minute", "second"),
    *("kilobyte", "megabyte", "gigabyte", "terabyte", "another"),
)
_PRICE_MOST = 99_999_999_99
_QUANTITY = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,3})?\Z")
_PHONE = re.compile(r"\+[0-9]{10,15}\Z")
_INN = re.compile(r"(?:[0-9]{10}|[0-9]{12})\Z")
_COUNTRY = re.compile(r"[A-Z]{2}\Z")
_VISIBLE = re.compile(r"[\x1d\x21-\x7e]*\Z")
_DIGITS = re.compile(r"[0-9]*\Z")
_MARK_LENGTHS = {
    "unknown": range(1, 33),
    "ean_8": range(8, 9),
    "ean_13": range(13, 14),
    "itf_14": range(14, 15),
    "gs_1m": range(1, 201),
    "short": range(1, 39),
    "fur": range(20, 21),
    "egais_20": range(33, 34),
    "egais_30": range(14, 15),
}
_EMAIL_LONGEST = 64

T = TypeVar("T")


class ReceiptItem(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item of a receipt."""

    name: Annotated[str, Meta(description="What is sold, 1 to 128 characters")]
    price: Annotated[shared.RubText, Meta(description="Price of one unit, in RUB, before `discount`")]
    quantity: Annotated[
        Annotated[str, shared.limits(pattern=r"^[0-9]{1,5}(\.[0-9]{1,3})?$")],
        Meta(description="Quantity, up to 3 decimals"),
    ] = "1"
    measure: Annotated[str, Meta(description="Unit of the quantity"), shared.among(MEASURES)] = "piece"
    vat: Annotated[Annotated[str, shared.among(Vat)] | None, Meta(description="VAT rate; the account's if absent")] = (
        None
    )
    subject: Annotated[
        Annotated[str, shared.among(PaymentSubject)] | None,
        Meta(description="Subject of the payment; the account's if absent"),
    ] = None
    method: Annotated[
        Annotated[str, shared.among(PaymentMode)] | None,
        Meta(description="Method of payment; the account's if absent"),
    ] = None
    agent: Annotated[ReceiptAgent | None, Meta(description="If you sell for another; needs `supplier`")] = None
    supplier: Annotated[ReceiptSupplier | None, Meta(description="The supplier for whom you sell")] = None
    mark_code: Annotated[ReceiptMark | None, Meta(description="Marking code; then `quantity` is 1")] = None
    excise: Annotated[shared.RubText | None, Meta(description="Excise within the sum, in RUB")] = None
    country: Annotated[str | None, Meta(description="Country of origin: ISO 3166, two letters")] = None
    customs_declaration: Annotated[str | None, Meta(description="Number of the customs declaration, up to 32")] = None
    additional: Annotated[str | None, Meta(description="Additional attribute of the item, up to 64 characters")] = None


class ReceiptCustomer(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The customer; e-mail and phone are those of the payment if absent."""

    email: Annotated[str | None, Meta(description="Address for the receipt, up to 64 characters")] = None
    phone: Annotated[shared.Phone | None, Meta(description="Phone for the receipt")] = None
    name: Annotated[str | None, Meta(description="Name of the customer, up to 239 characters")] = None
    inn: Annotated[str | None, Meta(description="Taxpayer number of the customer: 10 or 12 digits")] = None


class ReceiptOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receipt by 54-FZ (docs/receipts.md). The sum of its items, less `discount`, is the amount."""

    items: Annotated[list[ReceiptItem], Meta(description="1 to 100 items"), shared.limits(minItems=1, maxItems=100)]
    customer: Annotated[ReceiptCustomer | None, Meta(description="The customer")] = None
    tax_system: Annotated[
        Annotated[str, shared.among(TaxSystem)] | None, Meta(description="Your tax system; the account's if absent")
    ] = None
    discount: Annotated[
        shared.RubText | None, Meta(description="Discount on the whole receipt, spread over its items")
    ] = None
    attribute: Annotated[ReceiptAttribute | None, Meta(description="Additional attribute of the receipt")] = None


class Contact(Masked, frozen=True, kw_only=True):
    """Contact that the order gives outside its receipt."""

    email: str | None = None
    phone: str | None = None


def cart_of(order: ReceiptOrder, amount: Rub, settings: Settings, contact: Contact) -> Cart:
    """Return the cart of a receipt, with the account's settings where the order is silent.

    Raises: Refusal VALIDATION_ERROR (422), naming the item and the field.
    """
    if not 1 <= len(order.items) <= MOST_LINES:
        raise value_error("receipt.items", f"has 1 to {MOST_LINES} items")
    lines = [_line(f"receipt.items[{index}]", item, settings) for index, item in enumerate(order.items)]
    lines = _discounted(order, lines)
    total = sum(line.kopecks for line in lines)
    if total != amount.kopecks:
        less = "" if order.discount is None else " less the discount"
        raise value_error("receipt.items", f"the sum of the items{less} is {Rub(total)}, not the amount {amount}")
    if len(lines) > MOST_LINES:
        raise value_error("receipt.discount", f"would make more than {MOST_LINES} lines of different prices")
    return _with_customer(
        Cart(
            items=tuple(lines),
            tax_system=_word("receipt.tax_system", order.tax_system, settings.receipt_tax_system, TaxSystem),
            attribute=None if order.attribute is None else _attribute(order.attribute),
        ),
        order.customer or ReceiptCustomer(),
        contact,
        settings,
    )


def _with_customer(cart: Cart, customer: ReceiptCustomer, contact: Contact, settings: Settings) -> Cart:
    path = "receipt.customer"
    if customer.email is not None and not (is_email(customer.email) and len(customer.email) <= _EMAIL_LONGEST):
        raise value_error(f"{path}.email", f"must be an e-mail address of at most {_EMAIL_LONGEST} characters")
    _phones(f"{path}.phone", () if customer.phone is None else (customer.phone,))
    email, phone = customer.email, customer.phone
    if email is None and phone is None:
        usable = contact.email if is_email(contact.email) and len(contact.email or "") <= _EMAIL_LONGEST else None
        email, phone = usable, contact.phone
    if email is None and phone is None:
        email = settings.receipt_email
    if email is None and phone is None:
        raise value_error(path, "has an email or a phone, or the payment has client_email or client_phone")
    if customer.inn is not None:
        _inn(f"{path}.inn", customer.inn)
    name = None if customer.name is None else printed(f"{path}.name", customer.name, 239)
    return msgspec.structs.replace(cart, email=email, phone=phone, name=name, inn=customer.inn)


def _line(path: str, item: ReceiptItem, settings: Settings) -> Line:
    if item.measure not in MEASURES:
        raise value_error(f"{path}.measure", f"must be one of: {', '.join(MEASURES)}")
    if (item.agent is None) is not (item.supplier is None):
        raise value_error(f"{path}.supplier", "is there if and only if there is an agent")
    line = Line(
        name=printed(f"{path}.name", item.name, 128),
        price_kopecks=_money(f"{path}.price", item.price),
        thousandths=_thousandths(f"{path}.quantity", item.quantity),
        measure=item.measure,
        vat=_word(f"{path}.vat", item.vat, settings.receipt_vat, Vat),
        subject=_word(f"{path}.subject", item.subject, settings.receipt_subject, PaymentSubject),
        mode=_word(f"{path}.method", item.method, settings.receipt_mode, PaymentMode),
        agent=None if item.agent is None else _agent(f"{path}.agent", item.agent),
        supplier=None if item.supplier is None else _supplier(f"{path}.supplier", item.supplier),
        excise_kopecks=None if item.excise is None else _money(f"{path}.excise", item.excise),
        customs_declaration=_optional(f"{path}.customs_declaration", item.customs_declaration, 32),
        additional=_optional(f"{path}.additional", item.additional, 64),
    )
    if not 0 < line.kopecks <= _PRICE_MOST:
        raise value_error(f"{path}.price", f"times quantity must be from 0.01 to {Rub(_PRICE_MOST)}")
    if item.country is not None and not _COUNTRY.match(item.country):
        raise value_error(f"{path}.country", "must be two capital letters of ISO 3166")
    if line.excise_kopecks is not None and line.excise_kopecks > line.kopecks:
        raise value_error(f"{path}.excise", "is at most the sum of the item")
    _check_mark(path, item.mark_code, line)
    return msgspec.structs.replace(line, mark=item.mark_code, country=item.country)


def _check_mark(path: str, mark: ReceiptMark | None, line: Line) -> None:
    if (mark is not None) is not (line.subject in (PaymentSubject.MARKED, PaymentSubject.MARKED_EXCISE)):
        raise value_error(f"{path}.mark_code", "is there if and only if subject is marked or marked_excise")
    if mark is None:
        return
    if mark.format not in MARKS:
        raise value_error(f"{path}.mark_code.format", f"must be one of: {', '.join(MARKS)}")
    form = _DIGITS if mark.format in ("ean_8", "ean_13", "itf_14") else _VISIBLE
    lengths = _MARK_LENGTHS[mark.format]
    if len(mark.value) not in lengths or not form.match(mark.value):
        # The code itself is not quoted: a stranger could use it.
        few, many = lengths[0], lengths[-1]
        size = f"{few}" if few == many else f"{few} to {many}"
        raise value_error(f"{path}.mark_code.value", f"has {size} characters of this format, no spaces")
    if line.thousandths != WHOLE or line.measure != "piece":
        raise value_error(f"{path}.quantity", "is 1 piece for an item with a mark_code")


def _discounted(order: ReceiptOrder, lines: list[Line]) -> list[Line]:
    """Return the lines after the discount on the receipt, which is spread over their sums by largest remainder."""
    if order.discount is None:
        return lines
    discount = _money("receipt.discount", order.discount)
    before = [line.kopecks for line in lines]
    if discount >= sum(before):
        raise value_error("receipt.discount", "is less than the sum of the items")
    found: list[Line] = []
    for index, (line, less) in enumerate(zip(lines, spread(discount, before), strict=True)):
        after = line.kopecks - less
        parts = [line] if less == 0 else list(lines_of(line, after))
        if any(part.price_kopecks <= 0 or part.kopecks <= 0 for part in parts):
            raise value_error("receipt.discount", f"leaves nothing of the price of items[{index}]")
        if line.excise_kopecks is not None and (len(parts) > 1 or line.excise_kopecks > after):
            raise value_error("receipt.discount", f"does not fit items[{index}], which has an excise")
        found += parts
    return found


def _attribute(given: ReceiptAttribute) -> ReceiptAttribute:
    path = "receipt.attribute"
    return ReceiptAttribute(
        name=printed(f"{path}.name", given.name, 64), value=printed(f"{path}.value", given.value, 234)
    )


def _supplier(path: str, given: ReceiptSupplier) -> ReceiptSupplier:
    _inn(f"{path}.inn", given.inn)
    _phones(f"{path}.phone", (given.phone,))
    return ReceiptSupplier(name=printed(f"{path}.name", given.name, 200), inn=given.inn, phone=given.phone)


_OF_BANK = ("operation", "phones", "transfer_phones", "operator_name", "operator_address", "operator_inn")
_OF_PAYMENT = ("phones", "receiver_phones")
_NEEDS = {
    "bank_agent": _OF_BANK,
    "bank_subagent": _OF_BANK,
    "payment_agent": _OF_PAYMENT,
    "payment_subagent": _OF_PAYMENT,
}


def _agent(path: str, given: ReceiptAgent) -> ReceiptAgent:
    if given.type not in AGENTS:
        raise value_error(f"{path}.type", f"must be one of: {', '.join(AGENTS)}")
    needs = _NEEDS.get(given.type, ())
    for name in ("receiver_phones", *_OF_BANK):
        if bool(getattr(given, name)) is not (name in needs):
            verb = "is required" if name in needs else "is not allowed"
            raise value_error(f"{path}.{name}", f"{verb} for {given.type}")
    for name in ("phones", "receiver_phones", "transfer_phones"):
        _phones(f"{path}.{name}", getattr(given, name) or ())
    if given.operator_inn is not None:
        _inn(f"{path}.operator_inn", given.operator_inn)
    return msgspec.structs.replace(
        given,
        operation=_optional(f"{path}.operation", given.operation, 24),
        operator_name=_optional(f"{path}.operator_name", given.operator_name, 64),
        operator_address=_optional(f"{path}.operator_address", given.operator_address, 243),
    )


def _optional(path: str, text: str | None, longest: int) -> str | None:
    return None if text is None else printed(path, text, longest)


def _phones(path: str, phones: Sequence[str]) -> None:
    if len(phones) > 3 or not all(_PHONE.match(phone) for phone in phones):
        raise value_error(path, "must be E.164: + and 10 to 15 digits; at most 3 phones")


def _inn(path: str, text: str) -> None:
    if not _INN.match(text):
        raise value_error(path, "must be 10 or 12 digits")


def _money(path: str, text: str) -> int:
    try:
        kopecks = Rub.parse(text).kopecks
    except ValueError as error:
        raise value_error(path, str(error)) from None
    if not 0 < kopecks <= _PRICE_MOST:
        raise value_error(path, f"must be from 0.01 to {Rub(_PRICE_MOST)}")
    return kopecks


def _thousandths(path: str, text: str) -> int:
    if not _QUANTITY.match(text):
        raise value_error(path, "must be a decimal string with up to 5 digits and up to 3 decimals")
    whole, _, part = text.partition(".")
    found = int(whole) * WHOLE + int(part.ljust(3, "0"))
    if found == 0:
        raise value_error(path, "must be above zero")
    return found


def _word(path: str, text: str | None, default: T | None, kind: Callable[[str], T]) -> T:
    """Read a word, or return the account's. Raises: Refusal VALIDATION_ERROR."""
    if text is None:
        if default is None:
            raise value_error(path, "is required, because the account has no such setting")
        return default
    try:
        return kind(text)
    except ValueError:
        raise value_error(path, f"{text[:40]!r} is no such value; docs/receipts.md lists them") from None
