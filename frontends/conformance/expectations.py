"""Checks whose failure says the broken rule in words, for the suites of this package."""

from types import TracebackType
from typing import Generic, Self, TypeVar

import pytest

F = TypeVar("F", bound=Exception)


class must_answer:  # noqa: N801 - reads as a call
    """Block of calls of an adapter that raise nothing. Otherwise the test fails with the rule. Checks inside the
    block keep their own messages."""

    def __init__(self, rule: str) -> None:
        self._rule = rule

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        _check(self._rule, raised)


class must_play(must_answer):  # noqa: N801 - reads as a call
    """Block of calls of a harness; if one raises, it fails with what the harness has to play."""

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if isinstance(raised, Exception):
            _fail(self._rule, f"the harness raised {type(raised).__name__}", raised)


class must_raise(Generic[F]):  # noqa: N801 - reads as a call
    """Block of calls of an adapter that end with one of these errors. Otherwise the test fails with the rule. `reason`
    is that of a refusal."""

    value: F
    """The error that ended the block."""
    _may = False

    def __init__(self, rule: str, *faults: type[F], reason: str | None = None) -> None:
        self._rule, self._faults, self._reason = rule, faults, reason

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        __tracebackhide__ = True
        expected = " or ".join(fault.__name__ for fault in self._faults)
        if isinstance(raised, self._faults):
            self.value = raised
            reason = getattr(raised, "reason", None)
            if self._reason not in (None, reason):
                _fail(self._rule, f"the reason of the refusal is {reason!r} instead of {self._reason!r}", raised)
            return True
        if raised is None and not self._may:
            _fail(self._rule, f"the adapter raised no {expected}", None)
        _check(self._rule, raised, f" instead of {expected}")
        return False


class may_raise(must_raise[F]):  # noqa: N801 - reads as a call
    """As `must_raise`, but the block may also raise nothing."""

    _may = True


def _check(rule: str, raised: BaseException | None, instead: str = "") -> None:
    __tracebackhide__ = True
    # A check inside the block, a skip or a cancelled call passes through.
    if isinstance(raised, Exception) and not isinstance(raised, AssertionError):
        _fail(rule, f"the adapter raised {type(raised).__name__}{instead}", raised)


def _fail(rule: str, found: str, cause: BaseException | None) -> None:
    """Show the traceback of the adapter's exception first, and the broken rule last."""
    __tracebackhide__ = True
    raise pytest.fail.Exception(f"{rule}: {found}") from cause
