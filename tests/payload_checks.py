"""Check the body of every event sent to merchants strictly against its schema (docs/payloads.md "Payloads")."""

from collections.abc import Mapping

import msgspec

from cambist.core.domain.payloads import read_payload
from cambist.core.domain.webhooks.events import EventType
from cambist.core.usecases.webhooks.endpoint import TEST_EVENT, TestPayload


def check_body(event: str, body: bytes) -> None:
    """Raises msgspec.ValidationError where a body holds a field too many, one too few, or of another type; ValueError
    for an event that there is not. A test webhook is no event and has its own struct."""
    if event == TEST_EVENT:
        msgspec.json.decode(body, type=TestPayload)
    else:
        read_payload(EventType(event), body)


def check_webhook(headers: Mapping[str, str], body: bytes) -> None:
    """The same for a webhook; its header says the event."""
    said = {name.lower(): value for name, value in headers.items()}
    check_body(said["x-webhook-event"], body)
