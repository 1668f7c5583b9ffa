"""Accounts, keys and shops as the command line shows them. Secrets appear only as set or not set."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...core.domain.account_settings import shown_settings
from ...core.domain.accounts.accounts import Account, ApiKey
from ...core.domain.accounts.shops import Shop
from ...core.domain.days import iso, iso_or_none
from ...core.domain.operators.pending_actions import PendingAction, status_at
from .output import fields, table


def account_document(account: Account) -> dict[str, Any]:
    """Return an account without its keys."""
    return {
        "account_id": account.id,
        "name": account.name,
        "default_shop_id": account.default_shop_id,
        "created_at": iso(account.created_at),
        "settings": shown_settings(account),
        "previous_webhook_secret_until": iso_or_none(account.previous_secret_until),
    }


def key_document(key: ApiKey, used_at: datetime | None) -> dict[str, Any]:
    """Return the public half of a key pair, its limits and its last use."""
    return {
        "api_key": key.id,
        "mode": key.mode.value,
        "name": key.name,
        "rights": None if key.rights is None else list(key.rights),
        "addresses": None if key.addresses is None else list(key.addresses),
        "created_at": iso(key.created_at),
        "last_used_at": iso_or_none(used_at),
        "ends_at": iso_or_none(key.ends_at),
    }


def keys_table(keys: Sequence[Mapping[str, Any]]) -> str:
    """Return the keys of an account as a table; `all` means no limit."""
    return table(
        ("mode", "X-Api-Key", "name", "rights", "addresses", "last used", "ends"),
        [
            (
                key["mode"],
                key["api_key"],
                key["name"] or "-",
                "all" if key["rights"] is None else ",".join(key["rights"]),
                "all" if key["addresses"] is None else ",".join(key["addresses"]),
                key["last_used_at"],
                key["ends_at"],
            )
            for key in keys
        ],
    )


def action_document(action: PendingAction, now: datetime) -> dict[str, Any]:
    """Return an operator action that waits or waited for a second operator."""
    return {
        "action_id": action.id,
        "status": status_at(action, now).value,
        "action": action.action,
        "object_id": action.object_id,
        "account_id": action.account_id,
        "mode": None if action.mode is None else action.mode.value,
        "operator": action.operator,
        "reason": action.reason,
        "created_at": iso(action.created_at),
        "expires_at": iso(action.expires_at),
        "decided_by": action.decided_by,
        "decided_at": iso_or_none(action.decided_at),
        "changes": [{"field": line.field, "before": line.before, "after": line.after} for line in action.shown],
    }


def action_text(document: Mapping[str, Any]) -> str:
    """Return the same as text for people."""
    plain = {name: value for name, value in document.items() if name != "changes"}
    changes = table(("changes", "before", "after"), [tuple(each.values()) for each in document["changes"]])
    return f"{fields(plain)}\n\n{changes}"


def shop_document(shop: Shop) -> dict[str, Any]:
    """Return a shop."""
    return {
        "shop_id": shop.id,
        "account_id": shop.account_id,
        "name": shop.name,
        "enabled": shop.enabled,
        "markup": shop.markup,
        "return_url": shop.return_url,
        "created_at": iso(shop.created_at),
    }
