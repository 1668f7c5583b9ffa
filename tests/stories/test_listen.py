"""A merchant's developer listens: real processes, a service and a listener that are killed, and no event lost."""

import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from cambist.core.domain.webhooks.signing import verify_signature
from tests.receivers import Receiver
from tests.stories.merchant import merchant
from tests.stories.processes import Installation, Process, eventually


def start(place: Installation, base: str, *arguments: str) -> Process:
    return place.start("listen", "--base-url", base, "--cursor-file", str(place.folder / "cursor"), *arguments)


def when(look: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    """A condition as `eventually` wants it."""

    async def looking() -> object:
        return look()

    return looking


def objects(process: Process) -> list[str]:
    return [msgspec.json.decode(line)["object_id"] for line in process.out.splitlines()]


@pytest.mark.drill
async def test_neither_a_killed_listener_nor_a_killed_service_loses_an_event(sqlite_location: Installation) -> None:
    place = sqlite_location
    service, base = place.serve()
    port = base.rpartition(":")[2]
    account = await place.account()
    place.environ["CAMBIST_API_KEY"] = account.test.api_key
    place.environ["CAMBIST_API_SECRET"] = account.test.api_secret
    async with Receiver() as local, merchant(base, account.test) as shop:
        listener = start(place, base, "--forward-to", local.url, "--from", "beginning", "--json")
        first = (await shop.paid())["id"]
        await local.arrived(1)
        await eventually(when(lambda: objects(listener) == [first]))
        await eventually(when(lambda: Path(place.folder, "cursor").exists()))
        listener.kill()
        second = (await shop.paid())["id"]
        listener = start(place, base, "--forward-to", local.url, "--json")
        await eventually(when(lambda: second in objects(listener)))
        service.kill()
        _, base = place.serve("--port", port)
        async with merchant(base, account.test) as again:
            third = (await again.paid())["id"]
        await eventually(when(lambda: third in objects(listener)))
        # Webhooks under way at the kill may arrive twice, but none is lost.
        seen = [msgspec.json.decode(request.body)["payment_id"] for request in local.requests]
        assert list(dict.fromkeys(seen)) == [first, second, third]
        said = re.search(r"signed with (\S+)", listener.err)
        assert said is not None
        for request in local.requests:
            sent = int(request.headers["x-webhook-timestamp"])
            assert verify_signature(request.headers, request.body, [said[1]], sent) == request.headers["x-webhook-id"]
        assert account.test.api_secret not in listener.err + listener.out
        listener.signal(signal.SIGINT)
        assert listener.wait() == 130


async def test_a_stopping_service_does_not_wait_for_its_listeners(sqlite_location: Installation) -> None:
    place = sqlite_location
    service, base = place.serve()
    account = await place.account()
    place.environ["CAMBIST_API_KEY"] = account.test.api_key
    place.environ["CAMBIST_API_SECRET"] = account.test.api_secret
    listener = start(place, base)
    await eventually(when(lambda: Path(place.folder, "cursor").exists()))
    assert "listening to" in listener.err
    async with merchant(base, account.test) as shop:
        await shop.paid()
        await eventually(when(lambda: re.search(r"payment\.status_changed  pay_\S+  paid\n", listener.out)))
    assert service.terminate() == 0
