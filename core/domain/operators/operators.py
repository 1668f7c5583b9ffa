"""Operators with their own keys: persons who may act on a shared installation
(docs/operations.md "Operators' keys")."""

import re
from datetime import datetime

import msgspec

from ..errors import Refusal
from ..masked import Masked

OPERATOR = "opr_"
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}\Z")
_KEY = re.compile(r"([a-z0-9][a-z0-9._@-]{0,63}):([0-9a-f]{64})\Z")


class Operator(Masked, frozen=True, kw_only=True):
    """A person who may use the command line and the console."""

    _shown = ("id", "name", "ended_at")

    id: str
    """`opr_<uuid>`."""
    name: str
    """The name in the audit log; never reused for another operator."""
    digest: bytes
    """The vault's digest of id, name and secret: a row that was moved or renamed by hand admits nobody."""
    created_at: datetime
    ended_at: datetime | None = None
    """From then on the key is invalid."""
    version: int = 0


class OperatorKey(Masked, frozen=True, kw_only=True):
    """Name and secret, in the form that an operator presents: `olga:<64 hex digits>`."""

    _shown = ("name",)

    name: str
    secret: str

    @property
    def text(self) -> str:
        """The key in the form of `CAMBIST_OPERATOR_KEY`."""
        return f"{self.name}:{self.secret}"


def operator_name(text: str) -> str:
    """Check the name of a new operator. It consists of lower-case ASCII characters, so that no two names look alike.

    Raises: Refusal VALIDATION_ERROR.
    """
    if not _NAME.match(text):
        raise Refusal("VALIDATION_ERROR", "An operator's name has 1 to 64 of a-z, 0-9, and . _ @ - after the first")
    return text


def read_key(text: str) -> OperatorKey | None:
    """Parse a key; None if it does not have that form."""
    found = _KEY.match(text.strip())
    return None if found is None else OperatorKey(name=found[1], secret=found[2])


def ended(operator: Operator, now: datetime) -> Operator:
    """Return the operator with an invalid key."""
    return msgspec.structs.replace(operator, ended_at=now)
