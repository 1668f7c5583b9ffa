"""`nox -s mutants` runs them, which takes minutes. Here: each mutant still applies to the present code."""

import ast

from tests.mutants import MUTANTS, ROOT, Mutant
from tests.tables import table


@table("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    ast.parse(mutant.applied(ROOT))
