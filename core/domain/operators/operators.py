"""Operators with keys of their own: who may act on an installation that several share (docs/operations.md "Operators'
keys")."""

import re
from datetime import datetime

import msgspec

from ..errors import Refusal
from ..masked import Masked

OPERATOR = "opr_"
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}\Z")
_KEY = re.compile(r"([a-z0-9][a-z0-9._@-]{0,63}):([0-9a-f]{64})\Z")


class Operator(Masked, frozen=True, kw_only=True):
    """A person who may act by the command line and the console."""

    _shown = ("id", "name", "ended_at")

    id: str
    """`opr_<uuid>`."""
    name: str
    """As it stands in the audit log; never used again for another operator."""
    digest: bytes
    """The vault's digest of id, name and secret: a row that was moved or renamed by hand lets nobody in."""
    created_at: datetime
    ended_at: datetime | None = None
    """From then on the key counts no more."""
    version: int = 0


class OperatorKey(Masked, frozen=True, kw_only=True):
    """Name and secret, as an operator presents them: `olga:<64 hex digits>`."""

    _shown = ("name",)

    name: str
    secret: str

    @property
    def text(self) -> str:
        """The key as `CAMBIST_OPERATOR_KEY` has it."""
        return f"{self.name}:{self.secret}"


def operator_name(text: str) -> str:
    """Check the name of a new operator. It is of small ASCII letters, so that no two names look alike.

    Raises: Refusal VALIDATION_ERROR.
    """
    if not _NAME.match(text):
        raise Refusal("VALIDATION_ERROR", "An operator's name has 1 to 64 of a-z, 0-9, and . _ @ - after the first")
    return text


def read_key(text: str) -> OperatorKey | None:
    """Parse a key; None when it has no such form."""
    found = _KEY.match(text.strip())
    return None if found is None else OperatorKey(name=found[1], secret=found[2])


def ended(operator: Operator, now: datetime) -> Operator:
    """The operator whose key counts no more."""
    return msgspec.structs.replace(operator, ended_at=now)
