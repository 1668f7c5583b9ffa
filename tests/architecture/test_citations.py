"""Every citation leads somewhere: code, tests and pages cite pages of this repository, by headings that are there, and
nothing else. The form is a page, and a heading of it in quotes (or several with commas) where it is long."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".sh", ".html", ".js", ".css", ".conf", ".service", ".ini", ".cfg"}
ELSEWHERE = {"build", "dist", "node_modules", "site-packages"}
"""Folders outside the repository's own files, at any depth; names that begin with a dot are excluded too."""

_PAGE = r"(?:docs/(?:\w+/)?[\w-]+|ARCHITECTURE|README|CONTRIBUTING|SECURITY|CHANGELOG)\.md"
_CITED = re.compile(
    rf'(?<![\w/.-])(?P<page>{_PAGE})(?P<headings>(?:(?:,|\s+and)?[\s#]+"[^"\n]+(?:\n[\s#]*[^"\n]+)?")*)'
)
_QUOTED = re.compile(r'"([^"]+)"')
_LINKED = re.compile(r"\]\((?P<page>[^)\s:#]*\.md)#(?P<anchor>[^)\s]+)\)")
_ASKEW = re.compile(rf'(?<![\w/.-]){_PAGE}(?:,\s+"|[,:]\s+[A-Z][\w ,-]*\))|(?<![\w/.-])[a-z]+\.md\s"[A-Z]')
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TOLD = re.compile(r'"""(.*?)"""|#([^\n]*)', re.DOTALL)
_ROOM = re.compile(r"(?<![\w/.*-])((?:\w+/)*[a-z_0-9]+\.(?:py|html|js))\b(?!\()")
_MADE_UP = re.compile(r"\byour")
"""How examples call the files of their reader."""
_SPACE = re.compile(r"[\s#]+")
_PRIVATE = {
    literal: re.compile(pattern)
    for literal, pattern in {
        "SPEC": r"\bSPEC\b",
        "DESIGN": r"\bDESIGN\b",
        "DECISIONS": r"\bDECISIONS(?:\.md|['’]s|[,:] |,? \d)",
        "ssue": r"\b[Ii]ssues? #?\d",
        "otes ": r"\b[Nn]otes T?\d",
        "notes/": r"(?<![\w.])notes/\w",
        "reviews/": r"(?<![\w.])reviews/\w",
        "trap ": r"\btrap \d",
        "goal ": r"\bgoal \d",
        "point ": r"\bpoint \d+[.,;:)]",
        "; ": r"(?<![\w.-])[AFT]\d{1,2}; ",
    }.items()
}
"""How texts that are not here are named, by what stands in each such name: a reader could not look them up."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the repository's hand-written files with their paths. This file is left out because it contains faulty
    examples, and links to files are skipped."""
    for folder, names in _folders():
        for name in names:
            path = Path(folder, name)
            if path.suffix in SUFFIXES and path != Path(__file__) and not path.is_symlink():
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def _folders() -> Iterator[tuple[str, list[str]]]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in ELSEWHERE]
        yield folder, files


@cache
def headings(page: str) -> tuple[str, ...] | None:
    """The headings of a page, without marks; None where there is no such page."""
    path = ROOT / page
    if not path.is_file():
        return None
    return tuple(each.replace("`", "") for each in _HEADING.findall(_FENCED.sub("", path.read_text("utf-8"))))


def anchor(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def faults(text: str, path: str = "somewhere.py") -> Iterator[tuple[int, str]]:
    """Yield the faulty citations of a text: the position and a description of each."""
    for literal, private in _PRIVATE.items():
        if literal in text:
            for found in private.finditer(text):
                yield found.start(), f"cites a text that is not in the repository: {found[0]}"
    if ".md" not in text:
        return
    for found in _ASKEW.finditer(text):
        yield found.start(), f'is not of the form docs/page.md "Heading": {_SPACE.sub(" ", found[0])}'
    for found in _CITED.finditer(text):
        known = headings(found["page"])
        if known is None:
            yield found.start(), f"cites a page that is not there: {found['page']}"
            continue
        for quoted in _QUOTED.findall(found["headings"]):
            heading = _SPACE.sub(" ", quoted)
            if known.count(heading) != 1:
                there = "there twice" if heading in known else "not there"
                yield found.start(), f'cites a heading that is {there}: {found["page"]} "{heading}"'
    if path.endswith(".md"):
        for found in _LINKED.finditer(text):
            page = os.path.normpath(Path(path).parent / found["page"])
            if found["anchor"] not in {anchor(each) for each in headings(page) or ()}:
                yield found.start(), f"links to a heading that is not there: {found['page']}#{found['anchor']}"


def test_every_citation_leads_to_a_page_and_a_heading_of_this_repository() -> None:
    wrong = [
        f"{path}:{text.count(chr(10), 0, position) + 1} {what}"
        for path, text in texts()
        for position, what in faults(text, path)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_room_that_is_named_is_there() -> None:
    """A name, or the end of a path, of a file: `bodies.py`, `edge/bodies.py`."""
    files = {Path(folder, name).relative_to(ROOT).parts for folder, names in _folders() for name in names}
    known = {"/".join(parts[start:]) for parts in files for start in range(len(parts))}
    wrong = [
        f"{path}:{text.count(chr(10), 0, position) + 1} names a file that is not there: {room}"
        for path, text in texts()
        for position, room in _rooms(text, path)
        if room not in known and not _MADE_UP.search(room)
    ]
    assert not wrong, "\n".join(wrong)


def _rooms(text: str, path: str) -> Iterator[tuple[int, str]]:
    """Yield the names in a page, or in the docstrings and comments of code. The changelog and its fragments are
    excluded, because they describe files of their time."""
    if path.endswith(".md") and path != "CHANGELOG.md" and not path.startswith("changes/"):
        yield from ((found.start(), found[1]) for found in _ROOM.finditer(text))
    elif path.endswith(".py") and ".py" in text:
        for told in _TOLD.finditer(text):
            yield from ((told.start() + found.start(), found[1]) for found in _ROOM.finditer(told[0]))


def test_there_are_citations_and_they_are_found() -> None:
    cited = [found for path, text in texts() if ".md" in text for found in _CITED.finditer(text)]
    assert sum(1 for found in cited if found["headings"]) > 500


@table(
    "line",
    [
        'as it says (SPEC "Refunds")',
        "(DECISIONS 7)",
        "DESIGN 3: nothing is lost",
        "in DECISIONS.md",
        "(issue 4)",
        "Issue 2, point 6.",
        "notes T17",
        "see notes/providers.md",
        "see reviews/security.md",
        "T20; identity",
        "trap 3:",
        '(docs/refunds.md "No such heading")',
        '(docs/refunds.md "Rules", "No such heading")',
        '(docs/refunds.md "No such\n    heading")',
        "(docs/nowhere.md)",
        '(docs/refunds.md, "Rules")',
        "(docs/refunds.md, Rules)",
        "(docs/refunds.md: Rules, How it ends)",
        '(refunds.md "Rules")',
    ],
)
def test_dead_citation_is_reported(line: str) -> None:
    assert [*faults(line)]


@table(
    "line",
    [
        "(docs/refunds.md)",
        '(docs/refunds.md "Rules", "How it ends"; ARCHITECTURE.md "Three outcomes")',
        'the rules (docs/refunds.md "How it\n    ends").',
        '# the rules (docs/refunds.md "How it\n# ends").',
        'PAGES = ["docs/refunds.md", "Rules and more"]',
    ],
)
def test_valid_citation_passes(line: str) -> None:
    assert [*faults(line)] == []


def test_link_to_a_removed_heading_is_reported() -> None:
    assert [*faults("[rules](refunds.md#rules)", "docs/index.md")] == []
    assert [*faults("[rules](refunds.md#laws)", "docs/index.md")]
    assert [*faults("[rules](docs/refunds.md#laws)", "README.md")]
