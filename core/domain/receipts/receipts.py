"""Receipts as records: one for each payment, charge, refund, second receipt and correction (docs/receipts.md
"State")."""

import re
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..errors import Refusal
from ..machine import Move, Moves
from ..money import Rub

OPERATION = "rcp_"
"""Prefix of a receipt's operation ids at a provider."""

SHIFT = timedelta(hours=24)
"""A shift of a cash register is at most 24 hours long: the receipt belongs into the shift of its money."""

ASKED_FOR = timedelta(days=30)
"""How long the state of one attempt is asked for."""


class ReceiptKind(StrEnum):
    """Purpose of a receipt."""

    SALE = "sale"
    """A payment or charge."""
    REFUND = "refund"
    SECOND = "second"
    """At delivery, after a prepayment."""
    SALE_CORRECTION = "sale_correction"
    REFUND_CORRECTION = "refund_correction"


CORRECTIONS = (ReceiptKind.SALE_CORRECTION, ReceiptKind.REFUND_CORRECTION)


class ReceiptStatus(StrEnum):
    """See docs/states.md "Receipt"."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ReceiptTrigger(StrEnum):
    """Cause of a receipt's move."""

    WRITTEN = "the cash register wrote it"
    REJECTED = "the cash register or the bank rejected it"
    RETRIED = "somebody tries it again"


_S = ReceiptStatus
_T = ReceiptTrigger

RECEIPT_MOVES: Moves[ReceiptStatus, ReceiptTrigger] = Moves(
    (
        Move(_S.PENDING, _S.SUCCEEDED, _T.WRITTEN),
        Move(_S.PENDING, _S.FAILED, _T.REJECTED),
        Move(_S.FAILED, _S.PENDING, _T.RETRIED),
    )
)


class ReceiptWriter(StrEnum):
    """Writer of a receipt."""

    BANK = "bank"
    """The bank, with the money: the receipt was part of the request that moved it."""
    BANK_APART = "bank_apart"
    """The bank, by a call of its own once the money has moved."""
    REGISTER = "register"
    """The connected cash register."""


class FiscalReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt, in the account, mode and shop of its payment."""

    id: str
    account_id: str
    mode: Mode
    shop_id: str
    payment_id: str
    refund_id: str | None = None
    kind: ReceiptKind
    status: ReceiptStatus = ReceiptStatus.PENDING
    amount: Rub
    writer: ReceiptWriter
    provider: str
    """Name of the bank or the register."""
    attempt: int = 1
    attempt_at: datetime
    """When the present attempt began."""
    created_at: datetime
    due_at: datetime | None = None
    """End of the shift of its money; None: its bank tells no states, so that nothing can be late."""
    changed_at: datetime
    """When its status last changed."""
    failure_reason: str | None = None
    failed_at: datetime | None = None
    """When it failed; None once an operator has noted that it needs nobody any more."""
    storage_number: str | None = None
    document_number: str | None = None
    fiscal_sign: str | None = None
    register_number: str | None = None
    url: str | None = None
    registered_at: datetime | None = None
    correction_order: str | None = None
    """Number of the tax authority's order; None: the seller corrects on its own."""
    private: bytes | None = None
    """Encrypted: the items of a second receipt or a correction. The items of the others come from payment and
    refund."""
    key_id: str | None = None
    """Record of the Idempotency-Key that created a second receipt."""
    version: int = 0

    @property
    def operation(self) -> str:
        """The id of the present attempt at the provider."""
        return ids.operation(OPERATION, self.id, self.attempt)

    @property
    def is_with_money(self) -> bool:
        """Whether the present attempt was part of the request that moved the money."""
        sent_with = self.kind in (ReceiptKind.SALE, ReceiptKind.REFUND)
        return self.writer is ReceiptWriter.BANK and sent_with and self.attempt == 1


def receipt_id(kind: ReceiptKind, *causes: str) -> str:
    """Return the id of a receipt by its causes: a payment or refund has one receipt of each kind."""
    return ids.derived(ids.RECEIPT, kind, *causes)


def attempt_of(operation: str) -> tuple[str, int] | None:
    """Return the receipt and the number of the attempt of an operation; None for another kind's operation."""
    found = ids.read_operation(OPERATION, operation)
    number = None if found is None else ids.read_number(found[1])
    return None if found is None or number is None else (ids.prefixed(ids.RECEIPT, found[0]), number)


def moved_to(receipt: FiscalReceipt, trigger: ReceiptTrigger, now: datetime, **changes: object) -> FiscalReceipt:
    """Return the receipt after the trigger. Raises: IllegalMove."""
    status = RECEIPT_MOVES.move(receipt.status, trigger)
    return msgspec.structs.replace(receipt, status=status, changed_at=now, **changes)


def tried_again(receipt: FiscalReceipt, now: datetime, writer: ReceiptWriter, provider: str) -> FiscalReceipt:
    """Return a failed receipt that begins its next attempt. Raises: Refusal INVALID_STATE."""
    if receipt.status is not ReceiptStatus.FAILED:
        raise Refusal("INVALID_STATE", f"The receipt is {receipt.status}; only a failed one is tried again")
    if receipt.attempt >= MOST_ATTEMPTS:
        raise Refusal("INVALID_STATE", f"The receipt was tried {MOST_ATTEMPTS} times; write a correction")
    return moved_to(
        receipt,
        ReceiptTrigger.RETRIED,
        now,
        failed_at=None,
        attempt=receipt.attempt + 1,
        attempt_at=now,
        failure_reason=None,
        writer=writer,
        provider=provider,
    )


MOST_ATTEMPTS = 30
"""A provider has at most 30 receipts of one payment."""

_PRIVATE = re.compile(r"\S+@\S+|\+?[0-9][0-9 ()-]{8,}[0-9]")
_REASON_LONGEST = 300


def plain_reason(text: str) -> str:
    """Return a provider's reason without e-mail addresses and long numbers, which may be a payer's."""
    return _PRIVATE.sub("***", text).strip()[:_REASON_LONGEST] or "unknown"
