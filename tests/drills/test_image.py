"""The image of deploy/Dockerfile, built by buildah without a daemon and started by chroot (`nox -s image`).

A new Debian with the Python of this test stands in for the base image, because no registry of images is asked.
Debian's own Python is older than the lock allows.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bare_debian import Debian, bare_debian, on_disk, require_root_and_debootstrap
from tests.distributions import copy_of_sources
from tests.patience import drill_of

BASE = "localhost/python:3.11.13-debootstrap"
"""The name that the Dockerfile requires; the Python is the one that runs this test."""
LIBRARIES = ("libbz2-1.0", "libffi8", "liblzma5", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3", "zlib1g")
"""What a Python of Debian 12 is linked to."""
STARTED = """
{command} >/tmp/log 2>&1 &
service=$!
ask() {{ python3 -c "from urllib.request import urlopen; print(urlopen('$1', timeout=4).read().decode())"; }}
for _ in $(seq 120); do ask http://127.0.0.1:8080/readyz >/dev/null 2>&1 && break; read -rt 0.5 <> <(:); done
ask http://127.0.0.1:8080/health
{health} && echo "healthy"
kill -TERM $service; wait $service; echo "ended with $?"
touch /opt/cambist/x 2>/dev/null && echo "writable"
cat /tmp/log >&2
"""


@dataclass(frozen=True)
class Buildah:
    """buildah with a storage of its own, without a daemon, overlay or namespaces."""

    folder: Path

    def __call__(self, *arguments: str | Path) -> str:
        """Run it and return what it printed."""
        where = f"--root={self.folder}/root", f"--runroot={self.folder}/run", "--storage-driver=vfs"
        done = subprocess.run(["buildah", *where, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        output: str = done.stdout
        return output.strip()


@drill_of("tests/deploy/test_deploy.py")
@pytest.mark.timeout(1800)
def test_image_of_the_dockerfile_starts_and_is_healthy() -> None:
    require_root_and_debootstrap()
    if shutil.which("buildah") is None:
        pytest.skip("no buildah is installed")
    if sys.version_info[:2] != (3, 11) or sys.version_info < (3, 11, 3):
        pytest.skip("the lock is made for Python 3.11.3 and later 3.11")
    with on_disk() as folder:
        buildah = Buildah(folder / "storage")
        base = _base(buildah, folder)
        copy_of_sources(folder / "source")
        source = folder / "source"
        build = ("build", "--isolation", "chroot", "--network", "host", "--format", "docker", "--pull-never")
        ignored = ("--ignorefile", source / "deploy/Dockerfile.dockerignore")
        buildah(*build, *ignored, "-f", source / "deploy/Dockerfile", "--build-arg", f"PYTHON={base}",
                "-t", "localhost/cambist:built", source)  # fmt: skip
        _run(buildah)


def _base(buildah: Buildah, folder: Path) -> str:
    """Make the base image and return its name with the digest."""
    debian = bare_debian(folder / "debian", LIBRARIES)
    local, prefix = debian.root / "usr/local", Path(sys.base_prefix)
    name = f"python3.{sys.version_info.minor}"
    left_out = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a", "config-3*")
    shutil.copytree(prefix / "lib" / name, local / "lib" / name, ignore=left_out)
    (local / "lib" / name / "site-packages").mkdir()
    for library in (prefix / "lib").glob("libpython3*.so*"):
        shutil.copy(library, local / "lib", follow_symlinks=False)
    shutil.copy(prefix / "bin" / name, local / "bin")
    for alias in ("python3", "python"):
        (local / "bin" / alias).symlink_to(name)
    assert debian.run("ldconfig", user="root").status == 0
    # pip's own list lacks the authority of this machine's proxy, where there is one.
    (debian.root / "etc" / "pip.conf").write_text("[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n", "utf-8")
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, debian.root, "/")
    image = buildah("commit", "--quiet", "--format", "docker", container, BASE)
    buildah("rm", container)
    described: list[dict[str, Any]] = json.loads(buildah("images", "--json", image))
    return f"{BASE}@{described[0]['digest']}"


def _run(buildah: Buildah) -> None:
    """Start the container's command as its user, in a network of its own, and end it."""
    container = buildah("from", "--pull-never", "localhost/cambist:built")
    config = json.loads(buildah("inspect", container))["Docker"]["config"]
    image = Debian(Path(buildah("mount", container)))
    assert config["User"] == "10001:10001"
    assert config["StopSignal"] == "SIGTERM"
    environ = dict(each.split("=", 1) for each in config["Env"])
    health = config["Healthcheck"]["Test"]
    assert health[0] == "CMD"
    script = STARTED.format(
        command=_quoted([*config["Entrypoint"], *config["Cmd"]]),
        health=_quoted(health[1:]),
    )
    done = image.run(script, user="cambist", where=config["WorkingDir"], environ=environ, limit=300)
    print(f"\nthe image: {image.megabytes('/')} MB, of which /opt/cambist {image.megabytes('/opt/cambist')} MB")
    assert '"status":"ok"' in done.output.replace(" ", ""), done.output
    assert "healthy" in done.output, done.output
    assert "ended with 0" in done.output, done.output
    assert "writable" not in done.output
    bill = json.loads((image.root / "opt/cambist/sbom.cdx.json").read_text("utf-8"))
    version = image.run("cambist version --json", user="cambist", where="/", environ=environ)
    assert version.status == 0, version.output
    assert json.loads(version.output)["cambist"] == bill["metadata"]["component"]["version"]
    for package in ("faker", "polyfactory"):
        assert not list((image.root / "opt/cambist/lib").glob(f"python3*/site-packages/{package}"))


def _quoted(words: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
