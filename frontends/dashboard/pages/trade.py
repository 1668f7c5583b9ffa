"""Subscriptions and exchanges (docs/dashboard.md "Subscriptions and exchanges")."""

from ....core.domain.accounts.accounts import Scheme
from ....core.domain.exchanges.exchanges import Exchange, ExchangeStatus
from ....core.domain.people.roles import PersonRight
from ....core.domain.subscriptions.charge_decisions import ChargeWindow
from ....core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus, awaits_binding, pause_ends_at
from ....core.usecases.common.encrypted import binding_url
from ....core.usecases.exchanges.exchanges import ExchangeFilter, browse_exchanges, cancel_exchange, get_exchange
from ....core.usecases.payments.list import PaymentFilter, list_payments
from ....core.usecases.subscriptions.charges import read_charge_window
from ....core.usecases.subscriptions.list import SubscriptionFilter, browse_subscriptions
from ....core.usecases.subscriptions.subscriptions import (
    cancel_subscription,
    get_subscription,
    rebind_subscription,
)
from ..blocks import Badge, Block, Code, Column, Facts, Field, Form, Link, Note, Table, Value
from ..lists import (
    SIZE,
    choice,
    choice_field,
    count_text,
    cursor_of,
    cursor_pager,
    cut_note,
    date_fields,
    dates,
    empty_text,
)
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask
from .payments import badge

add(
    {
        "subscription": ("Subscription", "Подписка"),
        "subscription.every": ("Every", "Период"),
        "subscription.cap": ("At most", "Не больше"),
        "subscription.phone": ("Payer's phone", "Телефон плательщика"),
        "subscription.link": ("Binding link for the payer", "Ссылка привязки для плательщика"),
        "subscription.charges": ("Charges", "Списания"),
        "subscription.cancel": ("Cancel the subscription", "Отменить подписку"),
        "subscription.cancel.intro": (
            "No further charge is made. This cannot be undone.",
            "Списаний больше не будет. Отменить это нельзя.",
        ),
        "subscription.window": ("Next charge", "Следующее списание"),
        "subscription.can": ("May be charged now", "Списать можно сейчас"),
        "subscription.cannot": ("Not now because", "Сейчас нельзя"),
        "subscription.next": ("From", "Можно с"),
        "subscription.opens": ("Period begins", "Начало периода"),
        "subscription.closes": ("Period ends", "Конец периода"),
        "subscription.tries": ("Attempts in this period", "Попыток в этом периоде"),
        "subscription.tries.of": ("{used} of {most}", "{used} из {most}"),
        "subscription.tries.until": ("Further attempts until", "Новые попытки до"),
        "charge.CHARGE_BEFORE_WINDOW": ("this period is paid", "этот период оплачен"),
        "charge.RECURRING_CHARGE_EXHAUSTED": ("all attempts were used", "попытки закончились"),
        "charge.CHARGE_PENDING": ("the last attempt is still under way", "последняя попытка ещё идёт"),
        "charge.CHARGE_PERIOD_OCCUPIED": ("this period has its charge", "в этом периоде списание уже есть"),
        "charge.CHARGE_MANDATE_INACTIVE": ("the payer has not confirmed", "нет согласия плательщика"),
        "subscription.rebind": ("Ask the payer to confirm again", "Запросить новое согласие"),
        "subscription.rebind.intro": (
            "The payer's consent was lost: nothing can be charged. Make a link and pass it to the payer. It takes no "
            "money.",
            "Согласие плательщика потеряно, списать ничего нельзя. Создайте ссылку и передайте её плательщику. Деньги "
            "по ней не спишутся.",
        ),
        "subscription.rebind.again": (
            "The payer's consent was lost. Pass the binding link below to the payer, or make a new one.",
            "Согласие плательщика потеряно. Передайте плательщику ссылку привязки ниже или создайте новую.",
        ),
        "subscription.expires": ("Expires unless confirmed by", "Истечёт без согласия"),
        "subscription.past_due": ("past due", "просрочена"),
        "sub.pending_binding": ("waits for the payer", "ждёт плательщика"),
        "sub.active": ("active", "активна"),
        "sub.paused": ("paused", "приостановлена"),
        "sub.cancelled": ("cancelled", "отменена"),
        "sub.expired": ("expired", "истекла"),
        "interval.day": ("day", "день"),
        "interval.week": ("week", "неделя"),
        "interval.month": ("month", "месяц"),
        "exchange": ("Exchange", "Обмен"),
        "exchange.direction": ("Direction", "Направление"),
        "exchange.usdt": ("USDT", "USDT"),
        "exchange.rub": ("RUB", "RUB"),
        "exchange.rate": ("Rate", "Курс"),
        "exchange.address": ("Deposit address", "Адрес для перевода"),
        "exchange.cancel": ("Cancel the exchange", "Отменить обмен"),
        "direction.usdt_to_rub": ("USDT to RUB", "USDT в рубли"),
        "direction.rub_to_usdt": ("RUB to USDT", "рубли в USDT"),
        "exch.awaiting_usdt": ("waits for USDT", "ждёт USDT"),
        "exch.awaiting_rub": ("waits for RUB", "ждёт рубли"),
        "exch.completed": ("completed", "выполнен"),
        "exch.failed": ("failed", "не прошёл"),
        "exch.expired": ("expired", "истёк"),
        "exch.cancelled": ("cancelled", "отменён"),
    }
)


async def subscriptions(ask: Ask) -> Page:
    ask.require_whole_account()
    first, last = dates(ask)
    status = choice(ask, "status", SubscriptionStatus)
    wanted = SubscriptionFilter(
        status=status,
        external_id=ask.query.get("q", "").strip()[:256] or None,
        created_from=first,
        created_to=last,
    )
    found = await browse_subscriptions(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    statuses = [(each.value, ask.t.of("sub", each)) for each in SubscriptionStatus]
    fields = [
        Field(name="q", label=ask.t("order"), type="search", value=ask.query.get("q", "")),
        choice_field(ask, "status", ask.t("status"), statuses),
        *date_fields(ask),
    ]
    table = Table(
        caption=ask.t("subscriptions"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("payment.description")),
            Column(ask.t("status")),
            Column(ask.t("subscription.every")),
            Column(ask.t("amount"), is_number=True),
        ],
        rows=[_subscription_row(ask, each) for each in found.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    form = Form(action=ask.to("/subscriptions"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    return Page(ask.t("subscriptions"), [form, *cut_note(ask, found.page), table])


def _subscription_row(ask: Ask, each: Subscription) -> list[Value]:
    return [
        ask.at(each.created_at),
        Link(each.description, ask.to(f"/subscriptions/{each.id}")),
        _standing(ask, each),
        _every(ask, each),
        ask.rub(each.amount),
    ]


def _standing(ask: Ask, each: Subscription) -> Badge:
    return Badge(ask.t("subscription.past_due"), "warn") if each.past_due else badge(ask, each.status, "sub")


def _every(ask: Ask, each: Subscription) -> str:
    return f"{each.interval_count} × {ask.t.of('interval', each.interval)}"


async def subscription(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await get_subscription(ask.ports, ask.caller, ask.path("subscription_id"))
    charges = await list_payments(ask.ports, ask.caller, PaymentFilter(subscription_id=found.id), 1, 50)
    link = binding_url(ask.ports.vault, found)
    waits = awaits_binding(found)
    window = await read_charge_window(ask.ports, ask.caller, found.id)
    blocks: list[Block] = []
    if found.rebind_required:
        text = ask.t("subscription.rebind.again" if waits else "subscription.rebind.intro")
        blocks.append(Note(text, "warn"))
    blocks += [
        Facts(
            None,
            [
                (ask.t("status"), _standing(ask, found)),
                (ask.t("amount"), ask.rub(found.amount)),
                (ask.t("subscription.cap"), ask.rub(found.cap_amount)),
                (ask.t("subscription.every"), _every(ask, found)),
                (ask.t("id"), Code(found.id)),
                (ask.t("order"), found.external_id),
                (ask.t("subscription.phone"), found.phone_mask),
                (ask.t("created"), ask.at(found.created_at)),
                (ask.t("subscription.expires"), ask.at(pause_ends_at(found))),
                (ask.t("subscription.link"), ask.copied(link) if link and waits else None),
            ],
        ),
        *([] if found.is_final else [_window(ask, found, window)]),
        Table(
            title=ask.t("subscription.charges"),
            caption=ask.t("subscription.charges"),
            columns=[
                Column(ask.t("created")),
                Column(ask.t("id")),
                Column(ask.t("status")),
                Column(ask.t("reason")),
                Column(ask.t("amount"), is_number=True),
            ],
            rows=[
                [
                    ask.at(each.created_at),
                    Link(each.external_id or each.id[-12:], ask.to(f"/payments/{each.id}")),
                    badge(ask, each.status),
                    None if each.failure_reason is None else ask.t.of("reason", each.failure_reason),
                    ask.rub(each.amount),
                ]
                for each in charges.records
            ],
            empty=ask.t("nothing"),
        ),
    ]
    if ask.has(PersonRight.PAYMENTS) and found.rebind_required:
        blocks.append(
            Form(
                action=ask.to(f"/subscriptions/{found.id}/rebind"),
                fields=[Field(name="key", type="hidden", value=ask.ports.ids.uuid())],
                submit=ask.t("subscription.rebind"),
            )
        )
    if ask.has(PersonRight.PAYMENTS) and not found.is_final:
        cancel = ask.t("subscription.cancel")
        action = ask.to(f"/subscriptions/{found.id}/cancel")
        intro = ask.t("subscription.cancel.intro")
        blocks.append(Form(action=action, fields=[], submit=cancel, title=cancel, intro=intro, tone="danger"))
    return Page(found.description, blocks, [Link(ask.t("subscriptions"), ask.to("/subscriptions"))])


async def end_subscription(ask: Ask) -> Redirect:
    ask.require_whole_account()
    subscription_id = ask.path("subscription_id")
    await cancel_subscription(ask.acting("subscription.cancel", subscription_id), ask.caller, subscription_id)
    return Redirect(f"/subscriptions/{subscription_id}", {"done": "cancelled"})


def _window(ask: Ask, found: Subscription, window: ChargeWindow) -> Facts:
    """Return when the next charge may be made, and the attempts so far."""
    reason = None if window.reason is None else ask.t.of("charge", window.reason)
    tries = None
    if window.attempts_max is not None:
        tries = ask.t("subscription.tries.of", used=window.attempts_used, most=window.attempts_max)
    elif window.attempts_used or found.scheme is Scheme.CALENDAR:
        tries = str(window.attempts_used)
    return Facts(
        ask.t("subscription.window"),
        [
            (ask.t("subscription.can"), Badge(ask.t("yes"), "good") if window.can_charge else Badge(ask.t("no"))),
            (ask.t("subscription.cannot"), reason),
            (ask.t("subscription.next"), ask.at(window.next_allowed_at)),
            (ask.t("subscription.opens"), ask.at(window.opens_at)),
            (ask.t("subscription.closes"), ask.at(window.closes_at)),
            (ask.t("subscription.tries"), tries),
            (ask.t("subscription.tries.until"), ask.at(window.window_ends_at)),
        ],
    )


async def rebind(ask: Ask) -> Redirect:
    ask.require_whole_account()
    subscription_id = ask.path("subscription_id")
    ports = ask.acting("subscription.rebind", subscription_id)
    await rebind_subscription(ports, ask.caller, subscription_id, ask.value("key"))
    return Redirect(f"/subscriptions/{subscription_id}", {"done": "created"})


async def exchanges(ask: Ask) -> Page:
    ask.require_whole_account()
    first, last = dates(ask)
    status = choice(ask, "status", ExchangeStatus)
    wanted = ExchangeFilter(
        status=status,
        external_id=ask.query.get("q", "").strip()[:256] or None,
        created_from=first,
        created_to=last,
    )
    found = await browse_exchanges(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    statuses = [(each.value, ask.t.of("exch", each)) for each in ExchangeStatus]
    fields = [
        Field(name="q", label=ask.t("order"), type="search", value=ask.query.get("q", "")),
        choice_field(ask, "status", ask.t("status"), statuses),
        *date_fields(ask),
    ]
    table = Table(
        caption=ask.t("exchanges"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("id")),
            Column(ask.t("exchange.direction")),
            Column(ask.t("status")),
            Column(ask.t("exchange.usdt"), is_number=True),
            Column(ask.t("exchange.rub"), is_number=True),
        ],
        rows=[_exchange_row(ask, each) for each in found.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    form = Form(action=ask.to("/exchanges"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    return Page(ask.t("exchanges"), [form, *cut_note(ask, found.page), table])


def _exchange_row(ask: Ask, each: Exchange) -> list[Value]:
    return [
        ask.at(each.created_at),
        Link(each.external_id or each.id[-12:], ask.to(f"/exchanges/{each.id}")),
        ask.t.of("direction", each.direction),
        badge(ask, each.status, "exch"),
        ask.usdt(each.amount_usdt),
        ask.rub(each.amount_rub),
    ]


async def exchange(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await get_exchange(ask.ports, ask.caller, ask.path("exchange_id"))
    facts = Facts(
        None,
        [
            (ask.t("status"), badge(ask, found.status, "exch")),
            (ask.t("exchange.direction"), ask.t.of("direction", found.direction)),
            (ask.t("exchange.usdt"), ask.usdt(found.amount_usdt)),
            (ask.t("exchange.rub"), ask.rub(found.amount_rub)),
            (ask.t("exchange.rate"), ask.rate(found.rate)),
            (ask.t("id"), Code(found.id)),
            (ask.t("order"), found.external_id),
            (ask.t("created"), ask.at(found.created_at)),
            (ask.t("payment.expires_at"), ask.at(found.expires_at)),
        ],
    )
    blocks: list[Block] = [facts]
    if ask.has(PersonRight.EXCHANGES) and found.status.value.startswith("awaiting"):
        cancel = ask.t("exchange.cancel")
        action = ask.to(f"/exchanges/{found.id}/cancel")
        blocks.append(Form(action=action, fields=[], submit=cancel, tone="danger"))
    title = f"{ask.t('exchange')} {found.external_id or found.id[-12:]}"
    return Page(title, blocks, [Link(ask.t("exchanges"), ask.to("/exchanges"))])


async def end_exchange(ask: Ask) -> Redirect:
    ask.require_whole_account()
    exchange_id = ask.path("exchange_id")
    await cancel_exchange(ask.acting("exchange.cancel", exchange_id), ask.caller, exchange_id)
    return Redirect(f"/exchanges/{exchange_id}", {"done": "cancelled"})


_S, _X = "/subscriptions/{subscription_id:str}", "/exchanges/{exchange_id:str}"

TRADE = (
    get("/subscriptions", subscriptions, PersonRight.READ),
    get(_S, subscription, PersonRight.READ),
    post(f"{_S}/cancel", end_subscription, PersonRight.PAYMENTS, retry=_S),
    post(f"{_S}/rebind", rebind, PersonRight.PAYMENTS, retry=_S),
    get("/exchanges", exchanges, PersonRight.READ),
    get(_X, exchange, PersonRight.READ),
    post(f"{_X}/cancel", end_exchange, PersonRight.EXCHANGES, retry=_X),
)
