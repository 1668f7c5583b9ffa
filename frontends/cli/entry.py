"""Entry point of the command `cambist`: runs the command line, or prints one line that names the missing library. It
needs no library itself."""

import sys
from importlib.metadata import version

_LACKS = 2
"""Exit status of wrong usage: nothing was started."""
_OF_MCP = ("mcp", "mcp_types", "httpx2", "anyio")
"""Libraries of `cambist mcp`, which the extra `server` lacks."""


def main() -> None:
    """Run the command line. Without its libraries, name the extra that installs them, and exit with 2."""
    try:
        from .main import main as run

        run()
    except ModuleNotFoundError as missing:
        library = (missing.name or "cambist").partition(".")[0]
        if library == "cambist":
            raise
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"cambist, version {version('cambist')}\n")
            return
        extra, command = ("mcp", "mcp") if library in _OF_MCP else ("server", "demo")
        sys.stderr.write(
            f"error: {missing.name} is not installed: the command needs the extra, as in "
            f"pip install 'cambist[{extra}]' or uvx --from 'cambist[{extra}]' cambist {command}\n"
        )
        sys.exit(_LACKS)
