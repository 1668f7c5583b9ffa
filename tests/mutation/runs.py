"""A worker's share of the mutants: choose the tests for each mutant, and store the result."""

import os
import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from types import CodeType
from typing import TypeVar

import msgspec

from tests.mutated import ROOT

from .apps import UNFIT, App, Word, lives_from_the_start
from .edits import Edit
from .traces import Chosen

KEPT = ROOT / "build/mutation.jsonl"
T = TypeVar("T")


class Tried(msgspec.Struct, frozen=True):
    """Result of a mutant."""

    module: str
    of: str
    """Digest of the module."""
    name: str
    line: int
    wrong: str
    """The line, and the text that replaced part of it."""
    by: str | None
    """The test that noticed the mutant, or another reason why the fork ended; None if it survived."""
    tests: int
    """Number of tests chosen for it."""


class Task(msgspec.Struct, frozen=True):
    """A mutant that is to be tried."""

    module: str
    of: str
    edit: Edit

    @property
    def lines(self) -> range:
        """Lines of the mutated statement."""
        return range(self.edit.statement[0], self.edit.statement[1] + 1)

    def tried(self, by: str | None, tests: int) -> Tried:
        """Return the mutant's result."""
        right = source_of(self.module).splitlines()[self.edit.line - 1].strip()
        wrong = f"{right}  =>  {self.edit.wrong}"
        return Tried(self.module, self.of, self.edit.name, self.edit.line, wrong, by, tests)


class Run:
    """Tries mutants, one after the other."""

    def __init__(self, tasks: list[Task], chosen: Chosen, places: Sequence[str], budget: float, ends_at: float) -> None:
        self._tasks, self._chosen, self._places = tasks, chosen, places
        self._budget, self._ends_at = budget, ends_at
        self._cpu = {name: each.cpu for name, each in chosen.traces.tests.items()}
        self._noticing: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=12))
        self._sound: dict[str, bool] = {}
        """Whether a test passes without a mutant; only of tests that noticed a mutant."""
        self._counts = Counter[str]()
        self._began = time.monotonic()

    def run(self) -> None:
        """Try all mutants, beginning with mutants of function bodies, for which no module is loaded anew.

        Raises: RuntimeError where the tests cannot be collected.
        """
        fresh = [each for each in self._tasks if each.edit.names]
        inside = [each for each in self._tasks if not each.edit.names]
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            ended = App(self._cpu, self._places, lambda app: self._inside(app, inside, writing)).run() if inside else 0
            os._exit(ended)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            fresh += [inside[int(line)] for line in pipe]
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the tests could not be collected")
        sound = set[str]()
        for task in self._timely(fresh):
            tests = self._tests(task)
            if task.module not in sound:
                word = lives_from_the_start(task.module, source_of(task.module), tests, self._cpu)
                if word == UNFIT:
                    self._keep(task, None, [])
                    continue
                if word is not None:
                    raise RuntimeError(f"{task.module} is not mutated, and {word} fails")
                sound.add(task.module)
            word = lives_from_the_start(task.module, task.edit.text, tests, self._cpu)
            self._keep(task, *((None, []) if word == UNFIT else (word, tests)))

    def _inside(self, app: App, tasks: list[Task], later: int) -> None:
        for number, task in enumerate(self._timely(tasks)):
            tests = self._tests(task)
            right, wrong = (_compiled(each, task.module) for each in (source_of(task.module), task.edit.text))
            word = app.lives(right, wrong, tests) if tests else None
            while word is not None and "::" in word and not self._is_sound(app, word):
                tests.remove(word)
                word = app.lives(right, wrong, tests)
            if word == UNFIT or (word is None and tests and self._chosen.is_loading(task.module, task.lines)):
                os.write(later, b"%d\n" % number)
            else:
                self._keep(task, word, tests)

    def _is_sound(self, app: App, test: str) -> bool:
        if test not in self._sound:
            self._sound[test] = app.passes(test)
            if not self._sound[test]:
                print(f"{test} fails where nothing is mutated: it is left out", flush=True)
        return self._sound[test]

    def _timely(self, tasks: Iterable[T]) -> Iterator[T]:
        for each in tasks:
            if time.monotonic() > self._ends_at:
                return
            yield each

    def _tests(self, task: Task) -> list[str]:
        """Choose tests for the mutant within the CPU budget: first the quick ones that noticed the module's last
        mutants, then tests of the domain, then the quickest."""
        if task.edit.names:
            found = {test for module, lines in _using(task) for test in self._chosen.executing(module, lines)}
        else:
            found = self._chosen.executing(task.module, task.lines)
        quick = (each for each in self._noticing[task.module] if self._cpu[each] <= self._budget / 20)
        first = sorted(found.intersection(quick), key=self._place)
        tests, left = list[str](), self._budget
        for test in [*first, *sorted(found.difference(first), key=self._place)]:
            if not self._sound.get(test, True):
                continue
            left -= self._cpu[test]
            if left < 0 and tests:
                break
            tests.append(test)
        return tests

    def _place(self, test: str) -> tuple[bool, float]:
        return not test.startswith("tests/domain/"), self._cpu[test]

    def _keep(self, task: Task, word: Word, tests: list[str]) -> None:
        if word is not None and "::" in word:
            self._noticing[task.module].appendleft(word)
        with KEPT.open("ab") as kept:
            kept.write(msgspec.json.encode(task.tried(word, len(tests))) + b"\n")
        self._counts["survived" if word is None else "noticed"] += 1
        if (done := self._counts.total()) % 100 == 0:
            left = (time.monotonic() - self._began) / done * (len(self._tasks) - done) / 60
            print(f"{done} of {len(self._tasks)}, {self._counts['survived']} survived, {left:.0f} min left", flush=True)


@cache
def source_of(module: str) -> str:
    """Return the module's source."""
    return (ROOT / module).read_text("utf-8")


@cache
def _sources() -> dict[str, list[str]]:
    return {str(each.relative_to(ROOT)): each.read_text("utf-8").splitlines() for each in (ROOT / "core").rglob("*.py")}


def _using(task: Task) -> Iterator[tuple[str, list[int]]]:
    """The lines of the core that name what the mutant binds; where its own module alone has them, all of that."""
    word = re.compile(rf"\b({'|'.join(map(re.escape, task.edit.names))})\b")
    for module, lines in _sources().items():
        found = [number for number, line in enumerate(lines, 1) if word.search(line)]
        if module == task.module:
            found = list(range(1, len(lines) + 1))
        if found:
            yield module, found


@cache
def _compiled(text: str, module: str) -> CodeType:
    return compile(text, str(ROOT / "cambist" / module), "exec", dont_inherit=True)
