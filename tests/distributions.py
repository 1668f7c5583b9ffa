"""The wheel and the source distribution, built from a copy of the working tree: building leaves files behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_of_sources(into: Path, mode: int = 0o644) -> None:
    """Copy what git would commit, links as links; files that nobody executes get this mode."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        source, copy = ROOT / name, into / name
        if not source.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
        if not copy.is_symlink() and not copy.stat().st_mode & 0o100:
            copy.chmod(mode)


def build(source: Path, into: Path, epoch: int | None = None, umask: int = 0o022) -> None:
    """Build the source distribution, and from the source the wheel, as a front end of packaging does."""
    environ = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    if epoch is not None:
        environ["SOURCE_DATE_EPOCH"] = str(epoch)
    into.mkdir(exist_ok=True)
    for kind in ("sdist", "wheel"):
        program = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
        command = [sys.executable, "-c", program, str(into)]
        subprocess.run(command, cwd=source, env=environ, umask=umask, check=True, capture_output=True)
