"""A subscription of 100 RUB a month, bound on 31 January, and shortcuts to judge it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from cambist.core.domain.accounts.accounts import Account, Caller, Mode, Scheme, Settings
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.accounts.terminals import Terminal, TerminalKind
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import BindingCharge
from cambist.core.domain.subscriptions.charge_decisions import Attempts
from cambist.core.domain.subscriptions.orders import SubscriptionCase, SubscriptionOrder
from cambist.core.domain.subscriptions.periods import Interval, Terms, current_period, window_period
from cambist.core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus

MSK = timezone(timedelta(hours=3))
"""Not the project's own: a slip there would not be seen here."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
BOUND_AT = datetime(2026, 1, 31, 9, tzinfo=UTC)
S = SubscriptionStatus
SHOP_ID = "00000000-0000-4000-8000-000000000001"
METHOD_ID = "00000000-0000-4000-8000-000000000002"


def moscow(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=MSK)


def terms(interval: Interval = Interval.MONTH, interval_count: int = 1, scheme: Scheme = Scheme.WINDOW) -> Terms:
    return Terms(scheme=scheme, interval=interval, interval_count=interval_count)


def subscription(status: SubscriptionStatus = S.ACTIVE, **more: Any) -> Subscription:
    fields: dict[str, Any] = {
        "id": "sub_1",
        "account_id": "acc_1",
        "mode": Mode.TEST,
        "shop_id": SHOP_ID,
        "scheme": Scheme.WINDOW,
        "amount": Rub(100_00),
        "cap_amount": Rub(100_00),
        "interval": Interval.MONTH,
        "interval_count": 1,
        "description": "Tea",
        "binding_charge": BindingCharge.FIRST,
        "created_at": BOUND_AT - HOUR,
        "updated_at": BOUND_AT - HOUR,
        "binding_url": "https://pay.example/s/sub_1",
    }
    if status is not S.PENDING_BINDING:
        fields |= {"mandate_bank": "bank", "mandate_reference": "binding-1", "mandate_token": b"t", "anchor": BOUND_AT}
    if status is S.PAUSED:
        fields |= {"rebind_required": True, "paused_at": BOUND_AT + DAY}
    return Subscription(status=status, **{**fields, **more})


def attempts(number: int = 1, **more: Any) -> Attempts:
    """One failed attempt at the period `number` after the binding's, an hour after it opened."""
    period = window_period(terms(), BOUND_AT, number)
    fields: dict[str, Any] = {
        "period": period,
        "used": 1,
        "first_at": period.opens_at + HOUR,
        "payment_id": "pay_1",
        "external_id": "e-1",
    }
    return Attempts(**{**fields, **more})


def calendar_attempts(**more: Any) -> Attempts:
    return attempts(period=current_period(terms(scheme=Scheme.CALENDAR), BOUND_AT), first_at=BOUND_AT, **more)


def terminal(**more: Any) -> Terminal:
    fields: dict[str, Any] = {
        "id": METHOD_ID,
        "account_id": "acc_1",
        "label": "Any",
        "payment_method": "sbp",
        "kind": TerminalKind.ORDINARY,
        "created_at": BOUND_AT,
    }
    return Terminal(**{**fields, **more})


def shop(**more: Any) -> Shop:
    fields: dict[str, Any] = {
        "id": SHOP_ID,
        "account_id": "acc_1",
        "name": "Tea",
        "name_folded": "tea",
        "created_at": BOUND_AT,
        "markup": "0.03",
    }
    return Shop(**{**fields, **more})


def caller(**settings: Any) -> Caller:
    account = Account(
        id="acc_1", name="Tea", default_shop_id=SHOP_ID, created_at=BOUND_AT, settings=Settings(**settings)
    )
    return Caller(account=account, mode=Mode.TEST, key_id="key")


def order_case(**order: Any) -> SubscriptionCase:
    """An order that breaks no rule, with the terminal of its `method_id`."""
    fields: dict[str, Any] = {"amount_rub": "100.00", "interval": "month", "description": "Tea"}
    return SubscriptionCase(
        order=SubscriptionOrder(**{**fields, **order}), caller=caller(terminals=True), shop=shop(), terminal=terminal()
    )


def refusal(judge: Callable[[], object]) -> tuple[int, str] | None:
    """Return status and code of the refusal, or None."""
    try:
        judge()
    except Refusal as refused:
        return refused.status, refused.code
    return None
