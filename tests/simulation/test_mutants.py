"""`nox -s simulate_mutants` runs them, which takes hours. Here: each mutant still applies to the present code."""

import ast

from tests.mutants import ROOT
from tests.simulation.mutants.subjects import KNOWN
from tests.simulation.mutants.table import MUTANTS, ROOMS
from tests.tables import table


@table("name", MUTANTS)
def test_each_mutant_fits_the_code_as_it_is(name: str) -> None:
    for text in MUTANTS[name].applied(ROOT).values():
        ast.parse(text)


def test_no_two_mutants_have_one_name() -> None:
    assert sum(map(len, ROOMS)) == len(MUTANTS)


def test_subjects_are_of_mutants_that_there_are() -> None:
    assert MUTANTS.keys() >= KNOWN


def test_page_says_what_was_found_for_each_mutant() -> None:
    page = (ROOT / "docs/reliability.md").read_text("utf-8")
    section = page.partition("\n## Mutants\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[1:] == list(MUTANTS)
