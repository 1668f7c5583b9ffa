"""What the routers and the application have over the framework's: they are made in a third of its time, which is most
of what a sandbox in memory takes until it answers (docs/testing.md)."""

from typing import Any, Self

from litestar import Litestar
from litestar import Router as CopiedRouter
from litestar.plugins import PluginProtocol


class Router(CopiedRouter):
    """A router that is registered once. The framework copies a router deeply, with all that its handlers refer to, each
    time that it is registered with another, for those who register one twice."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself."""
        return self


class Application(Litestar):
    """The framework without its plugins for kinds of models that are not used here, pydantic's and attrs': it imports
    both libraries, half as much as all of this program, wherever they happen to be installed."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        # Not of the framework's interface: should it call this otherwise one day, it brings its plugins again.
        return plugins
