"""What is left out of the framework so that the application is made fast (frontends/http/door/routing.py)."""

from litestar import get

from cambist.frontends.http.door.routing import Application, Router


@get("/here", sync_to_thread=False)
def here() -> str:
    return "here"


def test_it_brings_no_plugins_for_models_that_are_not_used() -> None:
    """Should the framework come to ask for its plugins in another way, this says so."""
    app = Application(route_handlers=[here], openapi_config=None, logging_config=None)
    rooms = {type(plugin).__module__ for plugin in app.plugins}
    assert not [room for room in rooms if "pydantic" in room or "attrs" in room]


def test_a_router_is_registered_as_it_is_and_not_as_a_copy() -> None:
    inner = Router("/inner", route_handlers=[here])
    outer = Router("/outer", route_handlers=[inner])
    app = Application(route_handlers=[outer], openapi_config=None, logging_config=None)
    assert [route.path for route in app.routes] == ["/outer/inner/here"]
    assert (inner.owner, outer.owner) == (outer, app)
