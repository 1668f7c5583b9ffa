"""The menu: pages that the person's role may open."""

from collections.abc import Sequence

import msgspec

from ...core.domain.people.roles import PersonRight
from .texts import add
from .web import Ask


class MenuLink(msgspec.Struct, frozen=True):
    text: str
    href: str
    current: bool


class MenuGroup(msgspec.Struct, frozen=True):
    title: str
    links: Sequence[MenuLink]


_GROUPS: tuple[tuple[str, tuple[tuple[str, str, PersonRight | None], ...]], ...] = (
    ("", (("/home", "home", None),)),
    (
        "menu.sales",
        (
            ("/payments", "payments", PersonRight.READ),
            ("/links", "paylinks", PersonRight.READ),
            ("/counter", "counter", PersonRight.PAYMENTS),
            ("/refunds", "refunds", PersonRight.READ),
            ("/receipts", "receipts", PersonRight.READ),
            ("/subscriptions", "subscriptions", PersonRight.READ),
            ("/exchanges", "exchanges", PersonRight.READ),
            ("/exports", "exports", PersonRight.EXPORT),
            ("/clients", "clients", PersonRight.READ),
        ),
    ),
    (
        "menu.money",
        (
            ("/balance", "balance", PersonRight.MONEY),
            ("/reports", "reports", PersonRight.MONEY),
            ("/payouts", "payouts", PersonRight.MONEY),
        ),
    ),
    (
        "menu.developers",
        (
            ("/developers/keys", "keys", PersonRight.KEYS),
            ("/developers/webhooks", "webhooks", PersonRight.LOGS),
            ("/developers/events", "events", PersonRight.LOGS),
            ("/developers/requests", "requests", PersonRight.LOGS),
            ("/developers/sandbox", "sandbox", PersonRight.SANDBOX),
        ),
    ),
    (
        "menu.account",
        (
            ("/shops", "shops", PersonRight.READ),
            ("/people", "people", None),
            ("/approvals", "approvals", None),
            ("/settings", "settings", None),
            ("/audit", "audit", PersonRight.AUDIT),
            ("/profile", "profile", None),
        ),
    ),
)

add(
    {
        "menu.sales": ("Sales", "Продажи"),
        "menu.money": ("Money", "Деньги"),
        "menu.developers": ("Developers", "Разработчикам"),
        "menu.account": ("Account", "Аккаунт"),
        "payments": ("Payments", "Платежи"),
        "refunds": ("Refunds", "Возвраты"),
        "subscriptions": ("Subscriptions", "Подписки"),
        "exchanges": ("Exchanges", "Обмены"),
        "exports": ("Exports", "Выгрузки"),
        "clients": ("Clients", "Клиенты"),
        "balance": ("Balance", "Баланс"),
        "payouts": ("Payouts", "Выплаты"),
        "keys": ("API keys", "Ключи API"),
        "webhooks": ("Webhooks", "Вебхуки"),
        "events": ("Events", "События"),
        "requests": ("Requests", "Запросы"),
        "sandbox": ("Sandbox", "Песочница"),
        "shops": ("Shops", "Магазины"),
        "people": ("People", "Люди"),
        "settings": ("Settings", "Настройки"),
        "audit": ("Audit log", "Журнал действий"),
        "profile": ("Your profile", "Ваш профиль"),
    }
)


def menu_of(ask: Ask, accounts: int) -> Sequence[MenuGroup]:
    """Return the menu of the signed-in person; empty before the sign-in. `accounts`: the number of the person's
    accounts."""
    if ask.signed_in is None:
        return ()
    present = ask.page_path.removeprefix(ask.site.root)
    groups = []
    for title, rows in _GROUPS:
        links = [
            MenuLink(ask.t(name), ask.to(path), present == path or present.startswith(f"{path}/"))
            for path, name, right in rows
            if right is None or ask.has(right)
        ]
        if title == "menu.account" and accounts > 1:
            links.append(MenuLink(ask.t("accounts"), ask.to("/accounts"), present == "/accounts"))
        if links:
            groups.append(MenuGroup(ask.t(title) if title else "", links))
    return groups
