"""The OpenAPI document and the guides as HTML pages, which load nothing from other sites."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from ..templates import PAGES
from .collections import bruno_zip, postman
from .docs_model import reference
from .docs_texts import SYNONYMS, TEXTS, Texts
from .guides import ENGLISH, GROUPS, NAMES, Guide, Library
from .openapi import openapi_document
from .samples import pretty

Link = Callable[[str], str]
"""Returns the address of an asset."""


class Docs:
    """Renderer of the pages of one service. `assets` returns the addresses of assets for a page, relative to
    `/docs`."""

    def __init__(self, base_url: str, assets: Callable[[str], Link]) -> None:
        self._assets = assets
        self._library = Library()
        self._reference = cache(lambda: reference(openapi_document(base_url)))
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(PAGES), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
        )
        self._environment.filters["ticks"] = _ticks

    @property
    def languages(self) -> Sequence[str]:
        """Languages of the guides."""
        return tuple(TEXTS)

    def has(self, language: str, name: str) -> bool:
        """Return whether there is a guide of this name in this language."""
        return self._library.has(language, name)

    @property
    def groups(self) -> Sequence[str]:
        """Names of the pages of the reference: one for each subject."""
        return [group.id for group in self._reference().groups]

    def reference(self) -> bytes:
        """Render the first page of the reference: all subjects with their operations."""
        return self._draw("docs.html", ENGLISH, "", reference=self._reference(), current=None)

    def group(self, name: str) -> bytes:
        """Render the operations of a subject. Raises: StopIteration for an unknown one."""
        reference = self._reference()
        current = next(group for group in reference.groups if group.id == name)
        return self._draw("docs_group.html", ENGLISH, "../../", reference=reference, current=current)

    def postman(self) -> bytes:
        """Return the collection for Postman."""
        return pretty(postman(self._reference())).encode()

    def bruno(self) -> bytes:
        """Return the collection for Bruno as a ZIP file."""
        return bruno_zip(self._reference())

    def guide(self, language: str, name: str) -> bytes:
        """Render a guide. Raises: KeyError."""
        page = self._library.page(language, name)
        place = NAMES.index(name)
        return self._draw(
            "guide.html",
            language,
            "../" if language == ENGLISH else "../../",
            page=page,
            # Safe: made of our own files, whose HTML is dropped.
            body=Markup(self._library.html(page)),  # noqa: S704
            others=[each for each in TEXTS if each != language and self._library.has(each, name)],
            before=self._nearest(language, place - 1),
            after=self._nearest(language, place + 1),
        )

    def index(self, language: str) -> bytes:
        """Return the search index: operations, and the sections of all guides."""
        found = [
            {
                "href": f"docs/reference/{group.id}#{each.id}",
                "title": each.name,
                "of": f"{each.method} {each.path}",
                "also": f"{each.id.replace('_', ' ')} {each.summary}".replace("`", ""),
                "names": [row.name for row in (*each.parameters, *each.body)] + [row.code for row in each.problems],
                "text": "",
                "operation": True,
            }
            for group in self._reference().groups
            for each in group.shown
        ]
        for name in NAMES:
            page = self._library.nearest(language, name)
            found += [
                {
                    "href": f"{_path(page)}#{each.heading.anchor}",
                    "title": each.heading.title,
                    "of": page.title if each.heading.level > 1 else "",
                    "also": SYNONYMS.get(name if each.heading.level == 1 else f"{name}#{each.heading.anchor}", ""),
                    "names": list(each.codes),
                    "text": each.text,
                }
                for each in page.sections
            ]
        return msgspec.json.encode(found)

    def _nearest(self, language: str, place: int) -> Guide | None:
        return self._library.nearest(language, NAMES[place]) if 0 <= place < len(NAMES) else None

    def _draw(self, template: str, language: str, up: str, **values: Any) -> bytes:
        """Render a template. `up` is the relative path from the page to the parent of `/docs`."""
        texts: Texts = TEXTS[language]
        groups = [
            (texts.groups[group], [self._library.nearest(language, name) for name in names])
            for group, names in GROUPS.items()
        ]
        drawn = self._environment.get_template(template).render(
            language=language,
            texts=texts,
            names={each: TEXTS[each].name for each in TEXTS},
            up=up,
            path=_path,
            address=_address,
            guides=groups,
            asset=self._assets(f"{up}docs"),
            **values,
        )
        return drawn.encode()


def _address(language: str, name: str) -> str:
    """Return the path of a guide, relative to the parent of `/docs`."""
    return f"docs/{name}" if language == ENGLISH else f"docs/{language}/{name}"


def _path(page: Guide) -> str:
    return _address(page.language, page.name)


def _ticks(text: str) -> Markup:
    """Return the text with its `code` as HTML."""
    parts = [str(escape(part)) for part in text.split("`")]
    # Safe: every part is escaped above.
    return Markup("".join(f"<code>{part}</code>" if odd % 2 else part for odd, part in enumerate(parts)))  # noqa: S704
