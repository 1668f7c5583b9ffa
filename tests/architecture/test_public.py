"""README, docs and examples use public names alone (docs/versioning.md "The package"), so that rooms may move."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tests.public_surface import RECORDED, lost, surface
from tests.tables import table

ROOT = Path(__file__).parents[2]
DJANGO = {f"cambist.django{module}" for module in ("", ".admin", ".embedded", ".models", ".testing", ".urls")}
EDGES = {"cambist", "cambist.client", "cambist.conformance", "cambist.ports", "cambist.testing", *DJANGO}
IMPORT = re.compile(r"^\s*(?:from|import)\s+(cambist[\w.]*)", re.MULTILINE)
ROOM = re.compile(r"cambist\.(?:core|adapters|frontends)\b|cambist\.ports\.[a-z]\w*")
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in {".md", ".py", ".toml"}),
]


@table("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_for_users_name_public_modules_only(path: Path) -> None:
    text = path.read_text("utf-8")
    assert {found for found in IMPORT.findall(text) if found not in EDGES} == set()
    assert ROOM.findall(text) == []


def test_a_clone_in_a_folder_that_is_no_name_of_python_can_be_tested() -> None:
    """pytest then imports the root's `__init__.py` by its path, without a package, and looks for `pytest_plugins`."""
    spec = spec_from_file_location("__init__", ROOT / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    alone = module_from_spec(spec)
    spec.loader.exec_module(alone)
    assert not hasattr(alone, "pytest_plugins")


class TestSurface:
    """A release records its public names (tests/public_surface.py); no later version may lack one of them."""

    def test_recorded_names_are_all_there(self) -> None:
        now = surface()
        for part, name in [
            ("operations", "POST /api/v1/payments create_payment"),
            ("fields", "Payment.amount_rub"),
            ("webhooks", "payment.status_changed"),
            ("errors", "INVALID_AMOUNT"),
            ("commands", "cambist doctor --full"),
            ("settings", "database_url"),
            ("names", "cambist.client.Client.health"),
            ("schema", "payments.id"),
        ]:
            assert name in now[part]
        for recorded in sorted(RECORDED.glob("*.json")):
            assert lost(json.loads(recorded.read_text("utf-8")), now) == [], f"{recorded.stem} promised them"

    def test_removed_name_is_reported_and_a_new_one_is_not(self) -> None:
        before = {"errors": ["A", "B"], "settings": ["x"]}
        assert lost(before, {"errors": ["B", "C"]}) == ["errors: A", "settings: x"]
