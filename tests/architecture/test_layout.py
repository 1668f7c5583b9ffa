"""The layers are as ARCHITECTURE.md "Layers" describes them. import-linter checks the contracts between them."""

import re
import subprocess
import sys
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).parents[2]
FLOORS = ("core", "ports", "adapters", "frontends")
LINKS = ("__init__.py", "py.typed", *FLOORS)
ENTRY_POINTS = ("__main__.py", "client.py", "testing.py", "conformance", "django")
HEAVY = ("litestar", "sqlalchemy", "redis", "dramatiq", "textual", "aiohttp", "asyncio", "cryptography")


def app_files() -> list[Path]:
    return [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def test_package_folder_holds_the_six_links_and_the_entry_points() -> None:
    found = {path.name: path for path in (ROOT / "cambist").iterdir() if path.name != "__pycache__"}
    assert set(found) == {*LINKS, *ENTRY_POINTS}
    links = {name: str(path.readlink()) for name, path in found.items() if path.is_symlink()}
    assert links == {name: f"../{name}" for name in LINKS}


def test_inside_the_app_nobody_imports_it_by_its_outer_name() -> None:
    wrong = re.compile(r"^\s*(?:import|from)\s+(?:cambist|core|ports|adapters|frontends)\b", re.MULTILINE)
    assert [str(path) for path in app_files() if wrong.search(path.read_text("utf-8"))] == []


def test_no_file_lies_deeper_than_floor_wing_subject_file() -> None:
    given = {"migrations", "management"}  # folders whose names Alembic and Django give
    deep = [path for path in app_files() if len(path.relative_to(ROOT).parts) > 4 and not given & set(path.parts)]
    assert deep == []


@table("module", ["cambist.core.usecases.payments.payments", "cambist.ports.bundle", "cambist"])
def test_the_core_loads_no_library_but_msgspec(module: str) -> None:
    script = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_importing_every_module_of_the_core_builds_nothing() -> None:
    """Nothing is built, opened or registered at import: no task, no file, no thread."""
    script = """
import importlib, pkgutil, threading, cambist.core, cambist.ports
for package in (cambist.core, cambist.ports):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
print(threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
