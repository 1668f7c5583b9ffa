"""From when on, and for how long, each thing waits for a person (docs/operations.md "What needs a person")."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import LONG_AGO, iso
from cambist.core.domain.exchanges.exchanges import ExchangeStatus
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.reversals import LOST
from cambist.core.domain.installation import Because, Installation
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.domain.ledger import Currency, LedgerAccount
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.operators.pending_actions import PendingAction
from cambist.core.domain.payments.outcomes import Operation, UnknownOutcome
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.payments.proofs import STUCK, DeliveryProof, ProofNetwork, ProofStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.receipts.receipts import SHIFT, ReceiptStatus
from cambist.core.domain.refunds.refunds import PendingReason, RefundStatus
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.breaker import new_breaker
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.common.encrypted import tag_action, tag_exchange, tag_withdrawal
from cambist.core.usecases.operators.action_item import ActionItem
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.ports.unreadable import UnreadableRow
from cambist.ports.vault import Vault
from tests.domain.exchange_kit import client, exchange
from tests.domain.refund_kit import payment, refund
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app
from tests.usecases.operators.test_reencrypt import blank
from tests.usecases.payments.test_receipts import fiscal_receipt

Make = Callable[[datetime, Vault], Any]
"""Make an object whose state has not changed since the moment."""
OWNED: dict[str, Any] = {"account_id": "acc_1", "mode": Mode.LIVE}
DAY, HOUR, MOMENT = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)


@pytest.fixture
async def app() -> AsyncIterator[RefundApp]:
    async with open_refund_app(made_up=True) as opened:
        yield opened


async def found(app: RefundApp, *rows: Any) -> list[ActionItem]:
    async with beneath(app.ports).unit() as unit:
        for row in rows:
            unit[type(row)].add(row)
        await unit.commit()
    return (await read_action_items(app.ports)).found


def withdrawal(status: WithdrawalStatus, *, tagged: bool = True) -> Make:
    def make(since: datetime, vault: Vault) -> Withdrawal:
        row = Withdrawal(
            id="wd_1", status=status, amount=Usdt(1_00000000), wallet="T", sender="s", network="tron",
            created_at=since, **OWNED,
        )  # fmt: skip
        return tag_withdrawal(vault, row) if tagged else row

    return make


def refunding(status: RefundStatus, reason: PendingReason | None = None) -> Make:
    return lambda since, _: msgspec.structs.replace(refund(status), created_at=since, pending_reason=reason)


def transfer(**given: Any) -> Make:
    def make(since: datetime, _: Vault) -> ExchangeTransfer:
        fields: dict[str, Any] = {"id": "exch_1:x", "exchange_id": "exch_1", "currency": Currency.RUB, **OWNED, **given}
        return ExchangeTransfer(amount=5_00, received_at=since, **fields)

    return make


def applicant(**fields: Any) -> Make:
    def make(since: datetime, _: Vault) -> Client:
        return msgspec.structs.replace(client(), **{"created_at": since, "updated_at": since, **fields})

    return make


def proof(status: ProofStatus) -> Make:
    return lambda since, _: DeliveryProof(
        id="pay_1", network=ProofNetwork.TRC20, tx_hash="ab" * 32, status=status, status_at=since, submitted_at=since
    )


def unknown(operation: Operation) -> Make:
    return lambda since, _: UnknownOutcome(id="pay_1", operation=operation, created_at=since, **OWNED)


def sending(status: ExchangeStatus, *, tagged: bool) -> Make:
    def make(since: datetime, vault: Vault) -> Any:
        row = msgspec.structs.replace(exchange(status), created_at=since)
        return tag_exchange(vault, row) if tagged else row

    return make


W, R, K, P, E = WithdrawalStatus, RefundStatus, KycStatus, ProofStatus, ExchangeStatus
FROM: list[tuple[Make, timedelta, str, str]] = [
    (withdrawal(W.PENDING), HOUR, "payout", "1.00000000 USDT cannot be signed yet"),
    (withdrawal(W.PROCESSING), 3 * HOUR, "payout", "1.00000000 USDT is signed, and not final on chain yet"),
    (withdrawal(W.SENT), 3 * HOUR, "payout", "1.00000000 USDT is signed, and not final on chain yet"),
    (refunding(R.PROCESSING), DAY, "unknown", "100.00 RUB of a refund: the bank is silent"),
    (unknown(Operation.CREATE_INVOICE), 6 * HOUR + MOMENT, "unknown", "the bank never said what became of it"),
    (proof(P.IN_REVIEW), STUCK, "proof", "delivery proof in review"),
    (
        applicant(kyc=K.REGISTERING, verifier="someone"),
        HOUR + MOMENT,
        "check",
        "1 client waits for someone to begin their checks; see the log and `cambist doctor`",
    ),
]
"""Object, time until it becomes an action item, and the kind and text of the item."""
UNTIL: list[tuple[Make, timedelta, str, str]] = [
    (withdrawal(W.FAILED), 7 * DAY, "payout", "1.00000000 USDT failed"),
    (
        transfer(reason=LOST, taken_back=5_00),
        90 * DAY,
        "loss",
        "5.00 RUB were taken back once the exchange was over: a loss",
    ),
    (
        applicant(kyc=K.VERIFIED, blocked=True),
        30 * DAY,
        "client",
        "verified, and refused by the verifier since: blocked",
    ),
    (
        applicant(kyc=K.REGISTERING, verifier="someone"),
        30 * DAY,
        "check",
        "1 client waits for someone to begin their checks; see the log and `cambist doctor`",
    ),
]
"""And how long it is shown."""
AT_ONCE: list[tuple[Make, str, str]] = [
    (refunding(R.PENDING, PendingReason.AWAITING_APPROVAL), "refund", "100.00 RUB awaits approval"),
    (transfer(reason="late", suspended=5_00), "suspense", "RUB of an exchange: late"),
    (
        lambda since, _: Suspense(
            id="sus_1", payment_id="pay_1", amount=Rub(1_00), reason="late", received_at=since, **OWNED
        ),
        "suspense",
        "1.00 RUB came: late",
    ),
    (
        lambda since, _: payment(PaymentStatus.AMOUNT_MISMATCH, created_at=since),
        "mismatch",
        "100.00 RUB came for 120.00 RUB",
    ),
    (
        lambda since, _: payment(PaymentStatus.AMOUNT_MISMATCH, created_at=since, actual_amount=None),
        "mismatch",
        "an unknown amount came for 120.00 RUB",
    ),
]
URGENT: list[tuple[Make, str, str]] = [
    (
        withdrawal(W.PENDING, tagged=False),
        "payout",
        "1.00000000 USDT not signed: its wallet or amount is not what the vault tagged",
    ),
    *(
        (
            sending(status, tagged=False),
            "exchange",
            "not sent: where it goes to, or how much, is not what the vault tagged",
        )
        for status in (E.USDT_RECEIVED, E.RUB_SENDING, E.RUB_RECEIVED, E.USDT_SENDING)
    ),
]
NEVER: list[Make] = [
    refunding(R.PENDING, PendingReason.INSUFFICIENT_BALANCE),
    refunding(R.COMPLETED),
    withdrawal(W.COMPLETED),
    proof(P.ACCEPTED),
    applicant(kyc=K.VERIFIED),
    applicant(kyc=K.VERIFIED, blocked=True, level=1),
    transfer(reason="late", suspended=5_00, resolved_at=LONG_AGO),
    sending(E.RUB_SENDING, tagged=True),
]


@pytest.mark.parametrize(("make", "age", "kind", "text"), FROM)
async def test_item_that_usually_ends_by_itself_is_shown_after_some_time(
    app: RefundApp, make: Make, age: timedelta, kind: str, text: str
) -> None:
    since = app.app.clock.now()
    await app.app.clock.advance((age - MOMENT).total_seconds())
    assert await found(app, make(since, app.ports.vault)) == []
    await app.app.clock.advance(MOMENT.total_seconds())
    [item] = await found(app)
    assert (item.kind, item.text, item.since, item.urgent) == (kind, text, since, False)


@pytest.mark.parametrize(("make", "age", "kind", "text"), UNTIL)
async def test_item_that_nobody_can_end_is_shown_for_a_limited_time(
    app: RefundApp, make: Make, age: timedelta, kind: str, text: str
) -> None:
    since = app.app.clock.now()
    await app.app.clock.advance((age - MOMENT).total_seconds())
    [item] = await found(app, make(since, app.ports.vault))
    assert (item.kind, item.text, item.since, item.urgent) == (kind, text, since, False)
    await app.app.clock.advance(2 * MOMENT.total_seconds())
    assert await found(app) == []


@pytest.mark.parametrize(("rows", "urgent"), [(AT_ONCE, False), (URGENT, True)])
async def test_item_that_only_a_person_can_end_is_shown_at_once_and_stays(
    app: RefundApp, rows: list[tuple[Make, str, str]], urgent: bool
) -> None:
    for make, kind, text in rows:
        since = app.app.clock.now()
        row = make(since, app.ports.vault)
        [item] = await found(app, row)
        assert (item.kind, item.text, item.since, item.urgent) == (kind, text, since, urgent)
        await app.app.clock.advance(400 * DAY.total_seconds())
        assert await found(app) == [item]
        async with beneath(app.ports).unit() as unit:
            present: Any = await unit[type(row)].get(row.id)
            unit[type(row)].remove(present)
            await unit.commit()


@pytest.mark.parametrize("make", NEVER)
async def test_healthy_record_is_no_action_item(app: RefundApp, make: Make) -> None:
    since = app.app.clock.now()
    await app.app.clock.advance(2 * DAY.total_seconds())
    assert await found(app, make(since, app.ports.vault)) == []


async def test_receipts_that_are_not_written_for_an_hour_are_one_line(app: RefundApp) -> None:
    since = app.app.clock.now()
    rows = [fiscal_receipt(f"rcpt_{number}", since + number * MOMENT, ReceiptStatus.PENDING) for number in range(2)]
    await app.app.clock.advance((HOUR - MOMENT).total_seconds())
    assert await found(app, *rows) == []
    await app.app.clock.advance(MOMENT.total_seconds())
    [item] = await found(app)
    due = iso(since + SHIFT)
    assert (item.object_id, item.text) == (
        "rcpt_0",
        f"not written; the shift ends at {due}: `cambist receipt list`",
    )
    await app.app.clock.advance(MOMENT.total_seconds())
    [item] = await found(app)
    text = f"2 receipts not written; the shift ends at {due}: `cambist receipt list`"
    assert (item.kind, item.since, item.text) == ("receipt", since, text)


async def test_items_of_all_kinds_are_listed_oldest_first(app: RefundApp) -> None:
    """Items without a start time come first."""
    now, vault = app.app.clock.now(), app.ports.vault
    makes = (proof(P.IN_REVIEW), withdrawal(W.FAILED), refunding(R.PROCESSING), transfer(reason="late", suspended=1))
    rows = [make(now + number * HOUR, vault) for number, make in enumerate(makes)]
    held = Installation(mark="", marked_at=now, held_since=now + DAY, held_because=Because.OLDER, as_of=now)
    await app.app.clock.advance(3 * DAY.total_seconds())
    items = await found(app, *rows, held)
    assert [(each.kind, each.since) for each in items] == [
        ("hold", None),
        *((kind, now + number * HOUR) for number, kind in enumerate(("proof", "payout", "unknown", "suspense"))),
    ]
    assert [each.urgent for each in items] == [True, False, False, False, False]


@pytest.mark.parametrize("count", [99, 100])
async def test_hundred_items_of_a_kind_are_marked_incomplete(app: RefundApp, count: int) -> None:
    now = app.app.clock.now()
    rows = [
        Suspense(id=f"sus_{number}", payment_id="pay_1", amount=Rub(1), reason="late", received_at=now, **OWNED)
        for number in range(count)
    ]
    assert len(await found(app, *rows)) == count
    assert (await read_action_items(app.ports)).complete is (count < 100)


@pytest.mark.parametrize("verifier", [None, "someone"])
async def test_clients_who_wait_for_one_verifier_are_one_line(app: RefundApp, verifier: str | None) -> None:
    since = app.app.clock.now()
    rows = [
        msgspec.structs.replace(
            applicant(kyc=K.REGISTERING, verifier=verifier)(since + number * MOMENT, app.ports.vault),
            id=f"cl_{number}",
            phone_digest=b"%d" % number,
        )
        for number in range(2)
    ]
    await app.app.clock.advance(DAY.total_seconds())
    [item] = await found(app, *rows)
    name = verifier or app.ports.kyc.name
    assert (item.object_id, item.since) == (name, since)
    assert item.text.startswith(f"2 clients wait for {name} to begin")


@pytest.mark.parametrize(
    ("given_up", "text"), [(1, "1 webhook given up"), (2, "2 webhooks given up"), (100, "100+ webhooks given up")]
)
async def test_failed_webhooks_of_a_receiver_are_one_item_for_thirty_days(
    app: RefundApp, given_up: int, text: str
) -> None:
    now = app.app.clock.now()
    breaker = msgspec.structs.replace(new_breaker("acc_1", Mode.LIVE), last_failure_at=now)
    rows = [
        msgspec.structs.replace(
            blank(Delivery, f"evt-{number:03}", account_id="acc_1", mode=Mode.LIVE, status=DeliveryStatus.FAILED),
            created_at=now + number * MOMENT,
        )
        for number in range(given_up)
    ]
    assert await found(app, breaker) == [], "it failed, and was given nothing up"
    [item] = await found(app, *rows)
    assert (item.kind, item.of, item.text, item.since) == ("delivery", "receiver", text, now)
    await app.app.clock.advance((30 * DAY).total_seconds())
    assert await found(app) == [item]
    await app.app.clock.advance(MOMENT.total_seconds())
    assert await found(app) == []


@pytest.mark.parametrize("is_altered", [False, True])
async def test_pending_action_of_another_operator_is_urgent_only_if_altered(app: RefundApp, is_altered: bool) -> None:
    now = app.app.clock.now()
    action = PendingAction(
        id="action_1", use_case="approve_refund", action="refund.approve", object_id="ref_1", arguments={}, shown=(),
        operator="ivan", reason="ok", created_at=now, expires_at=now + DAY, slot="slot", **OWNED,
    )  # fmt: skip
    action = tag_action(app.ports.vault, action)
    if is_altered:
        action = msgspec.structs.replace(action, object_id="ref_2")
    [item] = await found(app, action)
    told = "not what the vault tagged: reject it"
    assert (item.kind, item.object_id, item.since, item.urgent) == ("confirm", "action_1", now, is_altered)
    assert item.text == (told if is_altered else "ivan asks for refund.approve")
    assert item.brief == (told if is_altered else "refund.approve waits for a second operator")


async def test_a_row_that_cannot_be_read_waits_with_its_reason(app: RefundApp) -> None:
    now = app.app.clock.now()
    row = UnreadableRow(
        id="jobs:job_1", source="jobs", row_id="job_1", why="`due` is no time", found_at=now, found_by="1"
    )
    [item] = await found(app, row)
    assert (item.kind, item.object_id, item.text, item.since) == (
        "unreadable",
        "jobs:job_1",
        "cannot be read: `due` is no time",
        now,
    )


async def test_books_that_do_not_hold_are_urgent(app: RefundApp) -> None:
    await app.paid()
    async with beneath(app.ports).unit() as unit:
        [row, *_] = await unit[LedgerAccount].find()
        unit[LedgerAccount].increase(row.id, "balance", 1)
        await unit.commit()
    [item] = await found(app)
    assert (item.kind, item.since, item.urgent) == ("ledger", None, True)
    assert "off zero" in item.text
