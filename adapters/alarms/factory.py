"""Makes the alarm channels of their settings. A channel's library is imported only then."""

from ...ports.alarms import Alarms
from ...ports.settings import AdapterFactory, needed
from ...ports.tools import Tools
from .settings import AlertmanagerSettings, EmailSettings, SlackSettings, TelegramSettings


def _email(_: Tools, own: EmailSettings) -> Alarms:
    from .mail import MailAlarms

    return MailAlarms(
        host=own.host,
        port=own.port or (465 if own.tls == "tls" else 587),
        tls=own.tls,
        sender=own.sender,
        recipients=own.recipients,
        user=own.user,
        password=None if own.user is None else needed(own.password, "password"),
    )


def _telegram(_: Tools, own: TelegramSettings) -> Alarms:
    from .telegram import TelegramAlarms

    return TelegramAlarms(own.token, own.chat_id, base_url=own.url)


def _slack(_: Tools, own: SlackSettings) -> Alarms:
    from .slack import SlackAlarms

    return SlackAlarms(own.url)


def _alertmanager(_: Tools, own: AlertmanagerSettings) -> Alarms:
    from .alertmanager import AlertmanagerAlarms

    password = None if own.user is None else needed(own.password, "password")
    return AlertmanagerAlarms(own.url, user=own.user, password=password)


EMAIL = AdapterFactory(settings=EmailSettings, make=_email, extra="alarms")
TELEGRAM = AdapterFactory(settings=TelegramSettings, make=_telegram, extra="http")
SLACK = AdapterFactory(settings=SlackSettings, make=_slack, extra="http")
ALERTMANAGER = AdapterFactory(settings=AlertmanagerSettings, make=_alertmanager, extra="http")
