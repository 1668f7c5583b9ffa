"""Rules that are tables: one test tries all rows. pytest takes some milliseconds for each test of its own, a hundred
times as long as a row of a pure rule."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])
Row = dict[str, Any]


def table(names: str | Sequence[str], rows: Iterable[Any], *, ids: Any = None) -> Callable[[F], F]:
    """Run a test for every row, also after a row failed, and report each failing row.

    Takes the arguments of `pytest.mark.parametrize`; `ids` only makes the report more readable. All rows share the
    fixtures, so use it for rules that change nothing or create their own data. Two tables over a test run every pair.
    """
    words = [each.strip() for each in names.split(",")] if isinstance(names, str) else [*names]
    read = [_row(words, row) for row in rows]
    if not read:
        raise ValueError(f"a table without rows: {', '.join(words)}")

    def over(test: F) -> F:
        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in words]
        if len(left) + len(words) != len(signature.parameters):
            raise TypeError(f"{test.__name__} does not take all of {', '.join(words)}")
        every: Any = (_awaited if inspect.iscoroutinefunction(test) else _called)(test, read)
        every.__signature__ = signature.replace(parameters=left)
        return every  # type: ignore[no-any-return]

    return over


def _called(test: Callable[..., Any], rows: list[Row]) -> Callable[..., None]:
    @wraps(test)
    def every(*args: Any, **kwargs: Any) -> None:
        failures: list[BaseException] = []
        for row in rows:
            with _telling(row, failures):
                test(*args, **kwargs, **row)
        _raise(test.__name__, failures)

    return every


def _awaited(test: Callable[..., Any], rows: list[Row]) -> Callable[..., Any]:
    @wraps(test)
    async def every(*args: Any, **kwargs: Any) -> None:
        failures: list[BaseException] = []
        for row in rows:
            with _telling(row, failures):
                await test(*args, **kwargs, **row)
        _raise(test.__name__, failures)

    return every


def _row(names: list[str], given: Any) -> Row:
    marks = getattr(given, "marks", None)  # for a `pytest.param`
    values = given if marks is None else given.values
    if marks:
        raise TypeError("a row of a table has no marks")
    return dict(zip(names, (values,) if marks is None and len(names) == 1 else values, strict=True))


@contextmanager
def _telling(row: Row, failures: list[BaseException]) -> Iterator[None]:
    """Keep how this row fails, and with what."""
    try:
        yield
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as failure:  # noqa: BLE001 - all are told at the end
        failure.add_note(f"in the row {row!r:.300}")
        if isinstance(failure, pytest.skip.Exception):  # it would pass for all of the test
            failure = AssertionError(f"a row of a table cannot be skipped: {row!r:.300}")
        failures.append(failure)


def _raise(name: str, failures: list[BaseException]) -> None:
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} rows of {name}", failures)
