"""What a package index shows of a release, and that a stranger can build the same files again."""

import ast
import email
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from tests.distributions import ROOT, build, copy_of_sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
EPOCH = 1_800_000_000


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with distributions of one state, the second with another umask, other modes and an earlier build."""
    folders = []
    for number, (mode, umask) in enumerate([(0o644, 0o022), (0o664, 0o002)]):
        folder = tmp_path_factory.mktemp(f"build{number}")
        copy_of_sources(folder / "source", mode)
        for path in (folder / "source" / "core").rglob("*.py"):
            os.utime(path, (EPOCH + number, EPOCH + number))
        if number:  # as an earlier version's build leaves them in a clone
            left = folder / "source" / "build" / "lib" / "cambist" / "core" / "gone.py"
            left.parent.mkdir(parents=True)
            left.write_text("", "utf-8")
        build(folder / "source", folder / "dist", EPOCH, umask)
        folders.append(folder / "dist")
    return folders


@pytest.fixture(scope="module")
def described(twice: list[Path]) -> bytes:
    """The wheel's METADATA."""
    [wheel] = twice[0].glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        [name] = [each for each in file.namelist() if each.endswith(".dist-info/METADATA")]
        return file.read(name)


@pytest.fixture(scope="module")
def message(described: bytes) -> Message:
    return email.message_from_bytes(described)


@pytest.mark.release
def test_two_builds_of_one_state_are_equal_to_the_byte(twice: list[Path]) -> None:
    """SOURCE_DATE_EPOCH gives the time; umask, folder and times of files change nothing."""
    sums = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} for folder in twice]
    assert sums[0] == sums[1]
    assert len(sums[0]) == 2


@pytest.mark.release
def test_source_distribution_names_no_user_and_one_time(twice: list[Path]) -> None:
    [sdist] = twice[0].glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        members = packed.getmembers()
    assert {(each.uid, each.gid, each.uname, each.gname, each.mtime) for each in members} == {(0, 0, "", "", EPOCH)}
    assert {each.mode for each in members if each.isfile()} == {0o644, 0o755}
    assert not [each.name for each in members if each.issym() or each.islnk()], "Windows has no links to unpack"
    assert {each.name.partition("/")[0] for each in members} == {f"cambist-{PROJECT['version']}"}


@pytest.mark.release
def test_wheel_is_pure_python(twice: list[Path]) -> None:
    [wheel] = twice[0].glob("*.whl")
    _, version, _, tags = parse_wheel_filename(wheel.name)
    assert str(version) == PROJECT["version"]
    assert {str(tag) for tag in tags} == {"py3-none-any"}
    with zipfile.ZipFile(wheel) as file:
        assert not [name for name in file.namelist() if name.endswith((".so", ".pyd", ".dylib"))]


@pytest.mark.release
def test_metadata_are_valid_and_lead_to_the_project(described: bytes, message: Message) -> None:
    read = Metadata.from_email(described, validate=True)
    assert read.license_expression == "Apache-2.0"
    assert read.license_files == ["LICENSE"]
    assert read.description_content_type == "text/markdown"
    assert read.summary
    assert read.keywords
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(read.project_urls or {})
    assert all(url.startswith(SOURCE) for url in (read.project_urls or {}).values())
    minors = {int(each) for each in re.findall(r"Python :: 3\.(\d+)", str(message.get_all("Classifier")))}
    assert minors == {11, 12, 13, 14}
    assert not [each for each in message.get_all("Requires-Dist", []) if " @ " in each], "no index takes an address"


@pytest.mark.release
def test_long_description_needs_no_file_beside_it(message: Message) -> None:
    """Every link and picture leads to the repository at the tag of this version, and to a file that is there."""
    text = str(message.get_payload(decode=True), "utf-8")  # type: ignore[arg-type]  # bytes, by decode
    assert text.startswith("# cambist\n")
    tokens = [each for block in MarkdownIt().enable("table").parse(text) for each in block.children or []]
    links = [str(each.attrs["href"]) for each in tokens if each.type == "link_open"]
    pictures = re.findall(r'<img src="([^"]+)"', text)
    assert len(links) > 30
    assert len(pictures) == 3
    assert not [each for each in [*links, *pictures] if not each.startswith("https://")]
    at = f"v{PROJECT['version']}"
    ours = {each for each in [*links, *pictures] if "/cambist/cambist/" in each}
    for each in ours:
        found = re.fullmatch(rf"https://[a-z.]+/cambist/cambist/(?:blob/)?{at}/([^#]+)(#.+)?", each)
        assert found is not None, each
        assert (ROOT / found[1]).exists(), each
    assert all(each.startswith("https://raw.") for each in pictures), "a page of a repository is no picture"


def test_the_same_version_everywhere() -> None:
    """The package, the image, the changelog and the pages that name a wheel."""
    version = PROJECT["version"]
    assert f"\n## {version} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    for name in ("deploy/Dockerfile", "deploy/compose.yaml"):
        assert set(re.findall(r"\bcambist:(\d+\.\d+\.\d+)", (ROOT / name).read_text("utf-8"))) == {version}, name
    for page in (ROOT / "docs").rglob("*.md"):
        assert set(re.findall(r"\bcambist-(\d+\.\d+\.\d+)", page.read_text("utf-8"))) <= {version}, page


def test_workflows_name_sessions_that_exist() -> None:
    """Nobody sees a release workflow fail before the release."""
    sessions = {
        each.name
        for each in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body
        if isinstance(each, ast.FunctionDef) and each.decorator_list
    }
    named = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            for step in job["steps"]:
                for command in re.findall(r"nox -s ([a-z_ ]+)", step.get("run", "")):
                    named |= set(command.split())
    assert {"package", "sbom", "docs", "lowest"} <= named
    assert named <= sessions


@pytest.mark.release
def test_tests_of_the_source_distribution_run_in_it(twice: list[Path], tmp_path: Path) -> None:
    """As a distributor runs them, without a clone."""
    [sdist] = twice[0].glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/domain/test_money.py"]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
