"""Contents of the image: each package by its hash, as `pyproject.toml` asks for it, with a bill of materials; each
image by its digest."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.sbom import OWN, Pin, bill, read_lock
from tests.tables import table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PYTHON = "3.11.13"
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "implementation_name": "cpython"}
ENVIRONMENTS: list[dict[str, str]] = [
    {
        **{name: str(value) for name, value in default_environment().items()},
        **LINUX,
        "platform_machine": machine,
        "python_version": "3.11",
        "python_full_version": PYTHON,
    }
    for machine in ("x86_64", "aarch64")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINS = {pin.name: pin for pin in read_lock((DEPLOY / "requirements.lock").read_text("utf-8"))}
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
LEFT_OUT = {"faker", "polyfactory"}
"""Requirements of litestar that the image does not have, because nothing of the service loads them
(tests/architecture/test_start.py)."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["bomFormat", "specVersion", "components", "dependencies"],
    "properties": {
        "$schema": {"enum": ["http://cyclonedx.org/schema/bom-1.6.schema.json"]},
        "bomFormat": {"enum": ["CycloneDX"]},
        "specVersion": {"enum": ["1.6"]},
        "serialNumber": {"pattern": "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
        "version": {"type": "integer", "minimum": 1},
        "metadata": {
            "type": "object",
            "properties": {"component": {"$ref": "#/$defs/component"}},
            "additionalProperties": False,
        },
        "components": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/component"}},
        "dependencies": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "required": ["ref"],
                "properties": {
                    "ref": {"type": "string", "minLength": 1},
                    "dependsOn": {"type": "array", "uniqueItems": True, "items": {"type": "string", "minLength": 1}},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
    "$defs": {
        "component": {
            "type": "object",
            "required": ["type", "name"],
            "properties": {
                "type": {"enum": ["application", "library"]},
                "bom-ref": {"type": "string", "minLength": 1},
                "name": {"type": "string"},
                "version": {"type": "string", "maxLength": 1024},
                "purl": {"type": "string", "pattern": "^pkg:pypi/[a-z0-9-]+@[^@]+$"},
                "licenses": {"type": "array"},
            },
            "additionalProperties": False,
        }
    },
}
"""Essentials of CycloneDX 1.6: its required fields, and the optional fields that we use."""


def asked(requirements: list[str], extras: set[str]) -> Iterator[Requirement]:
    """Requirements that hold on one of the image's platforms."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(
            marker.evaluate({**environment, "extra": extra}) for environment in ENVIRONMENTS for extra in extras or {""}
        ):
            yield requirement


def asked_by_us() -> list[Requirement]:
    """Requirements of the extra `server` and of the extras it includes."""
    optional, waiting = PROJECT["project"]["optional-dependencies"], {"server"}
    found = list(asked(PROJECT["project"]["dependencies"], set()))
    while waiting:
        for requirement in asked(optional[waiting.pop()], set()):
            if requirement.name == OWN:
                waiting |= requirement.extras
            else:
                found.append(requirement)
    return found


def test_every_requirement_of_the_service_is_satisfied() -> None:
    wanted = asked_by_us()
    assert len(wanted) > 15
    for requirement in wanted:
        pin = PINS[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), requirement
        assert OWN in pin.wanted_by, requirement


def test_every_requirement_of_each_package_is_satisfied() -> None:
    """According to the packages' own metadata. The tests run with the locked versions."""
    extras: dict[str, set[str]] = {name: set() for name in PINS}
    for requirement in asked_by_us():
        extras[canonicalize_name(requirement.name)] |= requirement.extras
    looked_at = 0
    for _ in range(2):  # extras that a later package requires
        for pin in PINS.values():
            if installed(pin.name) != pin.version:
                continue
            looked_at += 1
            for requirement in asked(requires(pin.name) or [], extras[pin.name]):
                name = canonicalize_name(requirement.name)
                if name in LEFT_OUT:
                    continue
                assert requirement.specifier.contains(PINS[name].version), (pin.name, requirement)
                assert pin.name in PINS[name].wanted_by, (pin.name, requirement)
                extras[name] |= requirement.extras
    assert looked_at > 0


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def test_packages_left_out_are_those_that_lock_and_build_name() -> None:
    assert LEFT_OUT.isdisjoint(PINS)
    [missing] = re.findall(r"requires \(([a-z|]+)\)", DOCKERFILE)
    [named] = re.findall(r"^_LEFT_OUT = \((.+)\)$", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE)
    assert set(missing.split("|")) == set(re.findall(r"[a-z]+", named)) == LEFT_OUT


def test_nothing_is_listed_that_nobody_asks_for() -> None:
    """From the service's own requirements every package is reached."""
    direct = {canonicalize_name(requirement.name) for requirement in asked_by_us()}
    assert {pin.name for pin in PINS.values() if OWN in pin.wanted_by} == direct
    reached, waiting = set[str](), {OWN}
    while waiting:
        asker = waiting.pop()
        reached.add(asker)
        waiting |= {pin.name for pin in PINS.values() if asker in pin.wanted_by} - reached
    assert reached == {*PINS, OWN}


@table("name", ["requirements.lock", "build-requirements.lock"])
def test_each_file_has_a_hash_and_no_line_names_a_place(name: str) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    pins = read_lock(text)
    assert pins
    assert all(pin.hashes and not pin.marker for pin in pins), "one lock for both platforms"
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=)", text, re.MULTILINE), "no option, of an index least of all"


@table("line", ["--index-url x", "-e .", "a @ https://a.example/a.whl", "a>=1", "a==1"])
def test_a_line_that_pins_nothing_is_no_lock(line: str) -> None:
    with pytest.raises(ValueError, match="no line"):
        read_lock(f"{line}\n")


def test_the_build_uses_what_the_project_says() -> None:
    [wanted] = map(Requirement, PROJECT["build-system"]["requires"])
    [pin] = read_lock((DEPLOY / "build-requirements.lock").read_text("utf-8"))
    assert wanted.specifier.contains(pin.version)
    assert wanted.name == pin.name


class TestBill:
    document = bill(list(PINS.values()), "1.2.3")

    def test_bill_is_cyclonedx(self) -> None:
        jsonschema.Draft202012Validator(SCHEMA).validate(self.document)

    def test_bill_names_every_package_once_and_its_dependants(self) -> None:
        references = {f"pkg:pypi/{pin.name}@{pin.version}" for pin in PINS.values()}
        assert sorted(each["bom-ref"] for each in self.document["components"]) == sorted(references)
        asked_for = {each["ref"]: set(each["dependsOn"]) for each in self.document["dependencies"]}
        assert set(asked_for) == references | {f"pkg:pypi/{OWN}@1.2.3"}
        assert set.union(*asked_for.values()) == references

    def test_the_same_lock_has_the_same_bill_and_another_file_another_number(self) -> None:
        pins = list(PINS.values())
        assert bill(pins, "1.2.3") == self.document
        other = [Pin(pins[0].name, pins[0].version, "", ["0" * 64], pins[0].wanted_by), *pins[1:]]
        assert bill(other, "1.2.3")["serialNumber"] != self.document["serialNumber"]

    def test_the_command_writes_it(self, tmp_path: Path) -> None:
        into = tmp_path / "made" / "sbom.cdx.json"
        subprocess.run([sys.executable, str(DEPLOY / "sbom.py"), str(into)], check=True)
        written = json.loads(into.read_text("utf-8"))
        assert written == bill(list(PINS.values()), PROJECT["project"]["version"])


class TestImages:
    def test_every_one_is_named_with_its_digest_or_nothing_starts(self) -> None:
        compose = (DEPLOY / "compose.yaml").read_text("utf-8")
        for image in re.findall(r"^ +image: (.+)$", compose, re.MULTILINE):
            assert re.fullmatch(r"cambist:\d+\.\d+\.\d+|\$\{[A-Z]+_IMAGE:\?.+\}", image)
        assert re.search(r"^ +PYTHON: \$\{PYTHON:\?.+\}$", compose, re.MULTILINE)
        assert re.findall(r"^ARG PYTHON.*$", DOCKERFILE, re.MULTILINE) == ["ARG PYTHON", "ARG PYTHON"], "no default"
        assert {each.split()[0] for each in re.findall(r"^FROM (.+)$", DOCKERFILE, re.MULTILINE)} == {"${PYTHON}"}
        assert "syntax=" not in DOCKERFILE, "an image by its tag, too"

    @table(
        ("image", "taken"),
        [
            (f"python:{PYTHON}-slim-bookworm@sha256:{'a' * 64}", True),
            (f"registry.example:5000/python:{PYTHON}-slim@sha256:{'a' * 64}", True),
            (f"python:{PYTHON}-slim-bookworm", False),
            ("python", False),
            (f"python:3.12.0-slim@sha256:{'a' * 64}", False),
            ("", False),
        ],
    )
    def test_the_build_refuses_a_tag_alone(self, image: str, taken: bool) -> None:
        """The Dockerfile's own words, in a shell."""
        [check] = re.findall(r"^RUN (case .+?esac)$", DOCKERFILE, re.MULTILINE | re.DOTALL)
        done = subprocess.run(["sh", "-c", check], env={"PYTHON": image}, capture_output=True, check=False)
        assert (done.returncode == 0) is taken
        assert (b"digest" in done.stderr) is not taken

    def test_the_lock_is_made_for_the_images_python(self) -> None:
        for name in ("noxfile.py", "deploy/pin-images.sh", "deploy/Dockerfile"):
            assert set(re.findall(r"\b3\.11\.\d+", (ROOT / name).read_text("utf-8"))) == {PYTHON}, name

    def test_packages_are_installed_by_hash_and_our_own_from_here(self) -> None:
        installs = re.findall(r"pip (?:install|wheel) ([^\\\n]+)", DOCKERFILE)
        assert len(installs) == 4
        assert "--no-deps" in installs[0], "the packages left out are not asked for"
        assert all("--require-hashes" in each or ("--no-deps" in each and "--no-index" in each) for each in installs)

    @pytest.fixture
    def docker(self, tmp_path: Path) -> Path:
        """Install a fake `docker`, which reads each image's digest from the file beside it."""
        program = tmp_path / "bin" / "docker"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "buildx imagetools inspect" ] && cat "{tmp_path}/digest"\n')
        program.chmod(0o755)
        return program.parent

    def pinned(self, docker: Path, digest: str, into: Path) -> int:
        (docker.parent / "digest").write_text(digest)
        environ = {"PATH": f"{docker}:/usr/bin:/bin"}
        script = ["sh", str(DEPLOY / "pin-images.sh"), str(into)]
        return subprocess.run(script, env=environ, capture_output=True, check=False).returncode

    def test_the_script_enters_digests_and_leaves_other_lines(self, docker: Path, tmp_path: Path) -> None:
        into = tmp_path / ".env"
        into.write_text("CAMBIST_BASE_URL=https://api.example.com\nPYTHON=python:3\n")
        for digit in "ab":
            assert self.pinned(docker, f"sha256:{digit * 64}", into) == 0
            lines = dict(line.split("=", 1) for line in into.read_text().splitlines())
            assert lines.pop("CAMBIST_BASE_URL") == "https://api.example.com"
            assert all(re.fullmatch(rf"[a-z]+:\d+\.\d+\S*@sha256:{digit}{{64}}", each) for each in lines.values())
            compose = (DEPLOY / "compose.yaml").read_text("utf-8")
            assert set(lines) == set(re.findall(r"\$\{(PYTHON|[A-Z]+_IMAGE):\?", compose))

    @pytest.mark.parametrize("digest", ["", "latest", "sha256:abc", f"sha256:{'A' * 64}"])
    def test_script_writes_nothing_without_a_digest(self, docker: Path, tmp_path: Path, digest: str) -> None:
        into = tmp_path / ".env"
        into.write_text("PYTHON=as before\n")
        assert self.pinned(docker, digest, into) != 0
        assert into.read_text() == "PYTHON=as before\n"
