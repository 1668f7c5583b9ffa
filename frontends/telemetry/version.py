"""What runs."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of


def version() -> str:
    """The installed version; of a tree that was never installed it is not known."""
    try:
        return version_of("cambist")
    except PackageNotFoundError:
        return "unknown"
