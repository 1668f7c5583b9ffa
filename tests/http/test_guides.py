"""The guides below /docs: the merchants' pages of docs/, served in the style of the reference."""

import re
from functools import cache
from html import unescape
from urllib.parse import urljoin, urlsplit

import msgspec
import pytest

from cambist.core.domain.errors import CATALOGUE
from cambist.frontends.http.openapi.docs_texts import SYNONYMS, TEXTS
from cambist.frontends.http.openapi.guides import ENGLISH, GUIDES, NAMES, RUSSIAN, Library, slug
from tests.apps import TestApp
from tests.tables import table

_ID = re.compile(r' id="([^"]+)"')
_LINK = re.compile(r' (?:href|src)="([^"]+)"')

LIBRARY = Library()
ALL = [(language, name) for language in TEXTS for name in NAMES if LIBRARY.has(language, name)]


@cache
def html(language: str, name: str) -> str:
    """Return a page as served."""
    return LIBRARY.html(LIBRARY.page(language, name))


def address(language: str, name: str) -> str:
    return f"/docs/{name}" if language == ENGLISH else f"/docs/{language}/{name}"


def test_folder_links_exactly_the_pages_that_are_served() -> None:
    assert sorted(path.stem for path in (GUIDES / ENGLISH).iterdir()) == sorted(NAMES)
    assert {path.resolve().parent.name for path in (GUIDES / ENGLISH).iterdir()} == {"docs"}
    assert (GUIDES / RUSSIAN).resolve().parent.name == "docs"


async def test_every_link_of_a_guide_leads_to_a_served_page_and_anchor(app: TestApp) -> None:
    """Its navigation, switch of language, images and links in the text."""
    pages: dict[str, str] = {}
    for each in ALL:
        response = await app.http.get(address(*each))
        assert response.status_code == 200, each
        pages[address(*each)] = response.text
    for path in ("/docs", "/docs/reference/payments", "/docs/reference/webhooks"):
        pages[path] = (await app.http.get(path)).text
    anchors = {path: set(_ID.findall(text)) for path, text in pages.items()}
    others: set[str] = set()
    wrong = []
    for path, text in pages.items():
        for link in map(unescape, _LINK.findall(text)):
            if "://" in link:
                continue
            found = urlsplit(urljoin(path, link))
            if found.path not in pages:
                others.add(f"{found.path}?{found.query}")
            elif found.fragment and found.fragment not in anchors[found.path]:
                wrong.append(f"{path}: {link}")
    assert wrong == []
    assert [other for other in sorted(others) if (await app.http.get(other)).status_code != 200] == []


@table("each", ALL, ids="/".join)
def test_no_mark_of_markdown_and_no_html_of_a_page_is_left(each: tuple[str, str]) -> None:
    prose = re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", html(*each), flags=re.DOTALL)
    assert not re.search(r"&lt;!--|<!--|\]\(|\*\*|`|<script| style=", prose)
    assert len(set(_ID.findall(html(*each)))) == len(_ID.findall(html(*each)))


@table("each", ALL, ids="/".join)
def test_no_heading_of_a_column_is_empty_and_drawings_scroll(each: tuple[str, str]) -> None:
    """For readers with a screen reader or a keyboard only."""
    assert "<th></th>" not in html(*each)
    assert len(re.findall(r'<p class="drawing" tabindex="0"><img', html(*each))) == html(*each).count('.svg"')


async def test_guide_lets_nothing_run_or_load_from_elsewhere(app: TestApp) -> None:
    reference = await app.http.get("/docs")
    guide = await app.http.get("/docs/errors")
    name = "content-security-policy"
    assert guide.headers[name] == reference.headers[name]
    assert guide.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", "/docs/errors", "/docs/search/en", "/docs/images/window.png"])
async def test_unchanged_guide_is_answered_304(app: TestApp, path: str) -> None:
    first = await app.http.get(path)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    again = await app.http.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert (await app.http.get(path, headers={"If-None-Match": '"another"'})).status_code == 200


async def test_the_search_finds_sections_of_guides_and_operations(app: TestApp) -> None:
    found = msgspec.json.decode((await app.http.get("/docs/search/en")).content)
    rows = {each["href"]: each for each in found}
    assert rows["docs/concepts#idempotency"]["title"] == "Idempotency"
    assert "Make it once" in rows["docs/concepts#idempotency"]["text"]
    assert "amount_rub" in rows["docs/payments#taking-one"]["names"]
    assert rows["docs/reference/payments#create_payment"]["operation"] is True
    assert len(rows) == len(found)


@pytest.mark.parametrize("path", ["/docs/operations", "/docs/ru/none", "/docs/search/de", "/docs/images/none.svg"])
async def test_unknown_guide_is_not_found(app: TestApp, path: str) -> None:
    response = await app.http.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "NOT_FOUND"


class TestErrors:
    """A refusal leads to its row of docs/errors.md."""

    def test_each_code_has_an_anchor(self) -> None:
        assert set(CATALOGUE) <= set(_ID.findall(html(ENGLISH, "errors")))

    async def test_the_header_names_it_whatever_answers(self, app: TestApp) -> None:
        """The operations, the framework behind them, and the edge before both."""
        base = app.ports.urls.base_url
        answers = {
            "Unauthorized": await app.http.get("/api/v1/payments"),
            "METHOD_NOT_ALLOWED": await app.http.put("/api/v1/payments"),
            "NOT_FOUND": await app.http.get("/nothing"),
            "VALIDATION_ERROR": await app.http.get("/api/v1/payments", headers={"Host": "a/b"}),
            "PAYLOAD_TOO_LARGE": await app.http.post("/api/v1/payments", content=b"x" * 102_401),
            "UPLOAD_FORBIDDEN": await app.http.put("/uploads/nothing", content=b"x"),
        }
        for code, answer in answers.items():
            assert answer.json()["error"]["code"] == code
            assert set(answer.json()["error"]) <= {"code", "message", "details"}
            assert answer.headers.get_list("link") == [f'<{base}/docs/errors#{code}>; rel="help"'], code

    async def test_a_good_answer_has_none(self, app: TestApp) -> None:
        assert "link" not in (await app.http.get("/health")).headers


def test_anchors_are_those_of_the_files() -> None:
    """As GitHub and the site make them: a link that works in one place works in all."""
    assert slug("What a receiver does, then") == "what-a-receiver-does-then"
    assert slug("RUB to USDT") == "rub-to-usdt"
    assert slug("Счёт: `paid`") == "счёт-paid"


async def test_llms_txt_lists_every_guide_and_links_to_its_markdown(app: TestApp) -> None:
    answer = await app.http.get("/llms.txt")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    listed = re.findall(r"^- \[(.+)\]\((\S+)\): \S.+$", answer.text, re.MULTILINE)
    pages = {urlsplit(link).path: title for title, link in listed}
    assert pages.pop("/openapi.json") == "OpenAPI"
    assert pages == {f"{address(*each)}.md": LIBRARY.page(*each).title for each in ALL}
    for each in ALL:
        page = await app.http.get(f"{address(*each)}.md")
        assert (page.status_code, page.headers["Content-Type"]) == (200, "text/markdown; charset=utf-8"), each
        assert page.text == LIBRARY.page(*each).source
    assert (await app.http.get("/docs/unknown.md")).status_code == 404


def test_synonyms_are_of_pages_and_sections_that_exist() -> None:
    pages = {name: {each.anchor for each in LIBRARY.page(ENGLISH, name).headings} for name in NAMES}
    places = set(pages) | {f"{name}#{anchor}" for name in pages for anchor in pages[name]}
    assert [key for key in SYNONYMS if key not in places] == []
