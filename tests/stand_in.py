"""Base of test objects that stand for an adapter or a port."""

from typing import Any


class StandIn:
    """Reports the class of the object that it stands for: from Python 3.12 on, `isinstance` with a protocol of
    ports/ looks at classes, and not at `__getattr__`."""

    __slots__ = ()

    def _original(self) -> Any:
        raise NotImplementedError

    @property
    def __class__(self) -> Any:
        return self._original().__class__

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("a stand-in keeps its class")
