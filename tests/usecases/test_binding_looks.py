"""When a bank is asked about a binding again (docs/subscriptions.md "How the payer binds"): by the ladder while it
gives no answer, at the payer's pace then, at the deadline for certain, and no more once nothing can come."""

from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.payments.payments import PaymentStatus as P
from cambist.core.domain.subscriptions.subscriptions import SubscriptionStatus as S
from cambist.core.usecases.gateways.polling import Looked
from cambist.core.usecases.subscriptions.binding_progress import next_look
from tests.houses import TestHouse
from tests.subscription_house import open_link, record, subscribed

UNANSWERED = {"bank_reference": None, "qr_payload": None, "bank_link": None}
WITHOUT_LINK = {"qr_payload": None, "bank_link": None}
ONLY_LINK = {"qr_payload": None}
ONLY_QR = {"bank_link": None}

WAITING = [
    (UNANSWERED, 0, 0, 10),
    (UNANSWERED, 1, 0, 10),
    (UNANSWERED, 2, 10, 40),
    (UNANSWERED, 3, 40, 160),
    (UNANSWERED, 4, 160, 760),
    (UNANSWERED, 9, 160, 760),
    (UNANSWERED, 4, 899, 900),
    (UNANSWERED, 4, 900, 910),
    (WITHOUT_LINK, 2, 10, 40),
    (WITHOUT_LINK, 4, 899, 900),
    (WITHOUT_LINK, 4, 900, 930),
    (ONLY_LINK, 2, 10, 610),
    (ONLY_QR, 2, 10, 610),
    (ONLY_QR, 2, 400, 900),
    (ONLY_QR, 2, 899, 900),
    (ONLY_QR, 2, 900, 930),
]
"""What it lacks, how often it was looked at, and seconds since its creation: now, and the next look. It lives for 15
minutes."""

OVER = [
    *((status, S.PENDING_BINDING, 600) for status in (P.PAID, P.SETTLED, P.AMOUNT_MISMATCH)),
    *((status, S.ACTIVE, None) for status in (P.PAID, P.SETTLED, P.AMOUNT_MISMATCH, P.REFUNDED)),
    (P.REFUNDED, S.PENDING_BINDING, None),
    *((status, S.ACTIVE, 1800) for status in (P.EXPIRED, P.CANCELLED, P.FAILED)),
]
"""How payment and subscription stand, and when somebody looks at what may still come."""


@pytest.mark.parametrize("status", [P.PENDING, P.PROCESSING])
@pytest.mark.parametrize(("lacks", "looks", "now", "due"), WAITING)
async def test_one_that_waits_is_looked_at_until_its_deadline(
    house: TestHouse, lacks: dict[str, None], looks: int, now: float, due: float, status: P
) -> None:
    made = await subscribed(house)
    payment = msgspec.structs.replace(await open_link(house, made["id"]), status=status, **lacks)
    await house.clock.advance(now)
    at = next_look(house.ports, payment, await record(house, made["id"]), looks, Looked())
    assert at == payment.created_at + timedelta(seconds=due)


@pytest.mark.parametrize(("status", "of", "due"), OVER)
async def test_one_that_is_over_is_looked_at_for_what_may_still_come(
    house: TestHouse, status: P, of: S, due: float | None
) -> None:
    made = await subscribed(house)
    payment = msgspec.structs.replace(await open_link(house, made["id"]), status=status)
    subscription = msgspec.structs.replace(await record(house, made["id"]), status=of)
    at = next_look(house.ports, payment, subscription, 1, Looked())
    assert at == (None if due is None else payment.created_at + timedelta(seconds=due))
