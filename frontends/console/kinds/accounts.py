"""Merchant accounts: settings, and creating their keys, shops, terminals and payouts."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....core.domain.account_settings import (
    ACCOUNT_SETTINGS,
    WEBHOOK_SECRET,
    plain_http_warning,
    read_settings,
    shown_settings,
)
from ....core.domain.accounts.accounts import Account, Mode
from ....core.domain.accounts.terminals import PAYMENT_METHODS, TerminalKind, TerminalWish
from ....core.domain.errors import Refusal
from ....core.domain.ledger import BalanceType, currency_of
from ....core.domain.operators.guarded import Guarded, decisions
from ....core.usecases.accounts.accounts import create_account, set_settings
from ....core.usecases.accounts.shops import create_shop
from ....core.usecases.accounts.terminals import create_terminal
from ....core.usecases.browse.browse import browse_accounts
from ....core.usecases.browse.timeline import amount
from ....core.usecases.ledger.ledger import balance_types
from ....ports.bundle import Ports
from ..columns import Column, when
from .kinds import Change, ConsoleAction, Doing, Entry, Filter, Kind, Once, Part, Told, Wish, by_id
from .stakes import of_payout
from .withdrawals import pay_out_and_follow

_MAKE, _TYPED, _NONE = "make one", "as typed", "none"
_YES_NO = ("true", "false")
_SECRET_BYTES = 32
_BALANCE = (BalanceType.PENDING, BalanceType.AVAILABLE, BalanceType.RESERVED)


async def _read(ports: Ports, wish: Wish, after: Account | None, limit: int) -> list[Account]:
    return await browse_accounts(ports, wish.of("name"), after, limit, newest_first=wish.order != "oldest")


_get = by_id(Account)


def _facts(account: Account) -> list[tuple[str, Any]]:
    return [
        ("name", account.name),
        ("account", account.id),
        ("default shop", account.default_shop_id),
        ("created", account.created_at),
        ("older secret until", account.previous_secret_until),
        *((name, "-" if value is None else value) for name, value in shown_settings(account).items()),
    ]


async def _balances(ports: Ports, account: Account) -> Told:
    """Return the merchant's balances in both modes."""
    async with ports.storage.unit() as unit:
        held = {mode: await balance_types(unit, account.id, mode) for mode in Mode}
    return [
        (f"{mode} {balance_type}", amount(held[mode].get(balance_type, 0), currency_of(balance_type)))
        for mode in Mode
        for balance_type in _BALANCE
    ]


async def _create(doing: Doing) -> Once:
    made = await create_account(doing.ports, doing.given["name"])
    pairs = (("live", made.live), ("test", made.test))
    return Once(
        text=f"{made.account_id} takes payments. Its secrets are shown this once: copy them now.",
        secrets=tuple(
            each
            for mode, pair in pairs
            for each in ((f"{mode} X-Api-Key", pair.api_key), (f"{mode} X-Api-Secret", pair.api_secret))
        ),
    )


async def _set(doing: Doing) -> str:
    name = doing.given["name"]
    after = await set_settings(doing.ports, doing.record.id, {name: doing.given["value"].strip()})
    warning = plain_http_warning(after.settings) if name == "webhook_url" else None
    done = f"{name} is {_present(after, name)} now."
    return done if warning is None else f"{done} Warning: {warning}."


def _present(account: Account, name: str) -> str:
    value = shown_settings(account).get(name)
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _setting(account: Account, given: Mapping[str, str]) -> list[Change]:
    name = given.get("name") or _SETTINGS[0]
    clears = ACCOUNT_SETTINGS[name].clearable
    return [Change(name, _present(account, name), given.get("value", "").strip() or ("-" if clears else "a value"))]


async def _secret(doing: Doing) -> str | Once:
    how = doing.given["how"]
    secret = {_MAKE: doing.ports.ids.secret(_SECRET_BYTES), _NONE: ""}.get(how, doing.given["secret"].strip())
    if how == _TYPED and not secret:
        raise ValueError("the secret is missing")
    await set_settings(doing.ports, doing.record.id, {WEBHOOK_SECRET: secret})
    if how == _NONE:
        return "There is none now: events wait."
    if how == _TYPED:
        return "Set. An older one signs beside it for 24 hours."
    return Once(
        text="Set. It is shown this once: copy it now. An older one signs beside it for 24 hours.",
        secrets=(("webhook secret", secret),),
    )


def _secret_changes(account: Account, given: Mapping[str, str]) -> list[Change]:
    before = "none" if account.webhook_secret is None else "set"
    words = {_NONE: "none: events wait", _TYPED: "what you type"}
    return [Change("webhook secret", before, words.get(given.get("how", ""), "a new one, shown once"))]


async def _shop(doing: Doing) -> str:
    given = doing.given
    made = await create_shop(doing.ports, doing.record.id, given["name"], given["markup"].strip() or None)
    return f"Shop {made.id} is there."


async def _terminal(doing: Doing) -> str:
    given = doing.given
    wish = TerminalWish(
        label=given["label"],
        payment_method=given["method"],
        kind=given["kind"],
        required_fields=_list(given["required"]),
        own_lifetime=given["lifetime"] == "true",
        direct_link=given["link"] == "true",
        credit_follows_receipt=given["credit"] == "true",
        routes=_list(given["routes"]),
    )
    made = await create_terminal(doing.ports, doing.record.id, wish)
    return f"Terminal {made.id} is there."


def _list(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


async def _pay_out(doing: Doing) -> str:
    return await pay_out_and_follow(doing, doing.record.id, Mode(doing.given["mode"]))


_SETTINGS = tuple(name for name in ACCOUNT_SETTINGS if name != WEBHOOK_SECRET)


def _guarded(account: Account, given: Mapping[str, str]) -> Guarded | None:
    """Return the guarded effect of the entered setting, or None."""
    try:
        values = read_settings({given["name"]: given["value"].strip()})
    except (KeyError, Refusal):
        return None
    after = msgspec.structs.replace(account, settings=msgspec.structs.replace(account.settings, **values))
    return next((each.guarded for each in decisions(account, after)), None)


_ACTIONS = (
    ConsoleAction(
        name="account.set",
        title="Adjust a setting",
        key="j",
        entries=(
            Entry(name="name", label="Setting", choices=_SETTINGS, default=_SETTINGS[0]),
            Entry(name="value", label="Value (empty clears)"),
        ),
        changes=lambda each: _setting(each, {}),
        follows=_setting,
        run=_set,
        by_two=_guarded,
    ),
    ConsoleAction(
        name="account.set",
        title="Webhook secret",
        key="c",
        entries=(
            Entry(name="how", label="Secret", choices=(_MAKE, _TYPED, _NONE), default=_MAKE),
            Entry(name="secret", label="Typed", is_secret=True),
        ),
        changes=lambda each: _secret_changes(each, {}),
        follows=_secret_changes,
        run=_secret,
        by_two=lambda *_: Guarded.WEBHOOKS,
    ),
    ConsoleAction(
        name="shop.create",
        title="New shop",
        key="h",
        entries=(
            Entry(name="name", label="Name", needed=True),
            Entry(name="markup", label="Markup, such as 0.03"),
        ),
        changes=lambda _: [Change("shop", "-", "a new one, enabled; without a markup it takes no payments yet")],
        run=_shop,
        guarded=False,
    ),
    ConsoleAction(
        name="terminal.add",
        title="Add terminal",
        key="i",
        entries=(
            Entry(name="label", label="Label", needed=True),
            Entry(name="method", label="Method", choices=PAYMENT_METHODS, default=PAYMENT_METHODS[0]),
            Entry(name="kind", label="Kind", choices=tuple(TerminalKind), default=TerminalKind.ORDINARY),
            Entry(name="required", label="Required fields (a,b)"),
            Entry(name="routes", label="Banks (a,b)"),
            Entry(name="lifetime", label="Own lifetime", choices=_YES_NO, default="true"),
            Entry(name="link", label="Direct link", choices=_YES_NO, default="false"),
            Entry(name="credit", label="Credit after receipt", choices=_YES_NO, default="false"),
        ),
        changes=lambda _: [Change("terminal", "-", "a new one, enabled; it never changes")],
        run=_terminal,
        guarded=False,
    ),
    ConsoleAction(
        name="payout.now",
        title="Pay out",
        key="u",
        entries=(Entry(name="mode", label="Mode", choices=tuple(Mode), default=Mode.TEST),),
        changes=lambda each: [
            Change("available USDT", "all of it", "0"),
            Change("payout to", "-", each.settings.payout_wallet or "no wallet: set payout_wallet first"),
        ],
        run=_pay_out,
        tells=lambda ports, each, given: of_payout(ports, each.id, Mode(given["mode"])),
        guarded=False,
    ),
)

ACCOUNTS = Kind(
    name="account",
    title="Accounts",
    key="A",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="name", cell=lambda each: each.name, width=30),
        Column(title="webhooks", cell=lambda each: "set" if each.receives else "not set", width=8),
        Column(title="wallet", cell=lambda each: "set" if each.settings.payout_wallet else "not set", width=7),
        Column(title="accepts", cell=lambda each: each.settings.acceptance, width=7),
        Column(title="account", cell=lambda each: each.id, width=40, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(Filter(name="name", hint="a part of it"),),
    actions=_ACTIONS,
    figures=_balances,
    parts=(
        Part(title="Payments", key="a", of="payment", by="account"),
        Part(title="Refunds", key="d", of="refund", by="account"),
        Part(title="Webhooks", key="b", of="event", by="account"),
        Part(title="Shops", key="s", of="shop", by="account"),
        Part(title="Keys", key="k", of="key", by="account"),
        Part(title="Terminals", key="l", of="terminal", by="account"),
        Part(title="Statements", key="t", of="settlement", by="account"),
        Part(title="BalanceTypes", key="e", of="ledger", by="account"),
        Part(title="Movements", key="v", of="movement", by="account"),
    ),
    list_actions=(
        ConsoleAction(
            name="account.create",
            title="New account",
            key="n",
            entries=(Entry(name="name", label="Name", needed=True),),
            changes=lambda _: [
                Change("account", "-", "takes payments at once, with a default shop"),
                Change("keys", "-", "a pair for live and one for test, shown once"),
            ],
            run=_create,
            reason_needed=False,
            guarded=False,
        ),
    ),
)
