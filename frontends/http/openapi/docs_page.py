"""The OpenAPI document as a page to read, which loads nothing from anybody else."""

from collections.abc import Callable

import jinja2
from markupsafe import Markup, escape

from ..templates import PAGES
from .docs_model import Reference, reference
from .openapi import openapi_document

Link = Callable[[str], str]
"""The address of an asset."""


def docs_page(base_url: str, link: Link) -> bytes:
    """The page of the service that is reached at `base_url`."""
    return draw(reference(openapi_document(base_url)), link).encode()


def draw(of: Reference, link: Link) -> str:
    """The page of a reference."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["ticks"] = _ticks
    return environment.get_template("docs.html").render(reference=of, asset=link)


def _ticks(text: str) -> Markup:
    """Text with `code` in it."""
    parts = [str(escape(part)) for part in text.split("`")]
    # Safe as it is: every part was escaped above.
    return Markup("".join(f"<code>{part}</code>" if odd % 2 else part for odd, part in enumerate(parts)))  # noqa: S704
