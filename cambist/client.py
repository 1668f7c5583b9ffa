"""The merchant's client, sync and async, and webhooks verified (docs/client.md). Needs the extra `client`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cambist.frontends.client import *  # noqa: F403 - the same names


def __getattr__(name: str) -> Any:
    from cambist.frontends import client

    if name == "__all__":
        return client.__all__
    from cambist.frontends.settings.plugins import needing

    with needing("client", "the client"):
        return getattr(client, name)


def __dir__() -> list[str]:
    from cambist.frontends import client

    return dir(client)
