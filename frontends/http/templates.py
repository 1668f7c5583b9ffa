"""Templates and assets of the pages (`pages/`), shared by the payer window, the KYC page and `/docs`."""

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .packed import Packed, pack

if TYPE_CHECKING:
    import jinja2

PAGES = Path(__file__).parent / "pages"


@cache
def read_asset(name: str, media_type: str, folder: Path = PAGES) -> Packed:
    """Return a file of `pages/` or another folder, read on first use."""
    return pack((folder / name).read_bytes(), media_type)


class Templates:
    """The templates of one router, in a folder. All of them can use `values`."""

    def __init__(self, *, folder: Path = PAGES, **values: Any) -> None:
        self._folder = folder
        self._values = values

    def draw(self, template: str, **values: Any) -> str:
        """Render a page. A missing value is an error, not an empty string."""
        return self._environment.get_template(template).render(**values)

    @cached_property
    def _environment(self) -> "jinja2.Environment":
        # Imported late: a merchant's sandbox starts without Jinja, and most sandboxes render no page.
        import jinja2

        made = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folder),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.globals |= self._values
        return made
