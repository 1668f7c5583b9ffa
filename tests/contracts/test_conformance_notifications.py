"""An adapter that hears its provider wrongly fails the shipped test of that rule (frontends/conformance/hearing.py)."""

import hashlib
import json
from collections.abc import Awaitable, Callable

import msgspec
import pytest

import cambist
from cambist.frontends.conformance.bank.notifications import TestNotifications as Suite
from cambist.frontends.conformance.hearing import Told
from cambist.ports import Forged, Heard, InboundNotification, Notification
from examples.own_bank.conftest import TOKEN, ExampleHarness
from examples.own_bank.provider import Provider

Hear = Callable[[InboundNotification], Awaitable[Heard]]


async def believes(notification: InboundNotification) -> Heard:
    """Without looking at the signature."""
    return Heard(notifications=(Notification(operation=json.loads(notification.body or b'{"key": ""}')["key"]),))


def tells_secrets(hear: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Heard:
        try:
            return await hear(notification)
        except Forged:
            raise Forged(f"not signed by {TOKEN}") from None

    return broken


def by_reference(hear: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Heard:
        return msgspec.structs.replace(await hear(notification), notifications=(Notification(operation="inv-1"),))

    return broken


def once(hear: Hear) -> Hear:
    heard: set[bytes] = set()

    async def broken(notification: InboundNotification) -> Heard:
        digest = hashlib.sha256(notification.body).digest()
        if digest in heard:
            return Heard()
        heard.add(digest)
        return await hear(notification)

    return broken


def leaking(hear: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Heard:
        json.loads(notification.body)
        return await hear(notification)

    return broken


_GARBAGE = "test_garbage_is_forged_or_names_nothing"


@pytest.mark.parametrize(
    ("breaker", "rule", "more"),
    [
        (lambda _: believes, "test_one_about_something_else_with_the_same_signature_is_forged", {}),
        (lambda _: believes, _GARBAGE, {"garbage": "no UTF-8", "with_headers": True}),
        (lambda _: believes, _GARBAGE, {"garbage": "nothing", "with_headers": False}),
        (leaking, _GARBAGE, {"garbage": "JSON too deep to read", "with_headers": True}),
        (tells_secrets, "test_one_about_something_else_with_the_same_signature_is_forged", {}),
        (by_reference, "test_a_genuine_notification_names_its_operation", {}),
        (once, "test_told_again_it_says_the_same", {}),
    ],
)
async def test_a_broken_rule_fails_its_test(
    breaker: Callable[[Hear], Hear], rule: str, more: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cambist.open() as service:
        harness = ExampleHarness(service.tools(), Provider())
        notification = await harness.notification("pay_conformance_1")
        forged = harness.forge(notification, "pay_conformance_1", "pay_conformance_2")
        told = Told(harness.made, notification, "pay_conformance_1", forged, signed=True, secrets=harness.secrets)
        await getattr(Suite(), rule)(told, **more)
        monkeypatch.setattr(harness.made, "hear", breaker(harness.made.hear))
        with pytest.raises((AssertionError, pytest.fail.Exception, ValueError, RecursionError, KeyError, TypeError)):
            await getattr(Suite(), rule)(told, **more)
        await harness.made.close()
