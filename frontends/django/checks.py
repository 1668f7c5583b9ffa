"""System checks of the setting: `manage.py check`."""

from typing import Any

from django.core.checks import Error, Tags, Warning, register  # noqa: A004 - Django's name
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse

from . import conf


@register(Tags.security)
def check_setting(**_: Any) -> list[Any]:
    """Report a missing or wrong `CAMBIST`, and a route for webhooks that is missing."""
    try:
        given = conf.read()
        if "DATABASE" in given:
            conf.account()
    except ImproperlyConfigured as fault:
        return [Error(str(fault), hint="see docs/django.md", id="cambist.E001")]
    if "DATABASE" in given:
        found = []
        if not given.get("BASE_URL"):
            found.append(Warning("CAMBIST has no BASE_URL: payers' links lead to 127.0.0.1", id="cambist.W001"))
        if not given.get("VAULT_KEY"):
            hint = "set VAULT_KEY and VAULT_PEPPER, which `cambist vault new` prints"
            found.append(Warning("CAMBIST has no VAULT_KEY: a key file is created", hint=hint, id="cambist.W002"))
        return found
    try:
        reverse("cambist:hook")
    except NoReverseMatch:
        hint = 'add path("cambist/", include("cambist.django.urls"))'
        return [Error("the project has no route for webhooks", hint=hint, id="cambist.E002")]
    return []
