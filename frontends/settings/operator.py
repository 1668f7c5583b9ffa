"""Name of the operator at the command line or the console, for the audit log."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

VARIABLE = "CAMBIST_OPERATOR"

_LOGIN = Path("/proc/self/loginuid")
_NOBODY = 2**32 - 1
"""Login id that the kernel reports for a process without a login."""


class Names(StrEnum):
    """Source of an operator's name."""

    GIVEN = "given"
    """The operator: `CAMBIST_OPERATOR`, `--operator`, else the login."""
    LOGIN = "login"
    """The machine: the user who logged in, whatever the environment says."""
    KEY = "key"
    """An operator's key, registered in the installation (docs/operations.md "Operators' keys")."""


def operator_name(environ: Mapping[str, str], names: Names | str = Names.GIVEN, *, login: Path = _LOGIN) -> str:
    """Return the operator's name; in a container it may be unknown."""
    given = environ.get(VARIABLE, "").strip()
    return given if given and names == Names.GIVEN else login_name(login)


def login_name(login: Path = _LOGIN) -> str:
    """Return the user who logged in at this machine (Linux' login id, if the login set one): `sudo`, `su` and variables
    do not change it. Otherwise return the user of the process."""
    try:
        import pwd  # not available on Windows

        return pwd.getpwuid(_login_id(login, os.getuid())).pw_name
    except (KeyError, ImportError):
        return "unknown"


def _login_id(login: Path, otherwise: int) -> int:
    try:
        found = int(login.read_text("ascii"))
    except (OSError, ValueError):
        return otherwise
    return otherwise if found == _NOBODY else found
