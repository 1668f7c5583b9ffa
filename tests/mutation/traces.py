"""Lines of the core that each test executes, and its time, to choose the tests for a mutant.

The tests are traced once (coverage's tracer), and a file of tests again after it has changed. For a module that has
changed since, only the tests that enter it are known.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.mutated import ROOT

KEPT = ROOT / "build/mutation-traces.json"
PLACES = ("tests/domain", "tests/usecases", "tests/http", "tests/contracts/test_movements.py")
_LOADED = "ignore::pytest.PytestAssertRewriteWarning"
"""Hypothesis is there before pytest: loaded once for all."""
OPTIONS = ("-q", "-x", "--assert=plain", "-s", "-n", "0", "-p", "no:cacheprovider", "-o", "timeout=0", "-W", _LOADED)
_OUTSIDE = {"server", "migrated_database", "migrated_file"}
"""Fixtures that start or fill a database."""

Lines = dict[str, str]
"""Executed lines by module: a set of bits, in hexadecimal digits."""


class Trace(msgspec.Struct):
    """CPU time and executed lines of one test."""

    cpu: float
    """Seconds, under the tracer."""
    lines: Lines


class Traces(msgspec.Struct):
    """Traces of all tests."""

    modules: dict[str, str] = {}
    """Digests of the modules that were traced."""
    files: dict[str, str] = {}
    """Digests of the files of tests."""
    loading: Lines = {}
    """Lines that are executed before the first test."""
    tests: dict[str, Trace] = {}


class Chosen(msgspec.Struct, frozen=True):
    """Tests by executed lines."""

    traces: Traces
    by_module: Mapping[str, Sequence[tuple[str, int]]]
    """The tests that enter it, each with the set of lines."""

    def executing(self, module: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that execute one of the lines. If the module has changed since, return all tests that enter
        it."""
        asked = sum(1 << line for line in lines) if self.traces.modules.get(module) == digest(module) else -1
        return {test for test, mask in self.by_module.get(module, ()) if mask & asked}

    def is_loading(self, module: str, lines: Iterable[int]) -> bool:
        """Whether one of the lines is executed before the first test."""
        mask = int(self.traces.loading.get(module, "0"), 16)
        return self.traces.modules.get(module) != digest(module) or any(mask >> line & 1 for line in lines)


@cache
def digest(file: str) -> str:
    """Return a digest by which a changed file is noticed."""
    return sha256((ROOT / file).read_bytes()).hexdigest()[:12]


def is_in_memory(item: pytest.Item) -> bool:
    """Whether a test needs nothing but this process."""
    storage = getattr(item, "callspec", None)
    away = storage is not None and storage.params.get("url", "memory") != "memory"
    marked = any(item.get_closest_marker(name) for name in ("drill", "browser"))
    return not (away or marked or _OUTSIDE & set(getattr(item, "fixturenames", ())))


def looked(places: Sequence[str] = PLACES) -> Chosen:
    """The traces of the tests below some folders, brought up to their files as they are."""
    traces = msgspec.json.decode(KEPT.read_bytes(), type=Traces) if KEPT.exists() else Traces()
    files = [str(each.relative_to(ROOT)) for place in places for each in _files(ROOT / place)]
    changed = [each for each in files if traces.files.get(each) != digest(each)]
    if changed:
        child = os.fork()
        if not child:
            os._exit(_look(traces, changed))
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("tests fail as they are")
        traces = msgspec.json.decode(KEPT.read_bytes(), type=Traces)
    traces.tests = {name: each for name, each in traces.tests.items() if name.startswith(tuple(places))}
    by_module: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for test, trace in traces.tests.items():
        for module, mask in trace.lines.items():
            by_module[module].append((test, int(mask, 16)))
        trace.lines = {}
    return Chosen(traces, by_module)


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.glob("test_*.py"))


def _look(traces: Traces, changed: list[str]) -> int:
    coverage: Any = import_module("coverage")  # the session of nox brings it
    tracer = coverage.Coverage(data_file=None, source=[str(ROOT / "core")], config_file=False, messages=False)
    plugin = _Looking(tracer)
    tracer.start()
    ended = pytest.main([*OPTIONS, *changed], plugins=[plugin])
    tracer.stop()
    if ended:
        return int(ended)
    data = tracer.get_data()
    lines: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for file in data.measured_files():
        module = str(Path(file).relative_to(ROOT))
        for line, contexts in data.contexts_by_lineno(file).items():
            for test in contexts:
                lines[test][module] |= 1 << line
    kept = {name: each for name, each in traces.tests.items() if name.partition("::")[0] not in changed}
    fresh = {
        name: Trace(cpu, {module: f"{mask:x}" for module, mask in lines[name].items()})
        for name, cpu in plugin.cpu.items()
    }
    known = {module: int(mask, 16) for module, mask in traces.loading.items()}
    loading = {module: f"{mask | known.get(module, 0):x}" for module, mask in lines[""].items()}
    modules = {str(each.relative_to(ROOT)) for each in (ROOT / "core").rglob("*.py")}
    seen = {each: digest(each) for each in modules} if not kept else traces.modules
    files = {**traces.files, **{each: digest(each) for each in changed}}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_bytes(msgspec.json.encode(Traces(seen, files, loading, {**kept, **fresh})))
    return 0


class _Looking:
    """A plugin of pytest."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer
        self.cpu: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [each for each in items if is_in_memory(each)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._tracer.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.cpu[item.nodeid] = round(time.process_time() - began, 4)
            self._tracer.switch_context("")
