"""Edits made of a source, and the parts of it that are left alone."""

import ast
from textwrap import dedent

from tests.mutation.edits import edits


def of(source: str) -> set[str]:
    """The mutants of a source, by the lines that are wrong in them."""
    source = dedent(source).lstrip()
    right = source.splitlines()
    found = set[str]()
    for edit in edits(source):
        wrong = edit.text.splitlines()
        assert len(wrong) == len(right)
        found |= {each.strip() for each, was in zip(wrong, right, strict=True) if each != was and each.strip()}
    return found


def test_a_bound_is_in_or_out_and_a_condition_the_other_way_round() -> None:
    wrong = of("""
        def is_due(now, at):
            if now < at:
                return True
            return False
    """)
    assert wrong == {"if now <= at:", "if (not (now < at)):", "return False", "return True"}


def test_edits_drop_statements_and_keep_line_numbers() -> None:
    wrong = of("""
        async def take(unit, row):
            await unit.save(
                row,
            )
            row.count += 1
            raise Refusal("NOT_FOUND", 5)
    """)
    assert {"pass", "row.count += 2", "row.count += 0", 'raise Refusal("NOT_FOUND", 6)'} <= wrong


def test_code_without_effect_at_run_time_is_not_edited() -> None:
    assert not of('''
        """Of 5 things."""
        if TYPE_CHECKING:
            import this
        class Row(Struct, frozen=True):
            value: Annotated[int, 5] = made
            version: int = 0
            @cache(maxsize=3)
            def __repr__(self) -> str:
                return 1 + 2
        log.warning("%s", 5)
        Either = int | str
        def told(given: Literal[3]) -> str:
            return f"{given + 1} of {4}"
    ''')


def test_edits_name_constants_and_give_the_lines_of_statements() -> None:
    source = "LIMIT = 5\n\n\ndef within(n):\n    return (\n        n <= LIMIT\n    )\nTABLE = [lambda n: n + 1]\n"
    found = {(edit.operator, edit.names, edit.statement) for edit in edits(source)}
    assert ("number +1", ("LIMIT",), (1, 1)) in found
    assert ("< for <=", (), (5, 7)) in found
    assert ("- for +", (), (8, 8)) in found


def test_each_mutant_of_a_source_has_a_name_of_its_own_and_compiles() -> None:
    source = "def f(a, b, c):\n    for x in [y for y in a if y]:\n        if not (a and b or c) or max(a, -1) != x:\n"
    source += "            continue\n"
    made = list(edits(source))
    assert len({edit.name for edit in made}) == len(made) > 10
    assert all(ast.dump(ast.parse(edit.text)) != ast.dump(ast.parse(source)) for edit in made)
