"""A payment of 100 RUB, its refunds, and shortcuts to judge them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.terminals import Terminal, TerminalKind
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.refunds.orders import RefundCase, RefundOrder, judge_refund
from cambist.core.domain.refunds.refunds import Refund, RefundStatus

NOW = datetime(2026, 8, 8, 12, tzinfo=UTC)
PAID_AMOUNT = Rub(100_00)


def payment(status: PaymentStatus = PaymentStatus.PAID, **more: Any) -> Payment:
    """A payment of 120 RUB for which 100 RUB came: refunds count from the amount that came."""
    fields: dict[str, Any] = {
        "id": "pay_1",
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "shop_id": "shop",
        "amount": Rub(120_00),
        "actual_amount": PAID_AMOUNT,
        "payment_method": "sbp",
        "created_at": NOW,
        "expires_at": NOW,
    }
    return Payment(status=status, **{**fields, **more})


def refund(status: RefundStatus = RefundStatus.COMPLETED, amount: Rub = PAID_AMOUNT) -> Refund:
    return Refund(
        id="ref_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        payment_id="pay_1",
        shop_id="shop",
        status=status,
        amount=amount,
        created_at=NOW,
    )


def terminal(*, credit_follows_receipt: bool) -> Terminal:
    return Terminal(
        id="terminal",
        account_id="acc_1",
        label="Any",
        payment_method="sbp",
        kind=TerminalKind.ORDINARY,
        created_at=NOW,
        credit_follows_receipt=credit_follows_receipt,
    )


BOUND = terminal(credit_follows_receipt=True)


def case(amount: str | None = None, refunds: Sequence[Refund] = (), **more: Any) -> RefundCase:
    order = RefundOrder(payment_id="pay_1", amount_rub=amount)
    return RefundCase(**{"order": order, "payment": payment(), "refunds": refunds, **more})


def refusal(judged: RefundCase) -> tuple[int, str] | None:
    """Return status and code of the refusal, or None."""
    try:
        judge_refund(judged)
    except Refusal as refused:
        return refused.status, refused.code
    return None
