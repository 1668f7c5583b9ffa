"""100 000 random carts of receipts against a calculator in decimals."""

import random

import pytest

from tests.domain.receipt_kit import check_random_carts
from tests.patience import drill_of


@pytest.mark.drill
@drill_of("tests/domain/test_receipt_carts.py")
def test_hundred_thousand_random_carts_agree_with_the_calculator() -> None:
    assert check_random_carts(random.Random(5454), 100_000) > 60_000
