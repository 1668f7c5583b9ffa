"""State and test of the alarm channels, for `cambist alarm`, doctor and metrics (docs/alarms.md "A channel that does
not work").
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from ....ports.alarms import Alarm
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ...domain.alarms import AlarmRecipient, Problem
from ...domain.errors import Refusal


class ShownChannel(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a channel."""

    name: str
    told_at: datetime | None
    """When a message last arrived."""
    knows: int
    """Number of open alarms of which the channel was notified."""
    failing_since: datetime | None
    fault: str | None


class ShownProblem(msgspec.Struct, frozen=True, kw_only=True):
    """An open alarm; `told_by` lists the channels that reported it."""

    problem: Problem
    told_by: tuple[str, ...]


async def _rows(ports: Ports) -> Mapping[str, AlarmRecipient]:
    async with ports.storage.unit() as unit:
        found = [await unit[AlarmRecipient].get(name) or AlarmRecipient(id=name) for name in ports.alarms.channels]
    return {row.id: row for row in found}


async def list_channels(ports: Ports) -> list[ShownChannel]:
    """Return the channels in the settings. Raises: Unavailable."""
    return [
        ShownChannel(
            name=row.id,
            told_at=row.told_at,
            knows=len(row.known),
            failing_since=row.failing_since,
            fault=row.fault,
        )
        for row in (await _rows(ports)).values()
    ]


async def list_problems(ports: Ports) -> list[ShownProblem]:
    """Return the open alarms, urgent ones first. Raises: Unavailable."""
    from .problems import look  # Import here: metrics, which every process loads, need only the rows.

    looked, rows = await look(ports), await _rows(ports)
    told = {name: {each.problem.id for each in row.known} for name, row in rows.items()}
    return [
        ShownProblem(problem=each, told_by=tuple(name for name, ids in told.items() if each.id in ids))
        for each in sorted(looked.problems, key=lambda each: not each.urgent)
    ]


async def channels_failing(ports: Ports) -> dict[str, float]:
    """Return for how many seconds each channel has been failing; 0 if it works. Raises: Unavailable."""
    now = ports.clock.now()
    return {
        row.id: 0.0 if row.failing_since is None else max(0.0, (now - row.failing_since).total_seconds())
        for row in (await _rows(ports)).values()
    }


async def try_channels(ports: Ports, channel: str | None = None) -> dict[str, str | None]:
    """Send a test message by every channel, or by one; return the fault of each, None if it was accepted. The test is
    sent at once, even in quiet hours, and is not stored. Raises: Refusal NOT_FOUND for a channel that is not
    configured.
    """
    channels = ports.alarms.channels
    if channel is not None and channel not in channels:
        raise Refusal("NOT_FOUND", f"No alarm channel of this name; there are: {', '.join(channels) or 'none'}")
    alarm = Alarm(id=f"alarm_{ports.ids.uuid()}", at=ports.clock.now(), place=ports.urls.base_url, is_test=True)
    said: dict[str, str | None] = {}
    for name in channels if channel is None else (channel,):
        try:
            await channels[name].tell(alarm)
        except NO_ANSWER as fault:
            said[name] = str(fault)
        else:
            said[name] = None
    return said
