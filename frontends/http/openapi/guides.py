"""Guides for merchants: pages of docs/ as HTML. `../guides/` links to those files, so that a clone and a wheel have the
same text. Headings have the same anchors in every language: those of the English text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import escape

from ....core.domain.errors import CATALOGUE

GUIDES = Path(__file__).parents[1] / "guides"
ENGLISH = "en"
RUSSIAN = "ru"
GROUPS: Mapping[str, Sequence[str]] = {
    "start": ("quickstart", "concepts"),
    "money": ("payments", "payment-links", "window", "subscriptions", "refunds", "receipts", "exchanges", "kyc"),
    "events": ("webhooks", "dashboard", "payloads", "settlement", "reports", "states", "errors", "limits"),
    "build": ("client", "versioning", "sandbox", "testing", "mcp", "coming-from-yookassa", "coming-from-stripe"),
}
"""The pages in reading order."""
NAMES = tuple(name for names in GROUPS.values() for name in names)
_ERRORS = "errors"
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_PAGE = re.compile(r"(?:\.\./)?(?P<name>[a-z-]+)\.md\Z")
_FENCE = '<figure class="sample"><figcaption>{}</figcaption><pre tabindex="0"><code>{}</code></pre></figure>\n'


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A heading. `own` is its anchor in the Markdown file, `anchor` the one on the served page."""

    level: int
    title: str
    own: str
    anchor: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Text under a heading, and the `code` in it, for the search."""

    heading: Heading
    text: str
    codes: tuple[str, ...]


class Guide:
    """One page in one language."""

    def __init__(self, name: str, language: str, english: "Guide | None" = None) -> None:
        """Read the page. `english` is the same page in English, None for the English page itself."""
        self.name = name
        self.language = language
        self._english = english
        self.source = (GUIDES / language / f"{name}.md").read_text("utf-8")

    @cached_property
    def title(self) -> str:
        """Title of the page, as text. Raises: ValueError when it has none."""
        found = _TITLE.search(self.source)
        if found is None:
            raise ValueError(f"{self.language}/{self.name}.md has no title")
        return found[1].replace("`", "")

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """Parsed content of the page; do not change it."""
        return _MARKDOWN.parse(self.source)

    @cached_property
    def headings(self) -> Sequence[Heading]:
        """Headings in order."""
        found: list[Heading] = []
        seen: dict[str, int] = {}
        anchors = None if self._english is None else [each.anchor for each in self._english.headings]
        for level, inline in _headings(self.tokens):
            title = _plain(inline)
            own = slug(title)
            seen[own] = count = seen.get(own, -1) + 1
            own = f"{own}-{count}" if count else own
            anchor = own if anchors is None or len(found) >= len(anchors) else anchors[len(found)]
            found.append(Heading(level=level, title=title, own=own, anchor=anchor))
        return found

    def served(self, own: str) -> str:
        """Return the served anchor for an anchor of the file."""
        return next((each.anchor for each in self.headings if each.own == own), own)

    @cached_property
    def sections(self) -> Sequence[Section]:
        """Sections for the search: each heading with the text up to the next."""
        found: list[Section] = []
        headings = iter(self.headings)
        words: list[str] = []
        codes: list[str] = []
        heading: Heading | None = None

        def end() -> None:
            if heading is not None:
                text = " ".join(" ".join(words).split())
                found.append(Section(heading=heading, text=text, codes=tuple(dict.fromkeys(codes))))

        for index, token in enumerate(self.tokens):
            if token.type == "heading_open":
                end()
                heading, words, codes = next(headings), [], []
            elif token.type == "inline" and self.tokens[index - 1].type != "heading_open":
                words.append(_plain(token))
                codes += [each.content for each in token.children or () if each.type == "code_inline"]
        end()
        return found


class Library:
    """All pages in all languages."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str], Guide] = {}
        for name in NAMES:
            english = self._pages[ENGLISH, name] = Guide(name, ENGLISH)
            if (GUIDES / RUSSIAN / f"{name}.md").exists():
                self._pages[RUSSIAN, name] = Guide(name, RUSSIAN, english)

    def has(self, language: str, name: str) -> bool:
        """Return whether the page exists in this language."""
        return (language, name) in self._pages

    def page(self, language: str, name: str) -> Guide:
        """Return a page. Raises: KeyError."""
        return self._pages[language, name]

    def nearest(self, language: str, name: str) -> Guide:
        """Return a page, in English if this language lacks it. Raises: KeyError."""
        return self._pages.get((language, name)) or self._pages[ENGLISH, name]

    def html(self, page: Guide) -> str:
        """Return the body of a page."""
        tokens = list(
            self._shown(page, _MARKDOWN.parse(page.source))
        )  # parsed again, because rendering changes the tokens
        return str(_RENDERER.render(tokens, _MARKDOWN.options, {}))

    def _shown(self, page: Guide, tokens: Sequence[Token]) -> Iterator[Token]:
        headings = iter(page.headings)
        titles: list[str] = []
        column = 0
        unnamed = set(CATALOGUE) if page.name == _ERRORS else set()
        row = tokens[0] if tokens else None
        for index, token in enumerate(tokens):
            match token.type:
                case "heading_open":
                    token.attrSet("id", next(headings).anchor)
                case "heading_close":
                    pass
                case "inline":
                    self._link(page, token)
                    before = tokens[index - 1].type
                    if before == "th_open":
                        titles.append(_plain(token))
                        if not token.content:
                            # A column without a name: screen readers would announce an empty heading.
                            tokens[index - 1].tag = tokens[index + 1].tag = "td"
                    elif any(
                        each.type == "image" and str(each.attrs["src"]).endswith(".svg")
                        for each in token.children or ()
                    ):
                        tokens[index - 1].attrs |= {"class": "drawing", "tabindex": "0"}
                    elif before == "td_open" and row is not None and (code := _lone_code(token) or "") in unnamed:
                        row.attrSet("id", code)
                        unnamed.discard(code)
                case "table_open":
                    token.attrSet("class", "stacks")
                    titles = []
                case "tr_open":
                    column, row = 0, token
                case "td_open":
                    if column < len(titles) and titles[column]:
                        token.attrSet("data-label", titles[column])
                    column += 1
            yield token

    def _link(self, page: Guide, inline: Token) -> None:
        """Point links to served targets. A link to a target that is not served becomes plain text."""
        children: list[Token] = []
        drops = False
        for each in inline.children or ():
            if each.type == "link_open":
                where = self._address(page, str(each.attrs["href"]))
                drops = where is None
                if where is not None:
                    each.attrSet("href", where)
            if each.type in ("link_open", "link_close") and drops:
                continue
            children.append(each)
        inline.children = children

    def _address(self, page: Guide, link: str) -> str | None:
        if "://" in link:
            return link
        path, _, anchor = unquote(link).partition("#")
        if not path:
            return f"#{page.served(anchor)}"
        found = _PAGE.match(path)
        if found is None or found["name"] not in NAMES:
            return None
        is_beside = page.language == ENGLISH or not path.startswith("../")
        target = self.page(page.language if is_beside else ENGLISH, found["name"])
        return path.removesuffix(".md") + (f"#{target.served(anchor)}" if anchor else "")


def contents(library: Library, base_url: str) -> str:
    """Return the text of /llms.txt: a link to the Markdown of each guide, with the titles of its sections."""
    lines = ["# cambist", "", "> A payment service. Its guides for merchants as Markdown, and its API as OpenAPI.", ""]
    lines += ["## API", "", f"- [OpenAPI]({base_url}/openapi.json): every operation with its fields and errors", ""]
    for language, (title, folder) in {ENGLISH: ("English", "docs"), RUSSIAN: ("Русский", "docs/ru")}.items():
        lines += [f"## {title}", ""]
        for page in (library.page(language, name) for name in NAMES if library.has(language, name)):
            about = "; ".join(each.title for each in page.headings if each.level == 2)
            lines.append(f"- [{page.title}]({base_url}/{folder}/{page.name}.md)" + (f": {about}" if about else ""))
        lines.append("")
    return "\n".join(lines)


def slug(title: str) -> str:
    """Return the anchor of a heading in a file, as GitHub and the documentation site make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            yield int(token.tag[1:]), tokens[index + 1]


def _plain(inline: Token) -> str:
    """Return a text without its markup."""
    kinds = {"softbreak": " ", "hardbreak": " "}
    return "".join(
        each.content if each.type in ("text", "code_inline") else kinds.get(each.type, "")
        for each in inline.children or ()
    )


def _lone_code(inline: Token) -> str | None:
    match inline.children:
        case [Token(type="code_inline", content=code)]:
            return str(code)
        case _:
            return None


def _renderer() -> Any:
    """Return the library's renderer with our code blocks and scrolling tables. It drops a page's own HTML."""
    made: Any = MarkdownIt("commonmark").enable("table").renderer
    rules = {
        "fence": lambda tokens, index, *_: _FENCE.format(
            escape(tokens[index].info.strip()), escape(tokens[index].content)
        ),
        "html_block": lambda *_: "",
        "html_inline": lambda *_: "",
        "table_open": lambda tokens, index, options, env: (
            f'<div class="scroll" tabindex="0">{made.renderToken(tokens, index, options, env)}'
        ),
        "table_close": lambda *_: "</table></div>\n",
        "heading_close": lambda tokens, index, *_: _heading_end(tokens, index),
    }
    made.rules.update(rules)
    return made


def _heading_end(tokens: Sequence[Token], index: int) -> str:
    opened = next(each for each in reversed(tokens[:index]) if each.type == "heading_open")
    anchor = escape(str(opened.attrs["id"]))
    return f' <a class="anchor" href="#{anchor}" aria-hidden="true" tabindex="-1">#</a></{opened.tag}>\n'


_RENDERER: Any = _renderer()
