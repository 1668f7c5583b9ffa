"""Private names of a library that a module uses, and the versions with which the module was tested.

With another version, or where a name is missing, the module uses the library's public interface instead. The log and
`cambist doctor` report it (docs/operations.md "Versions of uvicorn and aiohttp").
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import takewhile
from typing import Any

import msgspec

Version = tuple[int, ...]

_SHOWN = 3


class Insides(msgspec.Struct, frozen=True, kw_only=True):
    """Judgement of the installed version of a library."""

    package: str
    version: str
    first: Version
    """First tested version."""
    before: Version
    """First version after the tested ones."""
    missing: Sequence[str] = ()
    """Private names missing in the installed version."""

    @property
    def is_known(self) -> bool:
        """Whether the private names may be used."""
        return not self.missing and self.first <= _read(self.version) < self.before

    @property
    def tested(self) -> str:
        """The tested versions as a requirement of pip."""
        first, before = (".".join(map(str, each)) for each in (self.first, self.before))
        return f"{self.package}>={first},<{before}"

    @property
    def complaint(self) -> str:
        """Text about an unknown version for the log."""
        more = f" and {len(self.missing) - _SHOWN} more" if len(self.missing) > _SHOWN else ""
        lacks = f" and lacks {', '.join(self.missing[:_SHOWN])}{more}" if self.missing else ""
        return f"{self.package} {self.version} is not one of the tested versions{lacks}"


def examine(library: str, first: Version, before: Version, names: Sequence[str]) -> Insides:
    """Look for private names in the installed version.

    Write a name as `module:Class.method`, or as `module:Class#attribute` if `__init__` sets it.
    """
    return Insides(
        package=library,
        version=version(library),
        first=first,
        before=before,
        missing=tuple(name for name in names if not _is_there(name)),
    )


def _read(version: str) -> Version:
    """Read the numbers at the beginning of a version; without any it is in no range."""
    return tuple(int(each) for each in takewhile(str.isdecimal, version.split(".")))


def _is_there(name: str) -> bool:
    module, _, path = name.partition(":")
    path, _, attribute = path.partition("#")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return not attribute or attribute in _set_when_created(found)


def _set_when_created(owner: type) -> Iterator[str]:
    for each in owner.__mro__:
        code = getattr(each.__dict__.get("__init__"), "__code__", None)
        yield from () if code is None else code.co_names
