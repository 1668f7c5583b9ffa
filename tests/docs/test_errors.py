"""The error pages match the catalogue (core/domain/errors.py), code by code and in both directions.
tests/http/test_openapi.py compares real answers with the errors of their operation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cambist.core.domain.accounts.rate_limit import API
from cambist.core.domain.errors import CATALOGUE, Retry
from cambist.frontends.http.operations import OPERATIONS
from tests.docs.test_blocks import PAGES, ROOT
from tests.tables import table

ERRORS = ROOT / "docs/errors.md"
ADVICE = {
    "change the request": Retry.NEVER,
    "again later, same key": Retry.SAME_KEY,
    "again, new key": Retry.NEW_KEY,
}
ANYWHERE = {"RATE_LIMIT_EXCEEDED", "VALIDATION_ERROR"}
"""Every call may meet these: a page may explain them, where they have a further cause there."""
_NAMED = re.compile(r"`(\d{3}) ([A-Z][A-Z_]+|Unauthorized)`")
_CODE = re.compile(r"`([A-Z][A-Z_]+|Unauthorized)`")
_OF_CALL = re.compile(r"(\d{3}) `(\w+)`")


def rows(page: Path, heading: str) -> Iterator[list[str]]:
    """The cells of the table under a heading, without those of its head."""
    section = page.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    assert len(table) > 2, f"{page.name} has no table under {heading}"
    for line in table[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def advised(text: str) -> dict[int | None, Retry]:
    """The advice of a row: the usual, and by statuses for which it is another one."""
    usual, *others = text.split("; ")
    found: dict[int | None, Retry] = {None: ADVICE[usual]}
    for other in others:
        status, _, advice = other.removeprefix("with ").partition(": ")
        found[int(status)] = ADVICE[advice]
    return found


def test_the_table_has_each_code_of_the_catalogue_once_and_no_other() -> None:
    codes = [code.strip("`") for _, code, *_ in rows(ERRORS, "All codes")]
    assert sorted(codes) == sorted(CATALOGUE)


@table("row", [*rows(ERRORS, "All codes")], ids=lambda row: row[1].strip("`"))
def test_status_meaning_and_advice_of_a_row_are_the_catalogues(row: list[str]) -> None:
    statuses, code, meaning, advice = row
    entry = CATALOGUE[code.strip("`")]
    shown = [int(status) for status in statuses.split(", ")]
    assert shown == [entry.status, *entry.variants]
    assert meaning == entry.meaning
    told = advised(advice)
    assert {status: told.get(status, told[None]) for status in shown} == {
        status: entry.retry_at(status) for status in shown
    }


def test_the_errors_of_each_call_are_those_of_its_operation() -> None:
    shown = {
        call.strip("`"): [(int(status), code) for status, code in _OF_CALL.findall(cell)]
        for call, cell in rows(ERRORS, "By call")
    }
    described = {
        f"{each.method.upper()} {each.path.removeprefix(API)}": [
            (status, code) for status, codes in sorted(each.refusals.items()) for code in codes
        ]
        for each in OPERATIONS
        if each.refusals
    }
    assert shown == described


def test_an_operation_answers_a_code_with_none_but_its_statuses() -> None:
    wrong = [
        f"{each.method} {each.path}: {status} {code}"
        for each in OPERATIONS
        for status, codes in each.refusals.items()
        for code in codes
        if status not in (CATALOGUE[code].status, *CATALOGUE[code].variants)
    ]
    assert wrong == []


@table("page", PAGES, ids=lambda page: page.name)
def test_a_code_that_a_page_names_has_that_status(page: Path) -> None:
    for status, code in _NAMED.findall(page.read_text("utf-8")):
        assert int(status) in (CATALOGUE[code].status, *CATALOGUE[code].variants), f"{status} {code}"


@table(
    ("page", "heading", "calls", "told_above"),
    [
        ("kyc.md", "Answers and errors", "/kyc/", {"SANDBOX_NOT_SUPPORTED"}),
        ("subscriptions.md", "When a charge is refused", "/subscriptions/{subscription_id}/charges", set()),
    ],
)
def test_the_errors_that_a_page_explains_are_those_of_its_calls(
    page: str, heading: str, calls: str, told_above: set[str]
) -> None:
    """Both ways; a 404 is the object's that the path names."""
    explained = {code for row in rows(ROOT / "docs" / page, heading) for _, code in _NAMED.findall(row[0])}
    possible = {
        code
        for each in OPERATIONS
        if each.method == "post" and each.path.startswith(API + calls)
        for status, codes in each.refusals.items()
        if status != 404
        for code in codes
    }
    assert explained - ANYWHERE == possible - told_above
    assert told_above <= set(re.findall(r"[A-Z_]{4,}", (ROOT / "docs" / page).read_text("utf-8")))


def test_the_code_raises_each_code_of_the_catalogue_and_no_other() -> None:
    raised: set[str] = set()
    named: set[str] = set()
    for floor in ("core", "adapters", "frontends"):
        for path in sorted((ROOT / floor).rglob("*.py")):
            if (path.name == "errors.py" and path.parent.name == "domain") or "openapi" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CATALOGUE:
                    named.add(node.value)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal":
                    raised |= {str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert raised <= set(CATALOGUE)
    assert set(CATALOGUE) - named == set()
