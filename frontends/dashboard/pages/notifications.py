"""Notifications of the person, and the page of the link that ends them (docs/dashboard.md "Notifications")."""

from ....core.domain.people.notifications import (
    RIGHTS,
    Channel,
    NotificationKind,
    NotificationPreferences,
    shown_minutes,
)
from ....core.domain.people.roles import MONEY_ROLES, PersonRight
from ....core.usecases.people.notifications import (
    ShownPreferences,
    Unsubscription,
    change_preferences,
    find_unsubscription,
    read_preferences,
    unsubscribe,
)
from ....core.usecases.people.telegram import begin_link, unlink_chat
from ..blocks import Actions, Block, Code, Facts, Field, Form, Link, Note
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask

add(
    {
        "notifications": ("Notifications", "Уведомления"),
        "notify.intro": (
            "You choose for yourself and for this account: {account}.",
            "Вы выбираете для себя и для этого аккаунта: {account}.",
        ),
        "notify.email": ("By e-mail", "По почте"),
        "notify.telegram": ("By Telegram", "В Telegram"),
        "notify.refund_done": ("Refund done", "Возврат выполнен"),
        "notify.payout_sent": ("Payout sent", "Выплата отправлена"),
        "notify.mismatch": ("Mismatch under review", "Расхождение на проверке"),
        "notify.endpoint_dead": ("Webhook endpoint dead", "Адрес вебхуков не отвечает"),
        "notify.daily_sum": ("Daily sum, for the Moscow day", "Итог за московский день"),
        "notify.test": ("Also of test mode", "И о тестовом режиме"),
        "notify.quiet_from": ("Quiet from", "Не беспокоить с"),
        "notify.quiet_to": ("Quiet until", "Не беспокоить до"),
        "notify.quiet.hint": (
            "Moscow time, such as 22:00. Empty: no quiet hours.",
            "Московское время, например 22:00. Пусто: в любое время.",
        ),
        "notify.factor": (
            "Notifications about money in live mode begin when you set up an authenticator app or a passkey.",
            "Уведомления о деньгах боевого режима начнутся, когда вы подключите приложение с кодами или ключ доступа.",
        ),
        "notify.shops": (
            "You are limited to shops: you get refunds and mismatches of these shops.",
            "Вам доступны отдельные магазины: приходят возвраты и расхождения этих магазинов.",
        ),
        "notify.no_mail": (
            "The service has no e-mail connected: ask its operator.",
            "У сервиса не подключена почта: обратитесь к его оператору.",
        ),
        "telegram": ("Telegram", "Telegram"),
        "telegram.connect": ("Connect Telegram", "Подключить Telegram"),
        "telegram.again": ("Connect another chat", "Подключить другой чат"),
        "telegram.remove": ("Disconnect Telegram", "Отключить Telegram"),
        "telegram.linked": ("Connected", "Подключён"),
        "telegram.none": ("Telegram is not connected yet.", "Telegram пока не подключён."),
        "telegram.code": ("Code", "Код"),
        "telegram.open": ("Open the chat with the bot", "Открыть чат с ботом"),
        "telegram.how": (
            "Open the chat and press Start, or send the bot /start and the code. The code lives for 15 minutes.",
            "Откройте чат и нажмите «Начать» или отправьте боту /start и код. Код действует 15 минут.",
        ),
        "telegram.back": ("To the notifications", "К уведомлениям"),
        "unsubscribe.title": ("Unsubscribe", "Отписаться"),
        "unsubscribe.intro": (
            "Do you want no more notifications about {account} {channel}?",
            "Больше не присылать уведомления об аккаунте «{account}» {channel}?",
        ),
        "unsubscribe.submit": ("Unsubscribe", "Отписаться"),
        "unsubscribe.done": (
            "You get no more notifications about {account} {channel}.",
            "Уведомления об аккаунте «{account}» {channel} больше не приходят.",
        ),
        "unsubscribe.email": ("by e-mail", "по почте"),
        "unsubscribe.telegram": ("by Telegram", "в Telegram"),
        "unsubscribe.choose": ("Choose at the dashboard", "Выбрать в кабинете"),
        "error.UNSUBSCRIBE_VOID": (
            "This link was used already, or is incomplete. Choose your notifications in the dashboard.",
            "Эта ссылка уже использована или неполна. Выберите уведомления в кабинете.",
        ),
        "action.person.notifications": ("notifications chosen", "выбраны уведомления"),
        "action.person.unsubscribe": ("unsubscribed", "отписка"),
        "action.person.telegram": ("Telegram disconnected", "отключён Telegram"),
    }
)

_PAGE = "/settings/notifications"


async def notifications(ask: Ask) -> Page:
    shown = await read_preferences(ask.ports, ask.actor)
    blocks: list[Block] = [Note(ask.t("notify.intro", account=ask.actor.account.name), "plain")]
    if ask.actor.membership.shops is not None:
        blocks.append(Note(ask.t("notify.shops"), "plain"))
    needs_factor = any(RIGHTS[kind] is PersonRight.MONEY for kind in shown.kinds) and ask.actor.role in MONEY_ROLES
    if needs_factor and not shown.has_factor:
        blocks.append(Note(ask.t("notify.factor"), "warn", Link(ask.t("profile"), ask.to("/profile"))))
    if not shown.has_mail:
        blocks.append(Note(ask.t("notify.no_mail"), "warn"))
    blocks.append(_form(ask, shown))
    if shown.has_bot:
        blocks += _telegram(ask, shown)
    return Page(ask.t("notifications"), blocks, crumbs=[Link(ask.t("settings"), ask.to("/settings"))])


def _form(ask: Ask, shown: ShownPreferences) -> Form:
    chosen = shown.preferences
    channels = [Channel.EMAIL, *([Channel.TELEGRAM] if shown.has_bot else [])]
    fields = [_kinds(ask, shown.kinds, chosen, channel) for channel in channels]
    quiet = {"quiet_from": chosen.quiet_from, "quiet_to": chosen.quiet_to}
    fields += [
        Field(
            name=name,
            label=ask.t(f"notify.{name}"),
            value=shown_minutes(minutes),
            hint=ask.t("notify.quiet.hint") if name == "quiet_from" else "",
            pattern="([01][0-9]|2[0-3]):[0-5][0-9]",
            maxlength=5,
        )
        for name, minutes in quiet.items()
    ]
    fields.append(Field(name="test", label=ask.t("notify.test"), type="checkbox", value="yes" if chosen.test else ""))
    return Form(action=ask.to(_PAGE), fields=fields, submit=ask.t("save"))


def _kinds(ask: Ask, kinds: tuple[NotificationKind, ...], chosen: NotificationPreferences, channel: Channel) -> Field:
    return Field(
        name=channel.value,
        label=ask.t(f"notify.{channel}"),
        type="checks",
        options=[(kind.value, ask.t(f"notify.{kind}")) for kind in kinds],
        chosen=chosen.kinds(channel),
    )


def _telegram(ask: Ask, shown: ShownPreferences) -> list[Block]:
    chat = shown.chat
    is_linked = chat is not None and chat.chat is not None
    facts: list[Block] = (
        [Facts(ask.t("telegram"), [(ask.t("telegram.linked"), ask.at(chat.linked_at))])]
        if chat is not None and is_linked
        else [Note(ask.t("telegram.none"), "plain")]
    )
    submit = ask.t("telegram.again" if is_linked else "telegram.connect")
    facts.append(Form(action=ask.to(f"{_PAGE}/telegram"), fields=[], submit=submit))
    if is_linked:
        action = ask.to(f"{_PAGE}/telegram/remove")
        facts.append(Form(action=action, fields=[], submit=ask.t("telegram.remove"), tone="danger"))
    return facts


async def save(ask: Ask) -> Redirect:
    shown = await read_preferences(ask.ports, ask.actor)
    await change_preferences(
        ask.ports,
        ask.actor,
        email=ask.form.get("email", ()),
        # Without a bot the page does not show these choices.
        telegram=ask.form.get("telegram", ()) if shown.has_bot else shown.preferences.telegram,
        test=bool(ask.value("test")),
        quiet_from=ask.value("quiet_from"),
        quiet_to=ask.value("quiet_to"),
    )
    return Redirect(_PAGE, {"done": "saved"})


async def connect(ask: Ask) -> Page:
    new = await begin_link(ask.ports, ask.actor)
    blocks: list[Block] = [
        Note(ask.t("telegram.how"), "plain"),
        Facts(None, [(ask.t("telegram.code"), Code(new.code))]),
        Actions([Link(ask.t("telegram.open"), new.address), Link(ask.t("telegram.back"), ask.to(_PAGE))]),
    ]
    return Page(ask.t("telegram.connect"), blocks)


async def connecting(_: Ask) -> Redirect:
    """Redirect a reload of the code's page: a code is shown once."""
    return Redirect(_PAGE)


async def disconnect(ask: Ask) -> Redirect:
    await unlink_chat(ask.ports, ask.actor)
    return Redirect(_PAGE, {"done": "removed"})


async def leaving(ask: Ask) -> Page:
    """Show what the link unsubscribes from. Mail scanners open links, so nothing changes here."""
    token = ask.query.get("token", "")
    found = await find_unsubscription(ask.ports, token)
    if found.is_done:
        return _left(ask, found)
    intro = ask.t("unsubscribe.intro", account=found.account_name, channel=ask.t(f"unsubscribe.{found.channel}"))
    form = Form(action=ask.to("/unsubscribe", token=token), fields=[], submit=ask.t("unsubscribe.submit"), intro=intro)
    return Page(ask.t("unsubscribe.title"), [form], has_form=True)


async def leave(ask: Ask) -> Page:
    return _left(ask, await unsubscribe(ask.ports, ask.query.get("token", "")))


def _left(ask: Ask, found: Unsubscription) -> Page:
    text = ask.t("unsubscribe.done", account=found.account_name, channel=ask.t(f"unsubscribe.{found.channel}"))
    return Page(ask.t("unsubscribe.title"), [Note(text, "good", Link(ask.t("unsubscribe.choose"), ask.to(_PAGE)))])


NOTIFICATIONS = (
    get(_PAGE, notifications),
    post(_PAGE, save, retry=_PAGE),
    get(f"{_PAGE}/telegram", connecting),
    post(f"{_PAGE}/telegram", connect, retry=_PAGE),
    post(f"{_PAGE}/telegram/remove", disconnect, retry=_PAGE),
    get("/unsubscribe", leaving, is_public=True),
    post("/unsubscribe", leave, is_public=True, is_by_link=True),
)
