"""Readers for the settings of alarms and alarm channels, as in readers.py."""

import re
from typing import Any

from ...core.domain.shapes import is_mail_address
from ...ports.alarms import QuietHours
from .readers import read_text

_BOT_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{20,100}\Z")
_CHAT = re.compile(r"(?:-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64})\Z")
_TIME = "([01][0-9]|2[0-3]):([0-5][0-9])"
_QUIET = re.compile(rf"{_TIME}-{_TIME}(?:([+-])(0[0-9]|1[0-4]):([0-5][0-9]))?\Z")


def read_mail_address(raw: Any) -> str:
    if not is_mail_address(read_text(raw)):
        raise ValueError("must be an e-mail address")
    return str(raw)


def read_mail_addresses(raw: Any) -> tuple[str, ...]:
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not texts or len(texts) > 50:
        raise ValueError("must be 1 to 50 e-mail addresses, separated by commas")
    return tuple(read_mail_address(text) for text in texts)


def read_telegram_token(raw: Any) -> str:
    if not _BOT_TOKEN.match(read_text(raw)):
        raise ValueError("must be a token as BotFather shows it: digits, a colon, letters and digits")
    return str(raw)


def read_chat(raw: Any) -> str:
    """Read a chat's number or a channel's name."""
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else read_text(raw)
    if not _CHAT.match(text):
        raise ValueError("must be a chat's number, such as -1001234567890, or @channel")
    return text


def read_quiet_hours(raw: Any) -> QuietHours:
    """Read `22:00-08:00+03:00`; without an offset UTC."""
    match = _QUIET.match(raw) if isinstance(raw, str) else None
    if match is None:
        raise ValueError("must be two times of day and the offset from UTC, such as 22:00-08:00+03:00")
    start, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if start == end:
        raise ValueError("must begin and end at different times")
    offset = 0 if match[5] is None else (int(match[6]) * 60 + int(match[7])) * (-1 if match[5] == "-" else 1)
    return QuietHours(start=start, end=end, offset=offset)
