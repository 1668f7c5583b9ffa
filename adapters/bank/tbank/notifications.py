"""Notifications of T-Bank: verified by their Token, they only trigger a poll (docs/providers/tbank.md
"Notifications")."""

from collections.abc import Mapping

import msgspec

from ....ports.bank import Notification
from ....ports.faults import Forged
from ....ports.notifications import InboundNotification, Received
from .orders import Orders
from .refunds import Refunds
from .terminals import Terminals
from .till import Till
from .tokens import is_signed

NETWORKS = (
    "91.194.226.0/23",
    "91.218.132.0/22",
    "212.49.24.0/24",
    "212.233.80.0/22",
)
"""Networks that T-Bank publishes. The four consecutive /24 networks of 91.218 and of 212.233 are merged into one /22
each."""

_OK = b"OK"
"""Required answer. After any other answer T-Bank repeats the notification every hour."""
_REFUNDING = frozenset({"REFUNDING", "ASYNC_REFUNDING", "PARTIAL_REFUNDED", "REFUNDED", "CONFIRMED"})


async def receive(
    notification: InboundNotification, terminals: Terminals, orders: Orders, refunds: Refunds, till: Till
) -> Received:
    """Implement ports/notifications.py: Notifications.receive. Our orders are noted before T-Bank sees them, so an
    order without a note belongs to another program on the same terminal."""
    fields = _read(notification.body)
    terminal = terminals.find(str(fields.get("TerminalKey", "")))
    if terminal is None or not is_signed(fields, terminal.password):
        raise Forged("tbank: a notification without a right Token")
    if fields.get("NotificationType") is not None:
        named = await orders.whose(f"{terminal.key}/{fields.get('RequestKey', '')}")
        return _heard([] if named is None else [named])
    operation = await orders.whose(str(fields.get("OrderId", "")))
    if operation is None:
        return _heard([])
    payment = f"{terminal.key}/{fields.get('PaymentId', '')}"
    if fields.get("Status") == "RECEIPT":
        await till.hear(payment, fields)
        return _heard([operation])
    back: list[str] = []
    if fields.get("Status") in _REFUNDING:
        back = await refunds.open_of(payment)
    return _heard([operation, *back])


def _heard(operations: list[str]) -> Received:
    return Received(notifications=tuple(Notification(operation=each) for each in operations), body=_OK)


def _read(body: bytes) -> Mapping[str, str]:
    """Return the scalars of the root object as raw text, because the Token covers exactly this text. Raises: Forged."""
    try:
        raw = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return {name: text for name, value in raw.items() if (text := _scalar(bytes(value))) is not None}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Forged("tbank: it is no notification") from None


def _scalar(value: bytes) -> str | None:
    """Return a string's value, or a number or boolean as it is spelt. Return None for null, objects and lists, which
    the Token does not cover."""
    if value[:1] == b'"':
        return msgspec.json.decode(value, type=str)
    return None if value[:1] in (b"{", b"[", b"n") else value.decode()
