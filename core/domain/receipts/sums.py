"""Sums of receipts in whole kopecks: a price times a quantity, discounts, and prices that give an exact sum
(docs/receipts.md "Sums")."""

from collections.abc import Sequence

WHOLE = 1000
"""Quantities are integers of thousandths."""


def line_sum(price: int, thousandths: int) -> int:
    """Return price times quantity, rounded half up to the kopeck."""
    return (price * thousandths + 500) // WHOLE


def spread(total: int, weights: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to the weights, by largest remainder: everybody gets the whole part of the share,
    and the remaining kopecks go one by one to the largest fractions, the first ones among equals. The weights are at
    least 0, and their sum is above 0."""
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda index: (-(total * weights[index] % whole), index))
    for index in order[: total - sum(shares)]:
        shares[index] += 1
    return shares


def priced(total: int, thousandths: int) -> list[tuple[int, int]]:
    """Return prices and quantities that together give exactly this sum and quantity: one pair if possible, otherwise
    up to three."""
    price = (2 * total * WHOLE + thousandths) // (2 * thousandths)
    if line_sum(price, thousandths) == total:
        return [(price, thousandths)]
    pieces, fraction = divmod(thousandths, WHOLE)
    if fraction == 0:
        base, dearer = divmod(total, pieces)
        return [(base, (pieces - dearer) * WHOLE), (base + 1, dearer * WHOLE)]
    # A price exists for each sum of less than one unit, because a kopeck of the price changes it by less than one.
    of_pieces = total * pieces * WHOLE // thousandths
    return [*priced(of_pieces, pieces * WHOLE), *priced(total - of_pieces, fraction)]
