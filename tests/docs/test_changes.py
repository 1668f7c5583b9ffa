"""Fragments of the changelog have the form that changes/README.md asks for, and a release collects them."""

import pytest

from changes.fold import CHANGELOG, NAME, fold, fragments
from tests.tables import table

BEFORE = "# Changelog\n\nHow it is made.\n\n## 1.0.0 (2027-01-01)\n\n- The first release.\n"
OPEN = BEFORE.replace("2027-01-01", "unreleased")


def test_each_fragment_has_a_kind_and_one_entry() -> None:
    for path in fragments():
        text = path.read_text("utf-8").strip()
        assert NAME.fullmatch(path.name), f"{path.name}: see changes/README.md"
        assert text, f"{path.name} is empty"
        assert "\n\n" not in text, f"{path.name}: an entry is one paragraph"
        assert not text.startswith(("-", "*", "#")), f"{path.name}: the release adds the list mark"


def test_release_collects_fragments_by_kind_above_the_former_release() -> None:
    texts = {
        "slow-list.fixed.md": "Lists are quick\nagain ([lists](../docs/concepts.md)).\n",
        "csv.added.md": "Refunds as CSV.\n",
        "bank.added.md": "A bank.\n",
    }
    section = (
        "## 1.1.0 (2027-02-01)\n\n### Added\n\n- A bank.\n- Refunds as CSV.\n\n"
        "### Fixed\n\n- Lists are quick\n  again ([lists](docs/concepts.md)).\n\n"
    )
    assert fold(BEFORE, texts, "1.1.0", "2027-02-01") == BEFORE.replace("## 1.0.0", section + "## 1.0.0")


def test_unreleased_section_gets_its_date_and_the_fragments() -> None:
    after = fold(OPEN, {"keys.security.md": "Keys end."}, "1.0.0", "2027-01-01")
    assert after == BEFORE + "\n### Security\n\n- Keys end.\n"


def test_unreleased_section_above_a_former_release_keeps_that_release() -> None:
    both = OPEN.replace("1.0.0", "1.1.0") + "\n## 1.0.0 (2026-12-01)\n\n- The first.\n"
    after = fold(both, {"a.fixed.md": "A."}, "1.1.0", "2027-01-01")
    assert after.endswith("- The first release.\n\n### Fixed\n\n- A.\n\n## 1.0.0 (2026-12-01)\n\n- The first.\n")


@table(
    ("texts", "version"),
    [({"csv.md": "A."}, "1.1.0"), ({"csv.new.md": "A."}, "1.1.0"), ({"Csv.added.md": "A."}, "1.1.0"), ({}, "1.0.0")],
)
def test_unknown_kind_or_a_version_released_before_is_refused(texts: dict[str, str], version: str) -> None:
    with pytest.raises(ValueError, match=r"KIND|released"):
        fold(BEFORE, texts, version, "2027-02-01")


def test_present_changelog_takes_a_release() -> None:
    text = CHANGELOG.read_text("utf-8")
    assert "- Something.\n" in fold(text, {"some.added.md": "Something."}, "1.0.0", "2027-01-01")
