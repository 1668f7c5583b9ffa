"""Jobs of notifications: find the members who want an event, send each of them one message at a time, and start the
daily sums (docs/dashboard.md "Notifications").

A notification is a row for one member and channel, written by the unit that removes the event's job; its id contains
the event, so it is written once. A message is saved as being sent before it is sent. After an unknown outcome an e-mail
is repeated under the same Message-ID, and a message to a chat is not repeated.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault, OutcomeUnknown, Refused
from ....ports.jobs import Job
from ....ports.mailer import MailMessage
from ....ports.storage import Unit
from ....ports.vault import VaultError
from ...domain.accounts.accounts import Account
from ...domain.days import MOSCOW
from ...domain.people.notification_texts import message_of
from ...domain.people.notifications import (
    ROWS_MOST,
    Channel,
    Notification,
    NotificationKind,
    NotificationPreferences,
    NotificationQueue,
    TelegramChat,
    after_sending,
    gets,
    notification_id,
    recipient_id,
    recipient_of,
    send_at,
)
from ...domain.people.people import MEMBERS_MOST, Membership, User, membership_id
from ..common.encrypted import telegram_chat_aad
from ..common.schedule import is_ours, reschedule_at, set_due
from ..common.units import retrying
from ..person_events import spread_job
from ..recurring_jobs import next_daily_sums
from .notifications import NOTIFY, has_second_factor, preferences_of, unsubscribe_link
from .notified_events import NotifiedEvent, read_event
from .users import email_of

_PAUSES = (timedelta(seconds=30), timedelta(minutes=5), timedelta(hours=1), timedelta(hours=6))
"""Pauses after the first, second, ... failure. A message that fails once more is given up."""
_NEW = ("notifications_id", "notification_queues_id")
_PREFIX = "ntf_"
_BATCH = 200

log = logging.getLogger("cambist.people")


async def spread_event(ports: Ports, job: Job) -> None:
    """Write the event's notifications for all members who want it, and end the job."""
    kind_text, _, object_id = job.argument.partition("/")
    kind = NotificationKind(kind_text)
    event = await read_event(ports, kind, object_id)

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is None or not is_ours(present, job):
            return
        unit[Job].remove(present)
        if event is None:
            return
        members = await unit[Membership].find(account_id=event.account_id, order="id", limit=MEMBERS_MOST)
        for member in members:
            await _write_for(ports, unit, member, kind, object_id, event)

    await retrying(ports.storage, work, again_on=_NEW)


async def _write_for(
    ports: Ports, unit: Unit, member: Membership, kind: NotificationKind, object_id: str, event: NotifiedEvent
) -> None:
    user = await unit[User].get(member.user_id)
    if user is None or user.disabled_at is not None:
        return
    preferences = await preferences_of(unit, member)
    has_factor = await has_second_factor(unit, user)
    now = ports.clock.now()
    for channel in Channel:
        if not gets(member, preferences, channel, kind, event.mode, event.shop_id, has_factor=has_factor):
            continue
        if await _address(ports, unit, user, channel) is None:
            continue
        recipient = recipient_id(member.id, channel)
        row = Notification(
            id=notification_id(recipient, kind, object_id),
            recipient=recipient,
            kind=kind.value,
            mode=event.mode,
            object_id=object_id,
            at=now,
            shop_id=event.shop_id,
            details=event.details,
        )
        if await unit[Notification].get(row.id) is not None:
            continue
        if event.day and not await _is_first_of_day(unit, recipient, event.day):
            continue
        unit[Notification].add(row)
        unit[Job].accrue(msgspec.structs.replace(NOTIFY.first(recipient, now, now), asked=1))


async def _is_first_of_day(unit: Unit, recipient: str, day: str) -> bool:
    """Return whether the recipient has not got the sum of this day, and note it."""
    queue = await unit[NotificationQueue].get(recipient)
    if queue is None:
        unit[NotificationQueue].add(NotificationQueue(id=recipient, last_day=day))
    elif queue.last_day < day:
        unit[NotificationQueue].save(msgspec.structs.replace(queue, last_day=day))
    else:
        return False
    return True


async def _address(ports: Ports, unit: Unit, user: User, channel: Channel) -> str | None:
    """Return where a person is reached by a channel; None: nowhere."""
    try:
        if channel is Channel.EMAIL:
            return None if ports.mailer is None else email_of(ports, user)
        if ports.messenger is None:
            return None
        chat = await unit[TelegramChat].get(user.id)
        if chat is None or chat.chat is None:
            return None
        return ports.vault.decrypt(chat.chat, telegram_chat_aad(user.id)).decode()
    except VaultError:
        log.warning("the address of %s cannot be decrypted", user.id)
        return None


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is being sent."""

    id: str
    channel: Channel
    user_id: str
    to: str
    subject: str
    text: str
    stop: str
    rows: tuple[str, ...]

    def __repr__(self) -> str:
        return f"_Message(id={self.id!r}, ***)"


async def send_notifications(ports: Ports, job: Job) -> None:
    """Send the next message to the job's recipient, if it is due. The job ends when nothing is left."""

    async def work(unit: Unit) -> _Message | None:
        return await _prepared(ports, unit, job)

    message = await retrying(ports.storage, work, again_on=_NEW)
    if message is None:
        return
    fault: Fault | None = None
    try:
        await _send(ports, message)
    except Fault as failure:
        fault = failure

    async def finish(unit: Unit) -> None:
        await _finish(ports, unit, job, message, fault)

    await retrying(ports.storage, finish)


async def _send(ports: Ports, message: _Message) -> None:
    if message.channel is Channel.EMAIL and ports.mailer is not None:
        letter = MailMessage(
            id=message.id, to=message.to, subject=message.subject, text=message.text, unsubscribe=message.stop
        )
        await ports.mailer.send(letter)
    elif message.channel is Channel.TELEGRAM and ports.messenger is not None:
        await ports.messenger.send(message.to, f"{message.subject}\n\n{message.text}")


async def _prepared(ports: Ports, unit: Unit, job: Job) -> _Message | None:
    """Return the message to send now, saved as being sent. None: nothing is due, and the job is rescheduled or
    removed."""
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return None
    now = ports.clock.now()
    account_id, user_id, channel = recipient_of(job.argument)
    member = await unit[Membership].get(membership_id(account_id, user_id))
    user, account = await unit[User].get(user_id), await unit[Account].get(account_id)
    queue = await unit[NotificationQueue].get(job.argument)
    found = await unit[Notification].find(recipient=job.argument, order="at", limit=ROWS_MOST, readable=True)
    is_gone = member is None or user is None or account is None or user.disabled_at is not None
    to = None if is_gone or user is None else await _address(ports, unit, user, channel)
    if member is None or user is None or account is None or to is None:
        for row in found:
            unit[Notification].remove(row)
        if queue is not None and member is None:
            unit[NotificationQueue].remove(queue)
        set_due(unit, present, now if len(found) == ROWS_MOST else None)
        return None
    preferences = await preferences_of(unit, member)
    has_factor = await has_second_factor(unit, user)
    state = queue or NotificationQueue(id=job.argument)
    # A chat shows a repeat twice, so what may have arrived there is not sent again.
    lost = frozenset(state.covers) if state.sending is not None and channel is Channel.TELEGRAM else frozenset()
    wanted = []
    for row in found:
        kind = NotificationKind(row.kind)
        if row.id in lost or not gets(member, preferences, channel, kind, row.mode, row.shop_id, has_factor=has_factor):
            unit[Notification].remove(row)
        else:
            wanted.append(row)
    if lost:
        state = after_sending(state, now)
    repeated = [row for row in wanted if row.id in state.covers]
    state, rows, due = _next(ports, preferences, state, repeated or wanted, now, is_repeat=bool(repeated))
    _keep(unit, queue, state)
    if not rows:
        set_due(unit, present, due if due is not None or len(found) < ROWS_MOST else now)
        return None
    stop = unsubscribe_link(ports, member, preferences, channel)
    settings = f"{ports.urls.app_url}/settings/notifications"
    subject, text = message_of(user.language, account.name, rows, settings=settings, stop=stop)
    return _Message(
        id=state.sending or "",
        channel=channel,
        user_id=user.id,
        to=to,
        subject=subject,
        text=text,
        stop=stop,
        rows=state.covers,
    )


def _next(
    ports: Ports,
    preferences: NotificationPreferences,
    state: NotificationQueue,
    rows: Sequence[Notification],
    now: datetime,
    *,
    is_repeat: bool,
) -> tuple[NotificationQueue, Sequence[Notification], datetime | None]:
    """Return the queue, the notifications to send now, and otherwise the time of the next message."""
    if not rows:
        return msgspec.structs.replace(state, sending=None, covers=()), (), None
    due = send_at(preferences, state.sent, now)
    if due > now:
        return state, (), due
    if not is_repeat:
        message_id = f"{_PREFIX}{ports.ids.uuid()}"
        state = msgspec.structs.replace(state, sending=message_id, covers=tuple(row.id for row in rows))
    return state, rows, None


def _keep(unit: Unit, stored: NotificationQueue | None, state: NotificationQueue) -> None:
    if stored is None and state != NotificationQueue(id=state.id):
        unit[NotificationQueue].add(state)
    elif stored is not None and state != stored:
        unit[NotificationQueue].save(state)


async def _finish(ports: Ports, unit: Unit, job: Job, message: _Message, fault: Fault | None) -> None:
    """Save the outcome of a message. If another worker has the job by now, only the job is left to it."""
    now = ports.clock.now()
    queue = await unit[NotificationQueue].get(job.argument)
    present = await unit[Job].get(job.id)
    is_current = queue is not None and queue.sending == message.id
    state = queue if queue is not None and is_current else NotificationQueue(id=job.argument)
    failures = state.failures + 1
    may_repeat = message.channel is Channel.EMAIL
    is_lost = isinstance(fault, OutcomeUnknown)
    is_over = fault is None or isinstance(fault, Refused) or (is_lost and not may_repeat) or failures > len(_PAUSES)
    if is_over:
        if fault is not None:
            log.warning("a notification of %s by %s is given up: %s", message.user_id, message.channel, fault)
        for row_id in message.rows:
            row = await unit[Notification].get(row_id)
            if row is not None:
                unit[Notification].remove(row)
        if isinstance(fault, Refused) and message.channel is Channel.TELEGRAM:
            await _unlink(unit, message.user_id)
        state = after_sending(state, now)
        due = now
    else:
        # A message that certainly did not arrive is composed again, because more may have happened by then.
        kept = {} if is_lost else {"sending": None, "covers": ()}
        state = msgspec.structs.replace(state, failures=failures, **kept)
        due = now + _PAUSES[failures - 1]
    if queue is not None and is_current:
        unit[NotificationQueue].save(state)
    if present is not None and is_ours(present, job):
        left = await unit[Notification].find(recipient=job.argument, order="at", limit=len(message.rows) + 1)
        is_left = not is_over or any(row.id not in message.rows for row in left)
        set_due(unit, present, due if is_left else None, anew=True)


async def _unlink(unit: Unit, user_id: str) -> None:
    """Forget a chat that does not accept messages: the person blocked the bot."""
    chat = await unit[TelegramChat].get(user_id)
    if chat is not None and chat.chat is not None:
        unit[TelegramChat].save(msgspec.structs.replace(chat, chat=None, linked_at=None))


async def begin_daily_sums(ports: Ports, job: Job) -> None:
    """Write an event for each account of which somebody wants the sum of yesterday in Moscow."""
    now = ports.clock.now()
    day = (now.astimezone(MOSCOW) - timedelta(days=1)).date().isoformat()
    wanted: set[str] = set()
    async for batch in ports.storage.scan(NotificationPreferences, readable=True):
        wanted.update(each.account_id for each in batch if _DAILY in (*each.email, *each.telegram))
    accounts = sorted(wanted)
    for start in range(0, len(accounts), _BATCH):
        async with ports.storage.unit() as unit:
            for account_id in accounts[start : start + _BATCH]:
                unit[Job].accrue(spread_job(NotificationKind.DAILY_SUM, f"{account_id}:{day}", now, now))
            await unit.commit()
    await reschedule_at(ports, job, next_daily_sums(max(now, job.due)), anew=True)


_DAILY = NotificationKind.DAILY_SUM.value
