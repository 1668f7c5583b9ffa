"""Build steps that pyproject.toml cannot describe: the long description, and archives that are equal in every build."""

import gzip
import os
import re
import shutil
import tarfile
import time
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

_ROOT = Path(__file__).parent
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]

for _layer in ("core", "ports", "adapters", "frontends"):
    if not (_ROOT / "cambist" / _layer).is_dir():
        raise SystemExit(
            f"cambist/{_layer} is no folder: this copy lost its symbolic links. Clone it with "
            "`git clone -c core.symlinks=true` (on Windows with developer mode on), or install a wheel."
        )


def long_description() -> str:
    """Return README.md with absolute links and pictures, at the tag of this version: a package index has no files."""
    source, tag = _PROJECT["urls"]["Source"], f"v{_PROJECT['version']}"
    raw = source.replace("https://github.com/", "https://raw.githubusercontent.com/")
    text = (_ROOT / "README.md").read_text("utf-8")
    text = re.sub(r'(<img src=")(?!https?:)', rf"\g<1>{raw}/{tag}/", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\g<1>{source}/blob/{tag}/", text)


class _Files(build_py):
    def run(self) -> None:
        """Begin anew: files that an earlier build in this clone left may be gone by now, old migrations among them."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class _Wheel(bdist_wheel):
    def write_wheelfile(self, *args: Any, **kwargs: Any) -> None:
        """Set one mode for all files, whatever umask the clone was made with."""
        super().write_wheelfile(*args, **kwargs)
        for path in Path(self.bdist_dir).rglob("*"):
            if path.is_file():
                path.chmod(0o644)


class _Sdist(sdist):
    def make_archive(self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, **_: Any) -> str:  # noqa: A002
        """Pack the files by name, with one time, owner and mode."""
        if format != "gztar":
            raise SystemExit(f"the source distribution is built as gztar, not as {format}")
        moment = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())  # noqa: TID251
        folder = Path(root_dir or ".", base_dir)

        def uniform(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        packed = Path(f"{base_name}.tar.gz")
        packed.parent.mkdir(parents=True, exist_ok=True)
        with (
            packed.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(folder.rglob("*")):
                archive.add(path, f"{base_dir}/{path.relative_to(folder).as_posix()}", recursive=False, filter=uniform)
        return str(packed)


setup(
    long_description=long_description(),
    long_description_content_type="text/markdown",
    cmdclass={"bdist_wheel": _Wheel, "build_py": _Files, "sdist": _Sdist},
)
