"""Who sits at the command line or the console: the name in the audit log."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

VARIABLE = "CAMBIST_OPERATOR"

_LOGIN = Path("/proc/self/loginuid")
_NOBODY = 2**32 - 1
"""What the kernel says of a process that nobody's login began."""


class Names(StrEnum):
    """Whose word an operator's name is."""

    GIVEN = "given"
    """The operator's own: `CAMBIST_OPERATOR`, `--operator`, else the login."""
    LOGIN = "login"
    """The machine's: the user who logged in, whatever the environment says."""
    KEY = "key"
    """An operator's key, which the installation knows (docs/operations.md "Operators' keys")."""


def operator_name(environ: Mapping[str, str], names: Names | str = Names.GIVEN, *, login: Path = _LOGIN) -> str:
    """The name of who acts; a container may know none."""
    given = environ.get(VARIABLE, "").strip()
    return given if given and names == Names.GIVEN else login_name(login)


def login_name(login: Path = _LOGIN) -> str:
    """The user who logged in at this machine: `sudo` and `su` keep him, and no variable changes him (Linux' login id,
    where the login set one). Else the user whom the process belongs to."""
    try:
        import pwd  # Windows has none

        return pwd.getpwuid(_login_id(login, os.getuid())).pw_name
    except (KeyError, ImportError):
        return "unknown"


def _login_id(login: Path, otherwise: int) -> int:
    try:
        found = int(login.read_text("ascii"))
    except (OSError, ValueError):
        return otherwise
    return otherwise if found == _NOBODY else found
