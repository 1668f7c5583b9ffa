"""Accounts, keys and shops as the command line shows them. Of secrets only whether they are set."""

from typing import Any

from ...core.domain.account_settings import shown_settings
from ...core.domain.accounts import Account, ApiKey, Shop
from ...core.domain.days import iso, iso_or_none


def account_document(account: Account) -> dict[str, Any]:
    """What there is to an account, without its keys."""
    return {
        "account_id": account.id,
        "name": account.name,
        "default_shop_id": account.default_shop_id,
        "created_at": iso(account.created_at),
        "settings": shown_settings(account),
        "previous_webhook_secret_until": iso_or_none(account.previous_secret_until),
    }


def key_document(key: ApiKey) -> dict[str, Any]:
    """The public half of a pair."""
    return {
        "api_key": key.id,
        "mode": key.mode.value,
        "created_at": iso(key.created_at),
        "ends_at": iso_or_none(key.ends_at),
    }


def shop_document(shop: Shop) -> dict[str, Any]:
    """A shop."""
    return {
        "shop_id": shop.id,
        "account_id": shop.account_id,
        "name": shop.name,
        "enabled": shop.enabled,
        "markup": shop.markup,
        "return_url": shop.return_url,
        "created_at": iso(shop.created_at),
    }
