"""Mutants of every line: cosmic-ray's operators over modules of the core, each against the tests of its module
(`nox -s mutation -- core/domain/ledger.py core/domain/exchanges`; docs/reliability.md "Mutants of every line").

Each mutant is a forked process in which that one module is loaded as mutated, and the tests that import it are run. So
it costs what they cost. What was found is kept in build/mutation.jsonl, and a run goes on where the last one ended: it
counts until module or tests change.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest
from hypothesis.internal.conjecture import providers

from tests.mutated import ROOT, Finder

KEPT = ROOT / "build/mutation.jsonl"
LIMIT = 120
"""Seconds after which a mutant that does not end counts as noticed: load is no end."""

_REPLACED = ("Add_Sub", "Sub_Add", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "Mod_Mul")
_COMPARED = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")
OPERATORS = (
    *(f"ReplaceBinaryOperator_{each}" for each in _REPLACED),
    *(f"ReplaceComparisonOperator_{each}" for each in _COMPARED),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop"),
    "ReplaceUnaryOperator_Delete_Not",
)
"""Those of cosmic-ray's that a slip could be; of the others most raise at once."""

_LOADED = "ignore::pytest.PytestAssertRewriteWarning"
"""Hypothesis is there before pytest: loaded once for all."""

BESIDES = {
    "core/domain/movements.py": ("tests/usecases/test_ledger.py",),
    "core/domain/payments/transfers.py": ("tests/http/test_transfers.py",),
}
"""Modules of which no test of the domain speaks, and who does."""


class Tried(msgspec.Struct, frozen=True):
    """What became of a mutant."""

    module: str
    of: str
    """Digest of module and tests."""
    operator: str
    occurrence: int
    line: int
    wrong: str
    """The changed line."""
    survived: bool


def fitting(module: str) -> list[list[str]]:
    """The tests that a mutant of a module has to pass: those of the domain that import it, first those named after it,
    which notice most."""
    name = f"cambist.{module.removesuffix('.py').replace('/', '.')} import"
    found = [each for each in sorted((ROOT / "tests/domain").glob("test_*.py")) if name in each.read_text("utf-8")]
    named = [each for each in found if each.stem.removeprefix("test_") == Path(module).stem]
    rest = [str(each.relative_to(ROOT)) for each in found if each not in named] + list(BESIDES.get(module, ()))
    return [each for each in ([str(one.relative_to(ROOT)) for one in named], rest) if each]


def mutants(source: str) -> Iterator[tuple[str, int, str]]:
    """Operator, occurrence and text of every mutant."""
    from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found]

    known = {each.name: each.load()() for each in entry_points(group="cosmic_ray.operator_providers")}["core"]
    for name in OPERATORS:
        operator = known[name]()
        number = 0
        while (text := mutate_code(source.encode(), operator, number)) is not None:
            yield name, number, text
            number += 1


class _Plugin(Finder):
    """Found by pytest's own way in, because pytest looks for the package first: it is a plugin, too."""

    def pytest_sessionstart(self) -> None:
        sys.meta_path.insert(0, self)


def passes(module: str, text: str, tests: Sequence[str]) -> bool:
    """Whether the tests pass with this text in the module's place."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    ended = 1
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        signal.alarm(LIMIT)
        alone = ["--noconftest", "-p", "no:cambist"] if all(each.startswith("tests/domain/") for each in tests) else []
        ended = pytest.main(
            ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-W", _LOADED, *alone, *tests],
            plugins=[_Plugin({module: text})],
        )
    finally:
        os._exit(ended)


def tried(module: str, known: set[tuple[str, str, str, int]]) -> Iterator[Tried]:
    """Try the mutants of a module that are not known. Raises: RuntimeError where its tests fail as it is."""
    source, groups = (ROOT / module).read_text("utf-8"), fitting(module)
    if not groups:
        print(f"{module}: no test imports it")
        return
    texts = [(ROOT / each).read_text("utf-8") for tests in groups for each in tests]
    of = sha256("".join([source, *texts]).encode()).hexdigest()[:12]
    right = source.splitlines()
    fresh = [each for each in mutants(source) if (module, of, each[0], each[1]) not in known]
    if fresh and not all(passes(module, source, tests) for tests in groups):
        raise RuntimeError(f"{module}: its tests fail as it is")
    for operator, occurrence, text in fresh:
        lines = text.splitlines()
        line = next((number for number, pair in enumerate(zip(right, lines, strict=False)) if pair[0] != pair[1]), 0)
        if right[line].startswith("class "):
            continue  # how a struct is made is for the type checkers
        survived = all(passes(module, text, tests) for tests in groups)
        yield Tried(module, of, operator, occurrence, line + 1, lines[line].strip(), survived)


def main(given: list[str]) -> int:
    """Try the modules that are named, or those below a folder, and tell who survived; 1 where one did."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("places", nargs="+", help="modules or folders, as core/domain/ledger.py")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many; a later run goes on")
    asked = parser.parse_args(given)
    providers.is_local_module_file = lambda _: False  # type: ignore[assignment,attr-defined]  # it would read all modules each time
    KEPT.parent.mkdir(exist_ok=True)
    before = [msgspec.json.decode(line, type=Tried) for line in KEPT.read_bytes().splitlines()] if KEPT.exists() else []
    known = {(each.module, each.of, each.operator, each.occurrence) for each in before}
    ends_at, counts, survivors = time.monotonic() + asked.seconds, Counter[str](), list[Tried]()
    with KEPT.open("ab") as kept:
        for module in (each for place in asked.places for each in _modules(place)):
            for each in tried(module, known):
                kept.write(msgspec.json.encode(each) + b"\n")
                kept.flush()
                counts["survived" if each.survived else "noticed"] += 1
                survivors += [each] if each.survived else []
                if time.monotonic() > ends_at:
                    break
    for each in survivors:
        print(f"{each.module}:{each.line} {each.operator}: {each.wrong}")
    print(f"{counts['noticed']} noticed, {counts['survived']} survived; {len(known)} were known, all in {KEPT}")
    return 1 if survivors else 0


def _modules(place: str) -> list[str]:
    path = ROOT / place
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [str(each.relative_to(ROOT)) for each in found if each.name != "__init__.py"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
