"""Run the code blocks of README and docs unchanged, page by page: shell lines against one service, Python in order.

A block that cannot be run says why, in an HTML comment right above it: `<!-- not run: why -->`. Addresses of examples
(http://127.0.0.1:8080) are the running service's; `cambist serve` is that service.
"""

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from cambist.core.usecases.accounts.accounts import NewAccount
from tests.patience import HANGS
from tests.stories.processes import WEBHOOK_SECRET, Installation
from tests.tables import table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {
    "frameworks.md": "tests/embedding/test_frameworks.py",
    "client.md": "tests/client/test_documents.py",
    "testing.md": "tests/plugin/test_plugin.py",
}
"""Pages whose Python has a test of its own, because it is a merchant's test suite, or needs one."""
RECEIVERS = "tests/docs/test_receivers.py"
NOT_RUN_AT_MOST = 15
SHELLS = ("sh", "bash", "console")
QUICKSTART = "quickstart.md"
EXAMPLE = "http://127.0.0.1:8080"

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n)?^```(?P<language>[\w{}]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXACT = re.compile(r"[A-Za-z_]{2,}|-?[0-9]+(\.[0-9]+)?")
_IS_SERVER = "serve_forever"
_TOLD = re.compile(r"^@@ (\d+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str
    why: str | None
    """Why it is not run."""


def blocks_of(page: Path) -> list[Block]:
    return [
        Block(page.name, found["language"], found["text"], found["why"])
        for found in _BLOCK.finditer(page.read_text("utf-8"))
    ]


ALL = {page.name: blocks_of(page) for page in PAGES}


def runnable(page: str, *languages: str) -> list[Block]:
    return [block for block in ALL[page] if block.language in languages and block.why is None]


def having(*languages: str) -> list[str]:
    return [page for page in ALL if runnable(page, *languages)]


@dataclass(frozen=True)
class Running:
    """The running service, its installation, and a merchant for each page: limits are per key."""

    address: str
    installation: Installation
    merchants: dict[str, NewAccount]

    def environ(self, page: str) -> dict[str, str]:
        """Environment variables that a reader of the page has exported at this point."""
        merchant = self.merchants[page]
        return {
            **self.installation.environ,
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
            "ACCOUNT_ID": merchant.account_id,
            "API_KEY": merchant.test.api_key,
            "API_SECRET": merchant.test.api_secret,
            "WEBHOOK_SECRET": WEBHOOK_SECRET,
        }

    def here(self, text: str) -> str:
        """A block with the addresses of this service."""
        return text.replace(EXAMPLE, self.address).replace("https://pay.example", self.address)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    installation = Installation(tmp_path_factory.mktemp("docs"), log_level="error")
    process, address = installation.serve()
    try:
        pages = having(*SHELLS)
        made = asyncio.run(installation.accounts(len(pages)))
        yield Running(address, installation, dict(zip(pages, made, strict=True)))
    finally:
        process.kill()


def script_of(page: str) -> tuple[str, list[Block]]:
    """All shell blocks of a page as one script, which says after each how it ended; and the blocks."""
    blocks = runnable(page, *SHELLS)
    if page != QUICKSTART and any(word in block.text for block in blocks for word in ("call ", "create ")):
        blocks = [next(block for block in runnable(QUICKSTART, "sh") if "call()" in block.text), *blocks]
    parts = []
    for number, block in enumerate(blocks):
        lines = [line for line in block.text.splitlines() if not line.startswith("cambist serve")]
        parts.append("\n".join([*lines, f"printf '\\n@@ {number} %s\\n' $?"]))
    return "\n".join(parts), blocks


def test_shell_lines_run_and_answer_as_shown(service: Running, tmp_path: Path) -> None:
    """One test for all pages, because each of several workers would start a service of its own."""
    faults = []
    for page in having(*SHELLS):
        folder = tmp_path / page
        folder.mkdir()
        try:
            run_page(page, service, folder)
        except (AssertionError, ValueError) as fault:
            faults.append(str(fault))
    assert not faults, "\n\n".join(faults)


def run_page(page: str, service: Running, folder: Path) -> None:
    """All shell lines of a page, in one shell."""
    script, blocks = script_of(page)
    done = subprocess.run(
        ["bash", "-u", "-o", "pipefail", "-c", service.here(script)],
        cwd=folder,
        env=service.environ(page),
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    told = _told(done.stdout)
    assert len(told) == len(blocks), f"{page} stopped in the middle: {done.stdout}{done.stderr}"
    for block, (output, status) in zip(blocks, told, strict=True):
        assert status == 0, f"{page}: {block.text}\n{output}\n{done.stderr}"
        expected = answer_after(page, block)
        if expected is not None:
            assert_like(expected, msgspec.json.decode(output), f"{page}: {block.text}")


def _told(output: str) -> list[tuple[str, int]]:
    """Output and exit status of each block."""
    parts = _TOLD.split(output)
    return [(text, int(status)) for text, status in zip(parts[0::3], parts[2::3], strict=False)]


def answer_after(page: str, block: Block) -> Any:
    """The JSON that the page shows right after a block; None: it shows none."""
    for first, second in pairwise(ALL[page]):
        if first is block and second.language == "json" and second.why is None:
            return msgspec.json.decode(second.text)
    return None


def assert_like(shown: Any, real: Any, where: str) -> None:
    """Check that every shown field exists: words and amounts are equal, other values have the same type."""
    if isinstance(shown, dict):
        assert isinstance(real, dict), where
        for name, value in shown.items():
            assert name in real, f"{where}: {name} is not in {real}"
            assert_like(value, real[name], f"{where}: {name}")
    elif isinstance(shown, list):
        assert isinstance(real, list), where
        assert len(real) >= len(shown), where
        for one, other in zip(shown, real, strict=False):
            assert_like(one, other, where)
    elif isinstance(shown, str) and not _EXACT.fullmatch(shown):
        assert isinstance(real, str), f"{where}: {real!r}"
    elif isinstance(shown, int) and not isinstance(shown, bool):
        assert isinstance(real, int), f"{where}: {real!r}"
    else:
        assert shown == real, f"{where}: {real!r}"


@pytest.mark.parametrize("page", [page for page in having("python") if page not in ELSEWHERE])
def test_python_blocks_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", WEBHOOK_SECRET)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "documented"}
    for block in runnable(page, "python"):
        if _IS_SERVER in block.text:
            assert page == "webhooks.md", f"{RECEIVERS} runs the receivers, and only of that page"
        exec(compile(block.text, page, "exec"), names)
    for test in [value for name, value in names.items() if name.startswith("test_")]:
        asyncio.run(test()) if inspect.iscoroutinefunction(test) else test()


def test_every_function_of_the_embedding_page_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that only defines a function may show a call that fails."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == "embedding.md":
            called.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        test_python_blocks_run_in_order("embedding.md", tmp_path, monkeypatch)
    finally:
        sys.setprofile(None)
    written = "\n".join(block.text for block in runnable("embedding.md", "python"))
    defined = {
        each.name for each in ast.walk(ast.parse(written)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert defined - called == set()


def test_pages_with_python_of_their_own_tests_are_run_by_them() -> None:
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / test).read_text("utf-8")


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [block for blocks in ALL.values() for block in blocks if block.why is not None]
    assert [block for block in left_out if len(block.why or "") < 10] == []
    assert len(left_out) <= NOT_RUN_AT_MOST, [f"{block.page}: {block.text}" for block in left_out]


def test_every_block_names_its_language() -> None:
    assert [f"{block.page}: {block.text}" for blocks in ALL.values() for block in blocks if not block.language] == []


@table(
    ("shown", "real"),
    [({"a": "paid"}, {"a": "failed"}), ("1.00", "2.00"), ({"a": 1}, {}), ([1], []), ("id_1", None), (None, "x")],
)
def test_the_comparison_can_fail(shown: Any, real: Any) -> None:
    with pytest.raises(AssertionError):
        assert_like(shown, real, "here")
