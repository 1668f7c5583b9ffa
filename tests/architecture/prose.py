"""Find sentences whose subject a reader has to guess ("What is held …", "the one that waits").

    python -m tests.architecture.prose FILE...      print each such sentence; exit 1 if there are too many

It knows one bad habit only. Read aloud what you wrote.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST = 0.1
"""Share of a single file's sentences that the command line accepts; a file of few sentences may have two."""

_VERBS = (
    "is|was|has|had|may|must|can|does|did|asks?|asked|comes?|came|waits?|holds?|knows?|loses?|lost|reads?|writes?|wrote"
)
_SUBJECTS = "is|was|has|had|comes|came|waits|it|they|we|no|an?|the|can|could|must|may|will|would|shall|should"
# A relative or interrogative word that opens a sentence stands in place of its subject.
_OPENING = re.compile(
    r"[`*\"'(\s]*(?:who(?:ever|m|se)?|what|which|those|nobody|so that|all that|that (?:is|a|the)"
    r"|one (?:that|of|which)|of|by|else)\b",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"\b(?:whoever|whom|those (?:that|who|which)|one (?:that|who|which|of which)|(?:is|are) none)\b"
    rf"|(?:[,;(]\s?|\b(?:of|by|for|to|from|and|or|than) )(?:who (?:{_VERBS})|what (?:{_SUBJECTS}))\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(?:raises|returns|see|by default|of course)\b", re.IGNORECASE)
_END = re.compile(r"(?<=[.:;!?])\s+")
_CODE = re.compile(r"``?[^`]+``?")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_COMMENT = re.compile(r"(?:^\s*|\S  )(#.*)")
_DIRECTIVE = re.compile(r"#\s*(?:type:|noqa|pyright|fmt:|pragma|!)")


class Found(NamedTuple):
    """A sentence that is hard to read, and where it begins."""

    line: int
    sentence: str


class Measured(NamedTuple):
    """Sentences of some files: how many there are, and the hard ones."""

    sentences: int
    hard: list[Found]


def is_hard(sentence: str) -> bool:
    """Whether a reader has to guess the subject. Questions and headings are fine."""
    if sentence.rstrip().endswith("?") or _HEADING.match(sentence) or len(sentence.split()) < 3:
        return False
    return bool(_OPENING.match(sentence) or _INSIDE.search(sentence))


def measure(path: Path) -> Measured:
    """Measure the docstrings and comments of a Python file, or the text of a Markdown file."""
    source = path.read_text("utf-8")
    count, hard = 0, []
    for line, text in _python(source) if path.suffix == ".py" else _markdown(source):
        for sentence in _END.split(_CODE.sub("X", " ".join(text.split()))):
            if re.search(r"[A-Za-z]{2}", sentence):
                count += 1
                if is_hard(sentence):
                    hard.append(Found(line, sentence))
    return Measured(count, hard)


def _python(source: str) -> Iterator[tuple[int, str]]:
    in_strings = set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            in_strings.update(range(node.lineno, node.end_lineno))
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                text = each.value.value
                if isinstance(text, str):
                    yield each.lineno, text
    # The formatter puts two spaces before a comment: to look for tokens would take most of the time.
    for number, line in enumerate(source.splitlines(), 1):
        found = _COMMENT.search(line) if "#" in line and number not in in_strings else None
        if found is not None and not _DIRECTIVE.match(found[1]):
            yield number, found[1].lstrip("# ")


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("<!--"):
            for cell in line.split("|") if line.lstrip().startswith("|") else [line]:
                text = _LINK.sub(r"\1", cell).strip(" -*#>")
                if len(text.split()) > 3:
                    yield number, text


def main(names: list[str]) -> int:
    """Print the hard sentences of these files. Returns the exit status."""
    status = 0
    for path in map(Path, names):
        found = measure(path)
        if len(found.hard) > max(2, MOST * found.sentences):
            status = 1
            print(*(f"{path}:{each.line}: {each.sentence}" for each in found.hard), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
