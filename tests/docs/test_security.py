"""The threat model cites the test that holds each line; each citation leads to a test that there is."""

import ast
import re
from functools import cache

from tests.docs.test_blocks import ROOT
from tests.tables import table

_PAGE = (ROOT / "docs/security.md").read_text("utf-8")
_LINES = [line for line in _PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| Threat", "|---"))]
_CITED = re.compile(r"`(tests/[a-z_/]+\.py)::(\w+)`")


@cache
def names(path: str) -> frozenset[str]:
    """The tests of a file, in classes or not."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


@table("line", _LINES, ids=lambda line: line[2:42])
def test_each_threat_names_a_defence_and_tests_that_there_are(line: str) -> None:
    threat, defence, held_by = (cell.strip() for cell in line.strip("|").split("|"))
    assert threat
    assert defence
    cited = _CITED.findall(held_by)
    assert cited, "no test holds it"
    assert _CITED.sub("", held_by).strip(", ") == "", "what holds a line is a test: `tests/….py::name`"
    missing = [(path, name) for path, name in cited if not (ROOT / path).exists() or name not in names(path)]
    assert missing == []


def test_there_are_lines_for_everybody() -> None:
    assert len(_LINES) > 40
    assert len(re.findall(r"^## ", _PAGE, re.MULTILINE)) == 10
