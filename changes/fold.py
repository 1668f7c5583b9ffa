"""Move the fragments of this folder into CHANGELOG.md: `python changes/fold.py VERSION DATE` (`nox -s changelog`).

The folder's layout is towncrier's, whose other features nobody here needs.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
CHANGELOG = FOLDER.parent / "CHANGELOG.md"
KINDS = ("added", "changed", "fixed", "removed", "security")
NAME = re.compile(rf"[a-z0-9]+(?:-[a-z0-9]+)*\.(?:{'|'.join(KINDS)})\.md")

_RELEASE = re.compile(r"^## .+$", re.MULTILINE)


def fragments() -> list[Path]:
    """Return every file of the folder but the README and this program, by name."""
    return sorted(path for path in FOLDER.iterdir() if path.is_file() and path.name not in ("README.md", "fold.py"))


def fold(changelog: str, texts: Mapping[str, str], version: str, date: str) -> str:
    """Return the changelog with the texts of fragments, by file name, as the newest release.

    A section of this version that is still unreleased keeps its text and gets the fragments at its end. Raises:
    ValueError for a file name without a known kind, and where the version is released already.
    """
    entries = _entries(texts)
    heading = f"## {version} ({date})"
    newest = _RELEASE.search(changelog)
    if newest is None:
        return f"{changelog.rstrip()}\n\n{heading}\n{entries}"
    if newest[0].startswith(f"## {version} ") and newest[0] != f"## {version} (unreleased)":
        raise ValueError(f"{version} is released already: {newest[0]}")
    if newest[0] != f"## {version} (unreleased)":
        return f"{changelog[: newest.start()]}{heading}\n{entries}\n{changelog[newest.start() :]}"
    following = _RELEASE.search(changelog, newest.end())
    end = following.start() if following else len(changelog)
    section = changelog[newest.end() : end].rstrip() + "\n"
    rest = f"\n{changelog[end:]}" if following else ""
    return f"{changelog[: newest.start()]}{heading}{section}{entries}{rest}"


def _entries(texts: Mapping[str, str]) -> str:
    """Return the fragments as list entries below a heading for each kind."""
    for name in texts:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name}: call it NAME.KIND.md, with a KIND of {', '.join(KINDS)}")
    groups = []
    for kind in KINDS:
        named = [texts[name] for name in sorted(texts) if name.endswith(f".{kind}.md")]
        if named:
            lines = [f"- {text.strip()}".replace("\n", "\n  ").replace("](../", "](") for text in named]
            groups.append(f"\n### {kind.capitalize()}\n\n" + "\n".join(lines) + "\n")
    return "".join(groups)


def main(version: str, date: str) -> None:
    """Write the new changelog, then delete the fragments that are in it."""
    paths = fragments()
    texts = {path.name: path.read_text("utf-8") for path in paths}
    CHANGELOG.write_text(fold(CHANGELOG.read_text("utf-8"), texts, version, date), "utf-8")
    for path in paths:
        path.unlink()
    print(f"{CHANGELOG.name}: {version} with {len(paths)} changes")


if __name__ == "__main__":
    main(*sys.argv[1:])
