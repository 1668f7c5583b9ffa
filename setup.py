"""Refuse a clone that has files where the package's links should be; all else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup

for _floor in ("core", "ports", "adapters", "frontends"):
    if not (Path(__file__).parent / "cambist" / _floor).is_dir():
        raise SystemExit(
            f"cambist/{_floor} is no folder: this copy lost its symbolic links. Clone it with "
            "`git clone -c core.symlinks=true` (on Windows with developer mode on), or install a wheel."
        )

setup()
