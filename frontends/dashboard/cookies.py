"""Cookies of the dashboard, read by bytes.

Chromium lets a sibling host set a cookie whose name begins with an odd space and continues with `__Host-`. Parsers that
strip such spaces accept it as ours, which undoes the prefix. So only the exact name counts, and a name that occurs
twice counts as absent.
"""

from collections.abc import Iterable

from litestar.datastructures import Cookie

SESSION = b"__Host-cambist"
PRE_SESSION = b"__Host-cambist-pre"
"""Cookie of a browser before the sign-in. It never becomes a session."""
HALF = b"__Host-cambist-half"
"""Cookie between the two steps of a sign-in: the password was right, the code is still missing."""
DEVICE = b"__Host-cambist-dev"
"""Cookie that marks a browser in which somebody signed in before."""

_LONGEST = 512


def read_cookie(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """Return a cookie's value; empty if it is absent, ambiguous, or not plain ASCII."""
    found: list[bytes] = []
    for key, value in headers:
        if key == b"cookie":
            for part in value.split(b";"):
                label, equals, text = part.strip(b" ").partition(b"=")
                if equals and label == name:
                    found.append(text)
                elif label.lower().endswith(name.lower()):
                    return ""  # A look-alike of the name: another host tries to set our cookie.
    value = found[0] if len(found) == 1 else b""
    return value.decode("ascii") if value.isascii() and len(value) <= _LONGEST else ""


def set_cookie(name: bytes, value: str, *, seconds: int | None = None) -> Cookie:
    """Return a Set-Cookie value of ours. Without `seconds` it lasts until the browser closes."""
    return Cookie(key=name.decode(), value=value, path="/", secure=True, httponly=True, samesite="lax", max_age=seconds)


def clear_cookie(name: bytes) -> Cookie:
    """Return the Set-Cookie value that deletes a cookie."""
    return set_cookie(name, "", seconds=0)
