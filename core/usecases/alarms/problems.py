"""Sources of alarms: one check of all of them, in bounded reads, each source separately (docs/alarms.md "What alarms").

Test mode raises no alarms.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from ....ports.bundle import Ports
from ....ports.faults import Fault, Unavailable
from ...domain.accounts.accounts import Mode
from ...domain.alarms import AlarmRecipient, Looked, Problem
from ...domain.days import iso
from ..common.quarantine import read_installation
from ..operators.action_item import ActionItem, Finder
from ..operators.action_items import FINDERS, found_by
from ..operators.health import NO_WORKER
from ..operators.probes import lateness, settlements
from ..operators.provider_checks import shortages
from ..recurring_jobs import missing_recurring_jobs

GATEWAY_HELD = timedelta(minutes=1)
"""The same period after which merchants are notified of a gateway."""
RECEIVER_DEAD = timedelta(hours=1)
SETTLEMENT_LATE = 3600.0
"""Lateness of a settlement that raises an alarm, in seconds."""
CATCHING_UP = timedelta(minutes=5)
"""Period after its start in which a process reports no late work, because it is catching up."""
CHANNEL_DEAD = timedelta(minutes=15)
NODES_LACK = timedelta(minutes=1)
"""A node that restarts raises no alarm."""

_AFTER: Mapping[str, timedelta] = {"gateway": GATEWAY_HELD, "breaker": RECEIVER_DEAD}
"""Minimum duration by kind before an alarm is raised; other kinds alarm at once."""

_NAMED: Mapping[str, str] = {"breaker": "receiver", "delivery": "webhooks to"}

log = logging.getLogger("cambist.alarms")

Source = Callable[[Ports], Awaitable[list[Problem]]]


async def look(ports: Ports) -> Looked:
    """Return the open alarms. A source that cannot be read is an alarm of its own.

    Raises: Unavailable when the storage does not answer at all.
    """
    found: dict[str, Problem] = {}
    blind = []
    for name, source in SOURCES.items():
        try:
            some = await source(ports)
        except Fault as fault:
            # The message may contain private data, so report only the kind of fault.
            log.warning("what alarms cannot be looked at: %s: %s", name, fault)
            blind.append(name)
            some = [_blind(name, fault)]
        for problem in some:
            found.setdefault(problem.id, problem)
    if len(blind) == len(SOURCES):
        raise Unavailable("nothing can be looked at")
    return Looked(problems=tuple(found.values()), blind=tuple(blind))


def _blind(source: str, fault: Fault) -> Problem:
    text = f"cannot look at {source}: {type(fault).__name__}; see the log and `cambist doctor`"
    return Problem(id=f"look:{source}", source="look", kind="look", text=text)


async def _items(ports: Ports, name: str, finder: Finder) -> list[Problem]:
    now = ports.clock.now()
    return [_of_item(name, item) for item in await found_by(finder, ports) if _alarms(item, now)]


def _alarms(item: ActionItem, now: datetime) -> bool:
    if item.mode is Mode.TEST:
        return False
    held = _AFTER.get(item.kind)
    return held is None or (item.since is not None and now - item.since >= held)


def _of_item(source: str, item: ActionItem) -> Problem:
    named = f"{_NAMED.get(item.kind, item.of)} {item.object_id}".strip()
    return Problem(
        id=":".join(filter(None, (item.kind, item.object_id))),
        source=source,
        kind=item.kind,
        text=f"{named}: {item.brief or item.text}",
        urgent=item.urgent,
        since=item.since,
        account_id=item.account_id,
    )


def _is_catching_up(ports: Ports) -> bool:
    return timedelta(0) <= ports.clock.now() - ports.started < CATCHING_UP


async def _settlement(ports: Ports) -> list[Problem]:
    if _is_catching_up(ports):
        return []
    now = ports.clock.now()
    return [
        Problem(
            id=f"settlement:{signs.mode}",
            source="settlement",
            kind="settlement",
            text=f"settlement of {signs.mode} mode: late, or not coming to its end; see the log, and `cambist settle`",
            urgent=True,
            since=now - timedelta(seconds=signs.lateness),
        )
        for signs in await settlements(ports)
        if signs.mode is Mode.LIVE and signs.lateness >= SETTLEMENT_LATE
    ]


async def _work(ports: Ports) -> list[Problem]:
    if _is_catching_up(ports):
        return []
    late = await lateness(ports)
    missing = await missing_recurring_jobs(ports)
    found = [
        Problem(
            id=f"standing:{job_id}",
            source="work",
            kind="standing",
            text=f"recurring job {job_id}: not there, and not made; see `cambist doctor`",
            urgent=True,
        )
        for job_id in missing
    ]
    if late >= NO_WORKER:
        since = ports.clock.now() - timedelta(seconds=late)
        text = "jobs: due for minutes, and no worker takes them; see `cambist doctor`"
        found.append(Problem(id="jobs", source="work", kind="jobs", text=text, urgent=True, since=since))
    return found


async def _backup(ports: Ports) -> list[Problem]:
    most = ports.alarms.backup_age
    if most is None:
        return []
    installation = await read_installation(ports.storage, ports.vault)
    last = None if installation is None else installation.backed_up_at
    if last is not None and ports.clock.now() - last <= most:
        return []
    told = "none was ever noted" if last is None else f"the last one is of {iso(last)}"
    text = f"backup: {told}; `cambist backup`, or `cambist backup --note` after one by other means"
    return [Problem(id="backup", source="backup", kind="backup", text=text, since=last)]


async def _channels(ports: Ports) -> list[Problem]:
    """Alarms about one channel, which the other channels report."""
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        rows = [await unit[AlarmRecipient].get(name) for name in ports.alarms.channels]
    return [
        Problem(
            id=f"channel:{row.id}",
            source="channels",
            kind="channel",
            text=f"alarm channel {row.id}: does not work; see `cambist alarm list`",
            since=row.failing_since,
        )
        for row in rows
        if row is not None and row.failing_since is not None and now - row.failing_since >= CHANNEL_DEAD
    ]


async def _nodes(ports: Ports) -> list[Problem]:
    """Alarms about networks whose money waits because too few nodes agree."""
    now = ports.clock.now()
    return [
        Problem(
            id=f"nodes:{each.of}",
            source="nodes",
            kind="nodes",
            text=f"nodes of {each.of}: deposits, delivery proofs and payouts wait: {each.told}",
            urgent=True,
            since=each.since,
        )
        for each in await shortages(ports)
        if now - each.since >= NODES_LACK
    ]


def _name(finder: Finder) -> str:
    return finder.__name__.strip("_").replace("_", " ")


SOURCES: Mapping[str, Source] = {
    **{_name(finder): partial(_items, name=_name(finder), finder=finder) for finder in FINDERS},
    "settlement": _settlement,
    "work": _work,
    "backup": _backup,
    "channels": _channels,
    "nodes": _nodes,
}
"""Sources by the name that is reported when a source cannot be read."""
