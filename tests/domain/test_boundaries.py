"""The moments that the interface names, each at the microsecond before it, at it, and at the one after: the tests say
to which side the moment belongs. Moments that need an app are in usecases/jobs/test_boundaries.py. `nox -s mutants`
shows that each test fails when its boundary moves."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.rate_limit import window
from cambist.core.domain.exchanges.exchanges import EXCHANGE_MOVES, ExchangeTrigger
from cambist.core.domain.exchanges.funds import Incoming, judge_deposits
from cambist.core.domain.money import Rub
from cambist.core.domain.payer.binding_window import BindingFace, binding_face, returns_by_itself
from cambist.core.domain.payer.window import Face, face
from cambist.core.domain.payments.payments import LATE_WINDOW, PAYMENT_MOVES, RECURRING, Payment, PaymentStatus
from cambist.core.domain.payments.proof_reminders import reminder_number
from cambist.core.domain.payments.proofs import DeliveryProof, ProofNetwork, ProofStatus, ProofWish, changes_nothing
from cambist.core.domain.payments.reports import Arrival, Report, decide
from cambist.core.domain.payments.tallies import day_of
from cambist.core.domain.refunds.refunds import PendingReason, RefundStatus, is_given_up
from cambist.core.domain.settlement import rates
from cambist.core.domain.settlement.settlement import cutoff_of, last_run, next_run
from cambist.core.domain.subscriptions.charge_decisions import exhaustion
from cambist.core.domain.subscriptions.charge_reports import step_of
from cambist.core.domain.subscriptions.moves import binding_timed_out, pause_timed_out
from cambist.core.domain.subscriptions.periods import Interval, calendar_period, window_number
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.breaker import after_delivery, after_outcome, closed, new_breaker
from cambist.core.domain.webhooks.delivery import LIFETIME, Outcome, after_attempt, is_too_old, sent_anew
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from cambist.core.domain.webhooks.signing import NotVerified, Signer, headers, verify_signature
from tests.domain import exchange_kit, refund_kit, subscription_kit
from tests.domain.subscription_kit import MSK, attempts, subscription, terms
from tests.moves import led
from tests.tables import table

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=seconds) for seconds in (1, 60, 3600, 86_400))
END = START + 15 * MINUTE
P = PaymentStatus
BOUND = subscription_kit.BOUND_AT
S = subscription_kit.S

FROM, UNTIL = "from it on", "until it, with it"


def payment(status: PaymentStatus = P.PENDING, **more: Any) -> Payment:
    fields: dict[str, Any] = {
        "id": "pay_1",
        "account_id": "acc_1",
        "mode": Mode.TEST,
        "shop_id": subscription_kit.SHOP_ID,
        "status": status,
        "amount": Rub(100_00),
        "payment_method": "sbp",
        "created_at": START,
        "expires_at": END,
        "qr_payload": "https://qr.example/1",
    }
    return Payment(**{**fields, **more})


def charge() -> Payment:
    return payment(payment_method=RECURRING, subscription_id="sub_1", bank="bank", period_ref="a20260228-month1")


def with_money(at: datetime) -> str | None:
    """Where money of `at` moves an expired payment, or why it may not."""
    arrival = Arrival(id="t", amount=Rub(100_00), at=at)
    decision = decide(payment(P.EXPIRED), Report(status=P.PAID, arrivals=(arrival,)), at)
    return decision.unapplied[0].reason if decision.unapplied else led(PAYMENT_MOVES, P.EXPIRED, decision.trigger)


def without_money(status: PaymentStatus, said: PaymentStatus, now: datetime) -> PaymentStatus | None:
    return led(PAYMENT_MOVES, status, decide(payment(status), Report(status=said), now).trigger)


def waiting(**more: Any) -> Delivery:
    fields: dict[str, Any] = {
        "id": "evt_1",
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "type": EventType.PAYMENT_STATUS_CHANGED,
        "status": DeliveryStatus.PENDING,
        "created_at": START,
        "due": START,
    }
    return Delivery(**{**fields, **more})


def answered(status: int, *, sent: datetime, ended: datetime | None = None) -> Outcome:
    return Outcome(answer="responded", status=status, note="", sent_at=sent, ended_at=ended or sent)


def rung_after(now: datetime) -> datetime | None:
    """When an event that was refused with 400 at `now`, after its fast backoff, is tried again; counted from START."""
    refused = waiting(attempts=10, first_attempt_at=START, give_up_at=START + LIFETIME)
    return after_attempt(refused, answered(400, sent=now)).due


def opens_though_taken_at(moment: datetime) -> bool:
    """Whether a backoff from START on opens the breaker, where another event was taken at `moment`."""
    breaker = after_outcome(new_breaker("acc_1", Mode.LIVE), "evt_2", answered(200, sent=moment))
    last = waiting(attempts=9, first_attempt_at=START)
    return after_delivery(breaker, last, answered(503, sent=START + 511 * SECOND))[0].is_open


def counts_after_closing(sent: datetime) -> bool:
    """Whether a failure of a webhook sent then counts, where the breaker was closed by hand at START."""
    breaker = closed(new_breaker("acc_1", Mode.LIVE), by_hand_at=START)
    return after_outcome(breaker, "evt_1", answered(503, sent=sent, ended=START + SECOND)).failures == 1


def waited_for_money(now: datetime) -> bool:
    """Return whether a refund that was approved at START, an hour after its application, is rejected then."""
    waiting_one = msgspec.structs.replace(
        refund_kit.refund(RefundStatus.PENDING),
        created_at=START - HOUR,
        approved_at=START,
        pending_reason=PendingReason.INSUFFICIENT_BALANCE,
    )
    return is_given_up(waiting_one, now)


def quote(at: datetime) -> rates.Quote:
    return rates.Quote(rate=Decimal("92.5"), at=at, source="a")


def known(at: datetime) -> rates.KnownRate:
    return rates.KnownRate(id="live", rate="92.5", at=at, fetched_at=at, source="a")


def believed_of_a_jump(now: datetime) -> bool:
    """Whether the guard has forgotten the rate of START, so that one source alone is believed beyond it."""
    return (
        rates.judge(known(START), [rates.Quote(rate=Decimal(200), at=now, source="a")], now, more=False).quote
        is not None
    )


def believed_of_a_level(now: datetime) -> bool:
    """Return whether a level that one source has reported since START is believed."""
    before = msgspec.structs.replace(known(now), candidate=rates.Candidate(rate="200", since=START))
    level = rates.Quote(rate=Decimal(200), at=now, source="a")
    return rates.judge(before, [level], now, more=False).quote is not None


def proof() -> DeliveryProof:
    return DeliveryProof(
        id="pay_1",
        network=ProofNetwork.TRC20,
        tx_hash="ab" * 32,
        status=ProofStatus.IN_REVIEW,
        status_at=START,
        submitted_at=START,
    )


def link(created_at: datetime = BOUND, **more: Any) -> Subscription:
    return subscription(S.PENDING_BINDING, created_at=created_at, **more)


def spent(now: datetime) -> bool:
    """Whether the budget of one failed attempt is used up by its 20 hours alone."""
    tried = subscription(attempts=attempts())
    return exhaustion(terms(), tried.charge_state, now) is not None


def sends_on(now: datetime, *, ended: bool = False) -> str:
    """Return the step allowed for a charge of START without an outcome. `ended`: its subscription was cancelled
    then."""
    is_of = subscription(S.CANCELLED, updated_at=START) if ended else subscription()
    return step_of(charge(), is_of, now).value


def verified(now: datetime) -> bool:
    """Whether a webhook signed at START is believed by a receiver then."""
    moment = int(START.timestamp())
    signer = Signer("secret-of-the-tests")
    webhook = headers(signer, event_id="evt_1", event="test", sequence=1, attempt=1, timestamp=moment, body=b"{}")
    try:
        verify_signature(webhook, b"{}", ["secret-of-the-tests"], now=now.timestamp())
    except NotVerified:
        return False
    return True


def with_deposit(at: datetime, now: datetime, *, is_final: bool = True) -> str | None:
    """Return the new status of an exchange whose full amount arrived in a block of `at`."""
    made = exchange_kit.exchange()
    seen = Incoming(source="a:0", amount=made.amount_usdt.units, at=at, is_final=is_final)
    return led(EXCHANGE_MOVES[made.direction], made.status, judge_deposits(made, [seen], now).trigger)


ROWS: list[tuple[str, datetime, Callable[[datetime], Any], Any, Any, str]] = [
    # name, moment, question, answer before, answer after, side of the moment itself
    ("the settlement of a day starts", START.replace(hour=9), lambda now: last_run(now).day, 20, 21, FROM),
    ("the next settlement", START.replace(hour=9), lambda now: next_run(now).day, 21, 22, FROM),
    ("the day of a cutoff", START.replace(hour=0), lambda now: cutoff_of(now).day, 20, 21, FROM),
    ("a day of turnover", START.replace(hour=0), day_of, "2026-11-20", "2026-11-21", FROM),
    ("a window of limits", START, lambda now: window(int(now.timestamp())) % 1440, 719, 720, FROM),
    (
        "a payment without money expires",
        END,
        lambda now: without_money(P.PENDING, P.PENDING, now),
        None,
        P.EXPIRED,
        FROM,
    ),
    (
        "one being processed, too",
        END,
        lambda now: without_money(P.PROCESSING, P.PROCESSING, now),
        None,
        P.EXPIRED,
        FROM,
    ),
    ("late money", START + LATE_WINDOW, with_money, P.PAID, "too_late", UNTIL),
    (
        "a late word of it",
        START + LATE_WINDOW,
        lambda now: without_money(P.EXPIRED, P.PAID, now),
        P.AMOUNT_MISMATCH,
        None,
        UNTIL,
    ),
    ("the window waits", END, lambda now: face(payment(), now), Face.WAITING, Face.CHECKING, FROM),
    ("its minute", START + MINUTE, lambda now: face(payment(P.PAID, closed_at=START), now), Face.PAID, None, FROM),
    ("its six hours", START + 6 * HOUR, lambda now: face(payment(P.EXPIRED), now), Face.EXPIRED, None, FROM),
    (
        "a binding's 24 hours",
        BOUND + DAY,
        lambda now: binding_timed_out(link(), now).status,
        S.PENDING_BINDING,
        S.EXPIRED,
        FROM,
    ),
    (
        "its page then",
        BOUND + DAY,
        lambda now: binding_face(link(), None, now),  # the button was not pressed yet
        BindingFace.TERMS,
        BindingFace.EXPIRED,
        FROM,
    ),
    (
        "its QR",
        END,
        lambda now: binding_face(link(START), payment(), now),
        BindingFace.WAITING,
        BindingFace.LAPSED,
        FROM,
    ),
    (
        "its QR, of which the money came",
        END,
        lambda now: binding_face(link(START, first_payment_id="pay_1"), payment(P.PAID), now),
        BindingFace.PROCESSING,
        BindingFace.LAPSED_PAID,
        FROM,
    ),
    (
        "its minute",
        START + MINUTE,
        lambda now: returns_by_itself(BindingFace.ACTIVE, payment(closed_at=START), now),
        True,
        False,
        FROM,
    ),
    (
        "a link is waited for",
        BOUND + HOUR,
        lambda now: binding_timed_out(link(binding_url=None), now).status,
        S.PENDING_BINDING,
        S.CANCELLED,
        FROM,
    ),
    (
        "a pause's 90 days",
        BOUND + 90 * DAY,
        lambda now: pause_timed_out(subscription(S.PAUSED, paused_at=BOUND), now).status,
        S.PAUSED,
        S.EXPIRED,
        FROM,
    ),
    ("a charge is sent again", START + DAY, sends_on, "send", "wait", FROM),
    ("and is given up", START + DAY + 10 * MINUTE, sends_on, "wait", "give_up", FROM),
    ("also of one that ended", START + 10 * MINUTE, lambda now: sends_on(now, ended=True), "wait", "give_up", FROM),
    (
        "a calendar month",
        datetime(2026, 12, 1, tzinfo=UTC),
        lambda now: calendar_period(Interval.MONTH, now).ref,
        "2026-11",
        "2026-12",
        FROM,
    ),
    (
        "a calendar week",
        datetime(2026, 11, 23, tzinfo=UTC),
        lambda now: calendar_period(Interval.WEEK, now).ref,
        "2026-W47",
        "2026-W48",
        FROM,
    ),
    (
        "a calendar day",
        datetime(2026, 11, 22, tzinfo=UTC),
        lambda now: calendar_period(Interval.DAY, now).ref,
        "2026-11-21",
        "2026-11-22",
        FROM,
    ),
    (
        "a window of a month",
        datetime(2026, 2, 28, tzinfo=MSK),
        lambda now: window_number(terms(), BOUND, now),
        0,
        1,
        FROM,
    ),
    (
        "a window of days",
        datetime(2026, 2, 3, tzinfo=MSK),
        lambda now: window_number(terms(Interval.DAY, 3), BOUND, now),
        0,
        1,
        FROM,
    ),
    ("a refund waits for money", START + 14 * DAY, waited_for_money, False, True, FROM),
    ("the budget of a window", attempts().first_at + 20 * HOUR, spent, False, True, FROM),
    (
        "a deposit is late",
        exchange_kit.END,
        lambda now: with_deposit(now, exchange_kit.END - TICK),
        "usdt_received",
        None,
        FROM,
    ),
    (
        "an exchange expires",
        exchange_kit.END,
        lambda now: judge_deposits(exchange_kit.exchange(), [], now).trigger,
        None,
        ExchangeTrigger.LAPSED,
        FROM,
    ),
    (
        "it waits for a block",
        exchange_kit.END + 5 * MINUTE,
        lambda now: with_deposit(exchange_kit.END - TICK, now, is_final=False),
        None,
        "expired",
        FROM,
    ),
    ("a rate is held", START + 30 * SECOND, lambda now: rates.is_held(known(START), now), True, False, FROM),
    ("a rate is shown", START + 5 * MINUTE, lambda now: rates.may_serve(known(START), now), True, False, FROM),
    ("a quote is young", START + 5 * MINUTE, lambda now: rates.is_sound(quote(START), now), True, False, UNTIL),
    ("a quote of the future", START - 30 * SECOND, lambda now: rates.is_sound(quote(START), now), False, True, FROM),
    ("a rate of the future", START - 30 * SECOND, lambda now: rates.is_held(known(START), now), False, True, FROM),
    ("the guard's hour", START + HOUR, believed_of_a_jump, False, True, FROM),
    ("a level ripens", START + 10 * MINUTE, believed_of_a_level, False, True, FROM),
    ("the first reminder", START + 24 * HOUR, lambda now: reminder_number(START, now), 0, 1, FROM),
    ("the second reminder", START + 48 * HOUR, lambda now: reminder_number(START, now), 1, 2, FROM),
    ("the third reminder", START + 72 * HOUR, lambda now: reminder_number(START, now), 2, 3, FROM),
    (
        "a review that hangs",
        START + DAY,
        lambda now: changes_nothing(proof(), ProofWish(proof().network, proof().tx_hash), now),
        True,
        False,
        UNTIL,
    ),
    (
        "seven days of a delivery",
        START + 7 * DAY,
        lambda now: is_too_old(sent_anew(waiting(), receives=True, now=START), now),
        False,
        True,
        FROM,
    ),
    ("the first slow rung", START + HOUR, rung_after, START + HOUR, START + 5 * HOUR, FROM),
    ("the last slow rung", START + 41 * HOUR, rung_after, START + 41 * HOUR, None, FROM),
    ("a letter is too old", START + 300 * SECOND, verified, True, False, UNTIL),
    ("a letter of the future", START - 300 * SECOND, verified, False, True, FROM),
    ("another is taken", START, opens_though_taken_at, True, False, UNTIL),
    ("a receiver of before", START, counts_after_closing, False, True, FROM),
]


@table(("moment", "ask", "before", "after", "side"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_boundary_moment_belongs_to_its_documented_side(
    moment: datetime, ask: Callable[[datetime], Any], before: Any, after: Any, side: str
) -> None:
    at_it = after if side is FROM else before
    assert [ask(moment - TICK), ask(moment), ask(moment + TICK)] == [before, at_it, after]
