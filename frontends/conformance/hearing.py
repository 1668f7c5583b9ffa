"""Contract of adapters that receive provider notifications (ports/notifications.py: Notifications), for banks and
verifiers."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ...ports.faults import Forged
from ...ports.notifications import InboundNotification, Notifications, Received
from .expectations import may_raise, must_answer, must_raise
from .harnesses import check_hidden

_LONGEST = 65_536

GARBAGE = {
    "nothing": b"",
    "64 KB of one letter": b"x" * _LONGEST,
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "JSON too deep to read": b"[" * 30_000 + b"]" * 30_000,
    "JSON of another kind": b"[null, 1e999, {}]",
    "NUL": b"\0" * 100,
}


class Told(msgspec.Struct, frozen=True):
    """A genuine notification, and the operation it is about."""

    adapter: Notifications
    notification: InboundNotification
    operation: str
    forged: InboundNotification
    """The same notification changed to name another operation, with the original signature."""
    signed: bool
    secrets: Sequence[str]


async def told(adapter: Any, harness: Any, operation: str, other: str) -> Told:
    """Return a genuine notification about this operation. Skips the test if the adapter does not receive notifications
    or the harness does not simulate them."""
    if not isinstance(adapter, Notifications):
        pytest.skip("the adapter receives no notifications (Notifications)")
    notification = await harness.notification(operation)
    forged = harness.forge(notification, operation, other)
    return Told(adapter, notification, operation, forged, harness.signs_notifications, harness.secrets)


class NotificationRules:
    """Anybody who knows the URL can post to it, so a notification is at most a hint, whatever bytes it contains."""

    async def test_a_genuine_notification_names_its_operation(self, noticed: Told) -> None:
        with must_answer("a genuine notification must be received, and not be Forged"):
            heard = await noticed.adapter.receive(noticed.notification)
        named = [each.operation for each in heard.notifications]
        assert noticed.operation in named, f"a notification must name the operation by our own id, not by {named}"
        assert 200 <= heard.status < 300, "a genuine notification is answered 2xx, or the provider posts it again"

    async def test_told_again_it_says_the_same(self, noticed: Told) -> None:
        first = await noticed.adapter.receive(noticed.notification)
        again = await noticed.adapter.receive(noticed.notification)
        assert again == first, "a notification that is posted again must be received again"

    async def test_one_about_something_else_with_the_same_signature_is_forged(self, noticed: Told) -> None:
        if not noticed.signed:
            pytest.skip("the provider signs nothing (`signs_notifications`)")
        with must_raise(
            "a notification that was changed must be Forged: the signature is over all of it", Forged
        ) as forged:
            await noticed.adapter.receive(noticed.forged)
        check_hidden(noticed.secrets, noticed.adapter, forged.value)

    async def test_one_without_its_signature_is_forged(self, noticed: Told) -> None:
        if not noticed.signed:
            pytest.skip("the provider signs nothing (`signs_notifications`)")
        bare = msgspec.structs.replace(noticed.notification, headers={}, query={}, body=b"{}")
        with must_raise("a notification without a signature must be Forged", Forged):
            await noticed.adapter.receive(bare)

    @pytest.mark.parametrize("garbage", GARBAGE)
    @pytest.mark.parametrize("with_headers", [True, False])
    async def test_garbage_is_forged_or_names_nothing(self, noticed: Told, garbage: str, with_headers: bool) -> None:
        headers = noticed.notification.headers if with_headers else {}
        notification = msgspec.structs.replace(noticed.notification, headers=headers, body=GARBAGE[garbage])
        with may_raise("any bytes at all must be Forged, or be received and name nothing", Forged):
            try:
                heard = await noticed.adapter.receive(notification)
            except Forged as forged:
                check_hidden(noticed.secrets, noticed.adapter, forged)
                raise
            assert isinstance(heard, Received), "`receive` must return Received"
            assert heard.notifications == (), "a body without an operation must name nothing"
