"""Every relative link and picture of README and docs leads somewhere, and every page is in the site's contents. The
site's own build (`nox -s docs`) also looks at anchors."""

import re
from pathlib import Path

import pytest

from tests.docs.test_blocks import PAGES, ROOT

_LINK = re.compile(r"""\]\(([^)\s]+)\)|<img src="([^"]+)\"""")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


_BESIDE = [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]


@pytest.mark.parametrize("page", [*PAGES, *_BESIDE], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = _FENCED.sub("", page.read_text("utf-8"))
    links = [found[1] or found[2] for found in _LINK.finditer(prose)]
    missing = [link for link in links if "://" not in link and not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


def test_the_contents_have_every_page_once() -> None:
    index = (ROOT / "docs/index.md").read_text("utf-8")
    named = [line for block in _CONTENTS.findall(index) for line in block.split() if not line.startswith(":")]
    named = [name for name in named if name not in ("Merchants", "Developers", "Operators")]
    pages = {page.stem for page in PAGES if page.parent.name == "docs"} - {"index"}
    assert sorted(named) == sorted(pages)
