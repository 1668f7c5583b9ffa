"""Log lines (docs/operations.md "Logs"): their fields, and the requests that are logged."""

import logging
import sys
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import msgspec
import pytest
from litestar.types import HTTPScope

from cambist.adapters.clock import SystemClock
from cambist.frontends.telemetry.logs import configure_logging, job_context, request_context
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.jobs import Job
from tests.telemetry.kit import traced_app


class Stderr:
    """The text written to stderr so far."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._text = ""

    def getvalue(self) -> str:
        self._text += self._capsys.readouterr().err
        return self._text


@pytest.fixture
def stderr(capsys: pytest.CaptureFixture[str]) -> Iterator[Stderr]:
    """Capture of log lines. The root logger's handlers are restored afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield Stderr(capsys)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(out: Stderr) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in out.getvalue().splitlines()]


async def test_each_request_gets_one_line_with_its_route_and_account(stderr: Stderr) -> None:
    async with traced_app(access_log="all") as app:
        configure_logging("info", "json")
        payment = (await app.pay()).json()["id"]
        await app.http.get(f"/api/v1/payments/{payment}?phone=%2B79161237788", headers=app.headers())
        await app.http.get("/api/v1/secret-79161237788", headers={"X-Request-Id": "of-mine"})
        account = app.account.account_id
    first, second, third = [line for line in lines(stderr) if line["logger"] == "cambist.access"]
    assert {name: first[name] for name in ("event", "method", "route", "status", "account_id", "mode")} == {
        "event": "POST /api/v1/payments 201",
        "method": "POST",
        "route": "/api/v1/payments",
        "status": 201,
        "account_id": account,
        "mode": "test",
    }
    assert first["took_ms"] >= 0
    assert second["route"] == "/api/v1/payments/{payment_id}"
    assert (third["route"], third["request_id"], "account_id" in third) == ("none", "of-mine", False)
    told = str([first, second, third])
    assert "79161237788" not in told
    assert payment not in told


@pytest.mark.parametrize(("wanted", "statuses"), [("off", []), ("errors", [500]), ("all", [200, 500, 404])])
async def test_the_setting_says_which_requests_get_a_line(
    stderr: Stderr, monkeypatch: pytest.MonkeyPatch, wanted: str, statuses: list[int]
) -> None:
    async with traced_app(access_log=wanted) as app:
        configure_logging("info", "json")
        await app.http.get("/livez")
        with monkeypatch.context() as broken:
            broken.setattr(app.ports.clock, "now", lambda: 1 // 0)
            await app.http.get("/health")
        await app.http.get("/nowhere")
    assert [line["status"] for line in lines(stderr) if line["logger"] == "cambist.access"] == statuses


def test_a_line_of_a_job_says_which_and_of_what_object(stderr: Stderr) -> None:
    configure_logging("info", "json")
    moment = msgspec.convert("2026-11-21T00:00:00Z", type=Job.__annotations__["due"])
    job = Job(id="payment.watch:pay_1", kind="payment.watch", argument="pay_1", due=moment, created_at=moment)
    with job_context(job):
        logging.getLogger("cambist.rates").warning("no rate")
    logging.getLogger("cambist.rates").warning("no rate")
    inside, outside = lines(stderr)
    assert (inside["job_id"], inside["job_kind"], inside["object_id"], inside["attempt"]) == (
        "payment.watch:pay_1",
        "payment.watch",
        "pay_1",
        0,
    )
    assert "job_id" not in outside


@pytest.mark.parametrize("level", ["debug", "info"])
def test_requests_of_an_adapters_http_client_are_not_logged(stderr: Stderr, level: str) -> None:
    """The client logs the whole address of each, with its query."""
    configure_logging(level, "json")
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200))) as client:
        client.get("https://bank.example/payments?order=1")
    logging.getLogger("httpx2").warning("it says something else")
    assert [line["event"] for line in lines(stderr)] == ["it says something else"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_private_data_in_a_line_or_traceback_is_masked(stderr: Stderr, form: str) -> None:
    configure_logging("debug", form)
    log = logging.getLogger("somebody.else")
    with request_context("r-1"):
        log.warning("answer of %s: %s", "https://bank.example/x?phone=79161237788", {"full_name": "Канарейкина"})
        try:
            int("svc_live_0123456789abcdef of +79161237788")
        except ValueError:
            log.exception("failed", extra={"body": "card 4111111111111111"})
    said = stderr.getvalue()
    assert "Traceback" in said
    assert "r-1" in said
    assert [word for word in ("79161237788", "Канарейкина", "0123456789abcdef", "4111") if word in said] == []


class Unspeakable:
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("+79161237788")


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("arguments", [("4111111111111111", "too many"), (Unspeakable(),)])
def test_a_message_that_cannot_be_made_is_a_line_without_its_arguments(
    stderr: Stderr, form: str, arguments: tuple[object, ...]
) -> None:
    """Otherwise `logging` prints a traceback and the unmasked arguments."""
    configure_logging("debug", form)
    logging.getLogger("somebody.else").warning("answer %s", *arguments)
    said = stderr.getvalue()
    assert len(said.splitlines()) == 1
    assert "answer %s" in said
    assert [word for word in ("4111", "79161237788") if word in said] == []


@pytest.mark.parametrize(
    ("form", "terminal", "is_json"),
    [
        ("auto", True, False),
        ("auto", False, True),
        ("json", True, True),
        ("text", False, False),
    ],
)
def test_people_get_text_and_machines_json(
    stderr: Stderr, monkeypatch: pytest.MonkeyPatch, form: str, terminal: bool, is_json: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    configure_logging("info", form)
    logging.getLogger("cambist").info("hello")
    assert stderr.getvalue().startswith("{") is is_json


def test_no_repr_of_a_request_shows_its_secret() -> None:
    asked = RequestWatch(SystemClock()).begin(cast("HTTPScope", {}), {b"x-api-secret": b"hidden"})
    assert "hidden" not in repr(asked)
