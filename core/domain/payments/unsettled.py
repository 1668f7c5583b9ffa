"""Payments that wait for settlement: a narrow row for each `paid` payment, from the moment it is paid until it is
settled or refunded. So the settlement finds them however many payments there are, and no index of the payments has to
contain them."""

from datetime import UTC, datetime, timedelta

import msgspec

from ..accounts.accounts import Mode
from .payments import Payment, PaymentStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Unsettled(msgspec.Struct, frozen=True, kw_only=True):
    """A `paid` payment. Written once, and removed."""

    id: str
    """`unsettled_id(...)`: account, mode, creation time and payment. A range of ids is an account's, oldest first."""
    created_at: datetime
    """Creation time of the payment."""
    paid_at: datetime | None
    version: int = 0

    @property
    def payment_id(self) -> str:
        """Id of the payment."""
        return self.id.rpartition(":")[2]


def unsettled_of(payment: Payment) -> Unsettled | None:
    """Return the row of a payment; None if it does not wait for settlement."""
    if payment.status is not PaymentStatus.PAID:
        return None
    return Unsettled(
        id=f"{_from(payment.account_id, payment.mode, payment.created_at)}:{payment.id}",
        created_at=payment.created_at,
        paid_at=payment.paid_at,
    )


def unsettled_ids(
    account_id: str, mode: Mode, low: datetime | None = None, high: datetime | None = None
) -> tuple[str, str]:
    """Return the range of ids of an account's payments created from `low` to, but excluding, `high`."""
    start = f"{account_id}:{mode}:" if low is None else _from(account_id, mode, low)
    return start, f"{account_id}:{mode};" if high is None else _from(account_id, mode, high)


def _from(account_id: str, mode: Mode, at: datetime) -> str:
    # Seventeen digits end in the year 5138, and a fixed number of digits sorts by time.
    return f"{account_id}:{mode}:{(at - _EPOCH) // _MICROSECOND:017}"
