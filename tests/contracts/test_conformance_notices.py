"""An adapter that hears its provider wrongly fails the shipped test of that rule (frontends/conformance/hearing.py)."""

import hashlib
import json
from collections.abc import Awaitable, Callable

import msgspec
import pytest

import cambist
from cambist.frontends.conformance.bank.notices import TestNotices as Suite
from cambist.frontends.conformance.hearing import Told
from cambist.ports import Forged, Heard, InboundNotice, Notice
from examples.own_bank.conftest import TOKEN, ExampleBench
from examples.own_bank.provider import Provider

Hear = Callable[[InboundNotice], Awaitable[Heard]]


async def believes(notice: InboundNotice) -> Heard:
    """Without looking at the signature."""
    return Heard(notices=(Notice(operation=json.loads(notice.body or b'{"key": ""}')["key"]),))


def tells_secrets(hear: Hear) -> Hear:
    async def broken(notice: InboundNotice) -> Heard:
        try:
            return await hear(notice)
        except Forged:
            raise Forged(f"not signed by {TOKEN}") from None

    return broken


def by_reference(hear: Hear) -> Hear:
    async def broken(notice: InboundNotice) -> Heard:
        return msgspec.structs.replace(await hear(notice), notices=(Notice(operation="inv-1"),))

    return broken


def once(hear: Hear) -> Hear:
    heard: set[bytes] = set()

    async def broken(notice: InboundNotice) -> Heard:
        digest = hashlib.sha256(notice.body).digest()
        if digest in heard:
            return Heard()
        heard.add(digest)
        return await hear(notice)

    return broken


def leaking(hear: Hear) -> Hear:
    async def broken(notice: InboundNotice) -> Heard:
        json.loads(notice.body)
        return await hear(notice)

    return broken


_NONSENSE = "test_nonsense_is_forged_or_names_nothing"


@pytest.mark.parametrize(
    ("breaker", "rule", "more"),
    [
        (lambda _: believes, "test_one_about_something_else_with_the_same_signature_is_forged", {}),
        (lambda _: believes, _NONSENSE, {"nonsense": "no UTF-8", "with_headers": True}),
        (lambda _: believes, _NONSENSE, {"nonsense": "nothing", "with_headers": False}),
        (leaking, _NONSENSE, {"nonsense": "JSON too deep to read", "with_headers": True}),
        (tells_secrets, "test_one_about_something_else_with_the_same_signature_is_forged", {}),
        (by_reference, "test_a_genuine_notice_names_its_operation", {}),
        (once, "test_told_again_it_says_the_same", {}),
    ],
)
async def test_a_broken_rule_fails_its_test(
    breaker: Callable[[Hear], Hear], rule: str, more: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cambist.open() as service:
        bench = ExampleBench(service.tools(), Provider())
        notice = await bench.notice("pay_conformance_1")
        forged = bench.forge(notice, "pay_conformance_1", "pay_conformance_2")
        told = Told(bench.made, notice, "pay_conformance_1", forged, signed=True, secrets=bench.secrets)
        await getattr(Suite(), rule)(told, **more)
        monkeypatch.setattr(bench.made, "hear", breaker(bench.made.hear))
        with pytest.raises((AssertionError, pytest.fail.Exception, ValueError, RecursionError, KeyError, TypeError)):
            await getattr(Suite(), rule)(told, **more)
        await bench.made.close()
