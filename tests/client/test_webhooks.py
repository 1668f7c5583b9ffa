"""Webhooks on the receiver's side: signatures, types, and fields or events added later."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.core.domain.webhooks.signing import Flaw, Signer, headers
from cambist.frontends.client import (
    NotVerified,
    PaymentStatus,
    PaymentStatusChanged,
    UnknownEvent,
    verify_webhook,
)
from cambist.frontends.testing import Sandbox
from tests.tables import table

SECRET, NOW = "a-secret-of-the-tests", 1_767_225_600


def letter(body: bytes, **changes: Any) -> dict[str, str]:
    given = {"event_id": "evt_1", "event": "e", "sequence": 4, "attempt": 2, "timestamp": NOW, **changes}
    return headers(Signer(SECRET), body=body, **given)


def test_a_genuine_webhook_is_typed(sandbox: Sandbox) -> None:
    made = sandbox.client.payments.create(amount_rub="100", external_id="o", metadata={"name": "secret"})
    sandbox.pay(made.id, payer_name="Ivan I.")
    [webhook] = sandbox.webhooks
    match webhook.event:
        case PaymentStatusChanged(payment_id=payment_id, status=PaymentStatus.PAID, amount_rub=amount):
            assert (payment_id, amount) == (made.id, Decimal(100))
        case other:
            pytest.fail(repr(other))
    assert webhook.sent_at == sandbox.clock.now()
    assert "Ivan" not in repr(webhook)
    assert "secret" not in repr(webhook.event)


@table("now", [NOW, float(NOW), datetime.fromtimestamp(NOW, UTC), lambda: datetime.fromtimestamp(NOW, UTC)])
def test_the_receivers_clock_comes_in_any_form(now: Any) -> None:
    body = b'{"event":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z"}'
    webhook = verify_webhook(letter(body), body, ["another", SECRET], now=now)
    assert (webhook.id, webhook.attempt, webhook.sequence) == ("evt_1", 2, 4)
    assert isinstance(webhook.event, UnknownEvent)
    assert webhook.event.payload["timestamp"] == "2026-01-01T00:00:00.000Z"


def test_machines_clock_is_the_default() -> None:
    body = b'{"event":"x"}'
    with pytest.raises(NotVerified) as error:
        verify_webhook(letter(body, timestamp=1), body, [SECRET])
    assert error.value.flaw is Flaw.TOO_OLD


def test_another_body_secret_or_id_is_refused() -> None:
    body = b'{"event":"x"}'
    good = letter(body)
    for given, content, secret in [
        (good, body + b" ", SECRET),
        (good, body, "another"),
        ({**good, "X-Webhook-Id": "evt_2"}, body, SECRET),
        ({}, body, SECRET),
    ]:
        with pytest.raises(NotVerified):
            verify_webhook(given, content, [secret], now=NOW)


def test_one_secret_in_place_of_a_list_is_a_mistake() -> None:
    """Otherwise every character of the string would be tried as a secret."""
    with pytest.raises(TypeError):
        verify_webhook({}, b"", SECRET, now=NOW)


def test_new_fields_and_values_break_no_receiver() -> None:
    body = msgspec.json.encode(
        {
            "event": "subscription.status_changed",
            "subscription_id": "sub_1",
            "external_id": None,
            "status": "frozen",
            "past_due": False,
            "binding_url": None,
            "binding_url_pending": False,
            "previous_status": "active",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "new_field": {"a": 1},
        }
    )
    event: Any = verify_webhook(letter(body), body, [SECRET], now=NOW).event
    assert (event.status, event.status.is_known, event.previous_status.is_known) == ("frozen", False, True)
