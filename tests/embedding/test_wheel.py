"""The built wheel in a project of somebody else's, which has packages of its own named like our floors."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from tests.distributions import build, copy_of_sources

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]
FLOORS = ("core", "ports", "adapters", "frontends")

PROGRAM = """
import asyncio
import sys

import adapters
import cambist
import core
import frontends
import ports

assert {core.MINE, ports.MINE, adapters.MINE, frontends.MINE} == {"mine"}
heard: list[cambist.Event] = []


async def main() -> str:
    async with cambist.open(on_event=heard.append) as service:
        account: cambist.NewAccount = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id, cambist.Mode.TEST)
        payment: cambist.Payment = await merchant.create_payment("490.00", external_id="order-1")
        await merchant.simulate(payment.id, "paid")
        await service.run_due()
        try:
            service.asgi()
        except cambist.NotInstalled as missing:
            print(missing)
    try:
        async with cambist.open("sqlite:///shop.db"):
            pass
    except cambist.NotInstalled as missing:
        print(missing)
    [event] = heard
    assert isinstance(event.payload, cambist.PaymentStatusChanged)
    return event.payload.status


print(asyncio.run(main()))
print(*sorted({name.partition(".")[0] for name, module in sys.modules.items()
               if "site-packages" in (getattr(module, "__file__", None) or "")}))
"""

WRONG = """
import cambist


async def wrong(merchant: cambist.Merchant) -> int:
    return await merchant.create_payment(4.90)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, made of a copy: building leaves things behind."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_of_sources(folder / "source")
    build(folder / "source", folder)
    return folder


@pytest.fixture(scope="module")
def project(built: Path) -> Path:
    """A project with an environment of its own: the wheel, msgspec, and nothing else."""
    [wheel] = built.glob("cambist-*.whl")
    project = built / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")], check=True)
    [packages] = (project / ".venv" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        file.extractall(packages)
    assert not [name for name in names if name.startswith(("tests/", "core/", "benchmarks/", "examples/"))]
    (packages / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    for floor in FLOORS:
        (project / floor).mkdir()
        (project / floor / "__init__.py").write_text('MINE: str = "mine"\n')
    (project / "program.py").write_text(PROGRAM)
    (project / "wrong.py").write_text(WRONG)
    return project


def test_wheel_and_source_distribution_have_every_file_of_the_package(built: Path) -> None:
    """Pages, styles and migrations, too: non-Python files are packed only if pyproject.toml names their suffix."""
    [sdist], [wheel] = built.glob("cambist-*.tar.gz"), built.glob("cambist-*.whl")
    with tarfile.open(sdist) as packed, zipfile.ZipFile(wheel) as file:
        sources = {member.name.partition("/")[2] for member in packed if member.isfile()}
        installed = set(file.namelist())
    files = [path for floor in FLOORS for path in (built / "source" / floor).rglob("*") if path.is_file()]
    wanted = {f"cambist/{path.relative_to(built / 'source')}" for path in files}
    wanted |= {
        f"cambist/{edge}" for edge in ("client.py", "testing.py", "conformance/__init__.py", "conformance/bank.py")
    }
    guides = {f"cambist/frontends/http/guides/{each}" for each in ("en/errors.md", "ru/errors.md", "images/window.png")}
    wanted |= guides
    assert wanted - sources == wanted - installed == set()
    assert {"README.md", "LICENSE", "pyproject.toml", "cambist/__init__.py", "cambist/py.typed"} <= sources
    apart = {"noxfile.py", "docs/images/window.png", "examples/shop.py", "deploy/sbom.py", "CHANGELOG.md"}
    tests = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")}
    assert (tests | apart) - sources == set()
    assert not [name for name in sources if name.endswith((".pyc", ".sqlite3")) or name.startswith("deploy/secrets/")]


def test_core_runs_on_msgspec_alone_and_names_the_missing_extra(project: Path) -> None:
    python = project / ".venv" / "bin" / "python"
    done = subprocess.run([python, "program.py"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asgi, sql, status, loaded = done.stdout.splitlines()
    assert "pip install 'cambist[http]'" in asgi
    assert "pip install 'cambist[sql]'" in sql
    assert status == "paid"
    assert loaded == "cambist msgspec"
    done = subprocess.run(
        [python, "-c", "import cambist.conformance"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "NotInstalled: the conformance kit needs 'pytest': pip install 'cambist[testing]'" in done.stderr


def test_a_copy_without_symbolic_links_is_refused_with_one_line(tmp_path: Path) -> None:
    """As git leaves them on a Windows without the right to make links: files with the path as their text."""
    for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, tmp_path / part)
    (tmp_path / "cambist").mkdir()
    for name in (*FLOORS, "__init__.py", "py.typed"):
        (tmp_path / "cambist" / name).write_text(f"../{name}")
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    done = subprocess.run([sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("cambist/core is no folder")
    assert "git clone -c core.symlinks=true" in line


def _checked(checker: list[str], project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *checker], cwd=project, capture_output=True, text=True, check=False)


def test_wheel_is_typed_for_mypy(project: Path) -> None:
    """mypy is strict and finds the errors: nothing is Any on the way."""
    python = str(project / ".venv" / "bin" / "python")
    found = _checked(["mypy", "--strict", "--python-executable", python, "program.py", "wrong.py", *FLOORS], project)
    assert "Found 2 errors in 1 file" in found.stdout, found.stdout
    assert 'has incompatible type "float"' in found.stdout
    assert 'return value type (got "Payment", expected "int")' in found.stdout


def test_wheel_is_typed_for_pyright(project: Path) -> None:
    """The same."""
    python = str(project / ".venv" / "bin" / "python")
    found = _checked(["pyright", "--pythonpath", python, "program.py", "wrong.py"], project)
    assert "2 errors" in found.stdout, found.stdout
    assert "program.py:" not in found.stdout


def test_a_stranger_runs_the_contract_from_a_project_of_his_own(project: Path) -> None:
    """As docs/adapters.md says: a conftest.py with the fixture, and `pytest --pyargs`. Tried on the example bank, whose
    faults test_examples.py plays."""
    (project / "conftest.py").write_text("from examples.own_bank.conftest import bank_harness\n")
    [packages] = (project / ".venv" / "lib").glob("python*/site-packages")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-W",
         "ignore", "-k", "not Faults", "--pyargs", "cambist.conformance.bank"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) >= 40
    assert "does not play" not in done.stdout, "what is left out is what the bank says that it cannot do"


def test_a_stranger_s_package_of_several_adapters_keeps_all_contracts(project: Path) -> None:
    """examples/own_package, as its first lines say; its harnesses play all that the suites ask for."""
    (packages,) = (project / ".venv" / "lib").glob("python*/site-packages")
    package = project / "package"
    shutil.copytree(ROOT / "examples" / "own_package", package, ignore=shutil.ignore_patterns("__pycache__"))
    suites = [f"cambist.conformance.{each}" for each in ("rates", "kyc", "chain", "storage")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs", *suites],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not play" not in done.stdout
    assert "site-packages" in done.stdout, "the suites are those of the wheel"
