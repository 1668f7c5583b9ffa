"""Templates and files of the pages (`pages/`): what the payer window, the KYC page and `/docs` have in common."""

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .packed import Packed, pack

if TYPE_CHECKING:
    import jinja2

PAGES = Path(__file__).parent / "pages"


@cache
def read_asset(name: str, media_type: str) -> Packed:
    """A file of `pages/`, as it is when it is first asked for."""
    return pack((PAGES / name).read_bytes(), media_type)


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
