"""Last safety net for log lines. Our code never logs secrets or personal data; if the message of a library or a
traceback contains some, it is masked here.

Masking recognises forms: our keys, secrets and hashes in hex, phone, card and passport numbers, e-mail addresses, URLs
with a password or a query, and values after the name of a sensitive field. A person's name alone has no recognisable
form, so code must never log it.
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

_OUR_WORDS = frozenset({"timestamp", "level", "logger", "job_kind", "method", "route", "mode"})
"""Fields of a line that contain only constants of the program."""

_FIELD_NAMES = "|".join(
    (
        "api_secret|webhook_secret|secret|password|passwd|token|authorization|proxy-authorization|cookie|x-api-secret",
        "vault_key|vault_pepper|coingecko_key",
        "full_name|payer_name|document_number|client_phone|phone|client_email|email",
        "passport|passport_number|card_number|pan",
    )
)
_FIELDS = re.compile(rf"(?:{_FIELD_NAMES})\Z", re.IGNORECASE)

_BOT_TOKEN = re.compile(r"(?<![0-9])[0-9]{3,20}:[A-Za-z0-9_-]{20,}")
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_USER = re.compile(r"(?<=://)[^\s/@\"'<>]+@")
_MAIL = re.compile(r"\b[\w.+\-]{1,64}@(?=[\w\-]+\.[\w.\-]+)")
_QUERY = re.compile(r"(?<=[\w/.\-~%])\?[^\s\"'<>?]*=[^\s\"'<>]*")
_KEY = re.compile(r"(svc_(?:live|test)_)[0-9a-z]+", re.IGNORECASE)
# Authorization: Bearer abc, with or without the quotes of a dict or of JSON; the scheme and one word.
_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization\b\W{1,6}(?:(?:bearer|basic|digest)\s+)?)[^\s\"',;)}\]]+", re.IGNORECASE
)
_FIELD = re.compile(
    rf"(\b(?:{_FIELD_NAMES})\b\\?[\"']?\s{{0,3}}[:=]\s{{0,3}})"
    r"(?:\\?\"[^\"\\]*\\?\"|'[^']*'|[^\s\"',;)}\]]+)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    "|".join(
        (
            # Ids are the purpose of a log, and their digits are not personal.
            rf"(?P<id>(?<![0-9a-f]){_UUID}(?![0-9a-f]))",
            r"(?P<hex>(?<![0-9a-f])[0-9a-f]{40,})",
            r"(?:(?<![\w+])\+[0-9]{6,11}|(?<![\w.+\-])[78][0-9]{6})(?P<phone>[0-9]{4})(?!\w)",
            r"(?P<card>(?<![\w.\-])(?:[0-9][ -]?){12,18}[0-9](?!\w))",
            r"(?P<passport>(?<![\w.:\-])[0-9]{2} ?[0-9]{2} [0-9]{6}(?![\w.]))",
        )
    ),
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[0-9]{4}|[0-9a-f]{40}", re.IGNORECASE)


def masked(text: str) -> str:
    """Return the text with secrets and personal data masked. Masking twice changes nothing.

    Each form is searched for only if a character of it occurs, so most lines cost a microsecond.
    """
    if "@" in text:
        text = _MAIL.sub(f"{MASK}@", _USER.sub(f"{MASK}@", text))
    if "?" in text:
        text = _QUERY.sub(f"?{MASK}", text)
    if "_" in text:
        text = _KEY.sub(rf"\1{MASK}", text)
    if ":" in text or "=" in text:
        text = _BOT_TOKEN.sub(MASK, text)
        text = _FIELD.sub(rf"\1{MASK}", _HEADER.sub(rf"\1{MASK}", text))
    if _DIGITS.search(text):
        text = _NUMBER.sub(_mask_number, text)
    return text


def _mask_number(match: "re.Match[str]") -> str:
    kind = match.lastgroup
    if kind == "phone":
        return MASK + match["phone"]
    keeps = kind == "id" or (kind == "card" and not _is_card(match[0]))
    return match[0] if keeps else MASK


def _is_card(text: str) -> bool:
    """Return whether the check digit is right. One in ten numbers passes by chance, so times and counts mostly stay
    readable."""
    total = 0
    for place, digit in enumerate(reversed([int(sign) for sign in text if sign.isdigit()])):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def mask_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a log line with every text masked at any depth."""
    return {name: value if name in _OUR_WORDS else _masked_value(name, value) for name, value in event.items()}


def _masked_value(name: object, value: Any) -> Any:
    if value is not None and isinstance(name, str) and _FIELDS.match(name):
        return MASK
    if isinstance(value, str):
        return masked(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _masked_value(key, part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked_value(None, part) for part in value]
    return masked(str(value))
