"""For developers: API keys, webhook endpoints, events with their deliveries, the request log, the sandbox
(docs/dashboard.md "For developers")."""

import json
from datetime import timedelta

from ....core.domain.accounts.accounts import Mode
from ....core.domain.errors import Refusal
from ....core.domain.people.roles import PersonRight, key_rights
from ....core.domain.sandbox_clock import ClockWish
from ....core.domain.webhooks.breaker import Breaker
from ....core.domain.webhooks.endpoints import EndpointOrder, EndpointPatch
from ....core.domain.webhooks.events import DeliveryStatus, EventType
from ....core.domain.webhooks.static_headers import without_credentials
from ....core.usecases.accounts.keys import NewKey
from ....core.usecases.accounts.request_list import RequestFilter, browse_requests
from ....core.usecases.common.paging import MomentFilter
from ....core.usecases.jobs import do
from ....core.usecases.people.keys import list_keys, make_key, roll_key, stop_key
from ....core.usecases.people.own_account import (
    change_settings,
    change_webhook_headers,
    roll_endpoint_secret,
    roll_webhook_secret,
)
from ....core.usecases.sandbox.clock import advance, read_clock
from ....core.usecases.webhooks.endpoint import TestReport, endpoint_state, send_test
from ....core.usecases.webhooks.endpoints import (
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    get_endpoint,
    list_endpoints,
    try_endpoint,
)
from ....core.usecases.webhooks.events import EventQuery, browse_events, get_event
from ....core.usecases.webhooks.resends import resend_event
from ....ports.notifier import Answer
from ..blocks import Actions, Badge, Block, Code, Column, Facts, Field, Form, Link, Note, Pre, Table, Value
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
        "key.rights": ("Rights", "Права"),
        "key.addresses": ("Allowed addresses", "Разрешённые адреса"),
        "key.addresses.hint": (
            "One IP address or network per line; empty: any",
            "По одному IP-адресу или сети в строке; пусто — любые",
        ),
        "key.used": ("Last used", "Последнее использование"),
        "key.own": ("main", "основной"),
        "key.until": ("until {when}", "до {when}"),
        "key.all": ("all", "все"),
        "key.any": ("any", "любые"),
        "key.new": ("New key", "Новый ключ"),
        "key.create": ("Create the key", "Создать ключ"),
        "key.once": (
            "Copy the secret now: it cannot be shown again.",
            "Скопируйте секрет сейчас: показать его ещё раз нельзя.",
        ),
        "key.key": ("X-Api-Key", "X-Api-Key"),
        "key.secret": ("X-Api-Secret", "X-Api-Secret"),
        "key.roll": ("Replace", "Заменить"),
        "key.roll.intro": ("The old key works for 24 hours more.", "Старый ключ проработает ещё 24 часа."),
        "key.end": ("End", "Отозвать"),
        "key.manage": ("Key {name}", "Ключ {name}"),
        "right.read": ("read", "чтение"),
        "right.payments": ("payments", "платежи"),
        "right.refunds": ("refunds", "возвраты"),
        "right.exchanges": ("exchanges", "обмены"),
        "right.kyc": ("verification", "проверка клиентов"),
        "right.webhooks": ("webhooks", "вебхуки"),
        "right.sandbox": ("sandbox", "песочница"),
        "hook.own": ("First endpoint", "Основной адрес"),
        "hook.url": ("Address", "Адрес"),
        "hook.types": ("Types of events", "Типы событий"),
        "hook.types.hint": ("None chosen: all", "Ничего не выбрано: все"),
        "hook.secret": ("Signing secret", "Секрет подписи"),
        "hook.secret.set": ("set", "задан"),
        "hook.secret.none": ("not set", "не задан"),
        "hook.secret.new": ("Create a new secret", "Создать новый секрет"),
        "hook.secret.intro": (
            "For 24 hours webhooks carry both signatures.",
            "24 часа вебхуки несут обе подписи.",
        ),
        "hook.state": ("State", "Состояние"),
        "hook.works": ("works", "работает"),
        "hook.down": ("does not answer", "не отвечает"),
        "hook.off": ("switched off", "выключен"),
        "hook.backlog": ("Waiting, failed", "Ждут, не доставлены"),
        "hook.last": ("Last success", "Последний успех"),
        "hook.fault": ("Last failure", "Последняя ошибка"),
        "hook.headers": ("Your own headers", "Свои заголовки"),
        "hook.headers.hint": (
            "One per line, such as Authorization: Bearer 7f3a; replaces all, empty removes all",
            "По одному в строке, например Authorization: Bearer 7f3a; заменяет все, пусто — удаляет",
        ),
        "hook.test": ("Send a test", "Отправить проверку"),
        "hook.tested": ("Answer: {answer}; {took} ms", "Ответ: {answer}; {took} мс"),
        "hook.own.change": ("Change the first endpoint", "Изменить основной адрес"),
        "answer.timeout": ("none in time", "нет вовремя"),
        "answer.connection": ("no connection", "нет связи"),
        "answer.tls": ("no secure connection", "нет защищённой связи"),
        "answer.blocked": ("not sent", "не отправлено"),
        "hook.new": ("New endpoint", "Новый адрес"),
        "hook.create": ("Create the endpoint", "Создать адрес"),
        "hook.description": ("Note", "Заметка"),
        "hook.others": ("Further endpoints", "Дополнительные адреса"),
        "hook.enabled": ("Switched on", "Включён"),
        "hook.delete": ("Delete the endpoint", "Удалить адрес"),
        "hook.delete.intro": ("Events that wait there are dropped.", "Ждущие там события пропадут."),
        "event": ("Event", "Событие"),
        "event.type": ("Type", "Тип"),
        "event.object": ("Object", "Объект"),
        "event.delivery": ("Delivery", "Доставка"),
        "event.body": ("Body", "Тело"),
        "event.attempts": ("Attempts", "Попытки"),
        "event.endpoint": ("Endpoint", "Адрес"),
        "event.answer": ("Answer", "Ответ"),
        "event.took": ("Took, ms", "Заняло, мс"),
        "event.resend": ("Send again", "Отправить ещё раз"),
        "delivery.pending": ("waits", "ждёт"),
        "delivery.delivered": ("delivered", "доставлено"),
        "delivery.failed": ("failed", "не доставлено"),
        "delivery.held": ("held", "придержано"),
        "delivery.skipped": ("not wanted", "не нужно"),
        "request.method": ("Request", "Запрос"),
        "request.status": ("Status", "Статус"),
        "request.status.fault": ("Three digits, such as 422.", "Три цифры, например 422."),
        "request.code": ("Code", "Код"),
        "request.key": ("Key", "Ключ"),
        "request.id": ("Request id", "Номер запроса"),
        "request.not_kept": ("{count} requests were not logged.", "Не записано запросов: {count}."),
        "clock": ("Test clock", "Тестовые часы"),
        "clock.now": ("The test account's time", "Время тестового аккаунта"),
        "clock.hours": ("Hours", "Часов"),
        "clock.advance": ("Move forward", "Перевести вперёд"),
        "clock.intro": (
            "Everything that falls due on the way happens: charges, expiries, settlements.",
            "Произойдёт всё, что должно случиться за это время: списания, истечения, расчёты.",
        ),
        "sandbox.live": (
            "The sandbox belongs to test mode: switch first.",
            "Песочница есть только в тестовом режиме: переключитесь.",
        ),
        "sandbox.payments": (
            "Simulate a payer on the page of a payment.",
            "Ответить за плательщика можно на странице платежа.",
        ),
        "error.KEY_NOT_FOUND": ("There is no such key.", "Такого ключа нет."),
        "error.EVENT_NOT_FOUND": ("There is no such event.", "Такого события нет."),
        "error.WEBHOOK_ENDPOINT_NOT_FOUND": ("There is no such endpoint.", "Такого адреса нет."),
        "error.WEBHOOK_ENDPOINT_LIMIT": (
            "An account has at most 5 endpoints in a mode.",
            "В режиме не больше 5 адресов.",
        ),
    }
)  # fmt: skip

_OVERLAP = timedelta(hours=24)


async def keys(ask: Ask) -> Page:
    found = await list_keys(ask.ports, ask.actor)
    allowed = key_rights(ask.actor.role, ask.mode)
    table = Table(
        caption=ask.t("keys"),
        columns=[
            Column(ask.t("name")),
            Column(ask.t("key.key")),
            Column(ask.t("key.rights")),
            Column(ask.t("key.addresses")),
            Column(ask.t("key.used")),
        ],
        rows=[
            [
                _key_name(ask, each.key.name, each.key.ends_at),
                Code(each.key.id),
                _rights(ask, each.key.rights),
                ask.t("key.any") if each.key.addresses is None else ", ".join(each.key.addresses),
                ask.at(each.used_at),
            ]
            for each in found
        ],
        empty=ask.t("nothing"),
    )
    blocks: list[Block] = [table]
    rights = [(each, ask.t.of("right", each)) for each in allowed]
    fields = [
        Field(name="name", label=ask.t("name"), required=True, maxlength=40),
        Field(name="rights", label=ask.t("key.rights"), type="checks", options=rights, chosen=("read",)),
        Field(name="addresses", label=ask.t("key.addresses"), type="textarea", hint=ask.t("key.addresses.hint")),
    ]
    action = ask.to("/developers/keys")
    blocks.append(Form(action=action, fields=fields, submit=ask.t("key.create"), title=ask.t("key.new")))
    for each in found:
        if each.key.ends_at is not None or not each.is_within:
            continue
        chosen = Field(name="key", type="hidden", value=each.key.id)
        name = each.key.name or ask.t("key.own")
        blocks.append(
            Form(
                action=ask.to("/developers/keys/rotate"),
                fields=[chosen],
                submit=ask.t("key.roll"),
                title=ask.t("key.manage", name=name),
                intro=ask.t("key.roll.intro"),
            )
        )
        if each.key.name is not None:
            end = ask.to("/developers/keys/end")
            blocks.append(Form(action=end, fields=[chosen], submit=f"{ask.t('key.end')} {name}", tone="danger"))
    return Page(ask.t("keys"), blocks)


def _key_name(ask: Ask, name: str | None, ends_at: object) -> str:
    shown = name or ask.t("key.own")
    until = ask.at(ends_at)  # type: ignore[arg-type]  # a moment or None
    return shown if until is None else f"{shown} ({ask.t('key.until', when=until.text)})"


def _rights(ask: Ask, rights: tuple[str, ...] | None) -> str:
    return ask.t("key.all") if rights is None else ", ".join(ask.t.of("right", each) for each in rights)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


async def create(ask: Ask) -> Page:
    addresses = _lines(ask.value("addresses"))
    return key_page(
        ask, await make_key(ask.ports, ask.actor, ask.value("name"), list(ask.form.get("rights", ())), addresses)
    )


async def rotate(ask: Ask) -> Page:
    return key_page(ask, await roll_key(ask.ports, ask.actor, ask.value("key"), _OVERLAP))


def key_page(ask: Ask, made: NewKey) -> Page:
    """Return the page that shows a new key pair once."""
    pair = made.pair
    facts = Facts(
        None, [(ask.t("key.key"), ask.copied(pair.api_key)), (ask.t("key.secret"), ask.copied(pair.api_secret))]
    )
    crumbs = [Link(ask.t("keys"), ask.to("/developers/keys"))]
    return Page(ask.t("key.new"), [Note(ask.t("key.once"), "warn"), facts], crumbs)


async def end(ask: Ask) -> Redirect:
    await stop_key(ask.ports, ask.actor, ask.value("key"))
    return Redirect("/developers/keys", {"done": "ended"})


async def webhooks(ask: Ask) -> Page:
    state = await endpoint_state(ask.ports, ask.caller)
    further = await list_endpoints(ask.ports, ask.caller, MomentFilter(), 1, 10)
    settings = state.account.settings
    breaker = state.breaker
    facts = Facts(
        ask.t("hook.own"),
        [
            (ask.t("hook.url"), settings.webhook_url and Code(settings.webhook_url)),
            (ask.t("hook.secret"), ask.t("hook.secret.set" if state.account.webhook_secret else "hook.secret.none")),
            (ask.t("hook.state"), _state(ask, is_open=breaker.is_open, enabled=True)),
            (ask.t("hook.types"), ", ".join(settings.webhook_events or ()) or ask.t("all")),
            (ask.t("hook.headers"), ", ".join(state.account.webhook_header_names or ()) or None),
            (ask.t("hook.backlog"), _backlog(state.backlog)),
            (ask.t("hook.last"), ask.at(breaker.last_success_at)),
            (ask.t("hook.fault"), _fault(ask, breaker)),
        ],
    )
    blocks: list[Block] = [facts]
    if further.records:
        rows: list[list[Value]] = [
            [
                Link(each.endpoint.url, ask.to(f"/developers/webhooks/{each.endpoint.id}")),
                _state(ask, is_open=each.breaker.is_open, enabled=each.endpoint.enabled),
                _backlog(each.backlog),
                each.endpoint.description,
            ]
            for each in further.records
        ]
        columns = [
            Column(ask.t("hook.url")),
            Column(ask.t("hook.state")),
            Column(ask.t("hook.backlog")),
            Column(ask.t("hook.description")),
        ]
        title = ask.t("hook.others")
        blocks.append(Table(title=title, caption=title, columns=columns, rows=rows, empty=ask.t("nothing")))
    if ask.has(PersonRight.WEBHOOKS):
        blocks += _webhook_forms(ask, settings.webhook_url, settings.webhook_events)
    return Page(ask.t("webhooks"), blocks)


def _state(ask: Ask, *, is_open: bool, enabled: bool) -> Badge:
    if not enabled:
        return Badge(ask.t("hook.off"), "plain")
    return Badge(ask.t("hook.down"), "bad") if is_open else Badge(ask.t("hook.works"), "good")


def _backlog(backlog: dict[DeliveryStatus, int]) -> str:
    waiting = backlog[DeliveryStatus.PENDING] + backlog[DeliveryStatus.HELD]
    return f"{waiting}, {backlog[DeliveryStatus.FAILED]}"


def _fault(ask: Ask, breaker: Breaker) -> str | None:
    at = ask.at(breaker.last_failure_at)
    if at is None:
        return None
    return f"{at.text}: {_answer(ask, breaker.last_answer, breaker.last_status, breaker.last_note)}"


_CAUSES = {
    "the host's name was not found": "имя сервера не найдено",
    "the host's network address is not public": "это не адрес в интернете",
    "the answer is not HTTP": "ответ не по HTTP",
    "https only": "нужен https",
    "Connection refused": "соединение отклонено",
    "Connection reset by peer": "соединение оборвано",
    "Network is unreachable": "сеть недоступна",
    "No route to host": "нет пути к серверу",
}
"""Frequent notes of attempts. The others are the network's own words, in English."""


def _answer(ask: Ask, answer: str | None, status: int | None, note: str | None) -> str:
    """Return the outcome of an attempt in people's words."""
    if status is not None or answer is None:
        return f"HTTP {status}"
    cause = (note or "").removeprefix("no connection: ")
    if ask.language == "ru":
        cause = _CAUSES.get(cause, cause)
    text = ask.t.of("answer", answer)
    return text if not cause or answer == Answer.TIMEOUT else f"{text} ({cause})"


def _types(ask: Ask, chosen: tuple[str, ...] | None) -> Field:
    options = [(each.value, each.value) for each in EventType]
    hint = ask.t("hook.types.hint")
    return Field(
        name="types", label=ask.t("hook.types"), type="checks", options=options, chosen=chosen or (), hint=hint
    )


def _headers_field(ask: Ask) -> Field:
    hint = ask.t("hook.headers.hint")
    return Field(name="headers", label=ask.t("hook.headers"), type="textarea", hint=hint)


def _webhook_forms(ask: Ask, url: str | None, types: tuple[str, ...] | None) -> list[Block]:
    address = Field(name="url", label=ask.t("hook.url"), type="url", value=url or "")
    base = "/developers/webhooks"
    return [
        Form(
            action=ask.to(f"{base}/own"),
            fields=[address, _types(ask, types)],
            submit=ask.t("save"),
            title=ask.t("hook.own.change"),
        ),
        Form(
            action=ask.to(f"{base}/secret"),
            fields=[],
            submit=ask.t("hook.secret.new"),
            title=ask.t("hook.secret"),
            intro=ask.t("hook.secret.intro"),
        ),
        Form(
            action=ask.to(f"{base}/headers"),
            fields=[_headers_field(ask)],
            submit=ask.t("save"),
            title=ask.t("hook.headers"),
        ),
        Form(action=ask.to(f"{base}/test"), fields=[], submit=ask.t("hook.test")),
        Form(
            action=ask.to(base),
            fields=[
                Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
                Field(name="url", label=ask.t("hook.url"), type="url", required=True),
                _types(ask, None),
                Field(name="description", label=ask.t("hook.description"), maxlength=256),
            ],
            submit=ask.t("hook.create"),
            title=ask.t("hook.new"),
        ),
    ]


async def own_address(ask: Ask) -> Redirect:
    texts = {"webhook_url": ask.value("url"), "webhook_events": ",".join(ask.form.get("types", ()))}
    url, credentials = without_credentials(texts["webhook_url"])
    await change_settings(ask.ports, ask.actor, {**texts, "webhook_url": url})
    if credentials is not None:
        await change_webhook_headers(ask.ports, ask.actor, {"Authorization": credentials})
    return Redirect("/developers/webhooks", {"done": "saved"})


async def own_secret(ask: Ask) -> Page:
    return secret_page(ask, await roll_webhook_secret(ask.ports, ask.actor))


def secret_page(ask: Ask, secret: str) -> Page:
    """Return the page that shows a new webhook secret once."""
    crumbs = [Link(ask.t("webhooks"), ask.to("/developers/webhooks"))]
    facts = Facts(None, [(ask.t("hook.secret"), ask.copied(secret))])
    return Page(ask.t("hook.secret"), [Note(ask.t("key.once"), "warn"), facts], crumbs)


def _read_headers(ask: Ask) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _lines(ask.value("headers")):
        name, colon, value = line.partition(":")
        if not colon or name.strip() in found:
            raise Refusal("VALIDATION_ERROR", "Write each header once, as a line `Name: value`")
        found[name.strip()] = value.strip()
    return found


async def own_headers(ask: Ask) -> Redirect:
    await change_webhook_headers(ask.ports, ask.actor, _read_headers(ask))
    return Redirect("/developers/webhooks", {"done": "saved"})


async def own_test(ask: Ask) -> Page:
    return _tested(ask, await send_test(ask.acting("webhook.test", ask.actor.account.id), ask.caller))


def _tested(ask: Ask, report: TestReport) -> Page:
    result = report.result
    told = ask.t(
        "hook.tested",
        answer=_answer(ask, result.answer, result.status, result.note),
        took=result.took_ms,
    )
    crumbs = [Link(ask.t("webhooks"), ask.to("/developers/webhooks"))]
    return Page(ask.t("hook.test"), [Note(told, "good" if report.delivered else "bad")], crumbs)


async def new_endpoint(ask: Ask) -> Page:
    order = EndpointOrder(
        url=ask.value("url"),
        event_types=list(ask.form.get("types", ())) or None,
        description=ask.value("description") or None,
    )
    ports = ask.acting("endpoint.create")
    made = await create_endpoint(ports, ask.caller, ask.value("key"), lambda: order)
    if made.resource.secret is None:
        return await endpoint_page(ask, made.resource.endpoint.id)
    return secret_page(ask, made.resource.secret)


async def endpoint(ask: Ask) -> Page:
    return await endpoint_page(ask, ask.path("endpoint_id"))


async def endpoint_page(ask: Ask, endpoint_id: str) -> Page:
    """Return the page of a further endpoint."""
    report = await get_endpoint(ask.ports, ask.caller, endpoint_id)
    found, breaker = report.endpoint, report.breaker
    blocks: list[Block] = [
        Facts(
            None,
            [
                (ask.t("hook.url"), Code(found.url)),
                (ask.t("hook.state"), _state(ask, is_open=breaker.is_open, enabled=found.enabled)),
                (ask.t("hook.types"), ", ".join(found.event_types or ()) or ask.t("all")),
                (ask.t("hook.headers"), ", ".join(found.header_names or ()) or None),
                (ask.t("hook.backlog"), _backlog(report.backlog)),
                (ask.t("hook.last"), ask.at(breaker.last_success_at)),
                (ask.t("hook.fault"), _fault(ask, breaker)),
                (ask.t("id"), Code(found.id)),
            ],
        )
    ]
    if ask.has(PersonRight.WEBHOOKS):
        base = f"/developers/webhooks/{found.id}"
        fields = [
            Field(name="url", label=ask.t("hook.url"), type="url", value=found.url, required=True),
            _types(ask, found.event_types),
            Field(name="description", label=ask.t("hook.description"), value=found.description or "", maxlength=256),
            Field(name="enabled", label=ask.t("hook.enabled"), type="checkbox", value="yes" if found.enabled else ""),
        ]
        blocks += [
            Form(action=ask.to(f"{base}/change"), fields=fields, submit=ask.t("save"), title=ask.t("settings")),
            Form(
                action=ask.to(f"{base}/headers"),
                fields=[_headers_field(ask)],
                submit=ask.t("save"),
                title=ask.t("hook.headers"),
            ),
            Form(
                action=ask.to(f"{base}/secret"),
                fields=[],
                submit=ask.t("hook.secret.new"),
                title=ask.t("hook.secret"),
                intro=ask.t("hook.secret.intro"),
            ),
            Form(action=ask.to(f"{base}/test"), fields=[], submit=ask.t("hook.test")),
            Form(
                action=ask.to(f"{base}/delete"),
                fields=[],
                submit=ask.t("hook.delete"),
                title=ask.t("hook.delete"),
                intro=ask.t("hook.delete.intro"),
                tone="danger",
            ),
        ]
    return Page(found.description or found.url, blocks, [Link(ask.t("webhooks"), ask.to("/developers/webhooks"))])


async def change(ask: Ask) -> Redirect:
    endpoint_id = ask.path("endpoint_id")
    patch = EndpointPatch(
        url=ask.value("url"),
        event_types=list(ask.form.get("types", ())) or ["*"],
        description=ask.value("description"),
        enabled=bool(ask.value("enabled")),
    )
    await change_endpoint(ask.acting("endpoint.change", endpoint_id), ask.caller, endpoint_id, lambda: patch)
    return Redirect(f"/developers/webhooks/{endpoint_id}", {"done": "saved"})


async def further_headers(ask: Ask) -> Redirect:
    endpoint_id = ask.path("endpoint_id")
    patch = EndpointPatch(headers=_read_headers(ask))
    await change_endpoint(ask.acting("endpoint.headers", endpoint_id), ask.caller, endpoint_id, lambda: patch)
    return Redirect(f"/developers/webhooks/{endpoint_id}", {"done": "saved"})


async def further_secret(ask: Ask) -> Page:
    endpoint_id = ask.path("endpoint_id")
    return secret_page(ask, await roll_endpoint_secret(ask.ports, ask.actor, endpoint_id))


async def further_test(ask: Ask) -> Page:
    endpoint_id = ask.path("endpoint_id")
    return _tested(ask, await try_endpoint(ask.acting("endpoint.test", endpoint_id), ask.caller, endpoint_id))


async def delete(ask: Ask) -> Redirect:
    endpoint_id = ask.path("endpoint_id")
    await delete_endpoint(ask.acting("endpoint.delete", endpoint_id), ask.caller, endpoint_id)
    return Redirect("/developers/webhooks", {"done": "removed"})


async def events(ask: Ask) -> Page:
    ask.require_whole_account()
    first, last = dates(ask)
    wanted = EventQuery(
        type=choice(ask, "type", EventType),
        object_id=ask.query.get("q", "").strip()[:64] or None,
        delivery_status=choice(ask, "delivery_status", DeliveryStatus),
        created_from=first,
        created_to=last,
    )
    found = await browse_events(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    types = [(each.value, each.value) for each in EventType]
    statuses = [(each.value, ask.t.of("delivery", each)) for each in DeliveryStatus]
    fields = [
        Field(name="q", label=ask.t("event.object"), type="search", value=ask.query.get("q", "")),
        choice_field(ask, "type", ask.t("event.type"), types),
        choice_field(ask, "delivery_status", ask.t("event.delivery"), statuses),
        *date_fields(ask),
    ]
    table = Table(
        caption=ask.t("events"),
        columns=[
            Column(ask.t("date")),
            Column(ask.t("event.type")),
            Column(ask.t("event.object")),
            Column(ask.t("event.delivery")),
        ],
        rows=[
            [
                ask.at(each.event.created_at),
                Link(each.event.type, ask.to(f"/developers/events/{each.event.id}")),
                Code(each.event.object_id),
                badge(ask, each.delivery.status, "delivery"),
            ]
            for each in found.page.records
        ],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    form = Form(action=ask.to("/developers/events"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    links = Actions([Link(ask.t("resends"), ask.to("/developers/resends"))])
    return Page(ask.t("events"), [form, *cut_note(ask, found.page), table, links])


async def event(ask: Ask) -> Page:
    ask.require_whole_account()
    whole = await get_event(ask.ports, ask.caller, ask.path("event_id"))
    told = whole.told
    body = json.dumps(json.loads(whole.payload), ensure_ascii=False, indent=2)
    blocks: list[Block] = [
        Facts(
            None,
            [
                (ask.t("event.type"), told.event.type),
                (ask.t("event.delivery"), badge(ask, told.delivery.status, "delivery")),
                (ask.t("event.object"), Code(told.event.object_id)),
                (ask.t("created"), ask.at(told.event.created_at)),
                (ask.t("id"), Code(told.event.id)),
            ],
        ),
        Table(
            title=ask.t("event.attempts"),
            caption=ask.t("event.attempts"),
            columns=[
                Column(ask.t("date")),
                Column(ask.t("event.endpoint")),
                Column(ask.t("event.answer")),
                Column(ask.t("event.took"), is_number=True),
            ],
            rows=[
                [
                    ask.at(each.sent_at),
                    each.endpoint_id or ask.t("hook.own"),
                    _answer(ask, each.answer, each.status, each.note),
                    str(each.took_ms),
                ]
                for each in whole.attempts
            ],
            empty=ask.t("nothing"),
        ),
        Facts(None, [(ask.t("event.body"), Pre(body))]),
    ]
    if ask.has(PersonRight.WEBHOOKS):
        action = ask.to(f"/developers/events/{told.event.id}/resend")
        blocks.append(Form(action=action, fields=[], submit=ask.t("event.resend")))
    return Page(
        f"{ask.t('event')} {told.event.id[-12:]}", blocks, [Link(ask.t("events"), ask.to("/developers/events"))]
    )


async def resend(ask: Ask) -> Redirect:
    ask.require_whole_account()
    event_id = ask.path("event_id")
    await resend_event(ask.acting("event.resend", event_id), ask.caller, event_id)
    return Redirect(f"/developers/events/{event_id}", {"done": "resent"})


async def requests(ask: Ask) -> Page:
    first, last = dates(ask)
    status = ask.query.get("status", "").strip()
    is_status = status.isascii() and status.isdigit() and len(status) == 3
    wanted = RequestFilter(
        status=status if is_status else None,
        created_from=first,
        created_to=last,
    )
    found, not_kept = await browse_requests(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    fields = [
        Field(
            name="status",
            label=ask.t("request.status"),
            value=status,
            inputmode="numeric",
            maxlength=3,
            fault="" if is_status or not status else ask.t("request.status.fault"),
        ),
        *date_fields(ask),
    ]
    table = Table(
        caption=ask.t("requests"),
        columns=[
            Column(ask.t("date")),
            Column(ask.t("request.method")),
            Column(ask.t("request.status")),
            Column(ask.t("request.code")),
            Column(ask.t("request.id")),
            Column(ask.t("event.took"), is_number=True),
        ],
        rows=[
            [
                ask.at(each.at),
                Code(f"{each.method} {each.path.replace('/api/v1', '')}"),
                Badge(str(each.status), "good" if each.status < 400 else "warn" if each.status < 500 else "bad"),
                each.code,
                Code(each.request_id),
                str(each.took_ms),
            ]
            for each in found.records
        ],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found),
        note=ask.t("request.not_kept", count=not_kept) if not_kept else None,
    )
    form = Form(action=ask.to("/developers/requests"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    return Page(ask.t("requests"), [form, table])


async def sandbox(ask: Ask) -> Page:
    if ask.mode is Mode.LIVE:
        return Page(ask.t("sandbox"), [Note(ask.t("sandbox.live"), "plain")])
    standing = await read_clock(ask.ports, ask.caller)
    hours = Field(name="hours", label=ask.t("clock.hours"), inputmode="numeric", value="24", required=True)
    return Page(
        ask.t("sandbox"),
        [
            Note(ask.t("sandbox.payments"), "plain", Link(ask.t("payments"), ask.to("/payments"))),
            Facts(ask.t("clock"), [(ask.t("clock.now"), ask.at(standing.now))]),
            Form(
                action=ask.to("/developers/sandbox/clock"),
                fields=[hours],
                submit=ask.t("clock.advance"),
                title=ask.t("clock.advance"),
                intro=ask.t("clock.intro"),
            ),
        ],
    )


async def move_clock(ask: Ask) -> Redirect:
    if ask.mode is Mode.LIVE:
        raise Refusal("NOT_FOUND", "The clock belongs to test mode")
    hours = ask.value("hours")
    if not hours.isascii() or not hours.isdigit() or not 1 <= len(hours) <= 5:
        raise Refusal("VALIDATION_ERROR", "Give a whole number of hours")
    await advance(ask.ports, ask.caller, ClockWish(seconds=int(hours) * 3600), do)
    return Redirect("/developers/sandbox", {"done": "advanced"})


_K, _W, _E = "/developers/keys", "/developers/webhooks", "/developers/events"
_ONE, _EVENT = f"{_W}/{{endpoint_id:str}}", f"{_E}/{{event_id:str}}"

DEVELOPERS = (
    get(_K, keys),
    post(_K, create, PersonRight.KEYS, retry=_K),
    post(f"{_K}/rotate", rotate, PersonRight.KEYS, retry=_K),
    post(f"{_K}/end", end, PersonRight.KEYS, retry=_K),
    get(_W, webhooks, PersonRight.LOGS),
    post(_W, new_endpoint, PersonRight.WEBHOOKS, retry=_W),
    post(f"{_W}/own", own_address, PersonRight.WEBHOOKS, retry=_W),
    post(f"{_W}/secret", own_secret, PersonRight.WEBHOOKS, retry=_W),
    post(f"{_W}/headers", own_headers, PersonRight.WEBHOOKS, retry=_W),
    post(f"{_W}/test", own_test, PersonRight.WEBHOOKS, retry=_W),
    get(_ONE, endpoint, PersonRight.LOGS),
    post(f"{_ONE}/change", change, PersonRight.WEBHOOKS, retry=_ONE),
    post(f"{_ONE}/headers", further_headers, PersonRight.WEBHOOKS, retry=_ONE),
    post(f"{_ONE}/secret", further_secret, PersonRight.WEBHOOKS, retry=_ONE),
    post(f"{_ONE}/test", further_test, PersonRight.WEBHOOKS, retry=_ONE),
    post(f"{_ONE}/delete", delete, PersonRight.WEBHOOKS, retry=_ONE),
    get(_E, events, PersonRight.LOGS),
    get(_EVENT, event, PersonRight.LOGS),
    post(f"{_EVENT}/resend", resend, PersonRight.WEBHOOKS, retry=_EVENT),
    get("/developers/requests", requests, PersonRight.LOGS),
    get("/developers/sandbox", sandbox, PersonRight.SANDBOX),
    post("/developers/sandbox/clock", move_clock, PersonRight.SANDBOX, retry="/developers/sandbox"),
)
