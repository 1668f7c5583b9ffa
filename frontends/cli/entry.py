"""What the command `cambist` runs: the command line, or one line that says what it lacks. It needs no library."""

import sys
from importlib.metadata import version

_LACKS = 2
"""The exit status of wrong usage: nothing was begun."""


def main() -> None:
    """Run the command line; without its libraries say which extra brings them, and exit with 2."""
    try:
        from .main import main as run

        run()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "cambist":
            raise
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"cambist, version {version('cambist')}\n")
            return
        sys.stderr.write(
            f"error: {missing.name} is not installed: the command line needs the extra, as in "
            "pip install 'cambist[server]'\n"
        )
        sys.exit(_LACKS)
