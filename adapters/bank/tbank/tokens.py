"""T-Bank's `Token`: the digest that signs requests and notifications (docs/providers/tbank.md
"Tested and untested")."""

import hashlib
import hmac
from collections.abc import Mapping

Scalar = str | int | bool


def token(fields: Mapping[str, object], password: str) -> str:
    """Return the hexadecimal SHA-256 of the root's scalar values and the password, sorted by field name. Objects,
    lists, None and an existing Token are left out."""
    texts = {name: _text(value) for name, value in fields.items() if isinstance(value, Scalar)}
    texts |= {"Password": password}
    texts.pop("Token", None)
    return hashlib.sha256("".join(texts[name] for name in sorted(texts)).encode("utf-8", "surrogatepass")).hexdigest()


def is_signed(fields: Mapping[str, object], password: str) -> bool:
    """Report whether the Token among the fields is right. The comparison takes constant time."""
    told = fields.get("Token")
    if not isinstance(told, str):
        return False
    expected = token(fields, password).encode()
    return hmac.compare_digest(expected, told.lower().encode("utf-8", "surrogatepass"))


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
