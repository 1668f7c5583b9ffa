"""One source of facts, two texts: a Russian page has the headings, tables, blocks of code, names and numbers of the
English one, in their order."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cambist.core.domain.errors import CATALOGUE
from cambist.frontends.http.openapi.openapi import openapi_document
from docs import russian
from docs.generate import PAYLOADS, TABLES
from tests.docs.test_blocks import ROOT
from tests.tables import table

PROMISED = (
    "quickstart", "concepts", "payments", "window", "subscriptions", "refunds", "receipts", "exchanges", "kyc",
    "webhooks", "dashboard", "payloads", "settlement", "states", "errors", "limits", "versioning",
    "client", "sandbox", "testing", "console", "coming-from-yookassa", "payment-links", "reports",
)  # fmt: skip
"""Pages that must exist in Russian: for merchants, their support staff and operators."""
ENGLISH, RUSSIAN = ROOT / "docs", ROOT / "docs/ru"

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
_NUMBER = re.compile(r"\d+(?:[ .:]\d+)*")
_SMALL = re.compile(r"\d\Z")
"""Numbers of one digit are words as often as digits, in either language."""


class Part(NamedTuple):
    """Content under one heading, up to the next heading."""

    level: str
    codes: Counter[str]
    numbers: Counter[str]
    blocks: list[str]
    tables: list[list[list[list[str]]]]
    """Tables, as lists of rows of cells. A cell is the list of its inline `code`."""


def codes(inline: Token) -> list[str]:
    return [each.content for each in inline.children or () if each.type == "code_inline"]


def parts(text: str) -> Iterator[Part]:
    """The parts of a page."""
    part: Part | None = None
    is_cell = False
    for token in _MARKDOWN.parse(text):
        if token.type == "heading_open":
            if part is not None:
                yield part
            part = Part(token.tag, Counter(), Counter(), [], [])
        if part is None:
            continue
        if token.type in ("fence", "code_block"):
            part.blocks.append(token.info + token.content)
        elif token.type == "table_open":
            part.tables.append([])
        elif token.type == "tr_open":
            part.tables[-1].append([])
        elif token.type in ("td_open", "th_open"):
            part.tables[-1][-1].append([])
            is_cell = True
        elif token.type == "inline":
            if is_cell:
                part.tables[-1][-1][-1] += codes(token)
                is_cell = False
            part.codes.update(codes(token))
            part.numbers.update(numbers(token))
    if part is not None:
        yield part


def numbers(inline: Token) -> list[str]:
    """The numbers of a text beside its code."""
    text = " ".join(each.content for each in inline.children or () if each.type == "text")
    return [each for each in _NUMBER.findall(text) if not _SMALL.match(each)]


def differences(english: str, russian: str) -> list[str]:
    """Return the differences between both texts, by part."""
    one, other = list(parts(english)), list(parts(russian))
    if [each.level for each in one] != [each.level for each in other]:
        return [f"headings: {[each.level for each in one]} and {[each.level for each in other]}"]
    found = []
    for place, (ours, theirs) in enumerate(zip(one, other, strict=True)):
        for name in Part._fields:
            wanted, there = getattr(ours, name), getattr(theirs, name)
            if wanted != there:
                found.append(f"part {place}, {name}: {_rest(wanted, there)} and {_rest(there, wanted)}")
    return found


def _rest(some: Counter[str] | Sequence[object], others: Counter[str] | Sequence[object]) -> object:
    if isinstance(some, Counter) and isinstance(others, Counter):
        return dict(some - others)
    return [each for each in some if each not in others]


@table("name", PROMISED)
def test_a_russian_page_has_the_facts_of_the_english_one(name: str) -> None:
    english, russian = ((folder / f"{name}.md").read_text("utf-8") for folder in (ENGLISH, RUSSIAN))
    assert differences(english, russian) == []


def test_texts_generated_from_code_have_russian_words() -> None:
    """Meanings of errors, triggers of moves, fields of events: each, and none that is not there any more."""
    assert {*russian.MEANINGS} == {*CATALOGUE}
    assert {*russian.TRIGGERS} == {str(row.trigger) for _, moves, _ in TABLES.values() for row in moves.rows}
    schemas = openapi_document("https://pay.example")["components"]["schemas"]
    assert {*russian.FIELDS} == {
        field["description"] for name in PAYLOADS for field in schemas[name]["properties"].values()
    }


def test_the_pages_that_were_promised_are_there_and_no_other() -> None:
    assert {path.stem for path in RUSSIAN.glob("*.md")} == {*PROMISED, "index"}


@table("name", PROMISED)
def test_prose_of_a_russian_page_is_russian(name: str) -> None:
    """No paragraph was left untranslated."""
    for token in _MARKDOWN.parse((RUSSIAN / f"{name}.md").read_text("utf-8")):
        text = " ".join(each.content for each in token.children or () if each.type == "text")
        if token.type == "inline" and len(re.findall(r"[A-Za-z]{3,}", text)) > 6:
            assert len(re.findall(r"[А-Яа-яё]{2,}", text)) > 6, text


_PAGE = "# Limits\n\nAt most 100 `GET`.\n\n| a | b |\n|---|---|\n| `x` | 20 |\n\n```sh\ncall\n```\n"


@table(
    ("was", "becomes"),
    [
        ("# L", "## L"),
        ("100", "101"),
        ("`GET`", "`PUT`"),
        ("| `x` | 20 |\n", "| `x` | 20 |\n| | |\n"),
        ("| `x` | 20 |", "| 20 | `x` |"),
        ("call", "create"),
        ("| b |\n|---|---|\n| `x` | 20 |", "|\n|---|\n| `x` 20 |"),
    ],
)
def test_the_comparison_can_fail(was: str, becomes: str) -> None:
    assert differences(_PAGE, _PAGE) == []
    changed = _PAGE.replace(was, becomes)
    assert changed != _PAGE
    assert differences(_PAGE, changed) != []
