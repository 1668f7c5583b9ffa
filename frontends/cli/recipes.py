"""Recipes of test events as API calls: what a merchant and the simulated world do until an event happens (docs/cli.md
"Events by one command")."""

from collections.abc import Mapping
from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True):
    """A POST to the API. `{name}` in path and body stands for a given value or a value from an earlier answer."""

    path: str
    body: Mapping[str, Any] = {}
    keeps: str | None = None
    """Field of the answer that is saved for later calls, under the same name."""
    keyed: bool = False
    """Whether it takes an Idempotency-Key."""
    refused: str | None = None
    """Code of the refusal, if the call is meant to be refused."""


def _new(path: str, keeps: str, **body: Any) -> Call:
    return Call(path, body, keeps, keyed=True)


def _play(path: str, **body: Any) -> Call:
    return Call(f"/sandbox{path}", body)


_PAYMENT = _new("/payments", "id", amount_rub="{amount}")
_PAID = _play("/payments/{id}/simulate", outcome="paid")
_REFUND = _new("/refunds", "refund_id", payment_id="{id}")
_SETTLED = _play("/settlements")
_SUBSCRIPTION = _new("/subscriptions", "id", amount_rub="{amount}", interval="month", description="cambist trigger")
_BOUND = _play("/subscriptions/{id}/simulate", outcome="confirm")
_CHARGE = Call("/subscriptions/{id}/charges", {"amount_rub": "{amount}"}, keyed=True)
_NO_MONEY = _play("/subscriptions/{id}/next-charge", result="insufficient_funds")
_REFUSED = msgspec.structs.replace(_CHARGE, refused="PROVIDER_ERROR")
_ATTEMPTS_OVER = _play("/clock/advance", seconds=21 * 3600)
"""Hours during which a month's charge may be retried, plus one."""
_ORDER_OVER = _play("/clock/advance", seconds=16 * 60)
_NEXT_MONTH = _play("/clock/advance", seconds=32 * 86_400)
_CLIENT = _play("/exchange-clients", phone="{phone}", kyc_status="verified")
_SELLS = Call(
    "/sandbox/exchanges", {"client_phone": "{phone}", "amount_usdt": "100", "client_bank_id": "bank100000000004"}, "id"
)
_BUYS = Call("/sandbox/exchanges", {"client_phone": "{phone}", "amount_rub": "9065.00"}, "id")


def _payment(outcome: str) -> tuple[Call, ...]:
    return _PAYMENT, _play("/payments/{id}/simulate", outcome=outcome)


def _refund(outcome: str) -> tuple[Call, ...]:
    return _PAYMENT, _PAID, _REFUND, _play("/refunds/{refund_id}/simulate", outcome=outcome)


def _subscription(outcome: str, *before: Call) -> tuple[Call, ...]:
    return _SUBSCRIPTION, *before, _play("/subscriptions/{id}/simulate", outcome=outcome)


def _exchange(order: Call, *outcomes: str) -> tuple[Call, ...]:
    return _CLIENT, order, *(_play("/exchanges/{id}/simulate", outcome=each) for each in outcomes)


def _payout(outcome: str) -> tuple[Call, ...]:
    return (
        _PAYMENT,
        _PAID,
        Call("/sandbox/settlements", {}, "withdrawal_id"),
        _play("/withdrawals/{withdrawal_id}/simulate", outcome=outcome),
    )


RECIPES: Mapping[str, tuple[Call, ...]] = {
    **{f"payment.{each}": _payment(each) for each in ("processing", "paid", "failed", "cancelled", "expired")},
    "payment.amount_mismatch": _payment("amount_mismatch"),
    "payment.settled": (_PAYMENT, _PAID, _SETTLED),
    "payment.refunded": _refund("completed"),
    **{f"refund.{each}": _refund(each) for each in ("completed", "rejected", "failed")},
    "refund.reversed": (*_refund("completed"), _play("/refunds/{refund_id}/simulate", outcome="reversed")),
    "subscription.active": _subscription("confirm"),
    "subscription.paused": _subscription("mandate_lost", _BOUND),
    "subscription.past_due": _subscription("past_due", _BOUND),
    "subscription.expired": _subscription("consent_ended", _BOUND),
    "subscription.cancelled": (_SUBSCRIPTION, _BOUND, Call("/subscriptions/{id}/cancel", keyed=True)),
    "subscription.charged": (_SUBSCRIPTION, _BOUND, _NEXT_MONTH, _CHARGE),
    "subscription.charge_exhausted": (_SUBSCRIPTION, _BOUND, _NEXT_MONTH, _NO_MONEY, _REFUSED, _ATTEMPTS_OVER),
    "exchange.completed": _exchange(_SELLS, "usdt_received", "completed"),
    "exchange.failed": _exchange(_SELLS, "usdt_received", "failed"),
    "exchange.cancelled": (_CLIENT, _BUYS, _play("/exchanges/{id}/simulate", outcome="cancelled")),
    "exchange.expired": (_CLIENT, _BUYS, _ORDER_OVER),
    **{f"withdrawal.{each}": _payout(each) for each in ("sent", "completed", "failed")},
    "kyc.verified": (_CLIENT,),
    "kyc.failed": (_play("/exchange-clients", phone="{phone}", kyc_status="rejected"),),
    **{
        f"gateway.{each}": (_play("/gateways/{gateway}/simulate", status=each),)
        for each in ("degraded", "down", "operational")
    },
    "webhook.test": (Call("/webhook-endpoint/test"),),
}
"""Recipes by name: the object's kind and the status in its event."""


def filled(call: Call, known: Mapping[str, str]) -> Call:
    """Return the call with its names replaced by known values. Raises: KeyError for a value that no answer had."""
    body = {name: each.format_map(known) if isinstance(each, str) else each for name, each in call.body.items()}
    return msgspec.structs.replace(call, path=call.path.format_map(known), body=body)
