"""Delivery proofs as data: every row of the state table, every rule about a hash
(docs/payments.md "Delivery proofs")."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.terminals import Terminal, TerminalKind
from cambist.core.domain.errors import Refusal
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.proof_checks import (
    POLLS,
    SETTLEMENT_POLL,
    Look,
    Next,
    Seen,
    after_poll,
    rejected,
    until_settled,
    waits_for_settlement,
    without_answer,
)
from cambist.core.domain.payments.proof_reminders import REMINDERS, is_missing, next_reminder, reminder_number
from cambist.core.domain.payments.proofs import (
    PROOF_MOVES,
    STUCK,
    DeliveryProof,
    ProofNetwork,
    ProofOrder,
    ProofStatus,
    ProofWish,
    RejectionReason,
    changes_nothing,
    check_order,
    check_taking,
    submitted,
    takes_proof,
    transaction_hash,
)
from tests.tables import table

S = ProofStatus
NOW = datetime(2026, 8, 8, 12, tzinfo=UTC)
HASH, OTHER = "a" * 64, "b" * 64
WISH = ProofWish(ProofNetwork.TRC20, HASH)
OTHER_WISH = ProofWish(ProofNetwork.TRC20, OTHER)
CREDIT = Usdt(100_00000000)


def proof(status: ProofStatus = S.ACCEPTED, **more: Any) -> DeliveryProof:
    fields: dict[str, Any] = {
        "id": "pay_1",
        "network": ProofNetwork.TRC20,
        "tx_hash": HASH,
        "status_at": NOW,
        "submitted_at": NOW,
        "claim": None if status is S.REJECTED else WISH.claim,
        "reason": RejectionReason.NOT_FOUND_OR_UNCONFIRMED if status is S.REJECTED else None,
    }
    return DeliveryProof(status=status, **{**fields, **more})


def payment(status: PaymentStatus = PaymentStatus.SETTLED, **more: Any) -> Payment:
    fields: dict[str, Any] = {
        "id": "pay_1",
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "shop_id": "shop",
        "amount": Rub(10_000_00),
        "payment_method": "sbp",
        "created_at": NOW,
        "expires_at": NOW,
        "amount_usdt": CREDIT if status is PaymentStatus.SETTLED else None,
    }
    return Payment(status=status, **{**fields, **more})


def seen(amount: Usdt) -> Look:
    return Look(Seen.FINAL, (amount,))


SUBMITTED = [S.WAITING, S.ACCEPTED, S.IN_REVIEW, S.AWAITING_CONFIRMATIONS, S.REJECTED]
MISSING, IN_BLOCK, REVERTED = Look(Seen.MISSING), Look(Seen.IN_BLOCK), Look(Seen.REVERTED)
FITS, DIFFERS, NOTHING = seen(CREDIT), seen(Usdt(1)), Look(Seen.FINAL)
LOOKED: list[tuple[ProofStatus, Look, ProofStatus]] = [
    (before, look, after)
    for before in (S.ACCEPTED, S.IN_REVIEW, S.AWAITING_CONFIRMATIONS)
    for look, after in [
        (MISSING, S.AWAITING_CONFIRMATIONS if before is S.AWAITING_CONFIRMATIONS else S.IN_REVIEW),
        (IN_BLOCK, S.AWAITING_CONFIRMATIONS),
        (REVERTED, S.REJECTED),
        (NOTHING, S.REJECTED),
        (FITS, S.CONFIRMED),
        (DIFFERS, S.CONFIRMED_AMOUNT_DIFFERS),
    ]
]


class TestMoves:
    @table("before", SUBMITTED)
    def test_a_hash_is_taken_before_it_is_confirmed(self, before: ProofStatus) -> None:
        earlier = None if before is S.WAITING else proof(before, submission=3, version=7, polls=5, final_at=NOW)
        after = submitted("pay_1", earlier, OTHER_WISH, NOW + STUCK, holds=True)
        assert after == proof(
            tx_hash=OTHER,
            status_at=NOW + STUCK,
            submitted_at=NOW + STUCK,
            claim=f"TRC20:{OTHER}",
            submission=1 if earlier is None else 4,
            version=0 if earlier is None else 7,
        )

    @table("before", [S.CONFIRMED, S.CONFIRMED_AMOUNT_DIFFERS])
    def test_confirmed_hash_is_locked_and_its_repeat_is_answered(self, before: ProofStatus) -> None:
        with pytest.raises(Refusal) as refused:
            changes_nothing(proof(before), OTHER_WISH, NOW)
        assert (refused.value.status, refused.value.code) == (409, "DELIVERY_PROOF_LOCKED")
        assert changes_nothing(proof(before), WISH, NOW)
        for wish in (WISH, OTHER_WISH):
            with pytest.raises(IllegalMove):
                submitted("pay_1", proof(before), wish, NOW, holds=True)

    @table(("before", "look", "after"), LOOKED)
    def test_an_answer_of_the_chain_moves_it(self, before: ProofStatus, look: Look, after: ProofStatus) -> None:
        assert after_poll(proof(before), look, payment(), NOW).proof.status is after

    def test_every_row_of_the_table_happens_and_nothing_else_does(self) -> None:
        happened = {(before, S.ACCEPTED) for before in SUBMITTED}
        happened |= {(before, after) for before, _, after in LOOKED if before is not after}
        happened.add(
            (S.AWAITING_CONFIRMATIONS, until_settled(proof(S.AWAITING_CONFIRMATIONS), payment(), NOW).proof.status)
        )
        assert happened == {(row.before, row.after) for row in PROOF_MOVES.rows}

    def test_only_confirmations_are_final(self) -> None:
        final = {status for status in ProofStatus if PROOF_MOVES.is_final(status)}
        assert final == {S.CONFIRMED, S.CONFIRMED_AMOUNT_DIFFERS}
        assert {status for status in ProofStatus if status is not S.WAITING and proof(status).is_locked} == final
        assert [status for status in ProofStatus if proof(status).is_open] == SUBMITTED[1:4]


class TestRepeats:
    @table("status", [S.ACCEPTED, S.IN_REVIEW, S.AWAITING_CONFIRMATIONS])
    @table("spelling", [HASH, f"0x{HASH}"])
    def test_the_same_hash_in_the_same_network_changes_nothing(self, status: ProofStatus, spelling: str) -> None:
        assert changes_nothing(proof(status), ProofWish(ProofNetwork.TRC20, spelling), NOW + STUCK)

    @table("status", SUBMITTED[1:])
    @table("wish", [OTHER_WISH, ProofWish(ProofNetwork.BEP20, HASH), ProofWish(ProofNetwork.TRC20, "a")])
    def test_another_hash_or_another_network_is_a_replacement(self, status: ProofStatus, wish: ProofWish) -> None:
        assert not changes_nothing(proof(status, reason=RejectionReason.INVALID), wish, NOW)

    @table(("status", "starts_anew"), [(S.IN_REVIEW, True), (S.ACCEPTED, False), (S.AWAITING_CONFIRMATIONS, False)])
    def test_in_review_for_over_a_day_the_same_hash_starts_anew(self, status: ProofStatus, starts_anew: bool) -> None:
        over = NOW + STUCK + timedelta(microseconds=1)
        assert changes_nothing(proof(status), WISH, over) is not starts_anew

    @table(
        ("reason", "starts_anew"),
        [
            (RejectionReason.NOT_FOUND_OR_UNCONFIRMED, True),
            (RejectionReason.ALREADY_USED, True),
            (RejectionReason.INVALID, False),
        ],
    )
    def test_rejected_hash_restarts_if_a_second_check_may_end_differently(
        self, reason: RejectionReason, starts_anew: bool
    ) -> None:
        assert changes_nothing(proof(S.REJECTED, reason=reason), WISH, NOW) is not starts_anew


class TestAmounts:
    @table(
        ("units", "status"),
        [
            (CREDIT.units, S.CONFIRMED),
            (99_00000000, S.CONFIRMED),
            (101_00000000, S.CONFIRMED),
            (98_99999999, S.CONFIRMED_AMOUNT_DIFFERS),
            (101_00000001, S.CONFIRMED_AMOUNT_DIFFERS),
        ],
    )
    def test_within_one_percent_of_the_credit_it_fits(self, units: int, status: ProofStatus) -> None:
        after = after_poll(proof(), seen(Usdt(units)), payment(), NOW)
        assert (after.proof.status, after.proof.final_at, after.again_at) == (status, NOW, None)
        assert after.proof.claim == WISH.claim

    def test_a_part_of_the_smallest_unit_more_than_one_percent_does_not_fit(self) -> None:
        after = after_poll(proof(), seen(Usdt(100)), payment(amount_usdt=Usdt(99)), NOW)
        assert after.proof.status is S.CONFIRMED_AMOUNT_DIFFERS

    def test_one_transfer_of_several_must_fit_and_not_their_sum(self) -> None:
        halves = Look(Seen.FINAL, (Usdt(50_00000000), Usdt(50_00000000)))
        one = Look(Seen.FINAL, (Usdt(3), CREDIT, Usdt(70_00000000)))
        assert after_poll(proof(), halves, payment(), NOW).proof.status is S.CONFIRMED_AMOUNT_DIFFERS
        assert after_poll(proof(), one, payment(), NOW).proof.status is S.CONFIRMED

    @table("before", SUBMITTED[1:4])
    def test_before_the_settlement_a_final_transfer_is_in_review(self, before: ProofStatus) -> None:
        unsettled = payment(PaymentStatus.PAID)
        after = after_poll(proof(before), FITS, unsettled, NOW)
        assert (after.proof.status, after.proof.final_at) == (S.IN_REVIEW, NOW)
        assert after.again_at == NOW + timedelta(hours=1) == NOW + SETTLEMENT_POLL
        assert waits_for_settlement(after.proof, unsettled)
        assert not waits_for_settlement(after.proof, payment())
        assert not waits_for_settlement(proof(before), unsettled)

    def test_proof_of_a_refunded_payment_stays_in_review_without_polls(self) -> None:
        after = after_poll(proof(), FITS, payment(PaymentStatus.REFUNDED), NOW)
        assert (after.proof.status, after.again_at) == (S.IN_REVIEW, None)

    def test_the_first_time_that_it_was_seen_final_is_kept(self) -> None:
        first = after_poll(proof(), FITS, payment(PaymentStatus.PAID), NOW).proof
        assert after_poll(first, FITS, payment(), NOW + SETTLEMENT_POLL).proof.final_at == NOW


def climbed(start: DeliveryProof, look: Look) -> list[Next]:
    """Return the proof after every further poll, until there is none left."""
    steps = [after_poll(start, look, payment(), NOW)]
    while steps[-1].again_at is not None:
        steps.append(after_poll(steps[-1].proof, look, payment(), steps[-1].again_at))
    return steps


class TestBackoff:
    @table(("look", "status"), [(MISSING, S.IN_REVIEW), (IN_BLOCK, S.AWAITING_CONFIRMATIONS)])
    def test_not_found_or_not_final_until_the_last_look_it_is_rejected(self, look: Look, status: ProofStatus) -> None:
        *waiting, last = climbed(proof(), look)
        assert {step.proof.status for step in waiting} == {status}
        assert len(waiting) == len(POLLS)
        assert (last.proof.status, last.proof.reason, last.proof.claim) == (
            S.REJECTED,
            RejectionReason.NOT_FOUND_OR_UNCONFIRMED,
            None,
        )
        assert last.proof.status_at == NOW + sum(POLLS, timedelta())

    def test_the_looks_become_rare_within_an_hour_and_end_after_six(self) -> None:
        minutes = [(step.again_at - NOW) / timedelta(minutes=1) for step in climbed(proof(), MISSING) if step.again_at]
        assert minutes == [1 / 6, 1 / 2, 1, 2, 4, 9, 19, 39, 69, 129, 249, 369]

    def test_backoff_ends_within_the_day_before_a_new_request(self) -> None:
        assert 2 * sum(POLLS, timedelta()) < STUCK

    def test_the_backoff_begins_again_once_when_it_is_first_seen_in_a_block(self) -> None:
        late = proof(S.IN_REVIEW, polls=len(POLLS))
        first = after_poll(late, IN_BLOCK, payment(), NOW)
        assert (first.proof.polls, first.again_at) == (1, NOW + POLLS[0])
        dropped = after_poll(first.proof, MISSING, payment(), NOW)
        assert (dropped.proof.status, dropped.proof.polls) == (S.AWAITING_CONFIRMATIONS, 2)
        assert after_poll(dropped.proof, IN_BLOCK, payment(), NOW).proof.polls == 3

    @table(
        ("before", "after"),
        [
            (S.ACCEPTED, S.IN_REVIEW),
            (S.IN_REVIEW, S.IN_REVIEW),
            (S.AWAITING_CONFIRMATIONS, S.AWAITING_CONFIRMATIONS),
        ],
    )
    def test_a_chain_that_is_away_counts_for_nothing(self, before: ProofStatus, after: ProofStatus) -> None:
        step = without_answer(proof(before, polls=len(POLLS)), NOW)
        assert (step.proof.status, step.proof.polls, step.again_at) == (after, len(POLLS), NOW + timedelta(minutes=5))

    @table("reason", RejectionReason)
    def test_rejected_it_says_why_and_lets_the_transaction_go(self, reason: RejectionReason) -> None:
        step = rejected(proof(), reason, NOW)
        assert (step.proof.status, step.proof.reason, step.proof.claim) == (S.REJECTED, reason, None)
        assert step.again_at is None


class TestOrders:
    @table("network", ["TRC20", "ERC20", "BEP20"])
    @table(
        ("given", "kept"),
        [(HASH, HASH), ("0xAB", "0xab"), (f"  {HASH.upper()}\n", HASH), ("x" * 200, "x" * 200)],
    )
    def test_a_hash_is_trimmed_and_kept_in_lower_case(self, network: str, given: str, kept: str) -> None:
        assert check_order(ProofOrder(network=network, tx_hash=given)) == ProofWish(ProofNetwork(network), kept)

    @table("network", ["", "trc20", "TRON", "TRC20 ", "BTC"])
    def test_another_network_is_a_validation_error_naming_the_three(self, network: str) -> None:
        with pytest.raises(Refusal, match="TRC20, ERC20, BEP20") as refused:
            check_order(ProofOrder(network=network, tx_hash=HASH))
        assert (refused.value.status, refused.value.code) == (400, "VALIDATION_ERROR")

    @table("tx_hash", ["", "  ", "x" * 201, "a b", "a\nb", "a\tb", "хэш", "a\x7f", "a\u200b", "İ"])
    def test_impossible_hash_is_a_validation_error(self, tx_hash: str) -> None:
        with pytest.raises(Refusal) as refused:
            check_order(ProofOrder(network="TRC20", tx_hash=tx_hash))
        assert (refused.value.status, refused.value.code) == (400, "VALIDATION_ERROR")

    @table(
        ("text", "found"),
        [
            (HASH, HASH),
            (f"0x{HASH}", HASH),
            (HASH[:-1], None),
            (f"{HASH}a", None),
            (f"0x{HASH[:-2]}", None),
            ("g" * 64, None),
            (f"x{HASH}", None),
            ("a", None),
        ],
    )
    def test_a_transaction_hash_is_64_hex_digits(self, text: str, found: str | None) -> None:
        assert transaction_hash(text) == found
        claim = ProofWish(ProofNetwork.ERC20, text).claim
        assert claim == (None if found is None else f"ERC20:{found}")


class TestTaking:
    @table("status", PaymentStatus)
    def test_a_hash_is_taken_for_a_paid_or_settled_payment_only(self, status: PaymentStatus) -> None:
        if status in (PaymentStatus.PAID, PaymentStatus.SETTLED):
            check_taking(payment(status))
            return
        with pytest.raises(Refusal) as refused:
            check_taking(payment(status))
        assert (refused.value.status, refused.value.code) == (409, "INVALID_STATUS")

    @table(
        ("mode", "kind", "owner", "takes"),
        [
            (Mode.LIVE, TerminalKind.EXCHANGE, "acc_1", True),
            (Mode.TEST, TerminalKind.EXCHANGE, "acc_1", False),
            (Mode.LIVE, TerminalKind.ORDINARY, "acc_1", False),
            (Mode.LIVE, TerminalKind.EXCHANGE, "acc_2", False),
            (Mode.LIVE, None, "acc_1", False),
        ],
    )
    def test_only_live_payments_by_an_exchange_terminal(
        self, mode: Mode, kind: TerminalKind | None, owner: str, takes: bool
    ) -> None:
        terminal = None
        if kind is not None:
            terminal = Terminal(id="t", account_id=owner, label="l", payment_method="sbp", kind=kind, created_at=NOW)
        assert takes_proof(payment(mode=mode), terminal) is takes


class TestReminders:
    @table(("hours", "number"), [(0, 0), (23.99, 0), (24, 1), (47.99, 1), (48, 2), (71.99, 2), (72, 3), (999, 3)])
    def test_they_come_24_48_and_72_hours_after_payment(self, hours: float, number: int) -> None:
        assert reminder_number(NOW, NOW + timedelta(hours=hours)) == number

    def test_after_the_third_there_is_no_next(self) -> None:
        assert [next_reminder(NOW, number) for number in range(4)] == [*(NOW + pause for pause in REMINDERS), None]

    @table("status", ProofStatus)
    @table("paid", PaymentStatus)
    def test_proof_is_missing_until_one_is_submitted_and_not_rejected(
        self, status: ProofStatus, paid: PaymentStatus
    ) -> None:
        is_payable = paid in (PaymentStatus.PAID, PaymentStatus.SETTLED)
        submitted_proof = None if status is S.WAITING else proof(status)
        expected = is_payable and status in (S.WAITING, S.REJECTED)
        assert is_missing(payment(paid), submitted_proof) is expected


def test_a_proof_holds_nothing_that_cannot_be_stored_and_read_again() -> None:
    before = proof(S.REJECTED, polls=3, final_at=NOW, submission=2)
    assert msgspec.json.decode(msgspec.json.encode(before), type=DeliveryProof) == before
