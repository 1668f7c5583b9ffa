"""Settings of Sumsub (docs/providers/sumsub.md "Settings")."""

from typing import Annotated

from ....ports.settings import read_address, read_credential, setting
from .rules import SumsubRules

URL = "https://api.sumsub.com"
"""Address of both environments. The token selects the environment."""


class SumsubSettings(SumsubRules, frozen=True, kw_only=True):
    """Settings of Sumsub. Token and secrets belong to one environment: production or sandbox."""

    token: Annotated[str, setting("app token: prd:… or sbx:…", read_credential, secret=True)]
    secret: Annotated[str, setting("secret key of the app token", read_credential, secret=True)]
    notification_secret: Annotated[
        str, setting("secret key of the webhook, which signs its notifications", read_credential, secret=True)
    ]
    url: Annotated[str, setting("address of the API", read_address)] = URL
