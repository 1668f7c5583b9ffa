"""Final checks of access: requests for another merchant's objects, and oversized requests, are refused once faults have
stopped."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cambist.core.usecases.accounts.accounts import KeyPair
from tests.simulation.merchants import Merchant, Sale
from tests.simulation.network import HttpAnswer, NoAnswer, key_of

if TYPE_CHECKING:
    from tests.simulation.world import World

Case = tuple[str, str, str, bytes, tuple[int, ...]]
"""Description, method, path, body, and the allowed statuses of the answer."""


async def judge_bounds(world: "World") -> None:
    """Ask as strangers do: a merchant for another's things, with live and with test keys; too much; with a wrong
    secret."""
    for merchant, other in zip(world.merchants, [*world.merchants[1:], world.merchants[0]], strict=True):
        pair, sales = merchant.pair, [sale for sale in other.sales if sale.payment_id is not None]
        cases: list[Case] = [
            (
                "a body of more than 100 KB",
                "POST",
                "/api/v1/payments",
                b'{"amount_rub": "%s"}' % (b"1" * 102_400),
                (413,),
            ),
            ("a page of more than 100", "GET", "/api/v1/payments?per_page=101", b"", (400, 422)),
            (
                "a nest of brackets",
                "POST",
                "/api/v1/payments",
                b'{"metadata": %s}' % (b"[" * 40 + b"]" * 40),
                (400, 422),
            ),
        ]
        cases += [
            (f"another's {each}", "GET", f"/api/v1/{path}", b"", (404,))
            for each, path in (*_things(sales[:1]), ("subscription", _subscription(world, other)))
            if path and merchant is not other
        ]
        await _judge(world, merchant, pair, cases)
        live = [(f"live mode's {what}", "GET", f"/api/v1/{path}", b"", (404,)) for what, path in _things(sales[:1])]
        await _judge(world, other, other.account.test, live)
        wrong = msgspec.structs.replace(pair, api_secret=pair.api_secret[::-1])
        await _judge(world, merchant, wrong, [("a wrong secret", "GET", "/api/v1/balance", b"", (401,))])
        if sales and merchant is not other:
            await _judge_key(world, merchant, sales[0])


def _things(sales: Sequence[Sale]) -> list[tuple[str, str]]:
    found = [("payment", f"payments/{sale.payment_id}") for sale in sales]
    return found + [("refund", f"refunds/{wish.refund_id}") for sale in sales for wish in sale.refunds[:1]]


def _subscription(world: "World", merchant: Merchant) -> str | None:
    members = world.clubs[merchant.number].members
    found = next((each for member in members for each in sorted(member.ids)), None)
    return None if found is None else f"subscriptions/{found}"


async def _judge(world: "World", merchant: Merchant, pair: KeyPair, cases: Sequence[Case]) -> None:
    for what, method, path, body, allowed in cases:
        answer = await _asked(world, pair, method, path, body)
        if answer.status not in allowed:
            world.fault(f"merchant {merchant.number} asked for {what}: {answer.status} {answer.body[:200]!r}")


async def _judge_key(world: "World", merchant: Merchant, sale: Sale) -> None:
    """A key that another merchant used is a key like any other."""
    key = key_of(world.plan.seed, "order", sale.order.number)
    body = b'{"amount_rub": "30.00", "external_id": "the same key"}'
    answer = await _asked(world, merchant.pair, "POST", "/api/v1/payments", body, key=key)
    if answer.status in (200, 201) and answer.json["id"] in sale.ids:
        world.fault(f"merchant {merchant.number} was answered {sale.payment_id} of another for its key")


async def _asked(
    world: "World", pair: KeyPair, method: str, path: str, body: bytes, *, key: str | None = None
) -> HttpAnswer:
    headers = [(b"x-api-key", pair.api_key.encode()), (b"x-api-secret", pair.api_secret.encode())]
    headers += [(b"content-type", b"application/json")] if body else []
    headers += [(b"idempotency-key", (key or key_of(world.plan.seed, path)).encode())] if method == "POST" else []
    answer = HttpAnswer(0, b"")
    for _ in range(20):
        try:
            answer = await world.request(method, path, headers, body)
        except NoAnswer:
            answer = HttpAnswer(0, b"")
        if answer.status not in (0, 429, 503):
            break
        await world.network.sleep(30.0)
    return answer
