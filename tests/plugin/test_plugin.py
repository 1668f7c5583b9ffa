"""The pytest plugin in merchants' suites: used and unused, with and without its dependencies, without any warning."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import cambist.frontends.testing.sandbox  # noqa: F401 - else every inner run imports it anew

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
MODULE = "cambist.frontends.testing.plugin"
STRICT = """
[pytest]
filterwarnings = error
addopts = --strict-markers --strict-config -p no:xdist -p no:benchmark -p no:timeout
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
"""
NOT_AT_START = ("cambist.frontends.client", "httpx2", "msgspec", "litestar")


def plugin() -> tuple[str, ...]:
    """Return the options that load the plugin: none where this checkout is installed with its entry point."""
    known = any(point.value == MODULE for point in entry_points(group="pytest11"))
    return () if known else ("-p", MODULE)


def test_a_suite_the_example_and_the_documents_pass_under_strict_warnings(pytester: pytest.Pytester) -> None:
    pytester.makeini(STRICT)
    shutil.copy(ROOT / "tests/plugin/merchant_suite.py", pytester.path / "test_merchant.py")
    pytester.syspathinsert(ROOT)
    example = ROOT / "examples/merchant_tests/test_shop.py"
    documented = re.findall(r"```python\n(.*?)```", (ROOT / "docs/testing.md").read_text("utf-8"), re.DOTALL)
    for number, block in enumerate(documented):
        (pytester.path / f"test_documented_{number}.py").write_text(block)
    # Where it is installed with its entry point: this process has imported it, a merchant's has not.
    imported = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
    result = pytester.runpytest_inprocess(*plugin(), *imported, "-c", "tox.ini", ".", example)
    result.assert_outcomes(passed=25)


def test_pytest_finds_it_by_its_entry_point() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pytest11"]
    assert declared == {"cambist": MODULE}


UNUSED = f"""
import sys

def test_unused():
    assert [name for name in {NOT_AT_START!r} if sys.modules.get(name)] == []

def test_used(cambist_sandbox):
    pass
"""
WITHOUT_SERVER = "import sys, pytest; sys.modules['litestar'] = None; sys.exit(pytest.main(sys.argv[1:]))"


def test_plugin_costs_nothing_unused_and_says_what_it_needs(tmp_path: Path) -> None:
    """A run without the extra: tests without the plugin pass, and tests with it fail with a message
    that names the package to install."""
    (tmp_path / "test_it.py").write_text(UNUSED)
    command = [sys.executable, "-c", WITHOUT_SERVER, *plugin(), "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "the sandbox needs 'litestar': pip install 'cambist[testing]'" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


REFUSED = """
def test_sync(cambist_sandbox):
    cambist_sandbox.client.payments.create(amount_rub="1.00")  # the merchant's own line

def test_a_fault_of_the_client_itself(cambist_sandbox):
    cambist_sandbox.client.payments.create(amount_rub=1.5)
"""


def test_refused_call_shows_the_merchants_own_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(REFUSED)
    command = [sys.executable, "-m", "pytest", *plugin(), "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    refused, _, fault = done.stdout.partition("_ test_a_fault_of_the_client_itself _")
    assert "CambistError: AMOUNT_BELOW_MINIMUM" in refused
    assert "the merchant's own line" in refused
    assert "frontends/client" not in refused
    assert "frontends/client" in fault, "what is no answer of the service is shown whole"


ASSERTS = """
import gc
import sys

import pytest

pytest.register_assert_rewrite("cambist")

def loader(name):
    return type(sys.modules[name].__spec__.loader).__name__

def test_first(cambist_sandbox):
    assert gc.isenabled()
    import cambist.frontends.conformance.harnesses
    assert loader("cambist.frontends.conformance.harnesses") == "AssertionRewritingHook"
    assert loader("cambist.core.usecases.payments.payments") == "SourceFileLoader"
"""


def test_service_modules_are_not_recompiled_for_their_asserts(tmp_path: Path) -> None:
    """pytest rewrites all packages that bring a plugin, each time if it cannot write its cache, which takes a second
    and more. Modules that others import later are theirs to have rewritten."""
    (tmp_path / "test_it.py").write_text(ASSERTS)
    command = [sys.executable, "-m", "pytest", *plugin(), "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
