"""A crash at any commit or call leaves one receipt of each payment and refund (docs/receipts.md "State")."""

from tests.usecases.payments.receipt_crashes import check_crashes


async def test_each_crash_leaves_one_receipt_of_payment_and_refund() -> None:
    assert await check_crashes(seed=54, count=60) > 40
