"""One resource for each key, with any number of concurrent requests (docs/concepts.md "Idempotency"): which errors are
retried, and how long a repeat waits for the request that has its key."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.common.idempotency import KEY_TAKEN, Lock, Made, once, once_made
from cambist.ports.faults import Conflict
from tests.apps import TestApp
from tests.tables import table

KEY = str(UUID(int=7))


async def asked(app: TestApp, make: Any, recall: Any = None, *, kind: str = "payment") -> Made[str]:
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="a-key")
    return await once(app.ports, caller, KEY, kind, make=make, recall=recall, id_rule="things_id")


def making(app: TestApp, *faults: Exception) -> Any:
    """A `make` that fails so, one after the other, and then makes."""
    left = list(faults)

    async def make(lock: Lock) -> str:
        if left:
            raise left.pop(0)
        async with app.ports.storage.unit() as unit:
            unit[IdempotencyKey].add(lock("made"))
            await unit.commit()
        return "made"

    return make


async def recalled(resource_id: str) -> str:
    return f"again {resource_id}"


async def test_a_key_belongs_to_one_resource_of_one_kind(app: TestApp) -> None:
    assert await asked(app, making(app)) == Made("made", replayed=False)
    assert await asked(app, None, recalled) == Made("again made", replayed=True)
    with pytest.raises(Refusal) as caught:
        await asked(app, None, recalled, kind="exchange")
    assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.parametrize("rule", [KEY_TAKEN, "things_id"])
@pytest.mark.parametrize("lost", [1, 19])
async def test_request_that_loses_a_race_is_retried(app: TestApp, rule: str, lost: int) -> None:
    assert (await asked(app, making(app, *[Conflict(rule)] * lost))).resource == "made"


async def test_request_that_keeps_losing_may_be_repeated_later(app: TestApp) -> None:
    with pytest.raises(Refusal) as caught:
        await asked(app, making(app, *[Conflict(KEY_TAKEN)] * 20))
    assert (caught.value.code, caught.value.retry_after) == ("PROVIDER_UNAVAILABLE", 30)


async def test_any_other_conflict_is_the_makers(app: TestApp) -> None:
    with pytest.raises(Conflict):
        await asked(app, making(app, Conflict("another_id")))


async def test_a_key_that_was_taken_back_is_free(app: TestApp) -> None:
    await asked(app, making(app))

    async def recall(_resource_id: str) -> None:
        async with app.ports.storage.unit() as unit:
            [key] = await unit[IdempotencyKey].find()
            unit[IdempotencyKey].remove(key)
            await unit.commit()

    assert await asked(app, making(app), recall) == Made("made", replayed=False)


BACKOFF = [0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.25]


@table(
    ("reads", "found", "slept"),
    [
        ([], None, []),
        (["made"], "made", []),
        (["begun", None], None, BACKOFF[:1]),
        (["begun"] * 8 + ["made"], "made", BACKOFF),
    ],
)
async def test_a_repeat_waits_for_the_first_request(
    reads: list[str | None], found: str | None, slept: list[float]
) -> None:
    pauses: list[float] = []
    left = list(reads)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def read() -> str | None:
        return left.pop(0) if left else None

    ports: Any = SimpleNamespace(clock=SimpleNamespace(sleep=sleep))
    assert await once_made(ports, read, lambda each: each == "made") == found
    assert pauses == slept


async def test_a_repeat_waits_22_seconds_and_no_more() -> None:
    """Within 25 it is answered."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def read() -> str:
        return "begun"

    ports: Any = SimpleNamespace(clock=SimpleNamespace(sleep=sleep))
    with pytest.raises(Refusal) as caught:
        await once_made(ports, read, lambda _: False)
    assert (caught.value.code, caught.value.retry_after) == ("PROVIDER_UNAVAILABLE", 5)
    assert 22 <= sum(pauses) < 22.25
