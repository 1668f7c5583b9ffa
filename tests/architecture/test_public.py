"""README, docs and examples use public names alone (docs/versioning.md "The package"), so that rooms may move."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOORS = {"cambist", "cambist.client", "cambist.conformance", "cambist.ports", "cambist.testing"}
IMPORT = re.compile(r"^\s*(?:from|import)\s+(cambist[\w.]*)", re.MULTILINE)
ROOM = re.compile(r"cambist\.(?:core|adapters|frontends)\b|cambist\.ports\.[a-z]\w*")
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in {".md", ".py", ".toml"}),
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_users_read_names_public_modules_only(path: Path) -> None:
    text = path.read_text("utf-8")
    assert {found for found in IMPORT.findall(text) if found not in DOORS} == set()
    assert ROOM.findall(text) == []
