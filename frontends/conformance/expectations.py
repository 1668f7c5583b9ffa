"""Checks whose failure says the broken rule in words, for the suites of this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, NoReturn, TypeVar

import pytest

from ...ports.faults import Fault

F = TypeVar("F", bound=Fault)


class Raised(Generic[F]):
    """The fault that a block of `must_raise` raised, from the end of the block on."""

    value: F


@contextmanager
def must_raise(rule: str, *faults: type[F], reason: str | None = None) -> Iterator[Raised[F]]:
    """Fail with this rule unless the block raises one of the faults, and the refusal has this reason."""
    __tracebackhide__ = True
    raised: Raised[F] = Raised()
    expected = " or ".join(each.__name__ for each in faults)
    try:
        yield raised
    except faults as fault:
        raised.value = fault
    except AssertionError:
        raise
    except Exception as other:  # noqa: BLE001 - an adapter may raise anything
        _fail(rule, f"the adapter raised {type(other).__name__} instead of {expected}", other)
    else:
        _fail(rule, f"the adapter raised no {expected}")
    found = getattr(raised.value, "reason", None)
    if reason is not None and found != reason:
        _fail(rule, f"the reason of the refusal is {found!r} instead of {reason!r}")


@contextmanager
def must_answer(rule: str, *unless: type[Fault]) -> Iterator[None]:
    """Fail with this rule if the block raises anything but the faults of `unless`, which end the block."""
    __tracebackhide__ = True
    try:
        yield
    except unless:
        return
    except AssertionError:
        raise
    except Exception as other:  # noqa: BLE001 - an adapter may raise anything
        _fail(rule, f"the adapter raised {type(other).__name__}", other)


def _fail(rule: str, found: str, cause: Exception | None = None) -> NoReturn:
    __tracebackhide__ = True
    raise pytest.fail.Exception(f"{rule}: {found}") from cause
