"""The application creates as little of the framework as possible, and as late as possible, so that it starts fast
(frontends/server/app.py, frontends/http/edge/routing.py)."""

import asyncio
import threading
from contextvars import Context, ContextVar
from typing import Any

import httpx
import pytest
from litestar import get

from cambist.frontends.http import framework
from cambist.frontends.http.edge.routing import Application, Router
from cambist.frontends.server.app import create_app
from tests.apps import TestApp

_meant: ContextVar[str] = ContextVar("meant")


@get("/here", sync_to_thread=False)
def here() -> str:
    return "here"


def test_application_loads_no_plugins_for_unused_models() -> None:
    """If the framework starts to load plugins in another way, this test fails."""
    asgi = Application(route_handlers=[here], openapi_config=None, logging_config=None)
    rooms = {type(plugin).__module__ for plugin in asgi.plugins}
    assert not [room for room in rooms if "pydantic" in room or "attrs" in room]


def test_a_router_is_registered_as_it_is_and_not_as_a_copy() -> None:
    inner = Router("/inner", route_handlers=[here])
    outer = Router("/outer", route_handlers=[inner])
    asgi = Application(route_handlers=[outer], openapi_config=None, logging_config=None)
    assert [route.path for route in asgi.routes] == ["/outer/inner/here"]
    assert (inner.owner, outer.owner) == (outer, asgi)


async def test_page_application_is_made_once_off_the_loop_without_a_request(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[bool, str]] = []
    make = framework.framework

    def watched(*given: Any, **named: Any) -> Application:
        made.append((threading.current_thread() is threading.main_thread(), _meant.get("nobody")))
        return make(*given, **named)

    monkeypatch.setattr(framework, "framework", watched)
    asgi: Any = Context().run(create_app, app.ports)
    _meant.set("this request")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as http:
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.get("/api/v1/balance", headers=app.headers())).status_code == 200
        assert made == []
        answers = await asyncio.gather(http.get("/docs"), http.get("/p/pay_1"), http.get("/nothing"))
    assert [answer.status_code for answer in answers] == [200, 404, 404]
    assert made == [(False, "nobody")]


async def test_cancelled_first_page_leaves_the_next_one_whole(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    make, began, may_end = framework.framework, threading.Event(), threading.Event()

    def slow(*given: Any, **named: Any) -> Application:
        began.set()
        may_end.wait(30)
        return make(*given, **named)

    monkeypatch.setattr(framework, "framework", slow)
    asgi: Any = create_app(app.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as http:
        first = asyncio.create_task(http.get("/docs"))
        await asyncio.to_thread(began.wait, 30)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        began.clear()
        second = asyncio.create_task(http.get("/docs"))
        await asyncio.wait(
            [second, asyncio.create_task(asyncio.to_thread(began.wait, 30))], return_when="FIRST_COMPLETED"
        )
        may_end.set()
        assert (await second).status_code == 200
