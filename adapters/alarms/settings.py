"""Settings of the alarm channels (docs/alarms.md "Channels")."""

import re
from typing import Annotated, Any

from ...core.domain.shapes import is_mail_address
from ...ports.settings import (
    AdapterSettings,
    read_address,
    read_choice,
    read_credential,
    read_host,
    read_integer,
    read_text,
    setting,
)

TELEGRAM_API = "https://api.telegram.org"

_BOT_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{20,100}\Z")
_CHAT = re.compile(r"(?:-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64})\Z")


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


class EmailSettings(AdapterSettings, frozen=True, kw_only=True, rename={"sender": "from", "recipients": "to"}):
    """Settings of alarms by e-mail."""

    host: Annotated[str, setting("the SMTP server", read_host)]
    port: Annotated[int | None, setting("its port; default 587, or 465 with tls=tls", read_integer(1, 65535))] = None
    tls: Annotated[str, setting("encryption of the connection", read_choice("starttls", "tls", "off"))] = "starttls"
    user: Annotated[str | None, setting("user to log in as; none: no login", read_credential)] = None
    password: Annotated[str | None, setting("password of this user", read_credential, secret=True)] = None
    sender: Annotated[str, setting("sender address of alarms", read_mail_address)]
    recipients: Annotated[tuple[str, ...], setting("recipients of alarms", read_mail_addresses)]


class TelegramSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of alarms by a Telegram bot."""

    token: Annotated[str, setting("the bot's token", read_telegram_token, secret=True)]
    chat_id: Annotated[str, setting("the chat: a number, or @channel", read_chat)]
    url: Annotated[str, setting("address of the API", read_address)] = TELEGRAM_API


class SlackSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of alarms in Slack, or in a chat with the same webhook."""

    url: Annotated[str, setting("the address of the chat's webhook", read_credential, secret=True)]


class AlertmanagerSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of alarms by Prometheus' Alertmanager."""

    url: Annotated[str, setting("its address, without /api", read_address)]
    user: Annotated[
        str | None, setting("user of its basic authentication; none: no authentication", read_credential)
    ] = None
    password: Annotated[str | None, setting("password of this user", read_credential, secret=True)] = None
