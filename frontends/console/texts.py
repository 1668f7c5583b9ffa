"""Values as the console shows them: printable, aligned, coloured by what they mean."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from rich.text import Text

_GOOD = ("paid", "settled", "completed", "delivered", "active", "operational", "verified", "confirmed")
_WAITING = ("pending", "processing", "sent", "held", "degraded", "open", "awaiting_approval", "insufficient_balance")
_BAD = ("failed", "amount_mismatch", "down", "rejected", "cancelled", "blocked", "unknown", "mismatch", "ledger")
_QUIET = ("expired", "refunded", "reversed", "test")

STYLES: Mapping[str, str] = {
    **dict.fromkeys(_GOOD, "green"),
    **dict.fromkeys(_WAITING, "yellow"),
    **dict.fromkeys(_BAD, "bold red"),
    **dict.fromkeys(_QUIET, "dim"),
    "refund": "yellow",
    "suspense": "yellow",
}
"""By the word itself: colours never say what words do not."""

SOURCES: Mapping[str, str] = {"operator": "bold magenta", "ledger": "cyan", "event": "blue", "letter": "blue"}
"""Of a timeline's lines."""


def plain(value: Any) -> str:
    """One value on one line. What a terminal would obey instead of show is escaped: ids and names come from outside."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime):
        return moment(value)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(value))


def moment(at: datetime) -> str:
    """To the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def short(at: datetime) -> str:
    """The moment without its year, for narrow lists of what is recent."""
    return at.astimezone(UTC).strftime("%d %b %H:%M:%S")


def styled(value: Any, *, right: bool = False, width: int | None = None, styles: Mapping[str, str] = STYLES) -> Text:
    """A cell. It is never read as markup."""
    text = plain(value)
    if width is not None and len(text) > width:
        text = f"{text[: width - 1]}…"
    return Text(text, style=styles.get(text, ""), justify="right" if right else "left", no_wrap=True)


def lines(pairs: list[tuple[str, Any]]) -> Text:
    """`name  value` under one another, as far as there is a value."""
    told = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in told), default=0)
    text = Text()
    for name, value in told:
        shown = plain(value)
        text.append(f"{name.ljust(width)}  ", style="dim")
        text.append(f"{shown}\n", style=STYLES.get(shown, ""))
    text.rstrip()
    return text


def left(seconds: float) -> str:
    """A countdown: `3 h 05 min`, `4 min 10 s`."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole % 60:02} s"
