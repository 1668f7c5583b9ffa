"""An adapter that misreads its provider's notifications fails the shipped test of that rule
(frontends/conformance/hearing.py)."""

import hashlib
import json
from collections.abc import Awaitable, Callable

import msgspec
import pytest

import cambist
from cambist.frontends.conformance.bank.notifications import TestNotifications as Suite
from cambist.frontends.conformance.hearing import Told
from cambist.ports import Forged, InboundNotification, Notification, Received
from examples.own_bank.conftest import TOKEN, ExampleHarness
from examples.own_bank.provider import Provider

Hear = Callable[[InboundNotification], Awaitable[Received]]


async def believes(notification: InboundNotification) -> Received:
    """Without looking at the signature."""
    return Received(notifications=(Notification(operation=json.loads(notification.body or b'{"key": ""}')["key"]),))


def tells_secrets(receive: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Received:
        try:
            return await receive(notification)
        except Forged:
            raise Forged(f"not signed by {TOKEN}") from None

    return broken


def by_reference(receive: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Received:
        return msgspec.structs.replace(await receive(notification), notifications=(Notification(operation="inv-1"),))

    return broken


def once(receive: Hear) -> Hear:
    heard: set[bytes] = set()

    async def broken(notification: InboundNotification) -> Received:
        digest = hashlib.sha256(notification.body).digest()
        if digest in heard:
            return Received()
        heard.add(digest)
        return await receive(notification)

    return broken


def leaking(receive: Hear) -> Hear:
    async def broken(notification: InboundNotification) -> Received:
        if notification.body.startswith(b"[[[["):
            raise RecursionError  # the depth that the parser of the standard library reads depends on the version
        return await receive(notification)

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
        monkeypatch.setattr(harness.made, "receive", breaker(harness.made.receive))
        with pytest.raises((AssertionError, pytest.fail.Exception, ValueError, RecursionError, KeyError, TypeError)):
            await getattr(Suite(), rule)(told, **more)
        await harness.made.close()
