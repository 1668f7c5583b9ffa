"""The rooms of rows (core/usecases/operation_kinds.py) leave a provider's faults, units and jobs to the engine
(docs/contributing/operation.md)."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from cambist.core import usecases
from cambist.core.usecases.operation_kinds import OPERATION_KINDS
from cambist.core.usecases.operations.operation import Operation
from tests.tables import table

ROOMS = sorted(
    {
        inspect.getfile(kind)
        for row in OPERATION_KINDS
        for kind in type(row).__mro__
        if issubclass(kind, Operation) and "usecases.operations" not in kind.__module__
    }
)
ENGINES = {"retrying", "reschedule", "Job"}


def left_to_the_engine(tree: ast.Module) -> list[str]:
    """Return the engine's work that the module of a row does itself."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in ENGINES]
    return names + ["except" for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]


@table("room", ROOMS, ids=lambda room: "/".join(Path(room).parts[-2:]))
def test_a_room_of_a_row_leaves_faults_units_and_jobs_to_the_engine(room: str) -> None:
    assert left_to_the_engine(ast.parse(Path(room).read_text())) == []


def test_every_operation_stands_in_the_table() -> None:
    """Otherwise no notification finds the operation, and no worker knows its job."""
    found = {each for room in _rooms() for each in vars(room).values() if isinstance(each, Operation)}
    missing = sorted(type(each).__name__ for each in found - set(OPERATION_KINDS))
    assert missing == [], f"no row in core/usecases/operation_kinds.py for {missing}"


def _rooms() -> list[object]:
    return [import_module(found.name) for found in walk_packages(usecases.__path__, f"{usecases.__name__}.")]
