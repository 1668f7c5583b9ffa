"""Shops, settings and audit log of the account (docs/dashboard.md "Settings")."""

from ....core.domain.accounts.shops import Shop
from ....core.domain.people.roles import PersonRight
from ....core.usecases.accounts.shops import list_shops
from ....core.usecases.actions.audit import list_account_audit
from ....core.usecases.people.members import list_members
from ....core.usecases.people.own_account import change_settings, change_shop, open_shop, switch_shop
from ..audit_texts import described
from ..blocks import Actions, Badge, Block, Code, Column, Facts, Field, Form, Link, Note, Table, Value
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask

add(
    {
        "shop.markup": ("Fee", "Комиссия"),
        "shop.none": ("not set yet: the operator sets it", "не задана: её задаёт оператор"),
        "shop.default": ("default", "основной"),
        "shop.off": ("switched off", "выключен"),
        "shop.on": ("takes payments", "принимает платежи"),
        "shop.return": ("Return address", "Адрес возврата"),
        "shop.return.hint": ("Where payers go after paying", "Куда плательщик возвращается после оплаты"),
        "shop.new": ("New shop", "Новый магазин"),
        "shop.create": ("Create the shop", "Создать магазин"),
        "shop.disable": ("Switch off", "Выключить"),
        "shop.enable": ("Switch on", "Включить"),
        "settings.options": ("Options", "Возможности"),
        "settings.operator": (
            "The operator of the service switches these.",
            "Их включает и выключает оператор сервиса.",
        ),
        "settings.acceptance": ("New payments", "Новые платежи"),
        "settings.refunds": ("Refunds by API", "Возвраты по API"),
        "settings.terminals": ("Choice of terminals", "Выбор терминала"),
        "settings.recurring": ("Charges of subscriptions", "Списания по подпискам"),
        "settings.exchange": ("Exchanges", "Обмены"),
        "settings.kyc": ("Verification of clients", "Проверка клиентов"),
        "settings.kyc.off": ("not required", "не требуется"),
        "settings.kyc.required": ("required", "обязательна"),
        "settings.kyc.disabled": ("switched off", "выключена"),
        "settings.amount": ("Largest payment", "Наибольший платёж"),
        "settings.wallet": ("Wallet for payouts", "Кошелёк для выплат"),
        "settings.wallet.intro": (
            "A TRON address. Everything that is available leaves to it after the next settlement: check it twice.",
            "Адрес TRON. После ближайшего расчёта на него уйдёт всё доступное: проверьте дважды.",
        ),
        "settings.second": ("A second person", "Второй человек"),
        "settings.second.intro": (
            "Live keys, webhook secrets, the wallet, roles and invitations then wait for another person's approval.",
            "Тогда боевые ключи, секреты вебхуков, кошелёк, роли и приглашения одобряет ещё один человек.",
        ),
        "settings.second.begin": ("Ask a second person", "Требовать второго"),
        "settings.second.end": ("Stop asking", "Больше не требовать"),
        "settings.payers": ("Payers", "Плательщики"),
        "settings.auto_return": ("Lead payers back by itself after success", "Возвращать плательщика автоматически"),
        "settings.retry": (
            "Let payers try again on the page after a payment failed or expired",
            "Разрешить плательщику повторить оплату на странице, если она не прошла или время вышло",
        ),
        "settings.reminders": ("Remind of missing delivery proofs", "Напоминать о подтверждении доставки"),
        "settings.alarm": ("Mail when webhooks fail for an hour", "Почта для сообщений о сбое вебхуков"),
        "audit.who": ("Who", "Кто"),
        "audit.what": ("What", "Что"),
        "audit.before": ("Before", "Было"),
        "audit.after": ("After", "Стало"),
        "audit.operator": ("operator of the service", "оператор сервиса"),
        "error.SHOP_NOT_FOUND": ("There is no such shop.", "Такого магазина нет."),
    }
)


async def shops(ask: Ask) -> Page:
    found = [each for each in await list_shops(ask.ports, ask.actor.account.id) if ask.caller.sees_shop(each.id)]
    default = ask.actor.account.default_shop_id
    table = Table(
        caption=ask.t("shops"),
        columns=[
            Column(ask.t("name")),
            Column(ask.t("id")),
            Column(ask.t("status")),
            Column(ask.t("shop.markup")),
            Column(ask.t("shop.return")),
        ],
        rows=[_row(ask, each, default) for each in found],
        empty=ask.t("nothing"),
    )
    blocks: list[Block] = [table]
    if ask.has(PersonRight.SHOPS):
        name = Field(name="name", label=ask.t("name"), required=True, maxlength=120)
        title = ask.t("shop.new")
        blocks.append(Form(action=ask.to("/shops"), fields=[name], submit=ask.t("shop.create"), title=title))
    return Page(ask.t("shops"), blocks)


def _row(ask: Ask, shop: Shop, default: str) -> list[Value]:
    name: Value = shop.name
    if ask.has(PersonRight.SHOPS):
        name = Link(shop.name, ask.to(f"/shops/{shop.id}"))
    state = Badge(ask.t("shop.on"), "good") if shop.enabled else Badge(ask.t("shop.off"), "warn")
    if shop.id == default:
        state = Badge(ask.t("shop.default"), "good")
    return [name, Code(shop.id), state, _markup(ask, shop), shop.return_url]


def _markup(ask: Ask, shop: Shop) -> str:
    if shop.markup is None:
        return ask.t("shop.none")
    percent = f"{float(shop.markup) * 100:.4f}".rstrip("0").rstrip(".")
    return f"{percent.replace('.', ',') if ask.language == 'ru' else percent} %"


async def shop(ask: Ask) -> Page:
    shop_id = ask.path("shop_id")
    found = next((each for each in await list_shops(ask.ports, ask.actor.account.id) if each.id == shop_id), None)
    if found is None or not ask.caller.sees_shop(shop_id):
        raise ask.missing("SHOP_NOT_FOUND")
    fields = [
        Field(name="name", label=ask.t("name"), value=found.name, required=True, maxlength=120),
        Field(
            name="return_url",
            label=ask.t("shop.return"),
            type="url",
            value=found.return_url or "",
            hint=ask.t("shop.return.hint"),
        ),
    ]
    path = f"/shops/{shop_id}"
    blocks: list[Block] = [
        Form(action=ask.to(path), fields=fields, submit=ask.t("save"), title=ask.t("settings")),
        Actions([Link(ask.t("brand"), ask.to(f"{path}/brand"))]),
    ]
    if shop_id != ask.actor.account.default_shop_id:
        word = "shop.disable" if found.enabled else "shop.enable"
        action = ask.to(f"{path}/{'disable' if found.enabled else 'enable'}")
        tone = "danger" if found.enabled else "plain"
        blocks.append(Form(action=action, fields=[], submit=ask.t(word), tone=tone))
    return Page(found.name, blocks, [Link(ask.t("shops"), ask.to("/shops"))])


async def create(ask: Ask) -> Redirect:
    made = await open_shop(ask.ports, ask.actor, ask.value("name"))
    return Redirect(f"/shops/{made.id}", {"done": "created"})


async def save(ask: Ask) -> Redirect:
    shop_id = ask.path("shop_id")
    name, address = ask.value("name"), ask.value("return_url")
    await change_shop(ask.ports, ask.actor, shop_id, name=name, return_url=address)
    return Redirect(f"/shops/{shop_id}", {"done": "saved"})


async def disable(ask: Ask) -> Redirect:
    await switch_shop(ask.ports, ask.actor, ask.path("shop_id"), enabled=False)
    return Redirect(f"/shops/{ask.path('shop_id')}", {"done": "saved"})


async def enable(ask: Ask) -> Redirect:
    await switch_shop(ask.ports, ask.actor, ask.path("shop_id"), enabled=True)
    return Redirect(f"/shops/{ask.path('shop_id')}", {"done": "saved"})


async def settings(ask: Ask) -> Page:
    account = ask.actor.account
    now = account.settings

    def switched(value: bool) -> Badge:
        return Badge(ask.t("yes"), "good") if value else Badge(ask.t("no"), "plain")

    blocks: list[Block] = [
        Facts(
            ask.t("settings.options"),
            [
                (ask.t("account"), account.name),
                (ask.t("id"), Code(account.id)),
                (ask.t("settings.acceptance"), switched(now.acceptance)),
                (ask.t("settings.refunds"), switched(now.refunds)),
                (ask.t("settings.terminals"), switched(now.terminals)),
                (ask.t("settings.recurring"), switched(now.recurring)),
                (ask.t("settings.exchange"), switched(now.exchange)),
                (ask.t("settings.kyc"), ask.t(f"settings.kyc.{now.kyc}")),
                (ask.t("settings.amount"), ask.rub(now.amount_rub_max)),
            ],
        ),
        Note(ask.t("settings.operator"), "plain"),
        Actions(
            [
                Link(ask.t("notifications"), ask.to("/settings/notifications")),
                *([Link(ask.t("brand"), ask.to("/settings/brand"))] if ask.has(PersonRight.SHOPS) else []),
            ]
        ),
    ]
    if ask.has(PersonRight.PAYOUT_DETAILS):
        title = ask.t("settings.wallet")
        wallet = Field(name="payout_wallet", label=title, value=now.payout_wallet or "", maxlength=64)
        intro = ask.t("settings.wallet.intro")
        blocks.append(
            Form(action=ask.to("/settings/wallet"), fields=[wallet], submit=ask.t("save"), title=title, intro=intro)
        )
    elif ask.has(PersonRight.MONEY):
        blocks.append(Facts(ask.t("settings.wallet"), [(ask.t("payout.wallet"), now.payout_wallet or "–")]))
    if ask.has(PersonRight.OWNER):
        title = ask.t("settings.second")
        switch = Field(name="on", type="hidden", value="" if now.second_person else "yes")
        submit = ask.t("settings.second.end" if now.second_person else "settings.second.begin")
        intro = ask.t("settings.second.intro")
        action = ask.to("/settings/second-person")
        blocks.append(Form(action=action, fields=[switch], submit=submit, title=title, intro=intro))
    if ask.has(PersonRight.SHOPS):
        fields = [
            Field(name="return_url", label=ask.t("shop.return"), type="url", value=now.return_url or ""),
            Field(
                name="auto_return",
                label=ask.t("settings.auto_return"),
                type="checkbox",
                value="yes" if now.auto_return else "",
            ),
            Field(
                name="payer_retry",
                label=ask.t("settings.retry"),
                type="checkbox",
                value="yes" if now.payer_retry else "",
            ),
            Field(
                name="proof_reminders",
                label=ask.t("settings.reminders"),
                type="checkbox",
                value="yes" if now.proof_reminders else "",
            ),
            Field(name="alarm_email", label=ask.t("settings.alarm"), type="email", value=now.alarm_email or ""),
        ]
        title = ask.t("settings.payers")
        blocks.append(Form(action=ask.to("/settings"), fields=fields, submit=ask.t("save"), title=title))
    return Page(ask.t("settings"), blocks)


async def save_settings(ask: Ask) -> Redirect:
    texts = {
        "return_url": ask.value("return_url"),
        "auto_return": "true" if ask.value("auto_return") else "false",
        "payer_retry": "true" if ask.value("payer_retry") else "false",
        "proof_reminders": "true" if ask.value("proof_reminders") else "false",
        "alarm_email": ask.value("alarm_email"),
    }
    await change_settings(ask.ports, ask.actor, texts)
    return Redirect("/settings", {"done": "saved"})


async def save_wallet(ask: Ask) -> Redirect:
    await change_settings(ask.ports, ask.actor, {"payout_wallet": ask.value("payout_wallet")})
    return Redirect("/settings", {"done": "saved"})


async def save_second_person(ask: Ask) -> Redirect:
    await change_settings(ask.ports, ask.actor, {"second_person": "true" if ask.value("on") else "false"})
    return Redirect("/settings", {"done": "saved"})


async def audit(ask: Ask) -> Page:
    ask.require_whole_account()
    before = ask.query.get("before") or None
    found = await list_account_audit(ask.ports, ask.actor.account.id, before=before, limit=50)
    names = {each.user.id: each.email for each in await list_members(ask.ports, ask.actor.account.id)}
    table = Table(
        caption=ask.t("audit"),
        columns=[
            Column(ask.t("date")),
            Column(ask.t("audit.who")),
            Column(ask.t("audit.what")),
            Column(ask.t("event.object")),
            Column(ask.t("audit.before")),
            Column(ask.t("audit.after")),
        ],
        rows=[
            [
                ask.at(each.at),
                _who(ask, each.operator, names),
                ask.t.of("action", each.action),
                None if each.object_id is None else Code(names.get(each.object_id, each.object_id)),
                described(ask, each.before),
                described(ask, each.after),
            ]
            for each in found
        ],
        empty=ask.t("nothing"),
        pager=[Link(ask.t("older"), ask.here(before=found[-1].id))] if len(found) == 50 else [],
    )
    return Page(ask.t("audit"), [table])


def _who(ask: Ask, operator: str, names: dict[str, str]) -> str:
    if not operator.startswith("usr_"):
        return ask.t("audit.operator")
    return names.get(operator, operator)


_S = "/shops/{shop_id:str}"

ACCOUNT = (
    get("/shops", shops, PersonRight.READ),
    post("/shops", create, PersonRight.SHOPS, retry="/shops"),
    get(_S, shop, PersonRight.SHOPS),
    post(_S, save, PersonRight.SHOPS, retry=_S),
    post(f"{_S}/disable", disable, PersonRight.SHOPS, retry=_S),
    post(f"{_S}/enable", enable, PersonRight.SHOPS, retry=_S),
    get("/settings", settings),
    post("/settings", save_settings, PersonRight.SHOPS, retry="/settings"),
    post("/settings/wallet", save_wallet, PersonRight.PAYOUT_DETAILS, retry="/settings"),
    post("/settings/second-person", save_second_person, PersonRight.OWNER, retry="/settings"),
    get("/audit", audit, PersonRight.AUDIT),
)
