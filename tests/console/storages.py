"""A storage as an operator's machine meets it: it answers late, is away, or raises what no port promised."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

Gate = Callable[[], Awaitable[None]]
"""Gate before every read and commit; it may wait or raise."""


class Gated:
    """Whatever it is put around, with each of its awaits behind a gate: a storage, its units, their repositories."""

    def __init__(self, inner: Any, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._behind(found) if inspect.isroutine(found) else found

    def __getitem__(self, kind: Any) -> "Gated":
        return Gated(self._inner[kind], self._gate)

    async def __aenter__(self) -> Self:
        return type(self)(await self._inner.__aenter__(), self._gate)

    async def __aexit__(self, *left: object) -> Any:
        return await self._inner.__aexit__(*left)

    def _behind(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            made = method(*args, **named)
            if inspect.isawaitable(made):
                return self._later(made)
            if hasattr(made, "__aiter__"):
                return self._each(made)
            return Gated(made, self._gate) if hasattr(made, "__aenter__") else made

        return call

    async def _later(self, made: Awaitable[Any]) -> Any:
        try:
            await self._gate()
        except BaseException:
            if inspect.iscoroutine(made):
                made.close()
            raise
        return await made

    async def _each(self, made: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in made:
            await self._gate()
            yield each
