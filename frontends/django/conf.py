"""The setting `CAMBIST` of a Django project (docs/django.md)."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

CLIENT = ("URL", "API_KEY", "API_SECRET", "WEBHOOK_SECRETS")
"""Names for a shop that calls a cambist service over HTTP."""
EMBEDDED = ("DATABASE", "ACCOUNT", "MODE", "BASE_URL", "VAULT_KEY", "VAULT_PEPPER")
"""Names for a shop that has the service inside."""


def read() -> Mapping[str, Any]:
    """Return the setting. Raises: ImproperlyConfigured when it is missing, or mixes the two forms."""
    given: Mapping[str, Any] = getattr(settings, "CAMBIST", {})
    unknown = sorted(given.keys() - {*CLIENT, *EMBEDDED})
    if unknown:
        raise ImproperlyConfigured(f"CAMBIST has unknown names: {', '.join(unknown)}")
    if ("URL" in given) is ("DATABASE" in given):
        raise ImproperlyConfigured("CAMBIST needs URL, to call a service over HTTP, or DATABASE, to have it inside")
    missing = [name for name in CLIENT if "URL" in given and not given.get(name)]
    if missing:
        raise ImproperlyConfigured(f"CAMBIST lacks {', '.join(missing)}")
    return given


def account() -> str:
    """Return the account of an embedded service. Raises: ImproperlyConfigured without one."""
    given = read()
    if not given.get("ACCOUNT"):
        raise ImproperlyConfigured("CAMBIST lacks ACCOUNT, which `manage.py cambist_account NAME` prints")
    return str(given["ACCOUNT"])
