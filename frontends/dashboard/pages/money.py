"""Balance with its movements, settlements, payouts (docs/dashboard.md "Balance and payouts")."""

from ....core.domain.movements import Movement
from ....core.domain.people.roles import PersonRight
from ....core.domain.settlement.withdrawals import shown_hash
from ....core.usecases.ledger.balance import read_balance
from ....core.usecases.ledger.movements import MovementFilter, list_movements
from ....core.usecases.paging import MomentFilter
from ....core.usecases.settlement.statements import get_settlement, list_items, list_settlements
from ....core.usecases.settlement.withdrawals import get_withdrawal, list_withdrawals
from ..blocks import Block, Code, Column, Facts, Form, Link, Money, Note, Stat, Stats, Table, Value
from ..lists import SIZE, date_fields, dates, number_of, pager, total_of
from ..rows import Page, get
from ..texts import add
from ..web import Ask
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
    wanted = MovementFilter(created_from=first, created_to=last)
    movements = await list_movements(ask.ports, ask.caller, wanted, number_of(ask), SIZE)

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
        rows=[_movement(ask, each) for each in movements.records],
        empty=ask.t("not_found" if ask.query else "nothing"),
        pager=pager(ask, movements),  # type: ignore[arg-type]  # of any record
        note=total_of(ask, movements),  # type: ignore[arg-type]  # the same
    )
    form = Form(action=ask.to("/balance"), method="get", fields=date_fields(ask), submit=ask.t("filter"), is_row=True)
    return Page(ask.t("balance"), [stats, form, table])


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
    found = await list_withdrawals(ask.ports, ask.caller, wanted, number_of(ask), SIZE)
    settled = await list_settlements(ask.ports, ask.caller, wanted, number_of(ask), SIZE)
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
                for each in found.records
            ],
            empty=ask.t("nothing"),
            pager=pager(ask, found),  # type: ignore[arg-type]  # of any record
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
                for each in settled.records
            ],
            empty=ask.t("nothing"),
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
            (ask.t("payout.wallet"), Code(found.wallet)),
            (ask.t("payout.tx"), None if tx_hash is None else Code(tx_hash)),
            (ask.t("settlement"), settlement),
            (ask.t("created"), ask.at(found.created_at)),
            (ask.t("payout.sent_at"), ask.at(found.sent_at)),
        ],
    )
    return Page(f"{ask.t('payout')} {found.id[-12:]}", [facts], [Link(ask.t("payouts"), ask.to("/payouts"))])


async def settlement(ask: Ask) -> Page:
    ask.require_whole_account()
    settlement_id = ask.path("settlement_id")
    await get_settlement(ask.ports, ask.caller, settlement_id)
    found, items = await list_items(ask.ports, ask.caller, settlement_id, number_of(ask), SIZE)
    facts = Facts(
        None,
        [
            (ask.t("settlement.cutoff"), ask.at(found.cutoff)),
            (ask.t("settlement.rate"), found.rate_market),
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
        pager=pager(ask, items),  # type: ignore[arg-type]  # of any record
        note=total_of(ask, items),  # type: ignore[arg-type]  # the same
    )
    title = f"{ask.t('settlement')} {found.cutoff:%d.%m.%Y}"
    return Page(title, [facts, table], [Link(ask.t("payouts"), ask.to("/payouts"))])


MONEY = (
    get("/balance", balance, PersonRight.MONEY),
    get("/payouts", payouts, PersonRight.MONEY),
    get("/payouts/{payout_id:str}", payout, PersonRight.MONEY),
    get("/settlements/{settlement_id:str}", settlement, PersonRight.MONEY),
)
