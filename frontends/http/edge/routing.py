"""Router and application classes that the framework builds three times faster. Building them is most of the start of an
in-memory sandbox (docs/testing.md)."""

from typing import Any, Self

from litestar import Litestar
from litestar import Router as CopiedRouter
from litestar.plugins import PluginProtocol


class Router(CopiedRouter):
    """A router that is registered once. The framework deep-copies a router with all that its handlers refer to on every
    registration, in case it is registered twice."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the router itself."""
        return self


class Application(Litestar):
    """The framework without its plugins for pydantic and attrs models, which are not used here. It imports both
    libraries wherever they are installed: half as much code as this whole program."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        # This method is not part of the framework's public interface. If a later version calls it differently, the
        # plugins are loaded again.
        return plugins
