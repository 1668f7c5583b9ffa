"""Checks of single fields that several kinds of orders share."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from .errors import shape_error
from .ids import canonical_uuid

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that short texts may not contain:

- Unicode's category Cc, because terminals and logs interpret it;
- embeddings, overrides and isolates of the text's direction (U+202A to U+202E, U+2066 to U+2069), because they reorder
  their surroundings on a page. Letters and marks of right-to-left scripts are allowed;
- lone surrogates, because they cannot be encoded in UTF-8. HTTP bodies never have them; an operator's shell or an
  embedding program may.
"""


METADATA_KEYS = 50
"""Limit of keys in a merchant's metadata."""

_MAILED = re.compile(
    r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?=.{1,189}\Z)[a-z0-9-]+(?:\.[a-z0-9-]+)*\Z", re.ASCII | re.IGNORECASE
)


def is_mail_address(text: str) -> bool:
    """Return whether mail can be sent to this address unchanged: ASCII, and nothing that breaks a header."""
    return _MAILED.match(text) is not None


def has_control(text: str) -> bool:
    """Return whether a text contains a character that is interpreted instead of shown."""
    return _CONTROL.search(text) is not None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was most likely meant; None if none is similar."""
    from difflib import get_close_matches  # only needed after an error

    return next(iter(get_close_matches(name, sorted(known), n=1)), None)


def check_metadata(metadata: Mapping[str, Any] | None, most_kb: int) -> None:
    """Check the number of keys and the size of a merchant's metadata. Raises: Refusal VALIDATION_ERROR."""
    if metadata is None:
        return
    if len(metadata) > METADATA_KEYS:
        raise shape_error("metadata", f"has at most {METADATA_KEYS} keys")
    if len(msgspec.json.encode(metadata)) > most_kb * 1024:
        raise shape_error("metadata", f"has at most {most_kb} KB as JSON")


def check_text(name: str, text: str | None, longest: int) -> None:
    """Check the length of an optional short text, and that it has no control characters.

    Raises: Refusal VALIDATION_ERROR.
    """
    if text is None:
        return
    if len(text) > longest:
        raise shape_error(name, f"has at most {longest} characters")
    if has_control(text):
        raise shape_error(name, "has no control characters")


def check_uuid(name: str, value: str | None) -> None:
    """Raises: Refusal VALIDATION_ERROR for a text that is not a UUID."""
    if value is not None and canonical_uuid(value) is None:
        raise shape_error(name, "must be a UUID")
