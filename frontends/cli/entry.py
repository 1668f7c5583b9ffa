"""Entry point of the command `cambist`: runs the command line, or prints one line that names the missing library. It
needs no library itself."""

import sys
from importlib.metadata import version

_LACKS = 2
"""Exit status of wrong usage: nothing was started."""


def main() -> None:
    """Run the command line. Without its libraries, name the extra that installs them, and exit with 2."""
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
            "pip install 'cambist[server]' or uvx --from 'cambist[server]' cambist demo\n"
        )
        sys.exit(_LACKS)
