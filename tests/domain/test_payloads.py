"""The twelve payloads, held field by field against what receivers were promised (docs/payloads.md "Payloads")."""

from typing import Any

import msgspec

from cambist.core.domain.payloads import EVENT_PAYLOADS, read_payload
from cambist.core.domain.webhooks.events import EventType
from tests.tables import table

REASONS = [
    "insufficient_funds",
    "declined_by_bank",
    "mandate_revoked",
    "cancelled_by_customer",
    "cancelled_by_bank",
    "expired",
    "unknown",
]
_PAYMENT = """event payment_id external_id? status previous_status? amount_rub actual_amount_rub? amount_usdt?
    payment_method refund_pending timestamp metadata?"""
_REFUND = ("event payment_id refund_id amount_rub status", "external_id? metadata? shop_id? shop_name?")

FIELDS: dict[str, tuple[str, str]] = {
    "payment.status_changed": (
        _PAYMENT,
        "payer_name subscription_id period_ref failure_reason sandbox shop_id? shop_name?",
    ),
    "payment.delivery_proof_reminder": (
        "event payment_id external_id? paid_at reminder status timestamp",
        "reason shop_id? shop_name?",
    ),
    "withdrawal.status_changed": (
        "event withdrawal_id status previous_status? amount_usdt wallet_address tx_hash? timestamp",
        "",
    ),
    "exchange.status_changed": (
        """event exchange_id external_id? direction status previous_status? amount_usdt amount_usdt_received? amount_rub
        rate client_phone crypto_deposit_address? network? expires_at timestamp""",
        "",
    ),
    "subscription.status_changed": (
        """event subscription_id external_id? status past_due binding_url? binding_url_pending previous_status?
        timestamp""",
        "rebind_required sandbox",
    ),
    "subscription.charge_exhausted": (
        """event subscription_id external_id? is_sandbox period_ref retries_used retries_max retry_window_hours
        next_allowed_at timestamp""",
        "",
    ),
    "refund.completed": _REFUND,
    "refund.rejected": _REFUND,
    "refund.failed": _REFUND,
    "refund.reversed": _REFUND,
    "kyc.status_changed": ("event client_id phone status previous_status verified_at timestamp", ""),
    "gateway.status_changed": ("event gateway_id payment_method? status previous_status? reason? timestamp", ""),
}
"""Required and optional fields; `?`: may be null."""

BOOLEANS = {"refund_pending", "sandbox", "past_due", "binding_url_pending", "rebind_required", "is_sandbox"}
INTEGERS = {"reminder", "retries_used", "retries_max", "retry_window_hours"}
VALUES: dict[str, dict[str, list[Any]]] = {
    "payment.status_changed": {"failure_reason": REASONS},
    "payment.delivery_proof_reminder": {
        "reminder": [1, 2, 3],
        "status": ["waiting", "rejected"],
        "reason": ["not_found_or_unconfirmed", "already_used", "invalid"],
    },
    "exchange.status_changed": {"direction": ["usdt_to_rub", "rub_to_usdt"]},
    "kyc.status_changed": {"status": ["verified", "failed"], "previous_status": ["pending", "failed"]},
    "gateway.status_changed": {
        "status": ["operational", "degraded", "down"],
        "previous_status": ["operational", "degraded", "down"],
        "reason": ["provider_errors", "provider_timeout", "maintenance", "operator"],
    },
}
"""The values of a field, where they are listed."""

EVENTS = sorted(FIELDS)


def names(text: str) -> list[str]:
    return [name.rstrip("?") for name in text.split()]


def nullable(text: str) -> set[str]:
    return {name.rstrip("?") for name in text.split() if name.endswith("?")}


def value(event: str, name: str) -> Any:
    """A right value of a field."""
    if name == "event":
        return event
    if name in VALUES.get(event, {}):
        return VALUES[event][name][0]
    if name in BOOLEANS:
        return True
    if name in INTEGERS:
        return 2
    if name == "metadata":
        return {"order": {"number": 7}}
    return "150.00"


def full(event: str) -> dict[str, Any]:
    required, optional = FIELDS[event]
    return {name: value(event, name) for name in [*names(required), *names(optional)]}


def reads(event: str, body: dict[str, Any]) -> bool:
    try:
        payload = read_payload(EventType(event), msgspec.json.encode(body))
    except msgspec.ValidationError:
        return False
    # Nothing is added or lost on the way, nor put in another place.
    assert msgspec.json.decode(msgspec.json.encode(payload)) == body
    return True


def test_there_are_the_twelve_events_of_spec() -> None:
    assert sorted(EventType) == EVENTS
    assert sorted(EVENT_PAYLOADS) == EVENTS


@table("event", EVENTS)
def test_the_fields_are_those_of_spec(event: str) -> None:
    required, optional = FIELDS[event]
    assert set(EVENT_PAYLOADS[EventType(event)].__struct_fields__) == {*names(required), *names(optional)}
    assert reads(event, full(event))
    assert reads(event, {name: value(event, name) for name in names(required)})


@table("event", EVENTS)
def test_required_is_required_and_null_only_where_spec_says_so(event: str) -> None:
    required, optional = FIELDS[event]
    body = full(event)
    may_be_null = nullable(required) | nullable(optional)
    for name in body:
        without = {key: each for key, each in body.items() if key != name}
        assert reads(event, without) == (name not in names(required)), name
        assert reads(event, {**body, name: None}) == (name in may_be_null), name


@table("event", EVENTS)
def test_types_are_those_of_spec_and_nothing_is_added(event: str) -> None:
    body = full(event)
    assert not reads(event, {**body, "extra": 1})
    for name, each in body.items():
        wrong: Any = "yes" if not isinstance(each, str) else 7
        assert not reads(event, {**body, name: wrong}), name


@table("event", EVENTS)
def test_listed_values_are_all_and_only_those(event: str) -> None:
    body = full(event)
    for name, values in VALUES.get(event, {}).items():
        assert all(reads(event, {**body, name: each}) for each in values)
        assert not reads(event, {**body, name: 4 if name in INTEGERS else "another"}), name


@table("event", EVENTS)
def test_the_constant_is_that_of_the_event(event: str) -> None:
    for other in EVENTS:
        assert reads(event, {**full(event), "event": other}) == (other == event)


@table("amount", ["1500", "1500.0", "1500.000", "1e3", "-1.00", ""])
def test_a_refund_amount_has_always_two_decimals(amount: str) -> None:
    assert not reads("refund.completed", {**full("refund.completed"), "amount_rub": amount})
