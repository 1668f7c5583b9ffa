"""Two thousand crashes of processes that have receipts written."""

import pytest

from tests.patience import drill_of
from tests.usecases.payments.receipt_crashes import check_crashes


@pytest.mark.drill
@drill_of("tests/usecases/payments/test_receipt_crashes.py")
async def test_two_thousand_crashes_leave_one_receipt_each() -> None:
    assert await check_crashes(seed=5454, count=2_000) > 1_500
