"""Random carts of receipts, and the calculator in decimals with which they are compared."""

import random
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Settings
from cambist.core.domain.accounts.receipts import PaymentMode, PaymentSubject, TaxSystem, Vat
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.receipts.carts import Cart, Line
from cambist.core.domain.receipts.orders import Contact, ReceiptOrder, cart_of

SETTINGS = Settings(
    receipt_tax_system=TaxSystem.OSN,
    receipt_vat=Vat.VAT_22,
    receipt_subject=PaymentSubject.COMMODITY,
    receipt_mode=PaymentMode.FULL_PAYMENT,
)
CONTACT = Contact(email="buyer@example.com")


def item(**fields: Any) -> dict[str, Any]:
    return {"name": "Tea", "price": "100.00", **fields}


def cart(amount: str, *items: dict[str, Any], settings: Settings = SETTINGS, **fields: Any) -> Cart:
    order = msgspec.convert({"items": items, **fields}, type=ReceiptOrder)
    return cart_of(order, Rub.parse(amount), settings, CONTACT)


def rounded(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def random_cart(chance: random.Random) -> tuple[list[dict[str, Any]], int, int]:
    """Return items, their sum by Decimal, and a discount."""
    items, total = [], 0
    for _ in range(chance.randint(1, 8)):
        price = chance.choice((chance.randint(1, 500), chance.randint(500, 3_000_000)))
        quantity = Decimal(chance.choice((1000, chance.randint(1, 30) * 1000, chance.randint(1, 40_000)))).scaleb(-3)
        kopecks = rounded(price * quantity)
        if kopecks == 0:
            continue
        items.append(item(price=f"{Decimal(price).scaleb(-2)}", quantity=f"{quantity.normalize():f}"))
        total += kopecks
    return items, total, chance.randint(1, max(1, total // 3))


def discounted(items: list[dict[str, Any]], total: int, discount: int) -> Cart | None:
    """Return the cart with the discount; None where the discount leaves nothing of an item."""
    try:
        return cart(str(Rub(total - discount)), *items, discount=str(Rub(discount)))
    except Refusal as refusal:
        if "leaves nothing" not in refusal.message:
            raise
        return None


def check_random_carts(chance: random.Random, many: int) -> int:
    """Compare carts with the calculator. Return how many had a discount that fits."""
    fitting = 0
    for _ in range(many):
        items, total, discount = random_cart(chance)
        if not items:
            continue
        plain = cart(str(Rub(total)), *items)
        assert [line.kopecks for line in plain.items] == [
            rounded(Decimal(each["price"]) * 100 * Decimal(each["quantity"])) for each in items
        ]
        if discount >= total:
            continue
        less = discounted(items, total, discount)
        if less is None:
            continue
        fitting += 1
        check_discounted(plain, less, total, discount)
    return fitting


def check_discounted(plain: Cart, less: Cart, total: int, discount: int) -> None:
    assert (
        sum(rounded(Decimal(each.price_kopecks) * each.thousandths / 1000) for each in less.items) == total - discount
    )
    rest = list(less.items)
    for line in plain.items:
        parts: list[Line] = []
        while sum(each.thousandths for each in parts) < line.thousandths:
            parts.append(rest.pop(0))
        assert sum(each.thousandths for each in parts) == line.thousandths
        share = Fraction(discount * line.kopecks, total)
        assert abs(line.kopecks - sum(each.kopecks for each in parts) - share) < 1
    assert rest == []
