"""The job that sends alarms to one recipient: find new alarms, save the message, send it, and save its delivery
(docs/alarms.md "When a message comes").

The message is saved before it is sent, so it is delivered once, whichever process runs the job. After a crash or an
unknown outcome the same message is sent again under the same id.
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.alarms import Alarm, AlarmLine, Alarms, TellsMerchants
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, OutcomeUnknown, Unavailable
from ....ports.jobs import Job
from ....ports.storage import OneOf, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.alarms import (
    SAME_MESSAGE,
    AlarmRecipient,
    Known,
    Looked,
    Message,
    Problem,
    after,
    as_it_stands,
    news,
    recipient_of,
)
from ...domain.webhooks.breaker import Breaker, endpoint_id
from ..common.schedule import is_ours, pause_after, set_due
from ..common.units import retrying, unit_of_work
from ..recurring_jobs import TELL_ALARMS
from .problems import RECEIVER_DEAD, look

EVERY = timedelta(minutes=1)
"""Interval between two checks."""
UNKNOWN_CHANNEL = timedelta(hours=1)
"""Interval at which a process checks the job of a channel that is not in its settings; another process may have it."""
SLOWEST = timedelta(minutes=10)
"""Longest pause after a failure of a channel, unless the channel asks for a longer one."""
LONGEST_WAIT = timedelta(hours=1)

_FAULT_SHOWN = 200

log = logging.getLogger("cambist.alarms")


async def tell_recipient(ports: Ports, job: Job) -> None:
    """Send new alarms to one recipient, if there are any. Raises: Unavailable; Stale."""
    channel_name, account_id = recipient_of(job.argument)
    channel = ports.alarms.channels.get(channel_name)
    if channel is None:
        await _end(ports, job, None, ports.clock.now() + UNKNOWN_CHANNEL)
    elif account_id is None:
        await _tell_operators(ports, job, channel)
    else:
        await _tell_merchant(ports, job, channel, account_id)


async def _tell_operators(ports: Ports, job: Job, channel: Alarms) -> None:
    looked = await look(ports)
    own = f"channel:{channel.name}"
    looked = msgspec.structs.replace(
        looked, problems=tuple(problem for problem in looked.problems if problem.id != own)
    )
    if isinstance(channel, TellsMerchants):
        await _wake_merchants(ports, channel.name, looked)
    row = await _prepared(ports, job, looked, of_operators=True, mirrors=channel.mirrors)
    now = ports.clock.now()
    if row.sending is None:
        await _end(ports, job, row, now + EVERY)
        return
    alarm = alarm_of(ports, row.sending, _going_on(row, row.sending))
    await _sent(ports, job, row, channel, alarm, None)


async def _tell_merchant(ports: Ports, job: Job, channel: Alarms, account_id: str) -> None:
    account = await ports.storage.get(Account, account_id)
    address = None if account is None else account.settings.alarm_email
    if account is None or address is None or not isinstance(channel, TellsMerchants):
        await _forget(ports, job)
        return
    looked = Looked(problems=await _of_receivers(ports, account))
    row = await _prepared(ports, job, looked, of_operators=False)
    if row.sending is None:
        if not row.known and not looked.problems:
            await _forget(ports, job)
        else:
            await _end(ports, job, row, ports.clock.now() + EVERY)
        return
    alarm = msgspec.structs.replace(alarm_of(ports, row.sending, ()), for_merchant=True)
    await _sent(ports, job, row, channel, alarm, address)


async def _of_receivers(ports: Ports, account: Account) -> tuple[Problem, ...]:
    """Return alarms for the merchant's dead receivers of live mode: its own, and those of further endpoints."""
    further_ids = [ref.id for ref in account.further(Mode.LIVE)]
    named: dict[str | None, str] = {None: "receiver", **{each: f"endpoint {each}" for each in further_ids}}
    wanted = {endpoint_id(account.id, Mode.LIVE, further): further for further in named}
    async with ports.storage.unit() as unit:
        found = await unit[Breaker].find(id=OneOf(tuple(wanted)), limit=len(wanted), readable=True)
    problems = []
    for breaker in found:
        further, opened = wanted[breaker.id], breaker.opened_at
        if breaker.is_open and opened is not None and ports.clock.now() - opened >= RECEIVER_DEAD:
            text = f"webhooks of account {account.id}: the {named[further]} of live mode does not answer well"
            problem_id = "receiver" if further is None else f"receiver:{further}"
            problems.append(Problem(id=problem_id, source="receiver", kind="receiver", text=text, since=opened))
    return tuple(problems)


async def _wake_merchants(ports: Ports, channel: str, looked: Looked) -> None:
    """Plan the alarm job of every merchant with a dead receiver and an alarm address."""
    dead = {problem.account_id for problem in looked.problems if problem.kind == "breaker"}
    for account_id in sorted(filter(None, dead)):
        account = await ports.storage.get(Account, account_id)
        if account is None or account.settings.alarm_email is None:
            continue

        async def work(unit: Unit, argument: str = f"{channel}/{account_id}") -> None:
            now = ports.clock.now()
            await TELL_ALARMS.keep(unit, argument, now, now)

        await retrying(ports.storage, work, again_on=("jobs_id",))


async def _prepared(
    ports: Ports, job: Job, looked: Looked, *, of_operators: bool, mirrors: bool = False
) -> AlarmRecipient:
    """Return the recipient's row with its next message, saved. A message being sent stays unchanged for an hour."""
    row = await ports.storage.get(AlarmRecipient, job.argument) or AlarmRecipient(id=job.argument)
    now = ports.clock.now()
    if row.sending is not None and abs(now - row.sending.at) < SAME_MESSAGE:
        return row
    # Compare the alarms that the recipient knows with the open ones, and compose a message from the difference.
    # Quiet hours and gathering apply to operators, not to mirrors, which always get the full state.
    known = as_it_stands(row.known, looked, now)
    rules = ports.alarms
    digested = of_operators and not mirrors
    message = news(
        known,
        looked,
        now,
        told_at=row.told_at,
        is_quiet=digested and rules.quiet is not None and rules.quiet.covers(now),
        gathering=rules.gathering if digested else timedelta(0),
    )
    if message is None and mirrors and known:
        message = Message(id="", at=now)
    if message is not None:
        message = msgspec.structs.replace(message, id=f"alarm_{ports.ids.uuid()}")
    wanted = msgspec.structs.replace(row, known=known, sending=message)
    if message is None or mirrors:
        return wanted  # A mirror gets the full state again in a minute, so nothing needs to be saved.
    return await _kept(ports, wanted)


async def _kept(ports: Ports, row: AlarmRecipient) -> AlarmRecipient:
    async with ports.storage.unit() as unit:
        saved = unit[AlarmRecipient].save(row) if row.version else unit[AlarmRecipient].add(row)
        await unit.commit()
    return saved


def _going_on(row: AlarmRecipient, message: Message) -> tuple[Known, ...]:
    told = {problem.id for problem in (*message.begun, *message.over)}
    return tuple(each for each in row.known if each.problem.id not in told)


def alarm_of(ports: Ports, message: Message, going_on: tuple[Known, ...]) -> Alarm:
    """Convert a message to the alarm that a channel sends."""
    return Alarm(
        id=message.id,
        at=message.at,
        place=ports.urls.base_url,
        begun=tuple(map(line_of, message.begun)),
        over=tuple(map(line_of, message.over)),
        going_on=tuple(line_of(each.problem) for each in going_on),
        silent=message.silent,
    )


def line_of(problem: Problem) -> AlarmLine:
    """Convert an alarm's record to a line of a message."""
    return AlarmLine(id=problem.id, kind=problem.kind, text=problem.text, urgent=problem.urgent, since=problem.since)


async def _sent(
    ports: Ports, job: Job, row: AlarmRecipient, channel: Alarms, alarm: Alarm, address: str | None
) -> None:
    """Send the message, and save the result."""
    message = row.sending
    if message is None:
        raise ValueError("nothing to send")
    try:
        if address is not None and isinstance(channel, TellsMerchants):
            await channel.tell_merchant(address, alarm)
        else:
            await channel.tell(alarm)
    except NO_ANSWER as fault:
        failed, due = _failed(row, fault, ports.clock.now())
        # A mirror gets the full state anew.
        kept = msgspec.structs.replace(failed, sending=None) if channel.mirrors else failed
        await _end(ports, job, kept, due)
        return
    now = ports.clock.now()
    if row.failing_since is not None:
        log.info("the alarm channel %s works again", channel.name)
    arrived = msgspec.structs.replace(
        row,
        known=after(row.known, message, now),
        sending=None,
        told_at=row.told_at if not (message.begun or message.over) else now,
        failures=0,
        failing_since=None,
        fault=None,
    )
    await _end(ports, job, arrived, now + EVERY)


def _failed(row: AlarmRecipient, fault: Exception, now: datetime) -> tuple[AlarmRecipient, datetime]:
    """Return the row after a failed delivery, and the time of the next attempt. A message that certainly did not arrive
    is composed anew by then, because more may have happened.
    """
    failures = row.failures + 1
    if failures == 1:
        log.warning("the alarm channel of %s does not work: %s", row.id, fault)
    asked = fault.retry_after if isinstance(fault, Unavailable) else None
    pause = min(pause_after(failures), SLOWEST)
    if asked is not None:
        pause = min(max(timedelta(seconds=min(asked, LONGEST_WAIT.total_seconds())), pause), LONGEST_WAIT)
    failed = msgspec.structs.replace(
        row,
        sending=row.sending if isinstance(fault, OutcomeUnknown) else None,
        failures=failures,
        failing_since=row.failing_since or now,
        fault=str(fault)[:_FAULT_SHOWN],
    )
    return failed, now + pause


@unit_of_work()
async def _end(_: Ports, unit: Unit, job: Job, row: AlarmRecipient | None, due: datetime) -> None:
    """Save the row if it changed, and reschedule the job for `due`, in one unit. If the job belongs to another process
    by now, so does the row.
    """
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return
    set_due(unit, present, due, anew=True)
    stored = None if row is None else await unit[AlarmRecipient].get(row.id)
    if row is None or row == stored:
        return
    if stored is not None:
        unit[AlarmRecipient].save(msgspec.structs.replace(row, version=stored.version))
    elif row != AlarmRecipient(id=row.id):
        unit[AlarmRecipient].add(row)


@unit_of_work()
async def _forget(_: Ports, unit: Unit, job: Job) -> None:
    """Remove the row and the job of a merchant who gets no more alarms."""
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return
    unit[Job].remove(present)
    row = await unit[AlarmRecipient].get(job.argument)
    if row is not None:
        unit[AlarmRecipient].remove(row)
