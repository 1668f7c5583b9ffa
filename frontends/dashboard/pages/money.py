"""Balance with its movements, the statement of a day, settlements, payouts (docs/dashboard.md "Balance and
payouts")."""

from datetime import date, timedelta

from ....core.domain.accounts.accounts import Mode
from ....core.domain.days import MOSCOW
from ....core.domain.movements import Movement
from ....core.domain.people.roles import PersonRight
from ....core.domain.settlement.explorers import network_title, transaction_page
from ....core.domain.settlement.withdrawals import shown_hash
from ....core.usecases.common.paging import MomentFilter
from ....core.usecases.ledger.balance import read_balance
from ....core.usecases.ledger.day_statement import Parts, read_day
from ....core.usecases.ledger.movements import MovementFilter, browse_movements, list_movements
from ....core.usecases.settlement.statements import browse_items, browse_settlements
from ....core.usecases.settlement.withdrawals import browse_withdrawals, get_withdrawal
from ..blocks import (
    Actions,
    Block,
    Code,
    Column,
    Facts,
    Field,
    Form,
    Link,
    Money,
    Note,
    Stat,
    Stats,
    Table,
    Value,
)
from ..lists import SETTLED, SIZE, count_text, cursor_of, cursor_pager, date_fields, dates, empty_text
from ..rows import Page, get
from ..texts import add
from ..web import Ask
from .exports import export_form
from .payments import badge

add(
    {
        "balance.available": ("Available", "Доступно"),
        "balance.reserved": ("On its way to your wallet", "В пути на ваш кошелёк"),
        "balance.pending": ("Awaits settlement", "Ждёт расчёта"),
        "balance.settled": ("Credited in all", "Зачислено всего"),
        "balance.withdrawn": ("Paid out in all", "Выплачено всего"),
        "balance.movements": ("Movements", "Движения"),
        "balance.kind": ("What happened", "Что произошло"),
        "balance.object": ("Object", "Объект"),
        "balance.rub": ("RUB", "RUB"),
        "balance.usdt": ("USDT", "USDT"),
        "balance.after": ("Available after", "Доступно после"),
        "day": ("Statement of a day", "Выписка за день"),
        "day.of": ("Statement of {day}", "Выписка за {day}"),
        "day.day": ("Moscow day", "Московский день"),
        "day.count": ("Number", "Число"),
        "day.opening": ("Balance at the beginning", "Баланс на начало"),
        "day.closing": ("Balance at the end", "Баланс на конец"),
        "day.so_far": ("Balance so far", "Баланс сейчас"),
        "day.waiting": ("RUB awaiting settlement", "RUB ждут расчёта"),
        "day.available": ("USDT available", "USDT доступно"),
        "day.reserved": ("USDT on the way", "USDT в пути"),
        "day.earlier": ("Day before", "День раньше"),
        "day.later": ("Day after", "День позже"),
        "day.list": ("Its movements", "Движения этого дня"),
        "day.not_summed": (
            "The day has too many movements to sum each kind here; the balances are exact.",
            "За этот день движений слишком много, чтобы сложить их по видам; балансы точные.",
        ),
        "movement.receipt": ("payment received", "оплата"),
        "movement.review_accepted": ("another amount accepted", "принята другая сумма"),
        "movement.settlement": ("settlement", "расчёт"),
        "movement.refund_taken": ("refund", "возврат"),
        "movement.refund_returned": ("refund failed, money back", "возврат не прошёл, деньги вернулись"),
        "movement.refund_reversed": ("refund came back", "возврат вернулся"),
        "movement.payout_reserved": ("payout prepared", "выплата готовится"),
        "movement.payout_sent": ("payout sent", "выплата отправлена"),
        "movement.payout_released": ("payout undone", "выплата отменена"),
        "movement.exchange_completed": ("exchange", "обмен"),
        "movement.exchange_failed": ("exchange failed", "обмен не прошёл"),
        "movement.sandbox_cleared": ("test data deleted", "тестовые данные удалены"),
        "payout.network": ("Network", "Сеть"),
        "payout.explorer": ("See it in the network's explorer", "Посмотреть в обозревателе сети"),
        "payout.done_at": ("Final", "Завершена"),
        "settlements": ("Settlements", "Расчёты"),
        "settlement": ("Settlement", "Расчёт"),
        "settlement.cutoff": ("Payments before", "Платежи до"),
        "settlement.rate": ("Market rate", "Рыночный курс"),
        "settlement.payments": ("Payments", "Платежей"),
        "settlement.amount": ("Amount", "Сумма"),
        "settlement.fee": ("Fee", "Комиссия"),
        "settlement.credit": ("Credit", "Зачислено"),
        "settlement.items": ("Lines", "Строки"),
        "settlement.kind": ("Kind", "Вид"),
        "payout": ("Payout", "Выплата"),
        "payout.wallet": ("Wallet", "Кошелёк"),
        "payout.tx": ("Transaction", "Транзакция"),
        "payout.sent_at": ("Sent", "Отправлена"),
        "payout.no_wallet": (
            "No wallet is set: the balance stays here until one is.",
            "Кошелёк не указан: баланс остаётся здесь.",
        ),
        "payout.set_wallet": ("Set the wallet", "Указать кошелёк"),
        "wd.pending": ("prepared", "готовится"),
        "wd.processing": ("being signed", "подписывается"),
        "wd.sent": ("sent", "отправлена"),
        "wd.completed": ("completed", "завершена"),
        "wd.failed": ("failed", "не прошла"),
        "wd.cancelled": ("cancelled", "отменена"),
        "kind.payment": ("payment", "платёж"),
        "kind.refund": ("refund", "возврат"),
        "kind.correction": ("correction", "исправление"),
    }
)


async def balance(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await read_balance(ask.ports, ask.caller)
    first, last = dates(ask)
    wanted = MomentFilter(created_from=first, created_to=last)
    movements = await browse_movements(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)

    def stat(label: str, value: Money | None) -> Stat:
        return Stat(label=ask.t(label), value="–" if value is None else value.text)

    stats = Stats(
        None,
        [
            stat("balance.available", ask.usdt(found.available)),
            stat("balance.pending", ask.rub(found.pending)),
            stat("balance.reserved", ask.usdt(found.reserved)),
            stat("balance.settled", ask.usdt(found.settled)),
            stat("balance.withdrawn", ask.usdt(found.withdrawn)),
        ],
    )
    table = Table(
        title=ask.t("balance.movements"),
        caption=ask.t("balance.movements"),
        columns=[
            Column(ask.t("date")),
            Column(ask.t("balance.kind")),
            Column(ask.t("balance.object")),
            Column(ask.t("balance.rub"), is_number=True),
            Column(ask.t("balance.usdt"), is_number=True),
            Column(ask.t("balance.after"), is_number=True),
        ],
        rows=[_movement(ask, each) for each in movements.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, movements.page),
        note=count_text(ask, movements.count),
    )
    form = Form(action=ask.to("/balance"), method="get", fields=date_fields(ask), submit=ask.t("filter"), is_row=True)
    links = Actions([Link(ask.t("day"), ask.to("/balance/day"))])
    total = 0 if movements.count is None else movements.count.number
    file = MovementFilter(created_from=first, created_to=last)
    return Page(ask.t("balance"), [stats, links, form, table, *export_form(ask, file, total)])


async def day(ask: Ask) -> Page:
    """Show the statement of one Moscow day: today, unless the address names another."""
    ask.require_whole_account()
    today = ask.ports.clock.now().astimezone(MOSCOW).date()
    chosen = _day(ask.query.get("day", ""), today)
    found = await read_day(ask.ports, ask.caller, chosen)
    rows: list[list[Value]] = [_parts(ask, ask.t("day.opening"), None, found.opening)]
    rows += [_parts(ask, ask.t.of("movement", each.kind), each.count, each.change) for each in found.lines]
    rows.append(_parts(ask, ask.t("day.so_far" if chosen == today else "day.closing"), None, found.closing))
    is_summed = all(each.change is not None for each in found.lines)
    table = Table(
        caption=ask.t("day"),
        columns=[
            Column(ask.t("balance.kind")),
            Column(ask.t("day.count"), is_number=True),
            Column(ask.t("day.waiting"), is_number=True),
            Column(ask.t("day.available"), is_number=True),
            Column(ask.t("day.reserved"), is_number=True),
        ],
        rows=rows,
        empty="",
        note=None if is_summed else ask.t("day.not_summed"),
    )
    field = Field(name="day", label=ask.t("day.day"), type="date", value=chosen.isoformat())
    form = Form(action=ask.to("/balance/day"), method="get", fields=[field], submit=ask.t("filter"), is_row=True)
    text = chosen.isoformat()
    links = [Link(ask.t("day.earlier"), _day_link(ask, chosen - timedelta(days=1)))]
    if chosen < today:
        links.append(Link(ask.t("day.later"), _day_link(ask, chosen + timedelta(days=1))))
    links.append(Link(ask.t("day.list"), ask.to("/balance", **{"from": text, "to": text})))
    title = ask.t("day.of", day=f"{chosen:%d.%m.%Y}")
    return Page(title, [form, table, Actions(links)], [Link(ask.t("balance"), ask.to("/balance"))])


def _day(text: str, today: date) -> date:
    """Return the day that the address names; today for anything else, and for a later one."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return today
    return min(max(day, _FIRST), today)


def _day_link(ask: Ask, day: date) -> str:
    return ask.to("/balance/day", day=day.isoformat())


def _parts(ask: Ask, title: str, count: int | None, parts: Parts | None) -> list[Value]:
    number = None if count is None else ask.number(count)
    if parts is None:
        return [title, number, None, None, None]
    pending, available, reserved = ask.rub(parts.pending), ask.usdt(parts.available), ask.usdt(parts.reserved)
    if count is None:
        return [title, number, pending, available, reserved]
    # A change of zero says nothing, and on a phone each cell is a line.
    return [
        title,
        number,
        pending if parts.pending.kopecks else None,
        available if parts.available.units else None,
        reserved if parts.reserved.units else None,
    ]


_FIRST = date(2000, 1, 1)


_PAGES = {"pay_": "/payments", "ref_": "/refunds", "stl_": "/settlements", "wd_": "/payouts", "exch_": "/exchanges"}


def _movement(ask: Ask, each: Movement) -> list[Value]:
    prefix = each.object_id.partition("_")[0] + "_"
    path = _PAGES.get(prefix)
    shown: Value = each.object_id
    if path is not None:
        shown = Link(each.object_id[-12:], ask.to(f"{path}/{each.object_id}"))
    return [
        ask.at(each.at),
        ask.t.of("movement", each.kind),
        shown,
        ask.rub(each.pending) if each.pending.kopecks else None,
        ask.usdt(each.available) if each.available.units else None,
        ask.usdt(each.available_after),
    ]


async def payouts(ask: Ask) -> Page:
    ask.require_whole_account()
    first, last = dates(ask)
    wanted = MomentFilter(created_from=first, created_to=last)
    found = await browse_withdrawals(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    settled = await browse_settlements(ask.ports, ask.caller, wanted, cursor_of(ask, SETTLED), SIZE)
    blocks: list[Block] = []
    if ask.actor.account.settings.payout_wallet is None:
        link = Link(ask.t("payout.set_wallet"), ask.to("/settings")) if ask.has(PersonRight.PAYOUT_DETAILS) else None
        blocks.append(Note(ask.t("payout.no_wallet"), "warn", link))
    blocks += [
        Form(action=ask.to("/payouts"), method="get", fields=date_fields(ask), submit=ask.t("filter"), is_row=True),
        Table(
            title=ask.t("payouts"),
            caption=ask.t("payouts"),
            columns=[
                Column(ask.t("created")),
                Column(ask.t("id")),
                Column(ask.t("status")),
                Column(ask.t("payout.wallet")),
                Column(ask.t("amount"), is_number=True),
            ],
            rows=[
                [
                    ask.at(each.created_at),
                    Link(each.id[-12:], ask.to(f"/payouts/{each.id}")),
                    badge(ask, each.status, "wd"),
                    Code(each.wallet),
                    ask.usdt(each.amount),
                ]
                for each in found.page.records
            ],
            empty=ask.t("nothing"),
            pager=cursor_pager(ask, found.page),
            note=count_text(ask, found.count),
        ),
        Table(
            title=ask.t("settlements"),
            caption=ask.t("settlements"),
            columns=[
                Column(ask.t("date")),
                Column(ask.t("id")),
                Column(ask.t("settlement.payments"), is_number=True),
                Column(ask.t("settlement.amount"), is_number=True),
                Column(ask.t("settlement.fee"), is_number=True),
                Column(ask.t("settlement.credit"), is_number=True),
            ],
            rows=[
                [
                    ask.at(each.started_at),
                    Link(each.id[-12:], ask.to(f"/settlements/{each.id}")),
                    ask.number(each.payments),
                    ask.rub(each.amount),
                    ask.usdt(each.fee),
                    ask.usdt(each.credit),
                ]
                for each in settled.page.records
            ],
            empty=ask.t("nothing"),
            pager=cursor_pager(ask, settled.page, SETTLED),
            note=count_text(ask, settled.count),
        ),
    ]
    return Page(ask.t("payouts"), blocks)


async def payout(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await get_withdrawal(ask.ports, ask.caller, ask.path("payout_id"))
    tx_hash = shown_hash(found)
    settlement = None
    if found.settlement_id is not None:
        settlement = Link(found.settlement_id, ask.to(f"/settlements/{found.settlement_id}"))
    facts = Facts(
        None,
        [
            (ask.t("amount"), ask.usdt(found.amount)),
            (ask.t("status"), badge(ask, found.status, "wd")),
            (ask.t("id"), Code(found.id)),
            (ask.t("payout.network"), network_title(found.network)),
            (ask.t("payout.wallet"), Code(found.wallet)),
            (ask.t("payout.tx"), None if tx_hash is None else Code(tx_hash)),
            (ask.t("settlement"), settlement),
            (ask.t("created"), ask.at(found.created_at)),
            (ask.t("payout.sent_at"), ask.at(found.sent_at)),
            (ask.t("payout.done_at"), ask.at(found.completed_at)),
        ],
    )
    blocks: list[Block] = [facts]
    page = transaction_page(found.network, tx_hash) if ask.mode is Mode.LIVE else None
    if page is not None:
        blocks.append(Actions([Link(ask.t("payout.explorer"), page)]))
    movements = await list_movements(ask.ports, ask.caller, MovementFilter(object_id=found.id), 1, SIZE)
    blocks.append(
        Table(
            title=ask.t("balance.movements"),
            caption=ask.t("balance.movements"),
            columns=[
                Column(ask.t("date")),
                Column(ask.t("balance.kind")),
                Column(ask.t("day.available"), is_number=True),
                Column(ask.t("day.reserved"), is_number=True),
            ],
            rows=[
                [
                    ask.at(each.at),
                    ask.t.of("movement", each.kind),
                    ask.usdt(each.available) if each.available.units else None,
                    ask.usdt(each.reserved) if each.reserved.units else None,
                ]
                for each in movements.records
            ],
            empty=ask.t("nothing"),
        )
    )
    return Page(f"{ask.t('payout')} {found.id[-12:]}", blocks, [Link(ask.t("payouts"), ask.to("/payouts"))])


async def settlement(ask: Ask) -> Page:
    ask.require_whole_account()
    settlement_id = ask.path("settlement_id")
    found, items = await browse_items(ask.ports, ask.caller, settlement_id, cursor_of(ask), SIZE)
    facts = Facts(
        None,
        [
            (ask.t("settlement.cutoff"), ask.at(found.cutoff)),
            (ask.t("settlement.rate"), ask.rate(found.rate_market)),
            (ask.t("settlement.payments"), ask.number(found.payments)),
            (ask.t("settlement.amount"), ask.rub(found.amount)),
            (ask.t("settlement.fee"), ask.usdt(found.fee)),
            (ask.t("settlement.credit"), ask.usdt(found.credit)),
            (ask.t("id"), Code(found.id)),
            (
                ask.t("payout"),
                None
                if found.withdrawal_id is None
                else Link(found.withdrawal_id, ask.to(f"/payouts/{found.withdrawal_id}")),
            ),
        ],
    )
    table = Table(
        title=ask.t("settlement.items"),
        caption=ask.t("settlement.items"),
        columns=[
            Column(ask.t("refund.payment")),
            Column(ask.t("settlement.kind")),
            Column(ask.t("settlement.amount"), is_number=True),
            Column(ask.t("settlement.fee"), is_number=True),
            Column(ask.t("settlement.credit"), is_number=True),
        ],
        rows=[
            [
                Link(each.payment_id[-12:], ask.to(f"/payments/{each.payment_id}")),
                ask.t.of("kind", each.kind),
                ask.rub(each.amount),
                ask.usdt(each.fee),
                ask.usdt(each.credit),
            ]
            for each in items.records
        ],
        empty=ask.t("nothing"),
        pager=cursor_pager(ask, items),
        note=ask.t("total", total=ask.number(found.items)),
    )
    title = f"{ask.t('settlement')} {found.cutoff:%d.%m.%Y}"
    return Page(title, [facts, table], [Link(ask.t("payouts"), ask.to("/payouts"))])


MONEY = (
    get("/balance", balance, PersonRight.MONEY),
    get("/balance/day", day, PersonRight.MONEY),
    get("/payouts", payouts, PersonRight.MONEY),
    get("/payouts/{payout_id:str}", payout, PersonRight.MONEY),
    get("/settlements/{settlement_id:str}", settlement, PersonRight.MONEY),
)
