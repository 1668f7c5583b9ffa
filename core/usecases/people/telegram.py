"""Linking of a person's Telegram chat by a code (docs/dashboard.md "Telegram").

The person opens an address that sends the code to the bot. While a code is open, one job asks the bot for texts; at
other times nobody asks.
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault, NotConfigured
from ....ports.jobs import Job
from ....ports.messenger import ChatText
from ....ports.storage import AtLeast, Unit
from ...domain.errors import Refusal
from ...domain.people.notifications import TelegramChat
from ...domain.people.people import User, token_digest
from ..common.encrypted import telegram_chat_aad
from ..common.schedule import FollowUp, reschedule
from ..common.units import retrying
from .sessions import Actor, by_person

ASK_BOT = FollowUp("person.telegram")

CODE_LIVES = timedelta(minutes=15)
_CODE_BYTES = 16
_EVERY = timedelta(seconds=3)
_ALL = "codes"
_COMMAND = "/start "
_OPEN_MOST = 200
_NEW = ("telegram_chats_id", "jobs_id")

_LINKED = {
    "en": "This chat now gets the notifications that you chose at the dashboard.",
    "ru": "Теперь в этот чат приходят уведомления, выбранные в кабинете.",
}

log = logging.getLogger("cambist.people")


class NewCode(msgspec.Struct, frozen=True, kw_only=True):
    """A linking code, shown once."""

    code: str
    address: str
    """Opens the chat with the bot, and sends it the code."""

    def __repr__(self) -> str:
        return "NewCode(***)"


async def begin_link(ports: Ports, actor: Actor) -> NewCode:
    """Make a code for the person; an earlier one ends. Raises: Refusal INVALID_STATE without a bot; Unavailable."""
    if ports.messenger is None:
        raise Refusal("INVALID_STATE", "The service has no Telegram bot: ask its operator")
    code = ports.ids.secret(_CODE_BYTES)
    try:
        address = await ports.messenger.address(code)
    except NotConfigured:
        raise Refusal("INVALID_STATE", "The Telegram bot of the service does not work: ask its operator") from None

    async def work(unit: Unit) -> None:
        now = ports.clock.now()
        stored = await unit[TelegramChat].get(actor.user.id)
        with_code = msgspec.structs.replace(
            stored or TelegramChat(id=actor.user.id),
            code_digest=token_digest(code),
            code_expires_at=now + CODE_LIVES,
        )
        if stored is None:
            unit[TelegramChat].add(with_code)
        else:
            unit[TelegramChat].save(with_code)
        await ASK_BOT.plan(unit, _ALL, now, now, anew=True)

    with ports.clock.entered(None):
        await retrying(ports.storage, work, again_on=_NEW)
    return NewCode(code=code, address=address)


async def unlink_chat(ports: Ports, actor: Actor) -> None:
    """Forget the person's chat and open code."""
    ports = by_person(ports, actor, "person.telegram", actor.user.id)

    async def work(unit: Unit) -> None:
        stored = await unit[TelegramChat].get(actor.user.id)
        if stored is not None:
            unit[TelegramChat].remove(stored)

    await retrying(ports.storage, work)


async def ask_bot(ports: Ports, job: Job) -> None:
    """Read the texts that the bot received, link the chats that sent open codes, and end with the last open code."""
    linked: list[tuple[str, str]] = []
    if ports.messenger is not None:
        try:
            for text in await ports.messenger.received():
                language = await _link(ports, text)
                if language is not None:
                    linked.append((text.chat, language))
        except Fault as fault:
            log.warning("the Telegram bot gives no texts: %s", fault)
        for chat, language in linked:
            try:
                await ports.messenger.send(chat, _LINKED[language])
            except Fault as fault:
                log.warning("a linked chat was not greeted: %s", fault)
    now = ports.clock.now()

    async def next_due(unit: Unit) -> datetime | None:
        found = await unit[TelegramChat].find(code_digest=AtLeast(""), order="code_digest", limit=_OPEN_MOST)
        is_open = False
        for each in found:
            if each.code_expires_at is not None and now < each.code_expires_at and ports.messenger is not None:
                is_open = True
            else:
                unit[TelegramChat].save(msgspec.structs.replace(each, code_digest=None, code_expires_at=None))
        return now + _EVERY if is_open else None

    await reschedule(ports, job, next_due, anew=True)


async def _link(ports: Ports, text: ChatText) -> str | None:
    """Link the chat whose text is an open code. Return the person's language; None: it is no open code."""
    code = text.text.strip().removeprefix(_COMMAND).strip()
    if not code or len(code) > 2 * _CODE_BYTES or not code.isascii():
        return None

    async def work(unit: Unit) -> str | None:
        found = await unit[TelegramChat].find(code_digest=token_digest(code), order="id", limit=1)
        now = ports.clock.now()
        if not found or found[0].code_expires_at is None or found[0].code_expires_at <= now:
            return None
        user = await unit[User].get(found[0].id)
        if user is None or user.disabled_at is not None:
            return None
        chat = ports.vault.encrypt(text.chat.encode(), telegram_chat_aad(user.id))
        unit[TelegramChat].save(
            msgspec.structs.replace(found[0], chat=chat, linked_at=now, code_digest=None, code_expires_at=None)
        )
        return user.language

    return await retrying(ports.storage, work)
