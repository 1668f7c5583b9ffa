"""The first page: figures of a period, open work, balance and the next settlement (docs/dashboard.md "Home")."""

from ....core.domain.accounts.accounts import Mode
from ....core.domain.money import grouped
from ....core.domain.people.roles import PersonRight
from ....core.usecases.ledger.balance import read_balance
from ....core.usecases.overview.overview import Overview, Period, Sums, read_overview
from ....core.usecases.people.requests import awaits, list_requests
from ....core.usecases.people.sessions import lacks_factor, modes_with_payments
from ..blocks import Actions, Block, Chart, Column, Facts, Field, Form, Link, Note, Stat, Stats, Table, bars
from ..rows import Page, get
from ..texts import add
from ..web import Ask

add(
    {
        "home.day": ("{first}, Moscow time", "{first}, по Москве"),
        "home.period": ("{first} to {last}, Moscow time", "{first} – {last}, по Москве"),
        "period.today": ("Today", "Сегодня"),
        "period.yesterday": ("Yesterday", "Вчера"),
        "period.7-days": ("7 days", "7 дней"),
        "period.30-days": ("30 days", "30 дней"),
        "home.taken": ("Taken", "Принято"),
        "home.paid": ("Payments", "Платежей"),
        "home.average": ("Average", "Средний платёж"),
        "home.success": ("Success rate", "Доля успешных"),
        "home.before": ("before: {value}", "раньше: {value}"),
        "home.shops": ("By shop", "По магазинам"),
        "home.days": ("Taken per day", "Принято по дням"),
        "home.days.summary": (
            "{total} in {days} days; the best day: {best}",
            "{total} за {days} дн.; лучший день: {best}",
        ),
        "home.failures": ("Why payments failed", "Почему платежи не прошли"),
        "home.failures.note": ("Of the newest {read} of {total} failed payments.", "По последним {read} из {total}."),
        "home.payments": ("Payments", "Платежей"),
        "home.waits": ("Waits for you", "Ждёт вас"),
        "home.empty.other": (
            "There are no payments in this mode yet. {mode} has some.",
            "В этом режиме платежей ещё нет. Они есть здесь: {mode}.",
        ),
        "home.empty.live": (
            "There are no payments yet. {mode}: everything can be tried there without money.",
            "Платежей ещё нет. {mode}: там можно попробовать всё без денег.",
        ),
        "home.empty.test": (
            "There are no payments yet. A program creates them with an API key.",
            "Платежей ещё нет. Их создаёт программа с ключом API.",
        ),
        "home.refunds": ("Refunds to approve: {count}", "Возвратов ждут одобрения: {count}"),
        "home.poor": ("Refunds without money: {count}", "Возвратам не хватает денег: {count}"),
        "home.mismatch": ("Payments with another amount: {count}", "Платежей с другой суммой: {count}"),
        "home.webhooks": ("Webhooks not accepted: {count}", "Вебхуков не принято: {count}"),
        "home.down": ("Webhook addresses that do not answer: {count}", "Не отвечает адресов: {count}"),
        "home.money": ("Money", "Деньги"),
        "home.available": ("Available", "Доступно"),
        "home.pending": ("Awaits settlement", "Ждёт расчёта"),
        "home.next": ("Next settlement", "Следующий расчёт"),
        "home.open": ("Open", "Открыть"),
        "reason.insufficient_funds": ("insufficient funds", "недостаточно средств"),
        "reason.declined_by_bank": ("declined by the bank", "отказ банка"),
        "reason.mandate_revoked": ("mandate revoked", "согласие отозвано"),
        "reason.cancelled_by_customer": ("cancelled by the payer", "отменил плательщик"),
        "reason.cancelled_by_bank": ("cancelled by the bank", "отменил банк"),
        "reason.expired": ("expired", "истёк срок"),
        "reason.unknown": ("unknown", "неизвестно"),
    }
)


async def home(ask: Ask) -> Page:
    wish = ask.query.get("period", "")
    period = Period(wish) if wish in [*Period] else Period.TODAY
    found = await read_overview(ask.ports, ask.caller, period)
    periods = [
        Link(ask.t.of("period", each), ask.to("/home", period=each.value), current=each is period) for each in Period
    ]
    blocks: list[Block] = [
        *await _next_steps(ask, found),
        *_work(ask, found),
        *await _requests(ask),
        Actions(periods),
        _figures(ask, found),
    ]
    if lacks_factor(ask.actor) and ask.mode is Mode.LIVE:
        link = Link(ask.t("home.open"), ask.to("/profile"))
        blocks.insert(0, Note(ask.t("error.SECOND_FACTOR_NEEDED"), "warn", link))
    if len(found.days) > 1:
        blocks.append(_chart(ask, found))
    if ask.has(PersonRight.MONEY):
        balance = await read_balance(ask.ports, ask.caller)
        rows = [
            (ask.t("home.available"), ask.usdt(balance.available)),
            (ask.t("home.pending"), ask.rub(balance.pending)),
            (ask.t("home.next"), ask.at(found.next_settlement)),
        ]
        blocks.append(Facts(ask.t("home.money"), rows))
    if len(found.shops) > 1:
        blocks.append(_shops(ask, found))
    if found.failures.read:
        blocks.append(_failures(ask, found))
    return Page(ask.t("home"), blocks)


async def _next_steps(ask: Ask, found: Overview) -> list[Block]:
    """Return what a person can do in a mode without payments."""
    if found.now.paid or found.before.paid:
        return []
    busy = await modes_with_payments(ask.ports, ask.actor.account.id)
    if ask.mode in busy:
        return []
    other = Mode.TEST if ask.mode is Mode.LIVE else Mode.LIVE
    if other is Mode.LIVE and (other not in busy or not ask.actor.membership.live):
        link = Link(ask.t("keys"), ask.to("/developers/keys")) if ask.has(PersonRight.KEYS) else None
        return [Note(ask.t("home.empty.test"), "plain", link)]
    text = ask.t("home.empty.other" if other in busy else "home.empty.live", mode=ask.t(f"mode.{other}"))
    switch = Form(
        action=ask.to("/switch"),
        fields=[Field(name="mode", type="hidden", value=other.value)],
        submit=ask.t(f"switch.{other}"),
    )
    return [Note(text, "warn"), switch]


async def _requests(ask: Ask) -> list[Block]:
    count = sum(awaits(each, ask.actor) for each in await list_requests(ask.ports, ask.actor))
    if not count:
        return []
    return [Note(ask.t("home.requests", count=count), "warn", Link(ask.t("home.open"), ask.to("/approvals")))]


def _figures(ask: Ask, found: Overview) -> Stats:
    def figure(label: str, now: str, before: str) -> Stat:
        return Stat(label=ask.t(label), value=now, before=ask.t("home.before", value=before))

    def taken(sums: Sums) -> str:
        return _text(ask.rub(sums.taken))

    def average(sums: Sums) -> str:
        return _text(ask.rub(sums.average))

    def success(sums: Sums) -> str:
        return "–" if sums.success_percent is None else f"{sums.success_percent} %"

    now, before = found.now, found.before
    first, last = (".".join(reversed(day.split("-"))) for day in (found.first, found.last))
    days = ask.t("home.day", first=first) if first == last else ask.t("home.period", first=first, last=last)
    title = f"{ask.t.of('period', found.period)}: {days}"
    return Stats(
        title,
        [
            figure("home.taken", taken(now), taken(before)),
            figure("home.paid", ask.number(now.paid), ask.number(before.paid)),
            figure("home.average", average(now), average(before)),
            figure("home.success", success(now), success(before)),
        ],
    )


def _text(value: object) -> str:
    return getattr(value, "text", "–")


def _chart(ask: Ask, found: Overview) -> Chart:
    values = [(day.day, day.sums.taken.kopecks, _text(ask.rub(day.sums.taken))) for day in found.days]
    best = max(values, key=lambda each: each[1])
    summary = ask.t("home.days.summary", total=_text(ask.rub(found.now.taken)), days=len(values), best=best[0])
    return Chart(
        title=ask.t("home.days"),
        summary=summary,
        bars=bars(values),
        columns=(ask.t("date"), ask.t("home.taken")),
        details=ask.t("details"),
    )


def _shops(ask: Ask, found: Overview) -> Table:
    rows = [
        [
            each.name or each.shop_id,
            ask.rub(each.now.taken),
            ask.number(each.now.paid),
            "–" if each.now.success_percent is None else f"{each.now.success_percent} %",
            ask.rub(each.before.taken),
        ]
        for each in found.shops
    ]
    columns = [
        Column(ask.t("shop")),
        Column(ask.t("home.taken"), is_number=True),
        Column(ask.t("home.paid"), is_number=True),
        Column(ask.t("home.success"), is_number=True),
        Column(ask.t("home.before", value="").rstrip(": "), is_number=True),
    ]
    title = ask.t("home.shops")
    return Table(title=title, caption=title, columns=columns, rows=rows, empty=ask.t("nothing"))


def _failures(ask: Ask, found: Overview) -> Table:
    failures = found.failures
    title = ask.t("home.failures")
    return Table(
        title=title,
        caption=title,
        columns=[Column(ask.t("reason")), Column(ask.t("home.payments"), is_number=True)],
        rows=[[ask.t.of("reason", reason), grouped(str(count), ask.language)] for reason, count in failures.reasons],
        empty=ask.t("nothing"),
        note=ask.t("home.failures.note", read=failures.read, total=failures.total),
    )


def _work(ask: Ask, found: Overview) -> list[Block]:
    work = found.work
    wanted = [
        ("home.refunds", work.refunds_to_approve, "/refunds?status=pending"),
        ("home.poor", work.refunds_without_money, "/refunds?status=pending"),
        ("home.mismatch", work.amount_mismatches, "/payments?status=amount_mismatch"),
        ("home.webhooks", work.failed_webhooks, "/developers/events?delivery_status=failed"),
        ("home.down", work.endpoints_down, "/developers/webhooks"),
    ]
    return [
        Note(ask.t(label, count=count), "warn", Link(ask.t("home.open"), f"{ask.site.root}{path}"))
        for label, count, path in wanted
        if count and (not path.startswith("/developers") or ask.has(PersonRight.LOGS))
    ]


HOME = (get("/home", home, PersonRight.READ),)
