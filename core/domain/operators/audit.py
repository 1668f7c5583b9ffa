"""The audit log: actions of operators, their objects, and their reasons. A row is written once and never changed,
except that its position in the hash chain is set later.

Changes are described by a short list of fields for each kind of record, without personal data and secrets. A field that
is not listed here is never shown.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from ..account_settings import shown_settings
from ..accounts.accounts import Account, ApiKey
from ..accounts.shops import Shop
from ..accounts.terminals import Terminal
from ..chains import Chain
from ..days import iso
from ..errors import Refusal
from ..exchanges.exchanges import DirectionSwitch, Exchange
from ..exchanges.funds import ExchangeTransfer
from ..gateways.gateways import Gateway
from ..installation import Installation
from ..kyc.clients import Client
from ..notifications import NotificationAddress
from ..payments.payments import Payment
from ..payments.suspense import Suspense
from ..people.notifications import NotificationPreferences
from ..people.payment_notes import PaymentNotes
from ..people.people import Invitation, Membership, User
from ..refunds.refunds import Refund
from ..settlement.settlement import SettlementBatch
from ..settlement.withdrawals import Withdrawal
from ..subscriptions.subscriptions import Subscription
from ..webhooks.breaker import Breaker
from ..webhooks.endpoints import WebhookEndpoint
from ..webhooks.events import Delivery, EndpointDelivery
from ..webhooks.resends import ResendRun
from .operators import Operator

REASON_LONGEST = 255
OPERATOR_LONGEST = 64
_LONGEST = 500
"""Largest length of the description of a state, in characters."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One action of an operator."""

    id: str
    """`aud_<uuid>`; rises with time, so that ids are in the order of the actions."""
    at: datetime
    """When it began, by the service's clock, regardless of any test clock."""
    operator: str
    """Name from the operator's front end."""
    action: str
    """Name of the action, such as `refund.approve`. The console and the command line use the same names."""
    object_id: str | None
    account_id: str | None
    reason: str
    before: str
    """The safe fields that changed, before the change; empty for a new record."""
    after: str
    number: int | None = None
    """Position in the log's hash chain; null until it is chained."""
    seal: bytes | None = None
    """Link of the chain, and the vault's tag (chains.py)."""
    version: int = 0


def _says(entry: AuditEntry, number: int) -> bytes:
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    said = (number, entry.id, at, entry.operator, entry.action, entry.object_id, entry.account_id, entry.reason)
    return msgspec.json.encode((*said, entry.before, entry.after))


AUDIT = Chain(name="audit", head_id="audit", rows=AuditEntry, says=_says)
"""The hash chain of the audit log."""


class OperatorAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that an operator is about to take."""

    operator: str
    name: str
    object_id: str | None = None
    """Object of the action; null: the first record that it writes and that has a description."""
    reason: str = ""
    seen_version: int | None = None
    """Version of the object that the operator saw when deciding; ABSENT: the record did not exist yet; null: any
    version."""


ABSENT = -1
"""Version of a record that does not exist."""


SAFE: Mapping[type[Any], tuple[str, ...]] = {
    Payment: ("status", "actual_amount", "failure_reason", "refund_pending"),
    Refund: ("status", "pending_reason", "amount", "approved_at", "contradicted_at", "contradiction_seen"),
    Subscription: ("status", "rebind_required"),
    Withdrawal: ("status", "amount", "network"),
    Suspense: ("amount", "reason", "attempt", "resolved_at"),
    Exchange: ("status", "direction", "amount_rub", "amount_usdt"),
    ExchangeTransfer: ("currency", "suspended", "reason", "resolved_at"),
    DirectionSwitch: ("is_on",),
    Client: ("kyc", "blocked"),
    Account: ("name", "webhook_header_names", "logo_id"),
    ApiKey: ("mode", "ends_at", "name", "rights", "addresses"),
    Shop: ("name", "enabled", "markup", "brand_color", "brand_contact", "brand_success_text", "logo_id"),
    Terminal: ("label", "kind", "enabled"),
    Gateway: ("status", "reason"),
    SettlementBatch: ("mode", "cutoff", "rate_market"),
    Delivery: ("status", "attempts"),
    EndpointDelivery: ("status", "attempts"),
    WebhookEndpoint: ("disabled_at", "header_names"),
    ResendRun: ("total", "sent", "endpoint_id", "type", "status", "stopped"),
    Breaker: ("next_probe_at", "probes"),
    NotificationAddress: ("former_until",),
    Operator: ("name", "ended_at"),
    User: ("disabled_at", "security"),
    PaymentNotes: ("notes", "links"),
    Membership: ("role", "shops", "live"),
    NotificationPreferences: ("email", "telegram", "test", "quiet_from", "quiet_to"),
    Invitation: ("role", "shops", "live", "accepted_at", "revoked_at"),
    Installation: ("held_since", "held_because", "as_of"),
}
"""Fields of a record that an audit row may contain. An account's settings are included, too; of a secret only whether
it is set."""


def checked(action: OperatorAction) -> OperatorAction:
    """Return the action with its texts normalized. Raises: Refusal VALIDATION_ERROR."""
    operator, reason = action.operator.strip(), action.reason.strip()
    if not 1 <= len(operator) <= OPERATOR_LONGEST or not operator.isprintable():
        raise Refusal("VALIDATION_ERROR", f"An operator's name has 1 to {OPERATOR_LONGEST} printable characters")
    if len(reason) > REASON_LONGEST or not reason.isprintable():
        raise Refusal("VALIDATION_ERROR", f"A reason has at most {REASON_LONGEST} printable characters")
    return msgspec.structs.replace(action, operator=operator, reason=reason)


def changes(before: Any, after: Any) -> tuple[str, str]:
    """Return the safe fields in which two records differ, before and after. `before` is None for a new record."""
    moved = changed_fields(before, after)
    return (
        _text({name: was for name, was, _ in moved if was is not None}),
        _text({name: becomes for name, _, becomes in moved}),
    )


def changed_fields(before: Any, after: Any) -> list[tuple[str, str | None, str]]:
    """Return the safe fields in which two records differ: name, earlier word (None for a new record), present word."""
    was, becomes = _safe(before), _safe(after)
    return [(name, was.get(name), word) for name, word in becomes.items() if was.get(name) != word]


def _safe(record: Any) -> dict[str, str]:
    values = {name: getattr(record, name) for name in SAFE.get(type(record), ())}
    if isinstance(record, Account):
        values |= shown_settings(record)
    return {name: _word(value) for name, value in values.items()}


def _word(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return iso(value) if isinstance(value, datetime) else str(value)


def _text(values: Mapping[str, str]) -> str:
    text = " ".join(f"{name}={value}" for name, value in values.items() if value != "-" or len(values) == 1)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
