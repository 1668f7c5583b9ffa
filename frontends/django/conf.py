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
    needed = CLIENT if "URL" in given else ("DATABASE", "ACCOUNT")
    missing = [name for name in needed if not given.get(name)]
    if missing:
        raise ImproperlyConfigured(f"CAMBIST lacks {', '.join(missing)}")
    return given


def is_embedded() -> bool:
    """Return whether the service runs inside this project. Raises: ImproperlyConfigured."""
    return "DATABASE" in read()
