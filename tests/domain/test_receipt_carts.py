"""Carts of receipts: sums against an independent calculator, and refusals that name item and field."""

import random
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.receipts import PaymentMode, PaymentSubject, TaxSystem, Vat
from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.receipts import carts, orders
from cambist.core.domain.receipts.carts import AGENTS, MARKS, Cart, Line, part_of
from cambist.core.domain.receipts.orders import MEASURES, Contact, ReceiptOrder, cart_of
from cambist.core.domain.receipts.sums import line_sum, priced, spread
from cambist.ports import receipts as port
from tests.domain.receipt_kit import CONTACT, SETTINGS, cart, check_random_carts, item, random_cart
from tests.tables import table

SUPPLIER = {"name": "OOO Sample", "inn": "5544332219", "phone": "+79000000000"}
GS1M = {"format": "gs_1m", "value": "010460000000000821AbC1234567890\x1d91EE10\x1d92abcdef=="}


def test_random_carts_agree_with_an_independent_calculator() -> None:
    assert check_random_carts(random.Random(54), 1_500) > 1_000


def test_part_of_a_random_cart_has_exactly_its_amount() -> None:
    chance = random.Random(7)
    for _ in range(1_000):
        items, total, _ = random_cart(chance)
        if items:
            amount = chance.randint(1, total)
            part = part_of(cart(str(Rub(total)), *items), amount)
            assert part.kopecks == amount
            assert all(line.price_kopecks > 0 and line.kopecks > 0 for line in part.items)


def test_part_of_a_full_cart_keeps_within_the_most_lines() -> None:
    whole = cart("1002.00", *[item(price="3.34", quantity="3")] * 100)
    part = part_of(whole, 500_01)
    assert (part.kopecks, len(part.items)) == (500_01, carts.MOST_LINES)


def test_vector_with_a_discount_by_share_gives_its_sums() -> None:
    """The worked example of docs/receipts.md "Sums"."""
    items = [
        item(price="120.00", quantity="1.5", measure="kilogram"),
        item(name="Cup", price="333.33", quantity="3"),
        item(name="Book", price="250.01", vat="10"),
        item(name="Delivery", price="70.00", vat="none", subject="service"),
    ]
    assert [line.kopecks for line in cart("1500.00", *items).items] == [180_00, 999_99, 250_01, 70_00]
    less = cart("1400.00", *items, discount="100.00")
    assert [(line.price_kopecks, line.thousandths, line.kopecks) for line in less.items] == [
        (112_00, 1500, 168_00),
        (311_11, 3000, 933_33),
        (233_34, 1000, 233_34),
        (65_33, 1000, 65_33),
    ]


@table(
    ("price", "thousandths", "total"), [(149_99, 333, 49_95), (33, 2500, 83), (1, 499, 0), (1, 500, 1), (7, 1000, 7)]
)
def test_sum_of_a_line_is_rounded_half_up(price: int, thousandths: int, total: int) -> None:
    assert line_sum(price, thousandths) == total


def test_priced_gives_every_sum_of_every_quantity_exactly() -> None:
    chance = random.Random(3)
    for _ in range(5_000):
        total, thousandths = chance.randint(0, 100_000), chance.randint(1, 20_000)
        pairs = priced(total, thousandths)
        assert sum(line_sum(*pair) for pair in pairs) == total
        assert sum(quantity for _, quantity in pairs) == thousandths
        assert len(pairs) <= 3


def test_spread_gives_remaining_kopecks_to_the_largest_fractions() -> None:
    assert spread(100, [1, 1, 1]) == [34, 33, 33]
    assert spread(10, [3, 3, 5]) == [3, 3, 4]
    assert spread(1, [1, 2]) == [0, 1]


REFUSALS = [
    ({"name": ""}, "name", "1 to 128"),
    ({"name": "x" * 129}, "name", "1 to 128"),
    ({"name": "Tea 🍵"}, "name", "U+1F375"),
    ({"name": "Tea\nLeaf"}, "name", "U+000A"),
    ({"price": "0"}, "price", "from 0.01"),
    ({"price": "-1"}, "price", "from 0.01"),
    ({"price": "1.001"}, "price", "2 decimals"),
    ({"quantity": "0"}, "quantity", "above zero"),
    ({"quantity": "0.0001"}, "quantity", "3 decimals"),
    ({"quantity": "1e3"}, "quantity", "3 decimals"),
    ({"price": "0.01", "quantity": "0.001"}, "price", "times quantity"),
    ({"measure": "bag"}, "measure", "one of"),
    ({"vat": "18"}, "vat", "no such value"),
    ({"subject": "thing"}, "subject", "no such value"),
    ({"method": "later"}, "method", "no such value"),
    ({"agent": {"type": "agent"}}, "supplier", "agent"),
    ({"supplier": SUPPLIER}, "supplier", "agent"),
    ({"agent": {"type": "spy"}, "supplier": SUPPLIER}, "agent.type", "one of"),
    ({"agent": {"type": "payment_agent"}, "supplier": SUPPLIER}, "agent.receiver_phones", "required"),
    ({"agent": {"type": "agent", "operation": "x"}, "supplier": SUPPLIER}, "agent.operation", "not allowed"),
    ({"agent": {"type": "agent"}, "supplier": {**SUPPLIER, "inn": "1"}}, "supplier.inn", "digits"),
    ({"agent": {"type": "agent"}, "supplier": {**SUPPLIER, "phone": "8"}}, "supplier.phone", "E.164"),
    ({"mark_code": GS1M}, "mark_code", "marked"),
    ({"subject": "marked"}, "mark_code", "marked"),
    ({"subject": "marked", "mark_code": GS1M, "quantity": "2"}, "quantity", "1 piece"),
    ({"subject": "marked", "mark_code": {"format": "ean_8", "value": "1234567x"}}, "mark_code.value", "8 char"),
    ({"subject": "marked", "mark_code": {"format": "gs_1m", "value": "a b"}}, "mark_code.value", "1 to 200"),
    ({"subject": "marked", "mark_code": {"format": "qr", "value": "1"}}, "mark_code.format", "one of"),
    ({"excise": "100.01"}, "excise", "at most"),
    ({"country": "643"}, "country", "two capital"),
    ({"customs_declaration": "1" * 33}, "customs_declaration", "1 to 32"),
    ({"additional": "x" * 65}, "additional", "1 to 64"),
]


@table(("fields", "field", "why"), REFUSALS)
def test_refusal_names_the_item_and_the_field(fields: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(Refusal) as refused:
        cart("200.00", item(), item(**fields))
    path = f"receipt.items[1].{field}"
    assert (refused.value.code, refused.value.status) == ("VALIDATION_ERROR", 422)
    assert refused.value.message.startswith(f"{path}: ")
    assert why in refused.value.message
    details: Any = refused.value.details
    assert details == [FieldFault(path, refused.value.message.removeprefix(f"{path}: "))]


@table(
    ("fields", "path"),
    [
        ({"items": []}, "receipt.items"),
        ({"items": [item()] * 101}, "receipt.items"),
        ({"items": [item(price="99.99")]}, "receipt.items"),
        ({"items": [item()], "discount": "0.01"}, "receipt.items"),
        ({"items": [item()], "discount": "100.00"}, "receipt.discount"),
        ({"items": [item(), item(price="0.01")], "discount": "100.00"}, "receipt.discount"),
        ({"items": [item()], "tax_system": "envd"}, "receipt.tax_system"),
        ({"items": [item()], "customer": {"email": "nobody"}}, "receipt.customer.email"),
        ({"items": [item()], "customer": {"phone": "8900"}}, "receipt.customer.phone"),
        ({"items": [item()], "customer": {"inn": "123"}}, "receipt.customer.inn"),
        ({"items": [item()], "attribute": {"name": "", "value": "1"}}, "receipt.attribute.name"),
    ],
)
def test_refusal_of_a_whole_receipt_names_its_field(fields: dict[str, Any], path: str) -> None:
    order = msgspec.convert(fields, type=ReceiptOrder)
    with pytest.raises(Refusal) as refused:
        cart_of(order, Rub.parse("100.00"), SETTINGS, CONTACT)
    assert refused.value.message.startswith(f"{path}: ")


@table(
    ("missing", "path"),
    [
        ("receipt_tax_system", "receipt.tax_system"),
        ("receipt_vat", "receipt.items[0].vat"),
        ("receipt_subject", "receipt.items[0].subject"),
        ("receipt_mode", "receipt.items[0].method"),
    ],
)
def test_account_setting_is_the_default_and_its_lack_is_named(missing: str, path: str) -> None:
    found = cart("100.00", item())
    assert (found.tax_system, found.items[0].vat, found.email) == (TaxSystem.OSN, Vat.VAT_22, CONTACT.email)
    with pytest.raises(Refusal) as refused:
        cart("100.00", item(), settings=msgspec.structs.replace(SETTINGS, **{missing: None}))
    assert refused.value.message.startswith(f"{path}: is required")


def test_customer_goes_before_the_payment_and_the_payment_before_the_account() -> None:
    order = msgspec.convert({"items": [item()]}, type=ReceiptOrder)
    own = msgspec.structs.replace(SETTINGS, receipt_email="shop@example.com")
    sent = msgspec.structs.replace(order, customer=orders.ReceiptCustomer(phone="+79990004711"))
    amount = Rub(100_00)
    assert cart_of(sent, amount, own, CONTACT).email is None
    assert cart_of(order, amount, own, CONTACT).email == CONTACT.email
    assert cart_of(order, amount, own, Contact(email="no address")).email == "shop@example.com"
    with pytest.raises(Refusal, match=r"^receipt\.customer: "):
        cart_of(order, amount, SETTINGS, Contact())


def test_typography_is_replaced_by_what_registers_print() -> None:
    name = "«Чай» — №1…"
    assert cart("100.00", item(name=name)).items[0].name == '"Чай" - №1...'


def test_part_of_a_marked_item_has_no_marking_code() -> None:
    whole = cart("100.00", item(subject="marked", mark_code=GS1M))
    assert part_of(whole, 100_00) is whole
    [part] = part_of(whole, 40_00).items
    assert (part.mark, part.subject, part.kopecks) == (None, PaymentSubject.NON_MARKED, 40_00)


def test_stored_cart_has_the_fields_and_words_of_the_port() -> None:
    assert Line.__struct_fields__ == port.ReceiptItem.__struct_fields__
    assert set(Cart.__struct_fields__) == set(port.Receipt.__struct_fields__)
    for ours, theirs in (
        (carts.ReceiptAgent, port.Agent),
        (carts.ReceiptSupplier, port.Supplier),
        (carts.ReceiptMark, port.MarkCode),
        (carts.ReceiptAttribute, port.UserAttribute),
    ):
        assert ours.__struct_fields__ == theirs.__struct_fields__
    assert list(MEASURES) == [*port.Measure]
    assert list(AGENTS) == [*port.AgentType]
    assert list(MARKS) == [*port.MarkFormat]
    for words, others in ((Vat, port.Vat), (PaymentSubject, port.PaymentSubject), (PaymentMode, port.PaymentMode)):
        assert [*words] == [*others]


def test_personal_data_of_a_cart_shows_in_no_repr() -> None:
    assert "buyer" not in repr(cart("100.00", item()))
