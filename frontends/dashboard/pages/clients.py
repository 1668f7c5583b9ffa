"""Clients and their verification (docs/dashboard.md "Clients")."""

from ....core.domain.accounts.accounts import KYC_REQUIRED, KycDemand, Mode
from ....core.domain.exchanges.money import HIGHEST, LOWEST
from ....core.domain.kyc.clients import ClientStatus, allowed, client_status
from ....core.domain.people.roles import PersonRight
from ....core.domain.subscriptions.subscriptions import masked_phone
from ....core.usecases.kyc.clients import ClientFilter, ShownClient, browse_clients, get_client
from ....core.usecases.people.client_links import needs_verification, new_client_link
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
from ..rows import Page, get, post
from ..texts import add
from ..web import Ask
from .payments import badge

add(
    {
        "client": ("Client", "Клиент"),
        "client.phone": ("Phone", "Телефон"),
        "client.digits": ("3 or 4 digits of the phone", "3 или 4 цифры телефона"),
        "client.verified_at": ("Verified", "Проверен"),
        "client.updated_at": ("Changed", "Изменён"),
        "client.level": ("Level", "Уровень"),
        "client.number": ("Client account number", "Номер счёта клиента"),
        "client.passport": ("Identity document", "Документ"),
        "client.address": ("Proof of address", "Подтверждение адреса"),
        "client.may": ("What this client may do", "Что клиенту можно"),
        "client.payments": ("Payments and subscriptions", "Платежи и подписки"),
        "client.exchanges": ("Exchanges", "Обмены"),
        "client.limits": ("Limits of an exchange", "Пределы обмена"),
        "client.limits.are": ("{low} to {high}, one at a time", "от {low} до {high}, по одному за раз"),
        "client.link": ("Link to verify", "Ссылка для проверки"),
        "client.link.intro": (
            "The client uploads documents on a page of ours. The link lives for an hour; anybody who has it acts for "
            "this client.",
            "Клиент загрузит документы на нашей странице. Ссылка живёт час; кто её получил, действует за клиента.",
        ),
        "client.link.make": ("Make a link", "Создать ссылку"),
        "client.link.once": (
            "Copy the link now and pass it to the client: it is not shown again.",
            "Скопируйте ссылку и передайте клиенту: больше она не показывается.",
        ),
        "clients.test": (
            "In test mode clients are made by POST /sandbox/exchange-clients.",
            "В тестовом режиме клиентов создаёт POST /sandbox/exchange-clients.",
        ),
        "kyc.pending": ("not verified yet", "ещё не проверен"),
        "kyc.verified": ("verified", "проверен"),
        "kyc.rejected": ("refused", "отказано"),
        "kyc.blocked": ("blocked", "заблокирован"),
        "document.passed": ("accepted", "принят"),
        "document.failed": ("refused", "отклонён"),
        "error.CLIENT_NOT_FOUND": ("There is no such client.", "Такого клиента нет."),
        "error.SANDBOX_NOT_SUPPORTED": (
            "Clients are verified in live mode only.",
            "Клиентов проверяют только в боевом режиме.",
        ),
        "error.PROVIDER_DISABLED": ("Verification is switched off.", "Проверка клиентов выключена."),
        "error.KYC_NOT_REQUIRED": ("The account requires no verification.", "Проверка клиентов не требуется."),
        "error.KYC_UNAVAILABLE": (
            "The verifier is away. Try again in a minute.",
            "Проверка сейчас недоступна. Повторите через минуту.",
        ),
    }
)

_TONES = {
    ClientStatus.VERIFIED: "good",
    ClientStatus.REJECTED: "bad",
    ClientStatus.BLOCKED: "bad",
}


async def clients(ask: Ask) -> Page:
    ask.require_whole_account()
    first, last = dates(ask)
    status = choice(ask, "status", ClientStatus)
    digits = ask.query.get("q", "").strip()
    # A complete number must not stay in the browser's history, so only its last digits go into the address.
    is_searched = ask.has(PersonRight.KYC) and digits.isascii() and digits.isdigit() and 3 <= len(digits) <= 4
    wanted = ClientFilter(kyc_status=status, q=digits if is_searched else None, created_from=first, created_to=last)
    found = await browse_clients(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    statuses = [(each.value, ask.t.of("kyc", each)) for each in ClientStatus]
    fields = [
        choice_field(ask, "status", ask.t("status"), statuses),
        *date_fields(ask),
    ]
    if ask.has(PersonRight.KYC):
        label = ask.t("client.digits")
        shown = digits if is_searched else ""
        fields.insert(0, Field(name="q", label=label, type="search", value=shown, inputmode="numeric", maxlength=4))
    table = Table(
        caption=ask.t("clients"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("client.phone")),
            Column(ask.t("status")),
            Column(ask.t("client.level"), is_number=True),
            Column(ask.t("client.verified_at")),
        ],
        rows=[_row(ask, each) for each in found.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    form = Form(action=ask.to("/clients"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    blocks: list[Block] = [form, *cut_note(ask, found.page), table]
    if ask.mode is Mode.TEST:
        blocks.append(Note(ask.t("clients.test")))
    return Page(ask.t("clients"), blocks)


def _row(ask: Ask, each: ShownClient) -> list[Value]:
    return [
        ask.at(each.client.created_at),
        Link(masked_phone(each.phone), ask.to(f"/clients/{each.client.id}")),
        _standing(ask, each),
        str(each.client.level),
        ask.at(each.client.verified_at),
    ]


def _standing(ask: Ask, each: ShownClient) -> Badge:
    status = client_status(each.client)
    return Badge(ask.t.of("kyc", status), _TONES.get(status, "plain"))


async def client(ask: Ask) -> Page:
    ask.require_whole_account()
    found = await get_client(ask.ports, ask.caller, ask.path("client_id"))
    record, settings = found.client, ask.actor.account.settings
    may = allowed(record, gated=settings.kyc is KYC_REQUIRED)

    def answer(code: str | None) -> Badge:
        return Badge(ask.t("yes"), "good") if code is None else Badge(ask.t("no"), "warn")

    limits = None
    if may.exchanges is None:
        low, high = ask.rub(LOWEST), ask.rub(HIGHEST)
        limits = ask.t("client.limits.are", low=low.text if low else "", high=high.text if high else "")
    blocks: list[Block] = [
        Facts(
            None,
            [
                (ask.t("status"), _standing(ask, found)),
                (ask.t("client.phone"), masked_phone(found.phone)),
                (ask.t("client.level"), str(record.level)),
                (ask.t("client.passport"), _document(ask, record.passport_state)),
                (ask.t("client.address"), _document(ask, record.address_state)),
                (ask.t("client.verified_at"), ask.at(record.verified_at)),
                (ask.t("client.number"), None if record.account_number is None else Code(record.account_number)),
                (ask.t("id"), Code(record.id)),
                (ask.t("created"), ask.at(record.created_at)),
                (ask.t("client.updated_at"), ask.at(record.updated_at)),
            ],
        ),
        Facts(
            ask.t("client.may"),
            [
                (ask.t("client.payments"), answer(may.payments)),
                (ask.t("client.exchanges"), answer(may.exchanges)),
                (ask.t("client.limits"), limits),
            ],
        ),
    ]
    can_link = ask.mode is Mode.LIVE and settings.kyc not in (KycDemand.DISABLED, KycDemand.OFF)
    if ask.has(PersonRight.KYC) and can_link and needs_verification(record):
        blocks.append(
            Form(
                action=ask.to(f"/clients/{record.id}/link"),
                fields=[],
                submit=ask.t("client.link.make"),
                title=ask.t("client.link"),
                intro=ask.t("client.link.intro"),
            )
        )
    return Page(f"{ask.t('client')} {masked_phone(found.phone)}", blocks, _crumbs(ask))


def _document(ask: Ask, state: str | None) -> Badge | None:
    return None if state is None else badge(ask, state, "document")


def _crumbs(ask: Ask) -> list[Link]:
    return [Link(ask.t("clients"), ask.to("/clients"))]


async def link(ask: Ask) -> Page:
    ask.require_whole_account()
    client_id = ask.path("client_id")
    made = await new_client_link(ask.ports, ask.actor, client_id)
    facts = Facts(None, [(ask.t("client.link"), ask.copied(made))])
    back = Link(ask.t("back"), ask.to(f"/clients/{client_id}"))
    return Page(ask.t("client.link"), [Note(ask.t("client.link.once"), "warn", back), facts], _crumbs(ask))


_ONE = "/clients/{client_id:str}"

CLIENTS = (
    get("/clients", clients, PersonRight.READ),
    get(_ONE, client, PersonRight.READ),
    post(f"{_ONE}/link", link, PersonRight.KYC, retry=_ONE),
)
