"""The product and its documentation use the field's words (CONTRIBUTING.md)."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).parents[2]
PLACES = (
    *("core", "ports", "adapters", "frontends", "cambist", "deploy", "docs", "examples", "changes"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "pyproject.toml"),
)
BINARY = (".png", ".svg", ".lock", ".woff2", ".ico", ".txt", ".ttf")

WORDS = {
    "house": "app",
    "shelf": "repository",
    "shelves": "repositories",
    "purse": "balance type",
    "purses": "balance types",
    "stray": "unapplied",
    "strays": "unapplied transfers",
    "door": "edge",
    "doors": "edges",
    "hearer": "handler",
    "bench": "harness",
    "benches": "harnesses",
    "notebook": "operation log",
    "ladder": "backoff",
    "ladders": "backoffs",
    "kick": "wake-up",
    "kicks": "wake-ups",
    "nonsense": "garbage, or an invalid answer",
    "pretend": "simulate",
    "pretence": "simulation",
    "upkeep": "maintenance",
    "trouble": "problem",
    "troubles": "problems",
    "unseal": "decrypt",
    "reseal": "encrypt again",
}
"""Words that the project used for itself, and the field's word for each."""

NAMES = (
    ("notice", r"(?<![a-z])notices?_\w|\w_notices?\b|Notices?[A-Z]|[a-z]Notices?\b", "notification"),
    ("act", r"(?<![a-z])acts?_\w|\w_acts?\b|[a-z]Act\b|\bAct[A-Z]", "action"),
    ("_look", r"\b\w+_(?:look|looks)\b(?<!_up)|\b[A-Z]+_LOOKS?\b", "poll"),
)
"""Stems and patterns of identifiers; as words of a sentence these are English."""

# A page of our own shows a notice to a payer; a run of benchmarks is `bench` at every project.
ALLOWED = re.compile(r"CAMBIST_BENCH_\w+|-s bench\b|card--notice|\bbench\(|def bench|Coffee House|House of")


def found(text: str) -> Iterator[str]:
    """Yield each retired word of a text with the word to use."""
    text = ALLOWED.sub("", text)
    present = text.lower()
    for word, better in WORDS.items():
        if word not in present:  # a search without its three forms is twenty times as quick
            continue
        forms = (
            rf"(?<![A-Za-z]){word}(?![a-z])|(?<![A-Z]){word.capitalize()}(?![a-z])|(?<![A-Z]){word.upper()}(?![A-Z])"
        )
        if re.search(forms, text):
            yield f"{word}: {better}"
    for stem, pattern, better in NAMES:
        if stem in present and (match := re.search(pattern, text)):
            yield f"{match.group()}: {better}"


def test_product_and_docs_use_no_retired_word() -> None:
    listed = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True)
    wrong = [
        f"{name}: {each}"
        for name in listed.stdout.splitlines()
        if not name.endswith(BINARY) and (ROOT / name).is_file() and not (ROOT / name).is_symlink()
        for each in (*found(name), *found((ROOT / name).read_text()))
    ]
    assert wrong == []


@table(
    ("text", "word"),
    [
        ("a shelf of payments", "shelf"),
        ("class BoundShelf:", "shelf"),
        ("MOST_STRAYS = 5", "strays"),
        ("self._purse", "purse"),
        ("PurseView", "purse"),
        ("take_notice(address)", "e_notice"),
        ("InboundNotice", "dNotice"),
        ("next_look = LOOK", "next_look"),
        ("list_acts()", "t_acts"),
        ("class PendingAct:", "gAct"),
        ("Operators notice it, and act in time.", ""),
        ("The table of contacts, exact to a kopeck.", ""),
        ("look_up(name)", ""),
        ("purser, shelfish, adoring", ""),
    ],
)
def test_retired_words_are_found_in_any_spelling(text: str, word: str) -> None:
    assert [each.split(":")[0] for each in found(text)] == ([word] if word else [])
