"""Strangers fill neither log nor database by what costs them nothing (docs/operations.md "Logs", "Health rules")."""

import asyncio
import logging
import re
from collections.abc import Iterator

import msgspec
import pytest

from cambist.frontends.telemetry.logs import configure_logging
from cambist.frontends.telemetry.sparing import CAUSES, SparingHandler
from tests.apps import TestApp
from tests.attacks.test_heads import a_service, said

GARBAGE = b"GARBAGE\r\n\r\n"
UPGRADE = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, whose handlers come back."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def events(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [msgspec.json.decode(line)["event"] for line in capsys.readouterr().err.splitlines()]


async def test_two_thousand_malformed_requests_are_two_lines(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_service() as port:
        configure_logging("info", "json")
        places = asyncio.Semaphore(100)

        async def garbage() -> bytes:
            async with places:
                return await said(port, GARBAGE)

        answers = await asyncio.gather(*(garbage() for _ in range(2_000)))
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 400 Bad Request"}
    root.handlers[0].close()
    told = [event for event in events(capsys) if event.startswith("Invalid HTTP request")]
    counted = [re.search(r"\(([0-9]+) more within a minute\)", event) for event in told]
    assert sum(1 if found is None else int(found[1]) for found in counted) == 2_000
    assert len(told) < 10, "two a minute"


async def test_requests_to_upgrade_are_logged_once(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    async with a_service() as port:
        configure_logging("info", "json")
        for _ in range(20):
            assert (await said(port, UPGRADE)).startswith(b"HTTP/1.1 200 ")
    told = events(capsys)
    assert len(told) == len(set(told)), "one line for each cause"
    assert told.count("Unsupported upgrade request.") == 1


def warned(
    text: str, *args: object, name: str = "cambist.http", level: int = logging.WARNING, at: float
) -> logging.LogRecord:
    record = logging.LogRecord(name, level, "", 0, text, args, None)
    record.created = at
    return record


@pytest.mark.parametrize("later", [60.0, -60.0], ids=["a minute later", "the clock was set back"])
def test_count_is_logged_after_a_minute_and_the_next_line_written(
    capsys: pytest.CaptureFixture[str], later: float
) -> None:
    handler = SparingHandler()
    for at in (0.0, 1.0, 59.9, later):
        handler.handle(warned("away: %s", "a", at=at))
    handler.handle(warned("away: %s", "b", at=later))
    assert capsys.readouterr().err.splitlines() == ["away: a", "away: a (2 more within a minute)", "away: a", "away: b"]


def test_errors_and_what_no_stranger_causes_are_written_each(capsys: pytest.CaptureFixture[str]) -> None:
    handler = SparingHandler()
    for _ in range(3):
        handler.handle(warned("a fault of ours", level=logging.ERROR, at=0.0))
        handler.handle(warned("a job", name="cambist.jobs", at=0.0))
    assert len(capsys.readouterr().err.splitlines()) == 6


def test_causes_that_strangers_make_up_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    handler = SparingHandler()
    for number in range(10_000):
        handler.handle(warned("unavailable: %s", number, at=0.0))
    assert len(capsys.readouterr().err.splitlines()) == CAUSES + 1
    handler.close()
    assert capsys.readouterr().err.splitlines() == [f"unavailable: %s ({10_000 - CAUSES - 1} more within a minute)"]


async def test_counted_lines_are_logged_even_if_nothing_follows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, alarms = SparingHandler(), []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda after, do: alarms.append((after, do)))
    for _ in range(5):
        handler.handle(warned("away", at=0.0))
    assert len(alarms) == 1
    alarms[0][1]()
    assert capsys.readouterr().err.splitlines() == ["away", "away (4 more within a minute)"]


async def test_readyz_asked_a_thousand_times_writes_once(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, check = [], app.ports.storage.check

    async def counted() -> None:
        asked.append(1)
        await check()

    monkeypatch.setattr(app.ports.storage, "check", counted)
    answers = [await app.http.get("/readyz") for _ in range(1000)]
    assert ({answer.status_code for answer in answers}, len(asked)) == ({200}, 1)
    await app.clock.advance(1)
    await app.http.get("/readyz")
    assert len(asked) == 2
