"""Notifications of YooKassa. They are unsigned. The secret path and the sender's address are their only proof, so they
only name the operation to poll."""

from collections.abc import Sequence

import msgspec

from ....ports.bank import Notification
from ....ports.faults import Forged
from ....ports.notifications import InboundNotification, Received
from .bodies import operation_of
from .core import Core
from .wire import Noticed

NETWORKS = (
    "185.71.76.0/27",
    "185.71.77.0/27",
    "77.75.153.0/25",
    "77.75.154.128/25",
    "77.75.156.11",
    "77.75.156.35",
    "2a02:5180::/32",
)
"""Networks from YooKassa's documentation."""


class Notifications(Core):
    """Implement the port Notifications."""

    @property
    def notification_networks(self) -> Sequence[str]:
        return NETWORKS

    async def receive(self, notification: InboundNotification) -> Received:
        """Read our operation from the object's metadata. For a saved method, read it from the note."""
        try:
            told = msgspec.json.decode(notification.body, type=Noticed)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Forged("it is no notification of yookassa's") from None
        operation = operation_of(told.object)
        if operation is None and told.event.startswith("payment_method."):
            operation = await self._notes.operation_of(told.object.id)
        return Received() if operation is None else Received(notifications=(Notification(operation=operation),))
