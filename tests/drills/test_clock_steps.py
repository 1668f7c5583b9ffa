"""The machine's clock is set forward and back by an hour under a service on SQLite at work (libfaketime): nothing is
late by more than 10 s for it, and nothing is lost or doubled."""

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.drills.merchants import load
from tests.patience import drill_of, promised
from tests.receivers import Receiver, reply
from tests.stories.processes import Installation, eventually, installation

STEPS = (3600, 0, -3600, 0, 3 * 3600, 0, -3 * 3600, 0)
"""Offsets of the clock in seconds, one after the other."""
EACH = 25.0
"""Seconds for which it is."""
PAUSE = 0.7
"""Seconds between two payments of a merchant."""
MERCHANTS = 12
PROMPT = 10.0 + 1.0
"""Seconds that a step may add, plus the pause after the first attempt."""

needs_faketime = pytest.mark.skipif(
    shutil.which("faketime") is None and not os.environ.get("CI"), reason="sets the clock by faketime: apt install it"
)


def library() -> str:
    """Return the library that faketime preloads."""
    [found, *_] = sorted(Path("/usr").glob("lib*/**/faketime/libfaketime.so.1"))
    return str(found)


def set_clock(file: Path, seconds: int) -> None:
    """Shift the service's clock by so much; the library reads the file once a second."""
    draft = file.with_suffix(".draft")
    draft.write_text(f"{seconds:+d}")
    draft.replace(file)


@contextmanager
def going_by(place: Installation, file: Path) -> Iterator[None]:
    """Processes started inside use the clock that `set_clock` sets in this file. They are loaded anew, and others
    forked, at a quarter of the cost."""
    environ = place.environ
    place.environ = environ | {
        "LD_PRELOAD": library(),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    yield
    place.environ = environ


class Letters:
    """Webhooks of a receiver that refuses every fourth one once, so that some always wait for their next attempt. A
    higher share would open a breaker."""

    def __init__(self) -> None:
        self.paid_at: dict[str, float] = {}
        """When it first took that a payment was paid, by a clock that nobody sets."""
        self.taken: Counter[str] = Counter()
        """By event."""
        self.events: dict[str, set[str]] = {}
        """Ids of the `paid` events, by payment."""
        self.expired: set[str] = set()
        """Payments that were pending when the clock was set beyond their deadline."""

    async def answer(self, receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        """Answer the last request."""
        webhook = receiver.requests[-1]
        if webhook.headers["x-webhook-attempt"] == "1" and webhook.headers["x-webhook-id"][-1] in "048c":
            return await reply(503)(receiver, writer)
        event = msgspec.json.decode(webhook.body)
        event_id = webhook.headers["x-webhook-id"]
        self.taken[event_id] += 1
        if event["status"] == "expired":
            self.expired.add(event["payment_id"])
        else:
            self.paid_at.setdefault(event["payment_id"], time.monotonic())
            self.events.setdefault(event["payment_id"], set()).add(event_id)
        return await reply(200)(receiver, writer)


@pytest.mark.drill
@drill_of("tests/usecases/sandbox/test_clock_steps.py")
@needs_faketime
async def test_a_clock_that_is_set_by_hours_delays_and_doubles_nothing(tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    set_clock(offset, 0)
    with installation(tmp_path, trusted_proxies="127.0.0.0/8") as place:
        await place.migrate()
        webhooks = Letters()
        async with Receiver() as receiver:
            receiver.answer_with(webhooks.answer)
            accounts = await place.accounts(MERCHANTS, receiver.url)
            with going_by(place, offset):
                service, base = place.serve()
            paid: dict[str, float] = {}

            async with load(base, accounts, pause=PAUSE, pays=paid) as clients, clients.running() as tale:
                await asyncio.sleep(EACH)
                for step in STEPS:
                    set_clock(offset, step)
                    await asyncio.sleep(EACH)
            await eventually(lambda: _all_told(paid, webhooks))
            assert service.terminate() == 0, service.err
        assert "the machine's clock was set by" in service.err
        late = {payment: webhooks.paid_at[payment] - at for payment, at in paid.items()}
        assert set(tale.statuses) <= {201}, tale.statuses
        assert set(webhooks.events) == set(paid), "every payment is told, and nothing else"
        assert {len(events) for events in webhooks.events.values()} == {1}, "each by one event"
        assert max(late.values()) <= promised(PROMPT)
        assert place.call("ledger", "verify").status == 0
    twice = sum(webhooks.taken.values()) - len(webhooks.taken)
    print(
        f"{len(paid)} payments of {MERCHANTS} merchants while the clock was set {len(STEPS)} times by up to "
        f"{max(map(abs, STEPS)) // 3600} h, a quarter of the letters refused once: none lost, none doubled, {twice} "
        f"letters taken twice, {len(webhooks.expired)} payments expired before they were paid; the latest letter "
        f"{max(late.values()):.2f} s after its payment"
    )


async def _all_told(paid: dict[str, float], webhooks: Letters) -> bool:
    return set(webhooks.paid_at) >= set(paid)
