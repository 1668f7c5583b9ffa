"""Each rule about forbidden writes of a unit, with a case that passes and a case that breaks it (docs/reliability.md
"Assertions")."""

from cambist.core.domain.assertions import Written, breach_of
from cambist.core.domain.ledger import BalanceType, Posting
from cambist.core.domain.ledger import EntryKind as K
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import PaymentStatus as P
from cambist.core.domain.payments.tallies import EVER, tallies_of
from cambist.core.domain.refunds.refunds import RefundStatus as R
from cambist.core.domain.settlement.settlement import ItemKind
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus as W
from tests.domain import refund_kit
from tests.domain.assertion_kit import (
    LINE,
    NEW,
    PAID,
    PAYOUT,
    WAITS,
    booked,
    broken,
    change,
    counted,
    entry,
    event,
    gone,
    new,
    replaced,
    unread,
    written,
)
from tests.tables import table

RECEIPT = entry(K.RECEIPT, "pay_1", bank=-5, pending=5)
SECOND = entry(K.RECEIPT, "pay_2", bank=-7, pending=7)
SENT = entry(K.PAYOUT_SENT, "wd_1", reserved=-500, paid_out=500)
OTHER = refund_kit.payment(id="pay_2", sequence=1)


@table(
    ("given", "rule"),
    [
        (written(), None),
        (written(**booked(RECEIPT, SECOND)), None),
        (written(**booked(RECEIPT, by=1)), "running_balance"),
        (written(entries=[RECEIPT]), "running_balance"),
        (written(change(PAID), entries=[RECEIPT]), "running_balance"),
        (written(balances={"x": 0}), None),
        (written(balances={"x": 1}), "running_balance"),
        (written(change(PAID), balances={"x": 1}), "running_balance"),
        (written(rewritten=["receipt:pay_1:1"]), "journal_entry"),
        (written(change(PAID), rewritten=["receipt:pay_1:1"]), "journal_entry"),
        (written(**booked(replaced(RECEIPT, postings=(Posting(BalanceType.BANK, -5),)))), "journal_entry"),
        (written(**booked(RECEIPT, replaced(SECOND, postings=(Posting(BalanceType.BANK, -5),)))), "journal_entry"),
        # A payout moves its own amount.
        (
            written(
                new(PAYOUT),
                events=[event("wd_1", 1)],
                **booked(entry(K.PAYOUT_RESERVED, "wd_1", available=-500, reserved=500)),
            ),
            None,
        ),
        (written(unread(PAYOUT), **booked(SENT)), None),
        (written(unread(PAYOUT), **booked(entry(K.PAYOUT_RELEASED, "wd_1", reserved=-500, available=500))), None),
        (written(unread(PAYOUT), **booked(entry(K.PAYOUT_RESERVED, "wd_1", available=-501, reserved=501))), "payout"),
        (written(unread(PAYOUT), **booked(entry(K.PAYOUT_SENT, "wd_1", reserved=-499, paid_out=499))), "payout"),
        (written(unread(PAYOUT), **booked(entry(K.PAYOUT_SENT, "wd_1", reserved=500, paid_out=-500))), "payout"),
        (written(unread(PAYOUT), **booked(RECEIPT, entry(K.PAYOUT_SENT, "wd_1", reserved=-1, paid_out=1))), "payout"),
        (written(**booked(SENT)), "payout"),
        (written(gone(PAYOUT), **booked(SENT)), "payout"),
        # A correction of one is a revision, and of another amount.
        (written(**booked(entry(K.PAYOUT_SENT, "wd_1", 2, reserved=-1, paid_out=1))), None),
    ],
)
def test_money_is_booked_as_it_moves(given: Written, rule: str | None) -> None:
    assert broken(given) == rule


SETTLED = change(PAID, status=P.SETTLED, sequence=2)
TOLD = [event("pay_1", 2)]


@table(
    ("given", "rule"),
    [
        (written(change(PAID)), None),
        (written(SETTLED, events=TOLD), None),
        # A status follows from the one before.
        (written(change(PAID, status=P.EXPIRED)), "status"),
        (written(change(PAID, status=P.EXPIRED, sequence=2), events=TOLD), "status"),
        (written(change(WAITS, status=R.REVERSED)), "status"),
        (written(change(WAITS, status=R.PROCESSING), change(PAID, refund_taken=Rub(40_00))), None),
        (written(change(PAYOUT, status=W.COMPLETED)), "status"),
        (written(change(PAYOUT), change(PAID, status=P.EXPIRED)), "status"),
        (written(new(OTHER), gone(WAITS), change(PAID, status=P.EXPIRED)), "status"),
        # A unit with several moves shows only the first and the last status.
        (written(change(PAID, status=P.EXPIRED, sequence=3), events=[*TOLD, event("pay_1", 3)]), None),
        # The sequence rises with each event.
        (written(change(PAID, sequence=2)), "event_sequence"),
        (written(change(PAID, sequence=0)), "event_sequence"),
        (written(change(PAID), events=TOLD), "event_sequence"),
        (written(SETTLED, events=[event("pay_1", 3)]), "event_sequence"),
        (written(SETTLED, events=[*TOLD, *TOLD]), "event_sequence"),
        (written(SETTLED, events=[event("pay_2", 2)]), "event_sequence"),
        (written(SETTLED, events=[*TOLD, event("pay_2", 2)]), None),
        (written(new(NEW), events=[event("pay_1", 1)]), "event_sequence"),
        (written(new(PAID), events=[event("pay_1", 1)]), None),
        (written(new(PAID)), "event_sequence"),
        (written(unread(PAID), gone(WAITS), change(OTHER, sequence=2)), "event_sequence"),
        (written(change(WAITS), change(PAID, sequence=2)), "event_sequence"),
        # An event says where the payment came from.
        (written(SETTLED, events=[event("pay_1", 2, "pending")]), "previous_status"),
        (written(SETTLED, events=[event("elsewhere", 1), event("pay_1", 2, "pending")]), "previous_status"),
        (
            written(SETTLED, change(PAYOUT, sequence=2), events=[event("wd_1", 2, ""), event("pay_1", 2, "pending")]),
            "previous_status",
        ),
        (written(change(PAYOUT, status=W.CANCELLED, sequence=2), events=[event("wd_1", 2, "")]), None),
        (written(change(PAID, sequence=2), events=[event("pay_1", 2, "pending")]), None),
        (
            written(change(PAID, status=P.SETTLED, sequence=3), events=[event("pay_1", 2, ""), event("pay_1", 3, "")]),
            None,
        ),
        (
            written(
                change(PAID, sequence=2),
                change(OTHER, status=P.SETTLED, sequence=2),
                events=[event("pay_1", 2, ""), event("pay_2", 2, "")],
            ),
            "previous_status",
        ),
    ],
)
def test_object_moves_as_its_states_allow_and_makes_an_event(given: Written, rule: str | None) -> None:
    assert broken(given) == rule


TAKEN = refund_kit.payment(sequence=1, refund_taken=Rub(40_00))
GOES = replaced(WAITS, status=R.PROCESSING)


@table(
    ("given", "rule"),
    [
        (written(change(PAID, refund_taken=Rub(40_00)), change(WAITS, status=R.PROCESSING)), None),
        (
            written(
                change(TAKEN, refund_taken=Rub(0)),
                change(GOES, status=R.FAILED, sequence=1),
                events=[event("ref_1", 1)],
            ),
            None,
        ),
        (written(change(PAID, refund_taken=Rub(40_00)), new(GOES)), None),
        (written(change(TAKEN)), None),
        (written(change(TAKEN), change(GOES)), None),
        # A payment loses or regains money only if a refund moves it.
        (written(change(PAID, refund_taken=Rub(40_00))), "refund"),
        (written(change(TAKEN, refund_taken=Rub(0))), "refund"),
        (written(change(WAITS, status=R.PROCESSING)), "refund"),
        (written(change(PAID, refund_taken=Rub(39_99)), change(WAITS, status=R.PROCESSING)), "refund"),
        (written(change(PAID, refund_taken=Rub(40_00)), change(OTHER, refund_taken=Rub(1)), new(GOES)), "refund"),
        (written(change(PAYOUT), change(PAID, refund_taken=Rub(40_00))), "refund"),
        # Never more than came, nor less than nothing.
        (written(unread(replaced(TAKEN, refund_taken=Rub(100_00)))), None),
        (written(unread(replaced(TAKEN, refund_taken=Rub(100_01)))), "refund"),
        (written(unread(replaced(TAKEN, refund_taken=Rub(-1)))), "refund"),
        (written(unread(replaced(TAKEN, refund_taken=Rub(1), actual_amount=None))), "refund"),
        (written(unread(replaced(TAKEN, refund_taken=Rub(0), actual_amount=None))), None),
        (written(change(replaced(TAKEN, refund_taken=Rub(100_01)))), "refund"),
        (written(change(replaced(TAKEN, refund_taken=Rub(-1)))), "refund"),
        (written(change(replaced(TAKEN, refund_taken=Rub(1), actual_amount=None))), "refund"),
        # If an object was not read or is removed, the amount that moved is unknown.
        (written(unread(TAKEN), change(WAITS, status=R.PROCESSING)), None),
        (written(change(WAITS, status=R.PROCESSING), unread(TAKEN)), None),
        (written(change(PAID, refund_taken=Rub(40_00)), gone(GOES)), None),
    ],
)
def test_refunds_take_exactly_what_payments_lose(given: Written, rule: str | None) -> None:
    assert broken(given) == rule


MOVED = [*counted(PAID, -1), *counted(replaced(PAID, status=P.SETTLED))]
[OF_DAY, OF_EVER] = tallies_of(NEW, 1)


@table(
    ("given", "rule"),
    [
        (written(new(NEW), tallies=counted(NEW)), None),
        (written(SETTLED, events=TOLD, tallies=MOVED), None),
        (written(gone(PAID), tallies=counted(PAID, -1)), None),
        (written(new(NEW), new(OTHER), events=[event("pay_2", 1)], tallies=[*counted(NEW), *counted(OTHER)]), None),
        # Each is counted once in its day and once in total, under its own kind.
        (written(new(NEW), tallies=[OF_DAY]), "tally"),
        (written(new(NEW), tallies=[OF_EVER]), "tally"),
        (written(new(NEW), tallies=[OF_DAY, OF_EVER, OF_EVER]), "tally"),
        (written(new(NEW), tallies=[OF_DAY, OF_DAY]), "tally"),
        (written(new(NEW), tallies=[OF_EVER, OF_EVER]), "tally"),
        (written(new(NEW), tallies=[replaced(OF_DAY, count=2), OF_EVER]), "tally"),
        (written(new(NEW), tallies=[OF_DAY, replaced(OF_EVER, count=2)]), "tally"),
        (written(new(NEW), tallies=counted(NEW, 2)), "tally"),
        (written(new(NEW), tallies=counted(NEW, 0)), "tally"),
        (written(gone(PAID), tallies=counted(PAID, -1)[:1]), "tally"),
        (written(gone(PAID), tallies=counted(PAID, -1)[1:]), "tally"),
        (written(new(NEW), tallies=[replaced(OF_DAY, status=P.PAID), OF_EVER]), "tally"),
        (written(new(NEW), tallies=[OF_DAY, replaced(OF_EVER, status=P.PAID)]), "tally"),
        (written(new(NEW), tallies=counted(replaced(NEW, status=P.PAID))), "tally"),
        (written(change(PAID), tallies=counted(PAID)), "tally"),
        (written(change(PAID), tallies=MOVED), "tally"),
        (written(SETTLED, events=TOLD, tallies=MOVED[2:]), "tally"),
        (written(gone(PAID), tallies=counted(PAID)), "tally"),
        (written(new(WAITS), tallies=counted(PAID)), "tally"),
        (written(tallies=counted(PAID)), "tally"),
        (written(new(WAITS), new(NEW), tallies=counted(NEW)), None),
        (written(new(WAITS), new(NEW), tallies=[OF_DAY]), "tally"),
        (written(new(WAITS), new(NEW), tallies=[OF_EVER]), "tally"),
        (written(unread(NEW), tallies=[OF_DAY]), None),
        # A new one is held against the other rules, too.
        (written(new(PAID), tallies=counted(PAID)), "event_sequence"),
        (written(new(replaced(NEW, refund_taken=Rub(1))), tallies=counted(NEW)), "refund"),
        (written(unread(replaced(NEW, refund_taken=Rub(1))), tallies=counted(NEW)), "refund"),
    ],
)
def test_counts_move_as_payments_do(given: Written, rule: str | None) -> None:
    assert broken(given) == rule
    assert OF_EVER.period == EVER != OF_DAY.period


IN_IT = change(PAID, settlement_id="set_1")
CORRECTION = replaced(LINE, kind=ItemKind.REFUND, credit=Usdt(-2))


@table(
    ("given", "rule"),
    [
        (written(IN_IT, lines=[LINE], credited=7), None),
        (written(IN_IT, lines=[LINE, CORRECTION], credited=5), None),
        (written(IN_IT, lines=[LINE], credited=8), "statement"),
        (written(IN_IT, lines=[LINE, CORRECTION], credited=7), "statement"),
        (written(lines=[CORRECTION], credited=-2), None),
        (written(lines=[replaced(LINE, credit=Usdt(0))]), None),
        (written(lines=[LINE], credited=7), None),
        (written(unread(PAID), lines=[LINE], credited=7), None),
        (written(change(PAID), lines=[LINE], credited=7), "statement"),
        (written(change(PAID, settlement_id="set_2"), lines=[LINE], credited=7), "statement"),
        (written(change(replaced(PAID, settlement_id="set_1")), lines=[LINE], credited=7), "statement"),
        (written(gone(PAID), lines=[LINE], credited=7), "statement"),
        (written(change(PAID), lines=[CORRECTION, LINE], credited=5), "statement"),
        (
            written(new(replaced(NEW, settlement_id="set_1")), tallies=counted(NEW), lines=[LINE], credited=7),
            None,
        ),
        (written(new(NEW), tallies=counted(NEW), lines=[LINE], credited=7), "statement"),
    ],
)
def test_a_payment_is_in_one_statement_whose_sum_is_its_lines(given: Written, rule: str | None) -> None:
    assert broken(given) == rule


def test_a_breach_says_its_rule_and_where_it_is_broken() -> None:
    breach = breach_of(written(change(PAID, status=P.EXPIRED)))
    assert str(breach) == "status: pay_1 from paid to expired"
