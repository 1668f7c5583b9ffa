"""Alarm texts for people, limited in length."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from urllib.parse import urlsplit

from ...ports.alarms import Alarm, AlarmLine

OF_A_KIND = 5
"""Lines of one kind that are written out."""
_LINE = 300
_SUBJECT = 150


def subject_of(alarm: Alarm) -> str:
    """Build the subject: the number of alarms and the first one."""
    host = urlsplit(alarm.place).netloc or "cambist"
    if alarm.is_test:
        return f"[{host}] test: alarms arrive here"
    counts = ((len(alarm.begun), "new"), (len(alarm.over), "over"))
    told = ", ".join(f"{count} {what}" for count, what in counts if count)
    first = next(iter(_urgent_first(alarm.begun or alarm.over)), None)
    text = f"[{host}] {'URGENT, ' if alarm.is_urgent else ''}{told}: {'' if first is None else first.text}"
    return text if len(text) <= _SUBJECT else f"{text[: _SUBJECT - 3]}..."


def body_of(alarm: Alarm, most: int) -> str:
    """Build the whole message, of at most `most` characters."""
    parts = [_test()] if alarm.is_test else []
    for title, lines in (("New:", alarm.begun), ("Over:", alarm.over)):
        if lines:
            parts.append("\n".join((title, *_listed(lines))))
    if alarm.for_merchant:
        parts.append(_to_merchant(alarm))
    elif alarm.going_on:
        parts.append(f"Still going on: {len(alarm.going_on)} (cambist alarm list)")
    end = f"\n\n{alarm.place}\n"
    text = "\n\n".join(parts)
    room = most - len(end)
    return f"{text if len(text) <= room else f'{text[: room - 1]}…'}{end}"


def _test() -> str:
    return "This is a test: whoever reads it is told of problem here, and of its end."


def _to_merchant(alarm: Alarm) -> str:
    if not alarm.begun:
        return "Your receiver answers again. What waited is being sent, oldest first."
    return (
        "Your receiver has not answered well for an hour. Webhooks wait, and are sent once it does; those older than "
        "seven days are given up. GET /api/v1/webhook-endpoint tells the last answer, and POST "
        "/api/v1/webhook-endpoint/test tries it."
    )


def _urgent_first(lines: Sequence[AlarmLine]) -> list[AlarmLine]:
    return sorted(lines, key=lambda line: not line.urgent)


def _listed(lines: Sequence[AlarmLine]) -> list[str]:
    shown: list[str] = []
    ordered = sorted(lines, key=lambda line: (not line.urgent, line.kind))
    for _, group in groupby(ordered, key=lambda line: (line.urgent, line.kind)):
        same = list(group)
        shown += [_line(line) for line in same[:OF_A_KIND]]
        if len(same) > OF_A_KIND:
            shown.append(f"  and {len(same) - OF_A_KIND} more of this kind")
    return shown


def _line(line: AlarmLine) -> str:
    text = plain(line.text)
    since = "" if line.since is None else f" (since {_moment(line.since)})"
    return f"{'!' if line.urgent else '-'} {text[:_LINE]}{since}"


def plain(text: str) -> str:
    """Return the text on one line, without control characters that a terminal or a mail server would interpret."""
    return "".join(each if each.isprintable() else " " for each in text)


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
