"""The installed version of cambist."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of


def version() -> str:
    """Return the installed version, or `unknown` for a source tree that was never installed."""
    try:
        return version_of("cambist")
    except PackageNotFoundError:
        return "unknown"
