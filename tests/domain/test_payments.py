"""A payment's view of itself: how long it waits, how its payer and the money that came are shown, and whether its
outcome at the bank is known (docs/payments.md)."""

from datetime import timedelta
from itertools import product
from typing import Any

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, Posting, entry_id
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.outcomes import Operation, is_outcome_unknown, unknown_outcome
from cambist.core.domain.payments.payments import (
    MINIMUM,
    BindingCharge,
    Opening,
    PaymentStatus,
    announced,
    lifetime,
    shown_metadata,
    shows_payer_name,
)
from cambist.core.domain.payments.suspense import Suspense, new_suspense
from cambist.core.domain.payments.transfers import ShownTransfer, TransferStatus, transfers_of
from cambist.core.usecases.accounts.accounts import storable
from tests.domain.refund_kit import NOW, payment
from tests.tables import table

S = PaymentStatus
T = TransferStatus
LATER = NOW + timedelta(minutes=5)


@table(
    ("asked", "own", "minutes"),
    [(None, True, 15), (None, False, 15), (40, True, 40), (40, False, 15), (1, True, 1)],
)
def test_payment_lives_15_minutes_by_default(asked: int | None, own: bool, minutes: int) -> None:
    assert lifetime(asked, own=own) == timedelta(minutes=minutes)


def test_the_least_is_30_rub() -> None:
    assert Rub(30_00) == MINIMUM


def test_event_without_a_move_has_the_next_number() -> None:
    assert announced(payment(sequence=4)) == payment(sequence=5)


class TestShown:
    @table("status", S)
    @table("name", [None, b"sealed"])
    def test_the_payer_s_name_is_shown_from_paid_on_where_it_is_known(
        self, status: PaymentStatus, name: bytes | None
    ) -> None:
        is_shown = name is not None and status in (S.PAID, S.SETTLED, S.REFUNDED)
        assert shows_payer_name(payment(status, payer_name=name)) is is_shown

    @table("status", S)
    @table("method", ["sbp", "recurring"])
    @table("contact", [None, "***4567"])
    @table("metadata", [None, {"order": 5}])
    def test_the_masked_phone_is_shown_from_settled_on(
        self, status: PaymentStatus, method: str, contact: str | None, metadata: dict[str, Any] | None
    ) -> None:
        made = payment(status, payment_method=method, payer_contact=contact, metadata=metadata)
        is_shown = contact is not None and method == "sbp" and status in (S.SETTLED, S.REFUNDED)
        assert shown_metadata(made) == ({**(metadata or {}), "payerContactMasked": contact} if is_shown else metadata)


class TestOutcomes:
    @table(("opening", "reference", "status"), list(product(Opening, [None, "ref"], S)))
    def test_outcome_is_unknown_while_open_and_without_a_bank_reference(
        self, opening: Opening, reference: str | None, status: PaymentStatus
    ) -> None:
        expected = opening is Opening.UNKNOWN and reference is None and status in (S.PENDING, S.EXPIRED)
        assert is_outcome_unknown(payment(status, opening=opening, bank_reference=reference)) is expected

    @table(
        ("more", "operation"),
        [
            ({}, Operation.CREATE_INVOICE),
            ({"subscription_id": "sub_1"}, Operation.CHARGE),
            ({"subscription_id": "sub_1", "binding": BindingCharge.FIRST}, Operation.BIND),
        ],
    )
    def test_unknown_outcome_is_of_the_requested_operation(self, more: dict[str, Any], operation: Operation) -> None:
        assert unknown_outcome(payment(S.PENDING, **more)).operation is operation


def entry(kind: EntryKind, *amounts: int) -> JournalEntry:
    postings = tuple(Posting(BalanceType.PENDING if amount > 0 else BalanceType.BANK, amount) for amount in amounts)
    return JournalEntry(
        id=entry_id(kind, "pay_1", 1),
        kind=kind,
        object_id="pay_1",
        revision=1,
        account_id="acc_1",
        mode=Mode.LIVE,
        at=LATER,
        postings=postings,
    )


def unapplied(**more: Any) -> Suspense:
    return Suspense(
        account_id="acc_1",
        mode=Mode.LIVE,
        payment_id="pay_1",
        amount=Rub(7),
        **{"id": "sus_bank:t-1", "reason": "after_paid", "received_at": NOW, **more},
    )


class TestTransfers:
    @table(
        ("kind", "status", "paid_at", "shown"),
        [
            (EntryKind.RECEIPT, S.PAID, NOW, (T.CREDITED, NOW)),
            (EntryKind.RECEIPT, S.SETTLED, None, (T.CREDITED, LATER)),
            (EntryKind.REVIEW, S.AMOUNT_MISMATCH, None, (T.UNDER_REVIEW, LATER)),
            (EntryKind.REVIEW, S.PAID, NOW, (T.CREDITED, LATER)),
            (EntryKind.REVIEW, S.FAILED, None, None),
        ],
    )
    def test_own_transfer_arrived_when_it_was_paid_or_booked(
        self, kind: EntryKind, status: PaymentStatus, paid_at: Any, shown: tuple[TransferStatus, Any] | None
    ) -> None:
        found = transfers_of(payment(status, paid_at=paid_at), [entry(kind, 1, -1)], [])
        expected = [] if shown is None else [ShownTransfer(amount=Rub(1), status=shown[0], received_at=shown[1])]
        assert found == expected

    @table(
        ("more", "status"),
        [
            ({}, T.SUSPENDED),
            ({"sending_since": NOW}, T.RETURNING),
            ({"sending_since": NOW, "reason": "return_failed"}, T.SUSPENDED),
            ({"sending_since": NOW, "reason": "return_reversed"}, T.SUSPENDED),
            ({"sending_since": NOW, "resolved_at": LATER}, T.RETURNED),
        ],
    )
    def test_money_in_suspense_says_whether_it_goes_back(self, more: dict[str, Any], status: TransferStatus) -> None:
        (found,) = transfers_of(payment(), [], [unapplied(**more)])
        assert (found.amount, found.status, found.received_at) == (Rub(7), status, NOW)
        assert (found.reason, found.returned_at) == (more.get("reason", "after_paid"), more.get("resolved_at"))

    def test_they_are_in_the_order_in_which_they_came(self) -> None:
        early, late = unapplied(received_at=NOW - timedelta(days=1)), unapplied(received_at=LATER)
        found = transfers_of(payment(paid_at=NOW), [entry(EntryKind.RECEIPT, 3, 2, -5)], [late, early])
        assert [each.amount for each in found] == [Rub(7), Rub(5), Rub(7)]
        assert [each.received_at for each in found] == [early.received_at, NOW, LATER]

    @table("transfer", ["1", "t-1", "review", "x" * 512, "\u043f", "a\u0085b", None])
    def test_suspense_id_names_the_payment_and_the_transfer(self, transfer: str | None) -> None:
        """Banks may number transfers within an invoice, and operators type the id."""
        one, other = payment(), payment(id="pay_2")
        made = [new_suspense(of, transfer, Rub(1), at=NOW, reason="x") for of in (one, other)]
        assert [(each.transfer_id, each.payment_id) for each in made] == [(transfer, one.id), (transfer, other.id)]
        ids = {made[0].id, made[1].id, new_suspense(one, "another", Rub(1), at=NOW, reason="x").id}
        assert len(ids) == 3
        assert all(storable(each) for each in ids)
