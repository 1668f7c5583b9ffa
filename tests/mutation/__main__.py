"""Mutants of every line: show each small wrong change of the core's modules (edits.py) to the tests that execute it
(`nox -s mutation -- core/domain/ledger.py core/usecases/refunds`; docs/reliability.md "Mutants of every line").

The tests are those of the domain, the use cases and HTTP that need nothing but memory, the quickest first, until one
fails. Results are stored in build/mutation.jsonl and count until the module changes, so a run continues after the
last one. `--again` shows the survivors to the tests once more, and `--list` lists them.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.mutated import ROOT
from tests.mutation.edits import edits
from tests.mutation.runs import KEPT, Run, Task, Tried
from tests.mutation.traces import PLACES, digest, looked


def known() -> dict[tuple[str, str, str], Tried]:
    """The last word of each mutant of the modules as they are."""
    lines = KEPT.read_bytes().splitlines() if KEPT.exists() else []
    now = dict[str, str]()
    found = dict[tuple[str, str, str], Tried]()
    for each in (msgspec.json.decode(line, type=Tried) for line in lines):
        if each.module not in now:
            now[each.module] = digest(each.module) if (ROOT / each.module).exists() else ""
        if each.of == now[each.module]:
            found[each.module, each.of, each.name] = each
    return found


def main(given: list[str]) -> int:
    """Try the named modules, or those below a folder, and report surviving mutants; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("places", nargs="+", help="modules or folders, as core/domain/ledger.py")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many; a later run goes on")
    parser.add_argument("--budget", type=float, default=8, help="seconds of CPU that a mutant's tests take at most")
    parser.add_argument("--tests", nargs="+", default=PLACES, help="the folders of tests that mutants are shown to")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="the survivors, and no others")
    parser.add_argument("--list", action="store_true", help="try nothing")
    asked = parser.parse_args(given)
    modules = [each for place in asked.places for each in _modules(place)]
    tasks, before = list[Task](), known()
    for module in modules:
        source, of = (ROOT / module).read_text("utf-8"), digest(module)
        for edit in edits(source):
            word = before.get((module, of, edit.name))
            if (word is None) != asked.again and (word is None or word.by is None):
                tasks.append(Task(module, of, edit))
    if tasks and not asked.list:
        chosen, ends_at = looked(asked.tests), time.monotonic() + asked.seconds
        children = list[int]()
        for number in range(asked.jobs):
            child = os.fork()
            if not child:
                Run(tasks[number :: asked.jobs], chosen, asked.tests, asked.budget, ends_at).run()
                os._exit(0)
            children.append(child)
        ended = [os.waitpid(child, 0)[1] for child in children]
        if any(ended):
            raise RuntimeError("not all could be tried")
    return _told(modules, [each for each in known().values() if each.module in modules], len(tasks))


def _told(modules: Iterable[str], words: list[Tried], asked: int) -> int:
    print(f"{'module':60} mutants noticed survived unseen")
    for module in modules:
        of = [each for each in words if each.module == module]
        if of:
            counts = Counter("noticed" if each.by else "survived" if each.tests else "unseen" for each in of)
            print(f"{module:60} {len(of):7} {counts['noticed']:7} {counts['survived']:8} {counts['unseen']:6}")
    survivors = sorted((each for each in words if each.by is None), key=lambda each: (each.module, each.line))
    for each in survivors:
        print(f"{each.module}:{each.line} [{each.tests}] {each.name.partition(':')[0]}: {each.wrong}")
    print(f"{len(words)} known, {len(survivors)} survived; {asked} were to be tried; all in {KEPT.relative_to(ROOT)}")
    return 1 if survivors else 0


def _modules(place: str) -> list[str]:
    path = ROOT / place
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [str(each.relative_to(ROOT)) for each in found if Path(each).name != "__init__.py"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
