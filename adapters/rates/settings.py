"""Settings of the rate sources (docs/operations.md)."""

from typing import Annotated

from ...ports.settings import AdapterSettings, read_provider_key, setting


class CoinGeckoSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of CoinGecko."""

    key: Annotated[
        str | None, setting("demo key of CoinGecko; none: requests without a key", read_provider_key, secret=True)
    ] = None
