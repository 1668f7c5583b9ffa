"""Resends of a span of webhooks (docs/dashboard.md "For developers")."""

from ....core.domain.people.roles import PersonRight
from ....core.domain.webhooks.events import DeliveryStatus, EventType
from ....core.domain.webhooks.resends import RESEND_MOST, ResendRun, RunState
from ....core.usecases.common.paging import MomentFilter
from ....core.usecases.people.members import list_members
from ....core.usecases.people.resends import begin_resend, list_resends, stop_resend
from ....core.usecases.webhooks.endpoints import list_endpoints
from ....core.usecases.webhooks.events import EventQuery
from ..blocks import Actions, Badge, Block, Column, Field, Form, Link, Table, Value
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import MOSCOW, Ask

add(
    {
        "resends": ("Resend a span of time", "Повторная отправка за период"),
        "resends.new": ("New resend", "Новая отправка"),
        "resends.intro": (
            "Your receiver gets these events again, also those that it accepted. At most {most} events at once; one "
            "resend runs at a time.",
            "Приёмник получит эти события ещё раз, в том числе принятые. Не больше {most} событий сразу; одновременно "
            "идёт одна отправка.",
        ),
        "resends.from": ("From (Moscow time)", "С (время московское)"),
        "resends.to": ("To (Moscow time)", "По (время московское)"),
        "resends.start": ("Start the resend", "Начать отправку"),
        "resends.runs": ("Resends", "Отправки"),
        "resends.started": ("Started", "Начата"),
        "resends.by": ("By", "Кто"),
        "resends.span": ("Span", "Период"),
        "resends.progress": ("Progress", "Выполнено"),
        "resends.progress.of": ("{sent} of {total}", "{sent} из {total}"),
        "resends.stop": ("Stop the running resend", "Остановить отправку"),
        "resends.refresh": ("Refresh", "Обновить"),
        "run.running": ("running", "идёт"),
        "run.done": ("done", "закончена"),
        "run.stopped": ("stopped", "остановлена"),
        "error.RESEND_BUSY": (
            "Another resend is running: wait for its end, or stop it.",
            "Уже идёт другая отправка: дождитесь её конца или остановите её.",
        ),
        "error.RESEND_TOO_LARGE": (
            "The span has too many events: choose a shorter one.",
            "За этот период событий слишком много: выберите период короче.",
        ),
        "error.RESEND_NOT_FOUND": ("There is no such resend.", "Такой отправки нет."),
    }
)

_PATH = "/developers/resends"
_ENDPOINTS = 100
_TONES = {RunState.RUNNING: "warn", RunState.DONE: "good", RunState.STOPPED: "plain"}


async def resends(ask: Ask) -> Page:
    ask.require_whole_account()
    runs = await list_resends(ask.ports, ask.actor)
    found = await list_endpoints(ask.ports, ask.caller, MomentFilter(), 1, _ENDPOINTS)
    further = {each.endpoint.id: each.endpoint.description or each.endpoint.url for each in found.records}
    people = {each.user.id: each.email for each in await list_members(ask.ports, ask.actor.account.id)}
    blocks: list[Block] = []
    running = next((each for each in runs if each.state is RunState.RUNNING), None)
    if ask.has(PersonRight.WEBHOOKS):
        blocks.append(_new(ask, further))
    if running is not None:
        blocks.append(Actions([Link(ask.t("resends.refresh"), ask.to(_PATH))]))
        if ask.has(PersonRight.WEBHOOKS):
            hidden = Field(name="run", type="hidden", value=running.id)
            action = ask.to(f"{_PATH}/stop")
            blocks.append(Form(action=action, fields=[hidden], submit=ask.t("resends.stop"), tone="danger"))
    blocks.append(
        Table(
            title=ask.t("resends.runs"),
            caption=ask.t("resends.runs"),
            columns=[
                Column(ask.t("resends.started")),
                Column(ask.t("resends.by")),
                Column(ask.t("event.endpoint")),
                Column(ask.t("event.type")),
                Column(ask.t("resends.span")),
                Column(ask.t("status")),
                Column(ask.t("resends.progress"), is_number=True),
            ],
            rows=[_row(ask, each, further, people) for each in runs],
            empty=ask.t("nothing"),
        )
    )
    return Page(ask.t("resends"), blocks, [Link(ask.t("events"), ask.to("/developers/events"))])


def _new(ask: Ask, further: dict[str, str]) -> Form:
    endpoints = [("", ask.t("hook.own")), *further.items()]
    types = [("", ask.t("all")), *((each.value, each.value) for each in EventType)]
    statuses = [("", ask.t("all")), *((each.value, ask.t.of("delivery", each)) for each in DeliveryStatus)]
    return Form(
        action=ask.to(_PATH),
        fields=[
            Field(name="endpoint", label=ask.t("event.endpoint"), type="select", options=endpoints),
            Field(name="type", label=ask.t("event.type"), type="select", options=types),
            Field(name="status", label=ask.t("event.delivery"), type="select", options=statuses),
            Field(name="from", label=ask.t("resends.from"), type="datetime-local", required=True),
            Field(name="to", label=ask.t("resends.to"), type="datetime-local", required=True),
            Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
        ],
        submit=ask.t("resends.start"),
        title=ask.t("resends.new"),
        intro=ask.t("resends.intro", most=ask.number(RESEND_MOST)),
    )


def _row(ask: Ask, run: ResendRun, further: dict[str, str], people: dict[str, str]) -> list[Value]:
    low, high = (f"{each.astimezone(MOSCOW):%d.%m.%Y %H:%M}" for each in (run.low, run.high))
    endpoint = ask.t("hook.own") if run.endpoint_id is None else further.get(run.endpoint_id, run.endpoint_id)
    kind = run.type or ask.t("all")
    return [
        ask.at(run.created_at),
        people.get(run.person) or ask.t("notes.gone"),
        endpoint,
        kind if run.status is None else f"{kind}, {ask.t.of('delivery', run.status)}",
        f"{low} – {high}",
        Badge(ask.t.of("run", run.state), _TONES[run.state]),
        ask.t("resends.progress.of", sent=ask.number(run.sent), total=ask.number(run.total)),
    ]


def _moment(text: str) -> str:
    """Return the value of a `datetime-local` field, which has no zone, as a moment of Moscow."""
    return f"{text}:00+03:00" if len(text) == len("2026-11-28T10:00") else f"{text}+03:00"


async def start(ask: Ask) -> Redirect:
    ask.require_whole_account()
    asked = EventQuery(
        type=ask.value("type") or None,
        delivery_status=ask.value("status") or None,
        since=_moment(ask.value("from")),
        until=_moment(ask.value("to")),
    )
    await begin_resend(ask.ports, ask.actor, asked, ask.value("endpoint") or None, key=ask.value("key"))
    return Redirect(_PATH, {"done": "created"})


async def stop(ask: Ask) -> Redirect:
    ask.require_whole_account()
    await stop_resend(ask.ports, ask.actor, ask.value("run"))
    return Redirect(_PATH, {"done": "ended"})


RESENDS = (
    get(_PATH, resends, PersonRight.LOGS),
    post(_PATH, start, PersonRight.WEBHOOKS, retry=_PATH),
    post(f"{_PATH}/stop", stop, PersonRight.WEBHOOKS, retry=_PATH),
)
