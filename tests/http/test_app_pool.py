"""Test apps share HTTP faces; none may see anything of another through one (tests/app_pool.py)."""

import asyncio
from typing import Any

import pytest

from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from tests.app_pool import Face
from tests.apps import TestApp, open_test_app


async def _ids(app: TestApp) -> list[str]:
    answer: dict[str, Any] = (await app.get("/payments")).json()
    return [payment["id"] for payment in answer["data"]]


async def test_a_app_finds_nothing_of_the_app_before_it() -> None:
    async with open_test_app() as first:
        await first.created()
        headers = first.headers()
    async with open_test_app() as second:
        assert await _ids(second) == []
        again = await second.http.get("/api/v1/payments", headers={**headers, "X-Api-Secret": "of another app"})
        assert again.status_code == 401


async def test_two_apps_that_are_open_at_once_do_not_meet() -> None:
    async with open_test_app() as one, open_test_app() as other:
        await asyncio.gather(one.created(), other.created(), one.created())
        assert (len(await _ids(one)), len(await _ids(other))) == (2, 1)


async def test_the_links_of_a_app_have_its_own_address() -> None:
    for address in ("https://one.example", "https://other.example", "https://one.example"):
        async with open_test_app(base_url=address) as app:
            assert str((await app.created())["payment_url"]).startswith(f"{address}/p/")


async def test_health_is_checked_again_in_the_next_app(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_test_app() as ailing:
        monkeypatch.setattr(type(ailing.ports.counters), "works", _not)
        assert (await ailing.http.get("/health")).status_code == 503
    monkeypatch.undo()
    async with open_test_app() as well:
        await start_recurring_jobs(well.ports)
        assert (await well.http.get("/health")).status_code == 200


async def _not(_: object) -> bool:
    return False


async def test_a_face_given_back_reaches_no_app(app: TestApp) -> None:
    face = Face(app.ports.urls)
    face.lend(app.ports)
    face.lend(None)
    scope: Any = {"type": "http", "path": "/api/v1/payments", "headers": [], "method": "GET"}
    with pytest.raises(AttributeError):
        await face.app(scope, _no_body, _no_answer)


async def _no_body() -> Any:
    raise AssertionError("nothing is read")


async def _no_answer(_: Any) -> None:
    raise AssertionError("nothing is answered")
