"""When a bank is polled about a charge, and the effect of a late answer on a charge that the bank has accepted
(docs/subscriptions.md "When a charge is refused")."""

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.payments.payments import FailureReason, Opening
from cambist.core.domain.payments.payments import PaymentStatus as P
from cambist.core.usecases.operations.engine import conclude
from cambist.core.usecases.operations.operation import Looked
from cambist.core.usecases.subscriptions.charge_progress import CHARGES, Charging, Word
from cambist.ports.mandates import ChargeState, ChargeStatus
from tests.charge_app import ChargeApp, due_subscription, open_charge_app

NOT_YET = ChargeState(reference="r", status=ChargeStatus.PROCESSING)
SOON = msgspec.structs.replace(NOT_YET, check_after=7.0)


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app(receiver=False) as opened:
        yield opened


@pytest.fixture
async def taken(charges: ChargeApp) -> str:
    """A charge that the bank works on."""
    subscription_id = await due_subscription(charges)
    await charges.next(subscription_id, "pending")
    return await charges.charged(subscription_id)


@pytest.mark.parametrize(
    ("status", "is_taken", "was_taken", "word", "asked", "due"),
    [
        # Status now; accepted now; accepted before the poll; the answer; polls so far; seconds to the next.
        (P.PENDING, False, False, None, 1, 10),
        (P.PENDING, False, False, Opening.UNKNOWN, 2, 30),
        (P.PENDING, False, None, None, 3, 120),
        (P.PENDING, True, True, NOT_YET, 3, 120),
        (P.PENDING, True, True, NOT_YET, 99, 6 * 3600),
        (P.PENDING, True, True, SOON, 3, 7),
        # A charge accepted just now starts its own backoff schedule.
        (P.PENDING, True, False, NOT_YET, 5, 10),
        (P.PENDING, True, None, NOT_YET, 5, 10),
        (P.PROCESSING, True, True, NOT_YET, 2, 30),
        (P.PAID, True, True, NOT_YET, 2, None),
        (P.FAILED, False, False, FailureReason.UNKNOWN, 2, None),
        (P.AMOUNT_MISMATCH, True, True, NOT_YET, 2, None),
    ],
)
async def test_charge_is_polled_until_it_has_an_outcome(
    charges: ChargeApp,
    taken: str,
    status: P,
    is_taken: bool,
    was_taken: bool | None,
    word: Word | None,
    asked: int,
    due: float | None,
) -> None:
    payment = msgspec.structs.replace(await charges.payment(taken), status=status)
    without = msgspec.structs.replace(payment, bank_reference=None)
    began = None if was_taken is None else Charging(payment if was_taken else without)
    at = CHARGES.next_status_poll(charges.ports, Charging(payment if is_taken else without), Looked(began, word, asked))
    assert at == (None if due is None else charges.clock.now() + timedelta(seconds=due))


@pytest.mark.parametrize("word", [FailureReason.UNKNOWN, FailureReason.DECLINED_BY_BANK, Opening.UNKNOWN])
async def test_a_late_word_of_a_request_ends_no_charge_that_the_bank_has(
    charges: ChargeApp, taken: str, word: Word
) -> None:
    """Two requests ran at once. One was refused, or given up, after the other was accepted."""
    before = await charges.payment(taken)
    await conclude(CHARGES, charges.ports, taken, word)
    assert await charges.payment(taken) == before
    await charges.end(taken, ChargeStatus.PAID)
    paid = await charges.payment(taken)
    await conclude(CHARGES, charges.ports, taken, word)
    assert (await charges.payment(taken), paid.status) == (paid, "paid")
