"""Ledger entries of a payment's money: received, under review, in suspense, sent back (docs/payments.md "Money that
cannot count"; ARCHITECTURE.md "Money")."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.payments.reports import Arrival, Report
from cambist.core.domain.payments.suspense import RETURN_FAILED, RETURN_REVERSED, RETURNED_ANEW, Suspense
from cambist.core.domain.payments.transfers import transfers_of
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.review import list_suspense, resolve_mismatch
from cambist.core.usecases.payments.moves import apply
from cambist.core.usecases.payments.transfers import list_transfers
from tests.apps import TestApp
from tests.contracts.storage_kit import START
from tests.domain.refund_kit import payment
from tests.tables import table
from tests.usecases.ledger.test_ledger import journal, plain
from tests.usecases.settlement.test_settlement import caller

PAID = PaymentStatus.PAID


async def booked(app: TestApp) -> list[tuple[str, dict[str, int]]]:
    """Kinds and postings of all entries, sorted."""
    rows = [(entry.kind.value, dict(plain(entry))) for entry in await journal(app)]
    return sorted(rows, key=str)


IN, OUT = {"bank": -100_00, "pending": 100_00}, {"bank": -100_00, "suspense": 100_00}


def report(app: TestApp, *kopecks: int) -> Report:
    """The bank says paid, by these transfers."""
    now = app.clock.now()
    return Report(
        status=PAID,
        arrivals=tuple(
            Arrival(id=f"t{number}", amount=Rub(each), at=now + timedelta(milliseconds=number))
            for number, each in enumerate(kopecks)
        ),
    )


async def arrives(app: TestApp, payment_id: str, *kopecks: int) -> None:
    await apply(app.ports, payment_id, report(app, *kopecks))


async def _paid(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 100_00)


async def _paid_late(app: TestApp, payment_id: str) -> None:
    await app.work(3600)
    await arrives(app, payment_id, 100_00)


async def _too_late(app: TestApp, payment_id: str) -> None:
    await app.work(6 * 3600 + 1)
    await arrives(app, payment_id, 100_00)


async def _after_failed(app: TestApp, payment_id: str) -> None:
    await apply(app.ports, payment_id, Report(status=PaymentStatus.FAILED))
    await arrives(app, payment_id, 100_00)


async def _second_transfer(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 100_00)
    await arrives(app, payment_id, 100_00, 100_00)


async def _two_at_once(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 100_00, 100_00)


async def _told_often(app: TestApp, payment_id: str) -> None:
    for _ in range(2):
        await asyncio.gather(*(arrives(app, payment_id, 100_00, 100_00) for _ in range(5)))


async def _mismatch(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 60_00)


async def _mismatch_told_often(app: TestApp, payment_id: str) -> None:
    await asyncio.gather(*(arrives(app, payment_id, 60_00) for _ in range(5)))


async def _accepted(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 60_00)
    await resolve_mismatch(app.ports, payment_id, "paid")
    await arrives(app, payment_id, 60_00)


async def _rejected(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id, 60_00)
    await resolve_mismatch(app.ports, payment_id, "failed")
    await arrives(app, payment_id, 60_00)


async def _unknown(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id)


async def _unknown_accepted(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id)
    await resolve_mismatch(app.ports, payment_id, "paid", amount=Rub(70_00))


async def _unknown_rejected(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id)
    await resolve_mismatch(app.ports, payment_id, "failed")


async def _unknown_rejected_with_an_amount(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id)
    await resolve_mismatch(app.ports, payment_id, "failed", amount=Rub(70_00))


async def _unknown_accepted_and_told(app: TestApp, payment_id: str) -> None:
    await _unknown_accepted(app, payment_id)
    for _ in range(2):
        await arrives(app, payment_id, 70_00)


async def _unknown_rejected_and_told(app: TestApp, payment_id: str) -> None:
    await _unknown_rejected_with_an_amount(app, payment_id)
    for _ in range(2):
        await arrives(app, payment_id, 70_00)


async def _unknown_accepted_and_told_otherwise(app: TestApp, payment_id: str) -> None:
    await _unknown_accepted(app, payment_id)
    await arrives(app, payment_id, 71_00)


async def _noted(app: TestApp, payment_id: str) -> None:
    await arrives(app, payment_id)
    for _ in range(2):
        await arrives(app, payment_id, 60_00)


async def _noted_accepted(app: TestApp, payment_id: str) -> None:
    await _noted(app, payment_id)
    await resolve_mismatch(app.ports, payment_id, "paid")


async def _failed(app: TestApp, payment_id: str) -> None:
    await apply(app.ports, payment_id, Report(status=PaymentStatus.FAILED))


REVIEWED = {"bank": -60_00, "review": 60_00}
TAKEN = [
    ("review", {"bank": -70_00, "review": 70_00}),
    ("review_accepted", {"review": -70_00, "pending": 70_00}),
]
"""An operator says that it came, and takes it."""
CASES: dict[str, tuple[Callable[[TestApp, str], Awaitable[None]], list[tuple[str, dict[str, int]]]]] = {
    "nothing but a failure": (_failed, []),
    "paid": (_paid, [("receipt", IN)]),
    "paid late": (_paid_late, [("receipt", IN)]),
    "paid too late": (_too_late, [("suspense", OUT)]),
    "paid after it failed": (_after_failed, [("suspense", OUT)]),
    "a second transfer": (_second_transfer, [("receipt", IN), ("suspense", OUT)]),
    "two transfers in one notification": (_two_at_once, [("receipt", IN), ("suspense", OUT)]),
    "the same notification again and at once": (_told_often, [("receipt", IN), ("suspense", OUT)]),
    "another amount": (_mismatch, [("review", REVIEWED)]),
    "another amount, told often": (_mismatch_told_often, [("review", REVIEWED)]),
    "another amount, accepted": (
        _accepted,
        [("review", REVIEWED), ("review_accepted", {"review": -60_00, "pending": 60_00})],
    ),
    "another amount, rejected": (
        _rejected,
        [("review", REVIEWED), ("suspense", {"review": -60_00, "suspense": 60_00})],
    ),
    "an amount that nobody knows": (_unknown, []),
    "that the operator says, accepting": (_unknown_accepted, TAKEN),
    "that the operator does not say, rejecting": (_unknown_rejected, []),
    "that the operator says, rejecting": (
        _unknown_rejected_with_an_amount,
        [("suspense", {"bank": -70_00, "suspense": 70_00})],
    ),
    "accepted, and the bank tells of it afterwards": (
        _unknown_accepted_and_told,
        TAKEN,
    ),
    "rejected, and the bank tells of it afterwards": (
        _unknown_rejected_and_told,
        [("suspense", {"bank": -70_00, "suspense": 70_00})],
    ),
    "accepted, and the bank tells of another amount": (
        _unknown_accepted_and_told_otherwise,
        [
            *TAKEN,
            ("suspense", {"bank": -71_00, "suspense": 71_00}),
        ],
    ),
    "that the bank says later": (_noted, [("review", REVIEWED)]),
    "that the bank says later, accepted": (
        _noted_accepted,
        [("review", REVIEWED), ("review_accepted", {"review": -60_00, "pending": 60_00})],
    ),
}


CREDITED, REVIEW = ("credited", None), ("under_review", None)
SECOND, AFTER_FAILED = ("suspended", "second_transfer"), ("suspended", "after_failed")
SHOWN: dict[str, list[tuple[str, str | None]]] = {
    "nothing but a failure": [],
    "paid": [CREDITED],
    "paid late": [CREDITED],
    "paid too late": [("suspended", "too_late")],
    "paid after it failed": [AFTER_FAILED],
    "a second transfer": [CREDITED, SECOND],
    "two transfers in one notification": [CREDITED, SECOND],
    "the same notification again and at once": [CREDITED, SECOND],
    "another amount": [REVIEW],
    "another amount, told often": [REVIEW],
    "another amount, accepted": [CREDITED],
    "another amount, rejected": [("suspended", "mismatch_rejected")],
    "an amount that nobody knows": [],
    "that the operator says, accepting": [CREDITED],
    "that the operator does not say, rejecting": [],
    "that the operator says, rejecting": [("suspended", "mismatch_rejected")],
    "accepted, and the bank tells of it afterwards": [CREDITED],
    "rejected, and the bank tells of it afterwards": [("suspended", "mismatch_rejected")],
    "accepted, and the bank tells of another amount": [CREDITED, ("suspended", "after_paid")],
    "that the bank says later": [REVIEW],
    "that the bank says later, accepted": [CREDITED],
}
"""The receipts that the merchant reads in each case (docs/payments.md "What came")."""


@pytest.mark.parametrize("case", CASES)
async def test_every_move_of_a_payment_s_money_is_booked_once(app: TestApp, case: str) -> None:
    """Every move of money that the service knows passes through the ledger (ARCHITECTURE.md "Money"), and the merchant
    can read every receipt."""
    steps, expected = CASES[case]
    payment_id = (await app.created())["id"]
    await steps(app, payment_id)
    assert await booked(app) == sorted(expected, key=str)
    for each in await journal(app):
        assert (each.account_id, each.mode) == (app.account.account_id, Mode.TEST)
    shown = (await app.get(f"/payments/{payment_id}/transfers")).json()["data"]
    assert [(each["status"], each["reason"]) for each in shown] == SHOWN[case]
    came = -sum(postings.get("bank", 0) for _, postings in expected)
    assert sum(Rub.parse(each["amount_rub"]).kopecks for each in shown) == came


async def test_transfers_of_a_payment_come_in_pages(app: TestApp) -> None:
    payment_id = (await app.created())["id"]
    for _ in range(3):
        await app.simulate(payment_id, outcome="paid")
    path = f"/payments/{payment_id}/transfers"
    whole = (await app.get(path)).json()
    total = len(whole["data"])
    assert whole["pagination"] == {"page": 1, "per_page": 20, "total": total, "total_pages": 1}
    singles = [(await app.get(f"{path}?per_page=1&page={number + 1}")).json() for number in range(total)]
    assert [each["data"] for each in singles] == [[each] for each in whole["data"]]
    assert (await app.get(f"{path}?per_page=1&page={total + 1}")).json()["data"] == []
    assert (await app.get(f"{path}?page=0")).status_code == 400


async def test_rejected_money_that_went_back_has_left_the_books(app: TestApp) -> None:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid", actual_amount_rub="60.00")
    await resolve_mismatch(app.ports, payment["id"], "failed")
    await app.work(3600)
    assert ("suspense_returned", {"suspense": -60_00, "bank": 60_00}) in await booked(app)
    async with app.ports.storage.unit() as unit:
        found = await balance_types(unit, app.account.account_id, Mode.TEST)
    assert {balance_type: amount for balance_type, amount in found.items() if amount} == {}


@table(
    ("sent", "resolved", "reason", "status"),
    [
        (False, False, "too_late", "suspended"),
        (True, False, "too_late", "returning"),
        (True, False, RETURN_FAILED, "suspended"),
        (True, False, RETURN_REVERSED, "suspended"),
        (True, False, RETURNED_ANEW, "returning"),
        (True, True, "too_late", "returned"),
    ],
)
def test_money_in_suspense_is_shown_by_how_far_its_way_back_is(
    sent: bool, resolved: bool, reason: str, status: str
) -> None:
    money = Suspense(
        id="sus_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        payment_id="pay_1",
        amount=Rub(1),
        reason=reason,
        received_at=START,
        sending_since=START if sent else None,
        resolved_at=START if resolved else None,
    )
    [shown] = transfers_of(payment(), (), (money,))
    assert (shown.status, shown.reason, shown.returned_at) == (status, reason, money.resolved_at)


async def test_transfer_ids_unique_within_an_invoice_lose_no_money(app: TestApp) -> None:
    made = [(await app.created())["id"] for _ in range(2)]
    for payment_id in made:
        await arrives(app, payment_id, 100_00, 100_00)
    assert await booked(app) == sorted(2 * [("receipt", IN), ("suspense", OUT)], key=str)
    waiting = await list_suspense(app.ports)
    assert {each.payment_id for each in waiting} == set(made)
    assert [each.transfer_id for each in waiting] == ["t1", "t1"]


async def test_another_amount_for_a_suspended_transfer_is_an_action_item(
    app: TestApp, caplog: pytest.LogCaptureFixture
) -> None:
    payment_id = (await app.created())["id"]
    await arrives(app, payment_id, 100_00, 70_00)
    for amount, is_urgent in ((80_00, True), (80_00, True), (70_00, False)):
        await arrives(app, payment_id, 100_00, amount)
        [money] = await list_suspense(app.ports)
        assert money.amount == Rub(70_00), "what was booked stays"
        [found] = [each for each in (await read_action_items(app.ports)).found if each.of == "suspense"]
        assert (found.urgent, "80.00" in found.text, "80" in found.brief) == (is_urgent, is_urgent, False)
    assert "70.00 RUB are booked in suspense, the bank now reports 80.00" in caplog.text


async def test_another_amount_for_the_payments_own_transfer_is_logged(
    app: TestApp, caplog: pytest.LogCaptureFixture
) -> None:
    payment_id = (await app.created())["id"]
    for amount in (100_00, 90_00):
        await arrives(app, payment_id, amount)
    assert await booked(app) == [("receipt", IN)]
    assert "100.00 RUB are booked, the bank now reports 90.00" in caplog.text


async def test_review_keeps_the_moment_at_which_a_transfer_came(app: TestApp) -> None:
    payment_id = (await app.created())["id"]
    came_at = app.clock.now()
    await app.clock.advance(60)
    arrival = Arrival(id="t1", amount=Rub(60_00), at=came_at)
    await apply(app.ports, payment_id, Report(status=PAID, arrivals=(arrival,)))
    seen = (await list_transfers(app.ports, await caller(app), payment_id, 1, 100)).records
    assert [each.received_at for each in seen] == [came_at]
    await app.clock.advance(2 * 24 * 3600)
    await resolve_mismatch(app.ports, payment_id, "failed")
    seen = (await list_transfers(app.ports, await caller(app), payment_id, 1, 100)).records
    assert [each.received_at for each in seen] == [came_at]
    assert [each.received_at for each in await list_suspense(app.ports)] == [came_at]
