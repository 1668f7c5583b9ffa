"""Options of the alarm channels, as in provider_options.py; documented in docs/alarms.md."""

from collections.abc import Mapping

from .alarm_readers import read_chat, read_mail_address, read_mail_addresses, read_telegram_token
from .options import Option
from .readers import read_address, read_choice, read_credential, read_host, read_integer

ALARM_ROWS: Mapping[str, tuple[Option, ...]] = {
    "email": (
        Option(name="host", read=read_host, meaning="the SMTP server"),
        Option(name="port", read=read_integer(1, 65535), meaning="its port; default 587, or 465 with tls=tls"),
        Option(
            name="tls",
            read=read_choice("starttls", "tls", "off"),
            meaning="encryption of the connection; default starttls",
        ),
        Option(name="user", read=read_credential, meaning="user to log in as; none: no login"),
        Option(name="password", read=read_credential, secret=True, shown=None, meaning="password of this user"),
        Option(name="from", read=read_mail_address, meaning="sender address of alarms"),
        Option(name="to", read=read_mail_addresses, shown=list, meaning="recipients of alarms"),
    ),
    "telegram": (
        Option(name="token", read=read_telegram_token, secret=True, shown=None, meaning="the bot's token"),
        Option(name="chat_id", read=read_chat, meaning="the chat: a number, or @channel"),
        Option(name="url", read=read_address, meaning="address of the API; default https://api.telegram.org"),
    ),
    "slack": (
        Option(name="url", read=read_credential, secret=True, shown=None, meaning="the address of the chat's webhook"),
    ),
    "alertmanager": (
        Option(name="url", read=read_address, meaning="its address, without /api"),
        Option(name="user", read=read_credential, meaning="user of its basic authentication; none: no authentication"),
        Option(name="password", read=read_credential, secret=True, shown=None, meaning="password of this user"),
    ),
}
