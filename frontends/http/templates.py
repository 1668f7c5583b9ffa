"""Templates and files of the pages (`pages/`): what the payer window, the KYC page and `/docs` have in common."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import jinja2

PAGES = Path(__file__).parent / "pages"


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a page loads. `tag` is a hash of what is in it."""

    body: bytes
    media_type: str
    tag: str


def read_asset(name: str, media_type: str) -> Asset:
    """A file of `pages/`."""
    body = (PAGES / name).read_bytes()
    return Asset(body=body, media_type=media_type, tag=hashlib.sha256(body).hexdigest()[:16])


class Templates:
    """The templates of one router. `values` are known to all of them."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def draw(self, template: str, **values: Any) -> str:
        """A page. A value that the template needs and does not get is an error, not a gap."""
        return self._environment.get_template(template).render(**values)

    @cached_property
    def _environment(self) -> "jinja2.Environment":
        # Here: a merchant's sandbox starts without it, and most draw no page.
        import jinja2

        made = jinja2.Environment(
            loader=jinja2.FileSystemLoader(PAGES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.globals |= self._values
        return made
