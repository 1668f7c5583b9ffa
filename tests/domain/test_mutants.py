"""`nox -s mutants` tries them, which takes minutes; here: they are still changes of the code as it is."""

import ast

from tests.mutants import MUTANTS, ROOT, Mutant
from tests.tables import table


@table("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    ast.parse(mutant.applied(ROOT))
