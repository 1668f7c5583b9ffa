"""Every relative link and picture of README and docs leads somewhere, and every page is in the site's contents. The
site's own build (`nox -s docs`) also checks anchors."""

import re
from pathlib import Path

from tests.docs.test_blocks import PAGES, ROOT
from tests.tables import table

_LINK = re.compile(r"""\]\(([^)\s]+)\)|<img src="([^"]+)\"""")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOCS = ROOT / "docs"
_WITH_CONTENTS = (_DOCS / "index.md", _DOCS / "providers/index.md", _DOCS / "ru/index.md")


_BESIDE = [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
_BESIDE += (ROOT / "docs/providers").glob("*.md")
_BESIDE += (ROOT / "docs/ru").glob("*.md")
_BESIDE += (ROOT / "docs/contributing").glob("*.md")
_BESIDE += (ROOT / "changes").glob("*.md")


@table("page", [*PAGES, *_BESIDE], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = _FENCED.sub("", page.read_text("utf-8"))
    links = [found[1] or found[2] for found in _LINK.finditer(prose)]
    missing = [link for link in links if "://" not in link and not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


def test_the_contents_have_every_page_once() -> None:
    named: list[Path] = []
    for index in _WITH_CONTENTS:
        lines = [line for block in _CONTENTS.findall(index.read_text("utf-8")) for line in block.split()]
        lines = [line for line in lines if line not in ("Merchants", "Developers", "Contributors", "Operators")]
        named += [index.parent / f"{line}.md" for line in lines if not line.startswith(":")]
    assert sorted(named) == sorted({*_DOCS.rglob("*.md")} - {_DOCS / "index.md"})


def test_samples_need_no_file_that_only_linux_has() -> None:
    samples = [ROOT / "README.md", *(ROOT / "docs").rglob("*quickstart.md"), *(ROOT / "docs").rglob("concepts.md")]
    samples += [ROOT / "frontends/http/openapi/samples.py", ROOT / "frontends/cli/demo.py"]
    assert [str(page) for page in samples if "/proc/" in page.read_text("utf-8")] == []
