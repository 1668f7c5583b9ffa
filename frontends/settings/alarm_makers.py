"""Factories of the shipped alarm channels (shipped.py). A channel's library is imported only when a setting names
it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...ports.alarms import Alarms
from ...ports.tools import FileTools

if TYPE_CHECKING:
    from .provider_options import ProviderSettings


def _email(own: "ProviderSettings", _: FileTools) -> Alarms:
    from ...adapters.alarms.mail import MailAlarms

    tls = own.get("tls", "starttls")
    user = own.get("user")
    return MailAlarms(
        host=own.need("host"),
        port=own.get("port", 465 if tls == "tls" else 587),
        tls=tls,
        sender=own.need("from"),
        recipients=own.need("to"),
        user=user,
        password=None if user is None else own.need("password"),
    )


def _telegram(own: "ProviderSettings", _: FileTools) -> Alarms:
    from ...adapters.alarms.telegram import BASE, TelegramAlarms

    return TelegramAlarms(own.need("token"), own.need("chat_id"), base_url=own.get("url", BASE))


def _slack(own: "ProviderSettings", _: FileTools) -> Alarms:
    from ...adapters.alarms.slack import SlackAlarms

    return SlackAlarms(own.need("url"))


def _alertmanager(own: "ProviderSettings", _: FileTools) -> Alarms:
    from ...adapters.alarms.alertmanager import AlertmanagerAlarms

    user = own.get("user")
    password = None if user is None else own.need("password")
    return AlertmanagerAlarms(own.need("url"), user=user, password=password)


ALARM_MAKERS: Mapping[str, tuple[Callable[[Any, Any], Alarms], str]] = {
    "email": (_email, "alarms"),
    "telegram": (_telegram, "http"),
    "slack": (_slack, "http"),
    "alertmanager": (_alertmanager, "http"),
}
"""By name: the factory, and the extra that installs its library."""
