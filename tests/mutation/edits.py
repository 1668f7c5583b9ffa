"""The wrong changes of a source: operators of cosmic-ray and mutmut, made as edits of the text at the nodes of its
syntax tree, so that every line keeps its number.

No run could notice changes of these, so they are left out: docstrings, annotations, `if TYPE_CHECKING`, decorators,
the options of classes (cache sizes; how a struct is made), the first `version` of a row, `__repr__`, f-strings and
log calls (texts for people), and the messages of errors that report a programmer's mistake.
"""

import ast
import re
from collections.abc import Iterator

import msgspec

_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_REPLACED = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_MISTAKES = ("ValueError", "TypeError", "RuntimeError", "AssertionError", "KeyError", "LookupError")
_TYPES = ("cast", "TypeVar", "NewType", "ParamSpec", "Annotated")


class Edit(msgspec.Struct, frozen=True):
    """A mutant of a source."""

    operator: str
    line: int
    """Where it begins, from 1."""
    column: int
    statement: tuple[int, int]
    """First and last line of the innermost statement: a test that executes none of them cannot notice."""
    names: tuple[str, ...]
    """Names that the statement binds while the module is loaded; empty in a function's body."""
    wrong: str
    """The wrong text that replaces the right one."""
    text: str
    """The whole source with it."""

    @property
    def name(self) -> str:
        """The edit's id within its source."""
        return f"{self.operator}:{self.line}:{self.column}"


def edits(source: str) -> Iterator[Edit]:
    """Yield every mutant of a source that still compiles, in the order of its lines."""
    made = _Mutator(source)
    made.visit(ast.parse(source))
    for operator, start, end, wrong, statement, names in sorted(made.found, key=lambda each: each[1:3]):
        before = made.source[:start]
        # Keep the line breaks of removed text, so that line numbers stay.
        wrong += "\n" * (made.source[start:end].count(b"\n") - wrong.count("\n"))
        text = (before + wrong.encode() + made.source[end:]).decode()
        try:
            compile(text, "mutant", "exec", dont_inherit=True)
        except SyntaxError:
            continue
        column = start - (before.rfind(b"\n") + 1)
        yield Edit(operator, before.count(b"\n") + 1, column, statement, names, wrong.strip(), text)


class _Mutator(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.source = source.encode()
        self.found: list[tuple[str, int, int, str, tuple[int, int], tuple[str, ...]]] = []
        self._starts = [0]
        for line in self.source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._statement = (1, 1)
        self._names: tuple[str, ...] = ()
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        """Visit every node. A statement with a body has only its head as lines."""
        before, names = self._statement, self._names
        if isinstance(node, ast.stmt):
            self._names = _bound(node) or self._names
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = max(node.lineno, _first_line(body[0]) - 1) if body else node.end_lineno or node.lineno
            self._statement = (node.lineno, last)
        elif isinstance(node, ast.match_case):
            self._statement = (node.pattern.lineno, node.pattern.end_lineno)
        super().visit(node)
        self._statement, self._names = before, names

    def _add(self, operator: str, start: int, end: int, wrong: str) -> None:
        names = () if self._depth else self._names
        self.found.append((operator, start, end, wrong, self._statement, names))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _instead(self, operator: str, node: ast.AST, wrong: str) -> None:
        self._add(operator, *self._span(node), wrong)

    def _negated(self, node: ast.expr) -> None:
        same = isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) not in _BOUNDS
        if not same and not isinstance(node, ast.Constant) and not _is_not(node):
            start, end = self._span(node)
            self._add("negate", start, end, f"(not ({self.source[start:end].decode()}))")

    def _between(self, operator: str, left: ast.expr, right: ast.expr, words: tuple[str, str]) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = re.escape(words[0]).replace(r"\ ", r"\s+")
        found = re.search(pattern, self.source[start:end].decode())
        if found is not None:
            self._add(operator, start + found.start(), start + found.end(), words[1])

    # Changes that no test could notice.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Mutate neither decorators nor annotations."""
        if node.name == "__repr__":
            return
        for each in [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]:
            self.visit(each)
        self._depth += 1
        for statement in node.body:
            self.visit(statement)
        self._depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name that ast asks for

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Its body is mutated as code of its own."""
        before, self._statement = self._statement, (node.body.lineno, node.body.end_lineno or node.body.lineno)
        self._depth += 1
        self.visit(node.body)
        self._depth -= 1
        self._statement = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Mutate the body only, not the bases and decorators."""
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Mutate neither the annotation nor the first version of a row: versions are only compared with one another."""
        if node.value is not None and not (isinstance(node.target, ast.Name) and node.target.id == "version"):
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Do not mutate formatted text."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Do not mutate: assertions are for the type checkers."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Raise nothing. The arguments of a programmer's mistake are not mutated."""
        self._instead("delete", node, "pass")
        made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if not (isinstance(made, ast.Name) and made.id in _MISTAKES):
            self.generic_visit(node)

    # Slips.

    def visit_Expr(self, node: ast.Expr) -> None:
        """Delete the statement, unless it is a docstring."""
        if isinstance(node.value, ast.Constant):
            return
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call):
            if _is_log(called.func):
                return
            self._instead("delete", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Delete the statement."""
        self._instead("delete", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Delete the statement if it changes an object."""
        if all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets):
            self._instead("delete", node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """The other way round."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negated(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """The other way round."""
        self._negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other way round."""
        self._negated(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Iterate over nothing, and negate each condition."""
        if not node.is_async:
            self._instead("over nothing", node.iter, "()")
        for each in node.ifs:
            self._negated(each)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """Iterate over nothing."""
        self._instead("over nothing", node.iter, "()")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """Replace it by `continue`."""
        self._instead("break", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Replace it by `break`."""
        self._instead("continue", node, "break")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` and `or`."""
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(" for ".join(reversed(words)), left, right, words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Remove the `not`, or the sign."""
        if isinstance(node.op, ast.Not | ast.USub):
            start, end = self._span(node.operand)
            self._instead("unary", node, f"({self.source[start:end].decode()})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """The bound in or out, the same or not."""
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            words = _COMPARED[type(op)]
            self._between(f"{words[1]} for {words[0]}", left, right, words)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Replace the operator. Outside functions `|` makes types."""
        words = _REPLACED.get(type(node.op))
        if isinstance(node.op, ast.BitOr) and not self._depth and not _is_set(node):
            return
        if words is not None:
            self._between(f"{words[1]} for {words[0]}", node.left, node.right, words)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The least for the most, one for all."""
        if isinstance(node.func, ast.Name):
            if node.func.id in _TYPES:
                return
            if node.func.id in _CALLED:
                self._instead(f"{_CALLED[node.func.id]} for {node.func.id}", node.func, _CALLED[node.func.id])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """The other truth; a number by one."""
        if isinstance(node.value, bool):
            self._instead("truth", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._instead("number +1", node, str(node.value + 1))
            self._instead("number -1", node, f"({node.value - 1})" if node.value < 1 else str(node.value - 1))


def _is_log(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log"


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _bound(node: ast.stmt) -> tuple[str, ...]:
    """The names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return tuple(each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _first_line(statement: ast.stmt | ast.match_case) -> int:
    if isinstance(statement, ast.match_case):
        return statement.pattern.lineno
    decorators = getattr(statement, "decorator_list", None)
    return decorators[0].lineno if decorators else statement.lineno


def _is_set(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(each, ast.Set | ast.Call) or (isinstance(each, ast.Name) and each.id.isupper()) for each in sides
    )
