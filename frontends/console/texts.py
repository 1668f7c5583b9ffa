"""Values as the console shows them: printable, aligned, and coloured by meaning."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeGuard

from rich.terminal_theme import TerminalTheme
from rich.text import Text

from ...core.domain.money import Rub, Usdt
from ..terminal_texts import escaped

_GOOD = ("paid", "settled", "completed", "delivered", "active", "operational", "verified", "confirmed")
_WAITING = (
    "pending",
    "processing",
    "sent",
    "held",
    "degraded",
    "open",
    "awaiting_approval",
    "insufficient_balance",
    "past due",
    "approval",
    "balance",
)
_BAD = ("failed", "amount_mismatch", "down", "rejected", "cancelled", "blocked", "unknown", "mismatch", "ledger")
_ATTENTION = ("past due", "approval", "balance", "refund", "suspense")
_QUIET = ("expired", "refunded", "reversed", "test")

_AMOUNT = re.compile(r"(?<![\w.,-])-?[0-9]{4,}\.[0-9]+(?= (?:RUB|USDT)\b)")
"""An amount within a text, recognised by its currency, so that digits of an id are never grouped."""

TO_THE_MINUTE, TO_THE_SECOND = 16, 19
"""Width of a time to the minute, and to the second."""
_PREFIX = 5

STYLES: Mapping[str, str] = {
    **dict.fromkeys(_GOOD, "green"),
    **dict.fromkeys(_WAITING, "yellow"),
    **dict.fromkeys(_BAD, "bold red"),
    **dict.fromkeys(_ATTENTION, "yellow"),
    **dict.fromkeys(_QUIET, "dim"),
}
"""Style of each word. Colours never say more than the words do."""

INK = TerminalTheme(
    (247, 247, 247),
    (0, 0, 0),
    [(0, 0, 0), (170, 30, 30), (30, 105, 20), (130, 80, 0), (40, 70, 175), (115, 45, 145), (0, 95, 130), (90, 90, 90)],
)
"""Colours readable on a light background. Textual's own yellow and green are not."""

SOURCES: Mapping[str, str] = {"operator": "bold magenta", "ledger": "cyan", "event": "blue", "webhook": "blue"}
"""Style of each source in a timeline."""


def plain(value: Any) -> str:
    """Return a value as one printable line. Control characters are escaped, because ids and names come from outside."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Rub | Usdt):
        return grouped(str(value))
    return amounts_grouped(escaped(str(value)))


def amounts_grouped(text: str) -> str:
    """Group the digits of RUB and USDT amounts in a text."""
    return _AMOUNT.sub(lambda found: grouped(found[0]), text)


def grouped(number: str) -> str:
    """Add commas between thousands of a decimal string: `1234567.50` becomes `1,234,567.50`."""
    whole, point, part = number.partition(".")
    return f"{int(whole):,}{point}{part}" if abs(int(whole)) else number


def many(count: int, noun: str) -> str:
    """Return a count with its noun: `1 payment`, `18,800 payments`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def moment(at: datetime) -> str:
    """Return a time to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def brief(text: str, width: int) -> str:
    """Shorten an id to its prefix and its end, because ids of the same hour begin alike."""
    prefix, line, _ = text.partition("_")
    start = f"{prefix}{line}…" if line and len(prefix) <= _PREFIX else "…"
    return text if len(text) <= width else f"{start}{text[len(start) - width :]}"


def short(at: datetime) -> str:
    """Return a time without its year, for narrow lists of recent events."""
    return at.astimezone(UTC).strftime("%d %b %H:%M:%S")


def _is_short(value: Any, width: int | None) -> TypeGuard[datetime]:
    return isinstance(value, datetime) and width == TO_THE_MINUTE


def styled(
    value: Any, *, right: bool = False, width: int | None = None, ends: bool = False, styles: Mapping[str, str] = STYLES
) -> Text:
    """Return a cell. The text is never parsed as markup. With `ends`, a text that is too long keeps its beginning and
    end."""
    text = f"{value.astimezone(UTC):%Y-%m-%d %H:%M}" if _is_short(value, width) else plain(value)
    style = styles.get(text, "")
    if width is not None and len(text) > width and isinstance(value, Rub | Usdt):
        text = str(value)  # drop the commas, because all digits must be visible
    if width is not None and len(text) > width:
        text = brief(text, width) if ends else f"{text[: width - 1]}…"
    return Text(text, style=style, justify="right" if right else "left", no_wrap=True)


def age(seconds: float) -> str:
    """Return a waiting time: `12 d`, `3 h`, `4 min`."""
    whole = max(0, int(seconds))
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= unit:
            return f"{whole // unit} {name}"
    return "now"


def left(seconds: float) -> str:
    """Return a countdown: `3 h 05 min`, `4 min 10 s`."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole % 60:02} s"
