"""Modules of the package that are loaded with other text than their files have: a mutant of the code is tried in a
process of its own, and the tree stays as it is (mutation/, simulation/mutants)."""

import importlib.util
from collections.abc import Mapping
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[1]


class Finder:
    """Finds the modules that it has texts of, by file (`core/domain/ledger.py`); put first into `sys.meta_path`, before
    anything imports them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        loaders = [_Mutated(file, text) for file, text in texts.items()]
        self._loaders = {loader.name: loader for loader in loaders}

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        loader = self._loaders.get(name)
        return importlib.util.spec_from_file_location(name, loader.path, loader=loader) if loader else None


class _Mutated(SourceFileLoader):
    def __init__(self, file: str, text: str) -> None:
        name = f"cambist.{file.removesuffix('.py').replace('/', '.')}"
        super().__init__(name, str(ROOT / "cambist" / file))
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.get_filename(fullname), "exec", dont_inherit=True)
