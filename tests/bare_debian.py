"""A new Debian in a folder (debootstrap), in which commands run by chroot, as a user, without a host's programs."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

RELEASE = "bookworm"
USER = "reader"
HOME = f"/home/{USER}"
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_HANDED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")


@dataclass(frozen=True)
class Ran:
    """How a script ended."""

    status: int
    output: str
    """Standard output and error, as a terminal shows them."""
    first_line: float
    """Seconds until its first line."""
    seconds: float


def require_root_and_debootstrap() -> None:
    """Skip the test where no Debian can be made."""
    if os.getuid() != 0:
        pytest.skip("only root makes a Debian")
    if shutil.which("debootstrap") is None:
        pytest.skip("no debootstrap is installed")


@contextmanager
def on_disk() -> Iterator[Path]:
    """A folder on the disk for gigabytes: tests keep their other files in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="cambist-") as folder:
        yield Path(folder)


@dataclass(frozen=True)
class Debian:
    """An installed system in a folder."""

    root: Path

    def install(self, *packages: str) -> None:
        """Install packages of Debian, and nothing that they only recommend."""
        command = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {' '.join(packages)}"
        done = self.run(command, user="root", network=True)
        assert done.status == 0, done.output

    def run(
        self,
        script: str,
        *,
        user: str = USER,
        where: str | None = None,
        environ: Mapping[str, str] | None = None,
        network: bool = False,
        limit: float = 3600,
    ) -> Ran:
        """Run a script of bash, as this user, in namespaces of its own: its processes end with it.

        Without network it has a loopback interface of its own, and reaches nothing else.
        """
        mounts = [
            "mount --make-rprivate /",
            f"mount --rbind /dev {self.root}/dev",
            f"mount -t proc proc {self.root}/proc",
            f"mount -t tmpfs tmpfs {self.root}/tmp -o mode=1777,size=4g",
        ]
        home = HOME if user == USER else "/root"
        variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "LANG": "C.UTF-8",
            "USER": user,
            "DEBIAN_FRONTEND": "noninteractive",
            **{name: os.environ[name] for name in _HANDED_ON if name in os.environ},
            **(environ or {}),
        }
        inside = ["chroot", f"--userspec={user}:{user}", str(self.root), "/usr/bin/env", "-i"]
        inside += [f"{name}={value}" for name, value in variables.items()]
        inside += ["/bin/bash", "-u", "-o", "pipefail", "-c", 'cd "$0" && eval "$1"', where or home, script]
        up = [] if network else ["ip link set lo up"]
        outside = " && ".join([*mounts, *up, 'exec "$@"'])
        namespaces = ["--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
        return _timed(
            ["timeout", "--kill-after=5", str(limit), "unshare", *namespaces, "sh", "-c", outside, "sh", *inside]
        )

    def megabytes(self, path: str) -> int:
        """Return the size of a folder."""
        done = subprocess.run(["du", "-sm", self.root / path.lstrip("/")], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0])


def bare_debian(folder: Path, packages: Sequence[str] = ()) -> Debian:
    """Make a Debian with these packages beside the smallest system, and a user."""
    command = ["debootstrap", "--variant=minbase", RELEASE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    debian = Debian(folder)
    debian.install("ca-certificates", *packages)
    if _AUTHORITIES.exists():  # a proxy of this machine's may have an authority of its own
        shutil.copy(_AUTHORITIES, folder / str(_AUTHORITIES).lstrip("/"))
    done_user = debian.run(f"useradd --create-home --shell /bin/bash {USER}", user="root")
    assert done_user.status == 0, done_user.output
    return debian


def _timed(command: Sequence[str]) -> Ran:
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    first = 0.0
    try:
        for line in process.stdout:
            first = first or time.monotonic() - began
            lines.append(line)
        return Ran(process.wait(), "".join(lines), first, time.monotonic() - began)
    except BaseException:  # the test's time is over
        os.killpg(process.pid, signal.SIGKILL)
        raise
