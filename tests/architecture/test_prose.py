"""The texts become easier to read, and never harder again (CONTRIBUTING.md)."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.prose import is_hard, measure
from tests.tables import table

ROOT = Path(__file__).parents[2]
SHARES: dict[str, float] = {
    "core": 0.6,
    "ports": 1.3,
    "adapters": 0.9,
    "frontends": 0.8,
    "docs": 0.4,
    "benchmarks": 0.6,
    "examples": 0.3,
    "tests": 0.9,
    "README.md": 0.3,
    "ARCHITECTURE.md": 0.3,
    "CONTRIBUTING.md": 0.3,
    "SECURITY.md": 0.3,
}
"""Hard sentences of a folder, in percent, at most. Lower a figure when its folder has become better."""
SLACK = 1.0
"""Percent by which a figure may lie above the present share, or half a sentence of a small text."""


def texts(place: str) -> Sequence[Path]:
    """The Python and Markdown files of a folder, without the Russian pages."""
    listed = subprocess.run(["git", "ls-files", place], cwd=ROOT, capture_output=True, text=True, check=True)
    named = [name for name in listed.stdout.splitlines() if name.endswith((".py", ".md"))]
    files = [ROOT / name for name in named if not name.startswith("docs/ru/")]
    return [path for path in files if path.is_file() and not path.is_symlink()]


@table("place", list(SHARES))
def test_share_of_hard_sentences_only_falls(place: str) -> None:
    measured = [measure(path) for path in texts(place)]
    count, hard = sum(each.sentences for each in measured), sum(len(each.hard) for each in measured)
    share = 100 * hard / count
    assert share <= SHARES[place], f"{share:.2f} %: python -m tests.architecture.prose FILE names the sentences"
    assert share > SHARES[place] - SLACK - 50 / count, f"it is {share:.2f} % now: lower the figure"


@table(
    ("sentence", "hard"),
    [
        ("What it waits for may have come before.", True),
        ("Who asked has the page already.", True),
        ("Of a payment the amount counts.", True),
        ("The worker hears it from one that died.", True),
        ("It is left to whoever comes first.", True),
        ("Return the payments that are due now.", False),
        ("The worker renews the lease of a claimed job.", False),
        ("Raises: Refusal for what is no amount.", False),
        ("What does the caller get?", False),
        ("By default a minute.", False),
    ],
)
def test_sentence_without_a_plain_subject_is_hard(sentence: str, hard: bool) -> None:
    assert is_hard(sentence) is hard
