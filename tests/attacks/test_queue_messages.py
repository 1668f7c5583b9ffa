"""An attacker who can write to Redis cannot forge work: a queue message only makes a worker read the jobs, whatever the
message contains (docs/operations.md "Settings and secrets")."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from cambist.adapters.clock import SystemClock
from cambist.adapters.queue.dramatiq import DramatiqQueue
from cambist.ports.jobs import Job
from tests.patience import HANGS
from tests.redis_servers import forget, redis_server

CANARY = "forged\x1b[2J\nlevel=critical"


def message(**other: Any) -> bytes:
    """Return a message as Dramatiq writes it, with the forged fields."""
    plain = {
        "queue_name": "wake_ups",
        "actor_name": "look",
        "args": [],
        "kwargs": {},
        "options": {"redis_message_id": "forged"},
        "message_id": secrets.token_hex(8),
        "message_timestamp": 0,
    }
    return json.dumps({**plain, **other}).encode()


FORGED: dict[str, bytes | None] = {
    "no message of the id": None,
    "bytes that are no text": b"\xff\xfe\x00",
    "a pickle": b"cposix\nsystem\n(S'touch /tmp/forged'\ntR.",
    "no JSON": b"{",
    "JSON of another shape": b"[1, 2]",
    "a field that is missing": b'{"queue_name": "wake-ups"}',
    "nested deeply": b"[" * 100_000,
    "an unknown actor": message(actor_name=CANARY),
    "an actor that is a class of ours": message(actor_name="pay_out_now", args=["acc_1", "live"]),
    "arguments": message(args=[CANARY], kwargs={"account": CANARY}),
    "another queue": message(queue_name=CANARY),
    "a time in the past": message(options={"redis_message_id": "forged", "eta": 1}),
    "a time that is none": message(options={"redis_message_id": "forged", "eta": CANARY}),
    "options that are none": message(options=None),
    "callbacks": message(options={"redis_message_id": "x", "on_success": "look", "pipe_target": {"actor_name": "x"}}),
    "a megabyte": message(args=["x" * 1_000_000]),
}


@pytest.fixture
def place() -> Iterator[tuple[str, str]]:
    """A Redis, and the beginning of this test's keys."""
    with redis_server() as url:
        namespace = f"cambist-test-{secrets.token_hex(6)}"
        yield url, namespace
        forget(url, f"{namespace}:*")


def forge(url: str, namespace: str, data: bytes | None, *, queue: str = "wake_ups") -> str:
    """Push it as Dramatiq's script would."""
    number = secrets.token_hex(8)
    with redis.Redis.from_url(url) as client:
        if data is not None:
            client.hset(f"{namespace}:{queue}.msgs", number, data)
        client.rpush(f"{namespace}:{queue}", number)
    return number


def taken(url: str, namespace: str, queue: str = "wake_ups") -> bool:
    with redis.Redis.from_url(url) as client:
        return bool(client.llen(f"{namespace}:{queue}") == 0)


@pytest.mark.parametrize("queue", ["wake_ups", "wake_ups.DQ"])
@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
async def test_a_forged_message_ends_nothing_and_is_written_nowhere(
    place: tuple[str, str], data: bytes | None, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that waits is woken at most; the next true wake-up arrives."""
    url, namespace = place
    caplog.set_level(logging.INFO)
    near, far = (DramatiqQueue(url, SystemClock(), namespace=namespace) for _ in range(2))
    try:
        await near.wait(0)
        forge(url, namespace, data, queue=queue)
        deadline = time.monotonic() + HANGS
        while not taken(url, namespace, queue):
            assert time.monotonic() < deadline, "nobody took it"
            await near.wait(0.02)
        assert await near.works()
        now = SystemClock().now()
        while not near._is_hinted:
            assert time.monotonic() < deadline, "a true wake-up is not heard any more"
            await far.wake_up([Job(id="job:1", kind="job", argument="", due=now, created_at=now)])
            await asyncio.sleep(0.05)
    finally:
        await near.close()
        await far.close()
    written = [record.getMessage() + str(record.exc_text or "") for record in caplog.records]
    assert not any("forged" in line or "acc_1" in line for line in written), written
    assert len(written) < 5, written


@pytest.mark.parametrize("name", ["wake_ups", "wake_ups.msgs", "wake_ups.DQ"])
async def test_keys_of_another_kind_cost_no_work_either(
    place: tuple[str, str], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Wake-ups are lost; the wait then ends by its own timeout, as workers poll the database anyway."""
    url, namespace = place
    with redis.Redis.from_url(url) as client:
        client.set(f"{namespace}:{name}", CANARY)
    near, far = (DramatiqQueue(url, SystemClock(), namespace=namespace) for _ in range(2))
    now = SystemClock().now()
    try:
        for _ in range(20):
            await far.wake_up([Job(id="job:1", kind="job", argument="", due=now, created_at=now)])
            await near.wait(0.02)
    finally:
        await near.close()
        await far.close()
    assert not any("forged" in record.getMessage() for record in caplog.records)
