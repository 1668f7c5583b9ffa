"""Changes that wait for a second person of the account (docs/dashboard.md "A second person")."""

from ....core.domain.operators.pending_actions import ActionStatus, PendingAction, is_open_request, status_at
from ....core.usecases.accounts.keys import NewKey
from ....core.usecases.people.invitations import NewInvitation
from ....core.usecases.people.members import list_members
from ....core.usecases.people.requests import (
    approve_request,
    complete_request,
    get_request,
    is_own,
    list_requests,
    may_decide,
    reject_request,
)
from ....core.usecases.people.second_person import arguments_of
from ..audit_texts import word_of
from ..blocks import Block, Code, Column, Facts, Form, Link, Note, Table
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask
from .developers import key_page, secret_page
from .people import invitation_page

add(
    {
        "approvals": ("Approvals", "Одобрения"),
        "approval.what": ("Change", "Изменение"),
        "approval.who": ("Requested by", "Кто просит"),
        "approval.by": ("Decided by", "Кто решил"),
        "approval.until": ("Expires", "Действует до"),
        "approval.field": ("Field", "Поле"),
        "approval.before": ("Before", "Было"),
        "approval.after": ("After", "Станет"),
        "approval.approve": ("Approve", "Одобрить"),
        "approval.reject": ("Reject", "Отклонить"),
        "approval.withdraw": ("Withdraw", "Отозвать"),
        "approval.complete": ("Complete", "Выполнить"),
        "approval.approve.intro": (
            "Check with the person by another way. Then the person who requested it can complete it.",
            "Уточните у человека другим способом. После одобрения он сможет выполнить изменение.",
        ),
        "approval.complete.intro": (
            "Another person approved it. Nothing has changed yet; a secret is shown to you only, once.",
            "Изменение одобрено. Пока ничего не изменилось; секрет увидите только вы, один раз.",
        ),
        "approval.own": (
            "You requested it: another person must approve it.",
            "Это запросили вы: одобрить должен другой.",
        ),
        "approval.requested": ("waits for another person", "ждёт другого человека"),
        "approval.approved": ("approved, not completed yet", "одобрено, ещё не выполнено"),
        "approval.confirmed": ("completed", "выполнено"),
        "approval.rejected": ("rejected", "отклонено"),
        "approval.withdrawn": ("withdrawn", "отозвано"),
        "approval.expired": ("expired", "истекло"),
        "approval.of.key.create": ("new API key", "новый ключ API"),
        "approval.of.key.rotate": ("new secret of an API key", "замена ключа API"),
        "approval.of.account.set": ("settings of the account", "настройки аккаунта"),
        "approval.of.webhook.secret": ("new webhook secret", "новый секрет вебхуков"),
        "approval.of.endpoint.secret": ("new webhook secret", "новый секрет вебхуков"),
        "approval.of.person.role": ("role of a person", "роль человека"),
        "approval.of.person.invite": ("invitation", "приглашение"),
        "done.requested": ("Another person of the account has to approve it.", "Это должен одобрить другой человек."),
        "home.requests": ("Changes that wait for you: {count}", "Изменений ждут вас: {count}"),
        "error.REQUEST_NOT_FOUND": ("There is no such request.", "Такого запроса нет."),
        "action.request.ask": ("approval requested", "запрошено одобрение"),
        "action.request.approve": ("request approved", "запрос одобрен"),
        "action.request.reject": ("request rejected or withdrawn", "запрос отклонён или отозван"),
        "action.request.complete": ("approved change completed", "одобренное изменение выполнено"),
    }
)


async def approvals(ask: Ask) -> Page:
    found = await list_requests(ask.ports, ask.actor)
    names = await _names(ask)
    table = Table(
        caption=ask.t("approvals"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("approval.what")),
            Column(ask.t("approval.who")),
            Column(ask.t("status")),
            Column(ask.t("approval.until")),
        ],
        rows=[
            [
                ask.at(each.created_at),
                Link(ask.t.of("approval.of", each.use_case), ask.to(f"/approvals/{each.id}")),
                names.get(each.operator, each.operator),
                _status(ask, each),
                ask.at(each.expires_at),
            ]
            for each in found
        ],
        empty=ask.t("nothing"),
    )
    return Page(ask.t("approvals"), [table])


async def _names(ask: Ask) -> dict[str, str]:
    return {each.user.id: each.email for each in await list_members(ask.ports, ask.actor.account.id)}


def _status(ask: Ask, action: PendingAction) -> str:
    return ask.t.of("approval", status_at(action, ask.ports.clock.real()))


async def approval(ask: Ask) -> Page:
    found = await get_request(ask.ports, ask.actor, ask.path("action_id"))
    names = await _names(ask)
    is_open = is_open_request(found, ask.ports.clock.real())
    invited = arguments_of(ask.ports.vault, found).get("address") if is_open else None
    lines = Table(
        caption=ask.t("approval.what"),
        columns=[Column(ask.t("approval.field")), Column(ask.t("approval.before")), Column(ask.t("approval.after"))],
        rows=[
            [
                ask.t.of("field", each.field),
                word_of(ask, each.field, each.before),
                word_of(ask, each.field, each.after),
            ]
            for each in found.shown
        ],
        empty=ask.t("nothing"),
    )
    what = ask.t.of("approval.of", found.use_case)
    facts = [
        (ask.t("approval.what"), what),
        (ask.t("people.mail"), invited),
        (ask.t("event.object"), Code(names.get(found.object_id, found.object_id))),
        (ask.t("approval.who"), names.get(found.operator, found.operator)),
        (ask.t("status"), _status(ask, found)),
        (ask.t("approval.by"), None if found.decided_by is None else names.get(found.decided_by, found.decided_by)),
        (ask.t("created"), ask.at(found.created_at)),
        (ask.t("approval.until"), ask.at(found.expires_at)),
    ]
    blocks: list[Block] = [Facts(None, facts), lines, *(_forms(ask, found) if is_open else ())]
    return Page(what, blocks, [Link(ask.t("approvals"), ask.to("/approvals"))])


def _forms(ask: Ask, found: PendingAction) -> list[Block]:
    path = f"/approvals/{found.id}"
    blocks: list[Block] = []
    if is_own(found, ask.actor):
        if found.status is ActionStatus.APPROVED:
            word = ask.t("approval.complete")
            intro = ask.t("approval.complete.intro")
            blocks.append(Form(action=ask.to(f"{path}/complete"), fields=[], submit=word, title=word, intro=intro))
        else:
            blocks.append(Note(ask.t("approval.own"), "plain"))
        word = ask.t("approval.withdraw")
        return [*blocks, Form(action=ask.to(f"{path}/reject"), fields=[], submit=word)]
    if may_decide(found, ask.actor):
        if found.status is ActionStatus.REQUESTED:
            word = ask.t("approval.approve")
            intro = ask.t("approval.approve.intro")
            blocks.append(Form(action=ask.to(f"{path}/approve"), fields=[], submit=word, title=word, intro=intro))
        word = ask.t("approval.reject")
        blocks.append(Form(action=ask.to(f"{path}/reject"), fields=[], submit=word, tone="danger"))
    return blocks


async def approve(ask: Ask) -> Redirect:
    found = await approve_request(ask.ports, ask.actor, ask.path("action_id"))
    return Redirect(f"/approvals/{found.id}", {"done": "approved"})


async def reject(ask: Ask) -> Redirect:
    found = await reject_request(ask.ports, ask.actor, ask.path("action_id"))
    return Redirect(f"/approvals/{found.id}", {"done": "rejected" if found.status == "rejected" else "cancelled"})


async def complete(ask: Ask) -> Page | Redirect:
    made = await complete_request(ask.ports, ask.actor, ask.path("action_id"))
    match made:
        case NewKey():
            return key_page(ask, made)
        case NewInvitation():
            return invitation_page(ask, made)
        case str():
            return secret_page(ask, made)
    return Redirect(f"/approvals/{ask.path('action_id')}", {"done": "saved"})


_A = "/approvals/{action_id:str}"

APPROVALS = (
    get("/approvals", approvals),
    get(_A, approval),
    post(f"{_A}/approve", approve, retry=_A),
    post(f"{_A}/reject", reject, retry=_A),
    post(f"{_A}/complete", complete, retry=_A),
)
