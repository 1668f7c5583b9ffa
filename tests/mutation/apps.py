"""Processes for mutants: a fork in which a function or a module is wrong, and which runs tests until one fails.

A mutant of a function's body runs in a fork of a process that has loaded the app and collected all tests: its code
replaces the right code in the function object, wherever that is known. A mutant of code that runs while the module
is loaded (a constant, a default) runs in a fork that has loaded nothing of ours yet: the mutated module is loaded
first, then everything else. That takes a second; the first kind takes some hundredths.
"""

import functools
import gc
import os
import resource
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from itertools import zip_longest
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from tests.mutated import Finder

from .traces import OPTIONS, is_in_memory

_MEMORY = 6 << 30
UNFIT = "unfit"
"""The mutant cannot live so: no function is to be found that its code would fit, or no test loads its module."""

Word = str | None
"""A fork's result: the test that failed, or the reason why the fork ended; None if all tests passed."""

Place = tuple[str, str, int]
"""Key of a function's code: its file below the core, its name, and its first line."""


def forked(live: Callable[[Callable[[str], None]], None]) -> Word:
    """Run `live` in a fork and return the fork's result. `live` returns, or says a word, which ends the fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

            def say(word: str) -> None:
                os.write(writing, word.encode()[:4000])
                os._exit(1)

            live(say)
            os._exit(0)
        except BaseException as fault:  # noqa: BLE001 - whatever it is, the mutant was noticed
            os.write(writing, f"raised {type(fault).__name__}".encode())
        finally:
            os._exit(1)
    os.close(writing)
    ended = os.waitpid(child, 0)[1]
    with os.fdopen(reading) as pipe:
        word = pipe.read()
    return None if ended == 0 else word or f"ended with {ended}"


class Plugin:
    """A plugin of pytest, in the fork of a mutant and above it: the same examples for every mutant, none made smaller,
    and the first failure ends the process."""

    def __init__(self, cpu: Mapping[str, float]) -> None:
        self._cpu = cpu
        self.say: Callable[[str], None] | None = None

    def pytest_configure(self) -> None:
        settings.register_profile(
            "mutation",
            settings.default,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("mutation")
        # Hypothesis would parse every module for constants, in each fork anew.
        providers.is_local_module_file = lambda _: False  # type: ignore[assignment,attr-defined]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limit a test to 10 times its usual CPU time, and to wall time enough for a busy machine."""
        if self.say is not None:
            known = self._cpu.get(nodeid, 1)
            signal.setitimer(signal.ITIMER_PROF, 1 + 10 * known)
            signal.alarm(int(60 + 60 * known))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Format no failures: that takes longer than most tests."""
        skipped = call.excinfo is not None and isinstance(call.excinfo.value, pytest.skip.Exception)
        if self.say is not None and call.excinfo is not None and not skipped:
            self.say(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if self.say is not None and report.failed:
            self.say(f"loading {report.nodeid}")


# Mutants of a function's body.


class App(Plugin):
    """A pytest plugin that lets pytest collect all tests, and works in place of running them."""

    def __init__(self, cpu: Mapping[str, float], places: Sequence[str], work: "Callable[[App], None]") -> None:
        super().__init__(cpu)
        self._places, self._work = places, work
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[Place, list[FunctionType]] = defaultdict(list)
        self._caches: list[Any] = []

    def run(self) -> int:
        """Collect, then work."""
        return int(pytest.main([*OPTIONS, *self._places], plugins=[self]))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {each.nodeid: each for each in session.items if is_in_memory(each)}
        known = sorted(self._items, key=lambda name: not name.startswith("tests/http/test_payments"))
        for item in [self._items[each] for each in known[:1]]:  # one test fills everything that is made once
            item.ihook.pytest_runtest_protocol(item=item, nextitem=session)
        gc.collect()
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and "/core/" in each.__code__.co_filename:
                self._functions[_place(each.__code__)].append(each)
            elif isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("cambist.core"):
                self._caches.append(each)
        gc.freeze()
        self._work(self)
        return True

    def lives(self, right: CodeType, wrong: CodeType, tests: Sequence[str]) -> Word:
        """Return the tests' result for a mutant; UNFIT if it cannot run in this process."""
        swaps = list(_differing(right, wrong))
        if not swaps or any(not self._known(code) for code, _ in swaps):
            return UNFIT
        return self._ran(swaps, tests)

    def passes(self, test: str) -> bool:
        """Whether a test passes where nothing is mutated."""
        return self._ran([], [test]) is None

    def _ran(self, swaps: Sequence[tuple[CodeType, CodeType]], tests: Sequence[str]) -> Word:
        chosen = [self._items[each] for each in tests if each in self._items]

        def live(say: Callable[[str], None]) -> None:
            self.say = say
            for was, code in swaps:
                for function in self._known(was):
                    if len(function.__code__.co_freevars) != len(code.co_freevars):
                        say(UNFIT)
                    function.__code__ = code
            for cache in self._caches:
                cache.cache_clear()
            for item, after in zip_longest(chosen, chosen[1:]):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=after)

        return forked(live)

    def _known(self, code: CodeType) -> list[FunctionType]:
        return self._functions.get(_place(code), [])


def _place(code: CodeType) -> Place:
    return code.co_filename.rpartition("/core/")[2], code.co_qualname, code.co_firstlineno


def _differing(right: CodeType, wrong: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Return the outermost functions whose code differs; nothing if the code executed on loading differs as well."""
    ours, theirs = _inner(right), _inner(wrong)
    if right.co_code != wrong.co_code or len(ours) != len(theirs) or _plain(right) != _plain(wrong):
        return
    for was, code in zip(ours, theirs, strict=True):
        if was.co_flags & CO_OPTIMIZED:
            if was != code:
                yield was, code
        else:
            yield from _differing(was, code)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _plain(code: CodeType) -> list[Any]:
    return [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)] + [*code.co_names]


# Mutants of code that runs on loading.


class _Loading(Plugin):
    """Puts the wrong text before all that pytest loads: its own way in is there by then, and would come first."""

    def __init__(self, cpu: Mapping[str, float], module: str, text: str) -> None:
        super().__init__(cpu)
        self._name = f"cambist.{module.removesuffix('.py').replace('/', '.')}"
        self._finder = Finder({module: text})

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        sys.meta_path.insert(0, self._finder)

    def is_loaded(self) -> bool:
        """Whether the wrong text is what the tests saw."""
        loaded, meant = sys.modules.get(self._name), self._finder.find_spec(self._name)
        spec = getattr(loaded, "__spec__", None)
        return spec is not None and meant is not None and spec.loader is meant.loader


def lives_from_the_start(module: str, text: str, tests: Sequence[str], cpu: Mapping[str, float]) -> Word:
    """Return the tests' result for a mutant for which everything is loaded anew; UNFIT if no test loads its module."""
    plugin = _Loading(cpu, module, text)

    def live(say: Callable[[str], None]) -> None:
        plugin.say = say
        alone = ["--noconftest"] if all(each.startswith("tests/domain/") for each in tests) else []
        ended = pytest.main([*OPTIONS, "-p", "no:cambist", *alone, *tests], plugins=[plugin])
        if ended:  # before any test reported: a module that pytest loads first cannot be loaded
            say(f"pytest ended with {ended}")
        if not plugin.is_loaded():
            say(UNFIT)

    return forked(live) if tests else UNFIT
