"""Who sits at the command line or the console: the name in the audit log."""

import getpass
from collections.abc import Mapping

VARIABLE = "CAMBIST_OPERATOR"


def operator_name(environ: Mapping[str, str]) -> str:
    """`CAMBIST_OPERATOR`, else the user of the operating system; a container may have neither."""
    named = environ.get(VARIABLE, "").strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
