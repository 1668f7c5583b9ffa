"""Wrappers around adapters: they intercept operations, and pass all other attributes through."""

from typing import Any, Protocol, runtime_checkable

from cambist.frontends.layers.wrapping import Call, Does, wrapped


@runtime_checkable
class Answers(Protocol):
    async def ask(self, question: str) -> str: ...


@runtime_checkable
class Sings(Protocol):
    async def sing(self) -> str: ...


class Oracle:
    name = "oracle"

    def __init__(self) -> None:
        self.asked = 0
        self.mood = "calm"

    async def ask(self, question: str, *, loudly: bool = False) -> str:
        self.asked += 1
        return question.upper() if loudly else question

    async def rest(self) -> str:
        return "rested"

    def draw(self) -> str:
        return "drawn"

    def __repr__(self) -> str:
        return "<oracle>"


OPERATIONS = {"ask": Does.READ, "sing": Does.WRITE}


def layer(name: str, call: Call) -> Call:
    async def ask(*given: Any, **named: Any) -> Any:
        return name, await call(*given, **named)

    return ask


async def test_an_operation_goes_through_the_layer_with_all_that_it_is_given() -> None:
    adapter = Oracle()
    seen: Any = wrapped(adapter, OPERATIONS, layer)
    assert await seen.ask("why", loudly=True) == ("ask", "WHY")
    assert adapter.asked == 1


async def test_all_else_is_the_adapter_s() -> None:
    adapter = Oracle()
    seen: Any = wrapped(adapter, OPERATIONS, layer)
    assert await seen.rest() == "rested"
    assert (seen.draw(), seen.name, seen.mood, repr(seen)) == ("drawn", "oracle", "calm", "<oracle>")
    adapter.mood = "dark"
    assert seen.mood == "dark"


async def test_layers_lie_over_one_another() -> None:
    seen: Any = wrapped(wrapped(Oracle(), OPERATIONS, layer), OPERATIONS, layer)
    assert await seen.ask("why") == ("ask", ("ask", "why"))


async def test_method_replaced_on_the_adapter_later_is_called() -> None:
    adapter = Oracle()
    seen: Any = wrapped(adapter, OPERATIONS, layer)

    async def silent(question: str) -> str:
        return ""

    adapter.ask = silent  # type: ignore[method-assign, assignment]  # a spy on this one object
    assert await seen.ask("why") == ("ask", "")


def test_wrapped_adapter_has_the_same_capabilities() -> None:
    seen: object = wrapped(Oracle(), OPERATIONS, layer)
    assert isinstance(seen, Answers)
    assert not isinstance(seen, Sings)
