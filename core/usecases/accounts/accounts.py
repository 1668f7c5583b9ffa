"""Merchants' accounts: opened, shown and configured by an operator (docs/cli.md "A new account"; docs/concepts.md
"Accounts, keys, modes").

Shops are in shops.py, keys in keys.py.
"""

import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ....ports.vault import VaultError
from ...domain import ids
from ...domain.account_settings import WEBHOOK_SECRET, read_settings
from ...domain.accounts.accounts import (
    KEY_PREFIXES,
    Account,
    ApiKey,
    KeyUse,
    Mode,
    Settings,
    account_name,
    money_settings,
)
from ...domain.accounts.shops import DEFAULT_MARKUP, DEFAULT_SHOP_NAME, Shop, fold_name
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.operators.guarded import Guarded, decisions, stays_in_process, webhook_secret
from ...domain.webhooks.endpoints import refuse_gap
from ..actions.four_eyes import gated
from ..common.chains import HEAD_RULE, begin_chains
from ..common.encrypted import (
    open_webhook_secret,
    settings_fit,
    tag_key,
    tag_settings,
    waiting_secret_aad,
    webhook_secret_aad,
)
from ..common.own_addresses import refuse_own_address
from ..common.units import retrying
from ..webhooks.outbox import release
from ..webhooks.results import close_breakers

SECRET_OVERLAP = timedelta(hours=24)
"""Time for which the replaced webhook secret still signs (docs/webhooks.md "Changing the secret")."""

WALLET = "payout_wallet"

_KEY_BYTES = 16
_SECRET_BYTES = 32


class KeyPair(msgspec.Struct, frozen=True, kw_only=True):
    """A key and its secret. The secret exists in plain text only here, and the repr hides it."""

    api_key: str
    api_secret: str

    def __repr__(self) -> str:
        return f"KeyPair(api_key={self.api_key!r}, api_secret=***)"


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Data of a new account for its merchant, shown once."""

    account_id: str
    default_shop_id: str
    live: KeyPair
    test: KeyPair


class AccountView(msgspec.Struct, frozen=True, kw_only=True):
    """An account with its keys, newest of each mode first, and the time of each key's last use."""

    account: Account
    keys: tuple[ApiKey, ...]
    uses: Mapping[str, datetime]


def storable(record_id: str) -> bool:
    """Return whether a text can be an id at all. Storages fail on NUL and lone surrogates."""
    return 0 < len(record_id) <= 128 and record_id.isascii() and record_id.isprintable()


async def find_account(unit: Unit, account_id: str) -> Account:
    """Return the account. Raises: Refusal ACCOUNT_NOT_FOUND."""
    account = await unit[Account].get(account_id) if storable(account_id) else None
    if account is None:
        raise Refusal("ACCOUNT_NOT_FOUND", "There is no account of this id")
    return account


def new_key(ports: Ports, account_id: str, mode: Mode) -> tuple[KeyPair, ApiKey]:
    """Return a new key pair with all rights, and its record, which the caller must tag and write."""
    cell = "" if ports.cell is None else f"{ports.cell}_"
    pair = KeyPair(
        api_key=f"{KEY_PREFIXES[mode]}{cell}{ports.ids.secret(_KEY_BYTES)}", api_secret=ports.ids.secret(_SECRET_BYTES)
    )
    record = ApiKey(
        id=pair.api_key,
        account_id=account_id,
        mode=mode,
        secret_digest=ports.vault.fingerprint(pair.api_secret),
        created_at=ports.clock.now(),
    )
    return pair, record


async def create_account(ports: Ports, name: str, *, account_id: str | None = None) -> NewAccount:
    """Open an account that can take payments at once, with a key pair per mode and a default shop with a markup.

    Raises: Refusal VALIDATION_ERROR; Conflict if another account has the given id.
    """
    kept_name = account_name(name)
    now = ports.clock.now()
    account_id = account_id or ids.prefixed(ids.ACCOUNT, ports.ids.uuid())
    shop_id = ports.ids.uuid()
    live, live_record = new_key(ports, account_id, Mode.LIVE)
    test, test_record = new_key(ports, account_id, Mode.TEST)

    async def work(unit: Unit) -> None:
        await begin_chains(ports, unit)
        unit[Account].add(Account(id=account_id, name=kept_name, default_shop_id=shop_id, created_at=now))
        unit[Shop].add(
            Shop(
                id=shop_id,
                account_id=account_id,
                name=DEFAULT_SHOP_NAME,
                name_folded=fold_name(DEFAULT_SHOP_NAME),
                created_at=now,
                markup=DEFAULT_MARKUP,
            )
        )
        unit[ApiKey].add(tag_key(ports.vault, live_record))
        unit[ApiKey].add(tag_key(ports.vault, test_record))

    await retrying(ports.storage, work, again_on=(HEAD_RULE,))
    return NewAccount(account_id=account_id, default_shop_id=shop_id, live=live, test=test)


async def list_accounts(ports: Ports) -> list[Account]:
    """Return all accounts, oldest first."""
    found = [account async for batch in ports.storage.scan(Account, readable=True) for account in batch]
    return sorted(found, key=lambda account: (account.created_at, account.id))


async def get_account(ports: Ports, account_id: str) -> AccountView:
    """Return an account with its keys. Raises: Refusal ACCOUNT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        account = await find_account(unit, account_id)
    keys = [key async for batch in ports.storage.scan(ApiKey, account_id=account_id) for key in batch]
    keys.sort(key=lambda key: key.created_at, reverse=True)
    keys.sort(key=lambda key: key.mode)
    async with ports.storage.unit() as unit:
        wanted = OneOf(tuple(key.id for key in keys))
        uses = await unit[KeyUse].find(id=wanted, limit=len(keys)) if keys else []
    return AccountView(account=account, keys=tuple(keys), uses={use.id: use.used_at for use in uses})


async def set_settings(ports: Ports, account_id: str, texts: Mapping[str, str]) -> Account:
    """Set settings by name (`account_settings.ACCOUNT_SETTINGS`): all of them, or none if one is invalid.

    If webhook address and secret are both set afterwards, held events are sent at once (docs/webhooks.md "Webhooks").
    Raises: Refusal VALIDATION_ERROR, ACCOUNT_NOT_FOUND, INVALID_STATE; Waits when a second operator has to confirm.
    """
    values = read_settings(texts)
    if values.get(WALLET) is not None:
        await refuse_own_address(ports, values[WALLET], WALLET)
    rotates = WEBHOOK_SECRET in values
    secret: str | None = values.pop(WEBHOOK_SECRET, None)
    leaves = rotates and not stays_in_process(values.get("webhook_url"))
    declares = webhook_secret(account_id, clears=secret is None) if leaves else None
    ports = gated(ports, "set_settings", account_id, declares, **_waiting_texts(ports, account_id, texts))

    async def work(unit: Unit) -> Account:
        before = await find_account(unit, account_id)
        after = msgspec.structs.replace(before, settings=msgspec.structs.replace(before.settings, **values))
        refuse_gap(before, after)
        if not settings_fit(ports.vault, before):
            _require_all_set(before, values)
        after = tag_settings(ports.vault, after)
        if rotates:
            after = _with_secret(ports, after, secret)
        saved = unit[Account].save(after)
        if after.receives and not before.receives:
            await release(ports, unit, account_id)
        moved = after.settings.webhook_url != before.settings.webhook_url
        if moved or after.webhook_secret != before.webhook_secret:
            await close_breakers(ports, unit, account_id, moved=moved)
        return saved

    return await retrying(ports.storage, work)


def _require_all_set(before: Account, values: Mapping[str, Any]) -> None:
    """Check that an operator who changes altered settings sets all of them again that move money and differ from their
    defaults. Raises: Refusal INVALID_STATE, with the missing names."""
    missing = sorted(money_settings(before.settings).keys() - values.keys())
    if missing:
        raise Refusal(
            "INVALID_STATE",
            "Settings that move money were altered outside of the service: set these as they are to be, too: "
            + ", ".join(missing),
        )


def guarded_settings(texts: Mapping[str, str]) -> set[str]:
    """Return the kinds of guarded effects that these settings would have on a new account. Raises: Refusal
    VALIDATION_ERROR."""
    values = read_settings(texts)
    found = {Guarded.WEBHOOKS.value} if values.pop(WEBHOOK_SECRET, None) is not None else set()
    fresh = Account(id="", name="", default_shop_id="", created_at=LONG_AGO, settings=Settings(**values))
    return found | {each.guarded.value for each in decisions(None, fresh)}


def _waiting_texts(ports: Ports, account_id: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as a pending action stores them, with the secret encrypted."""
    kept = dict(texts)
    if secret := texts.get(WEBHOOK_SECRET):
        sealed = ports.vault.encrypt(secret.encode(), waiting_secret_aad(account_id))
        kept[WEBHOOK_SECRET] = sealed.hex()
    return kept


def waited_texts(ports: Ports, account_id: str, kept: Mapping[str, str]) -> dict[str, str]:
    """Return the original settings of a pending action. Raises: VaultError."""
    texts = dict(kept)
    if sealed := kept.get(WEBHOOK_SECRET):
        texts[WEBHOOK_SECRET] = ports.vault.decrypt(bytes.fromhex(sealed), waiting_secret_aad(account_id)).decode()
    return texts


def _with_secret(ports: Ports, account: Account, secret: str | None) -> Account:
    """Return the account with a new webhook secret. The old one signs for another 24 hours (docs/webhooks.md "Changing
    the secret").

    During an overlap, receivers still verify with the older secret. So a further change keeps the older one and forgets
    the one in between, and correcting a typing mistake breaks no receiver. Clearing the secret ends both at once.
    """
    if secret is None:
        return msgspec.structs.replace(account, webhook_secret=None, previous_secret=None, previous_secret_until=None)
    now = ports.clock.now()
    replaced = account.webhook_secret
    if replaced is not None:
        try:
            if hmac.compare_digest(open_webhook_secret(ports.vault, account.id, replaced).encode(), secret.encode()):
                return account
        except VaultError:
            # A lost key encrypted it, so it can no longer sign and must not block a new one.
            replaced = None
    until = account.previous_secret_until
    if account.previous_secret is not None and until is not None and until > now:
        replaced = account.previous_secret
    return msgspec.structs.replace(
        account,
        webhook_secret=ports.vault.encrypt(secret.encode(), webhook_secret_aad(account.id)),
        previous_secret=replaced,
        previous_secret_until=None if replaced is None else now + SECRET_OVERLAP,
    )
