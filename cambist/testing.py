"""A sandbox in memory for merchants' tests (docs/testing.md), which needs the extra `testing`; an embedded service for
tests (docs/embedding.md "Tests"), and the fake provider for tests of adapters (docs/adapters.md "A provider that
fails"), which need nothing more."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cambist.frontends.testing import *  # noqa: F403 - the same names


def __getattr__(name: str) -> Any:
    from cambist.frontends import testing

    if name == "__all__":
        return testing.__all__
    return getattr(testing, name)


def __dir__() -> list[str]:
    from cambist.frontends import testing

    return dir(testing)
