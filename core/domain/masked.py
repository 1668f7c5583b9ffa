"""Records that must not appear whole in logs and tracebacks."""

from typing import Any, ClassVar

import msgspec


class Masked(msgspec.Struct, frozen=True):
    """A record whose repr, also in rich, shows only the fields in `_shown`."""

    _shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([*(f'{name}={value!r}' for name, value in self._told()), '***'])})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [*self._told(), ("hidden", "***")]

    def _told(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self._shown]
