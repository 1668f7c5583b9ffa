"""People of the account, and the person's own profile (docs/dashboard.md "People", "Your profile")."""

import io

from ....core.domain.people.people import Session
from ....core.domain.people.roles import ROLES, PersonRight, Role, may_manage
from ....core.usecases.accounts.shops import list_shops
from ....core.usecases.people.email_change import confirm_email_change, request_email_change, show_email_change
from ....core.usecases.people.factors import (
    begin_totp,
    change_password,
    confirm_totp,
    pending_totp,
    remove_totp,
    renew_recovery_codes,
    set_language,
)
from ....core.usecases.people.invitations import NewInvitation, invite, list_invitations, revoke_invitation
from ....core.usecases.people.members import Member, change_member, list_members, remove_member
from ....core.usecases.people.passkeys import add_passkey, creation_options, list_passkeys, remove_passkey
from ....core.usecases.people.sessions import end_other_sessions, end_session, list_sessions
from ....core.usecases.people.users import email_of
from ..blocks import Actions, Badge, Block, Column, Facts, Field, Form, Link, Note, Picture, Pre, Table, Value
from ..rows import Page, Redirect, get, post
from ..texts import LANGUAGES, add
from ..web import Ask

add(
    {
        "people.role": ("Role", "Роль"),
        "people.mail": ("E-mail", "Эл. почта"),
        "people.seen": ("Last visit", "Последний вход"),
        "people.factor": ("Second factor", "Второй фактор"),
        "people.shops": ("Shops", "Магазины"),
        "people.shops.hint": ("None chosen: all shops", "Ничего не выбрано: все магазины"),
        "people.live": ("May enter live mode", "Доступен боевой режим"),
        "people.test_only": ("test mode only", "только тестовый"),
        "people.you": ("you", "вы"),
        "people.invite": ("Invite a person", "Пригласить человека"),
        "people.invite.submit": ("Invite", "Пригласить"),
        "people.invited": ("Invitation", "Приглашение"),
        "people.link": (
            "Pass this link on: it is shown only now, works once and lives for 7 days.",
            "Передайте эту ссылку: она показана один раз, сработает один раз и действует 7 дней.",
        ),
        "people.mailed": ("The invitation was also sent by e-mail.", "Приглашение отправлено и по почте."),
        "people.open": ("Open invitations", "Открытые приглашения"),
        "people.until": ("Valid until", "Действует до"),
        "people.revoke": ("Revoke", "Отозвать"),
        "people.change": ("Change", "Изменить"),
        "people.remove": ("Remove from the account", "Убрать из аккаунта"),
        "people.leave": ("Leave the account", "Выйти из аккаунта"),
        "people.rights": ("What each role may do", "Что может каждая роль"),
        "people.right": ("Right", "Право"),
        "people.confirmed": ("with password", "с паролем"),
        "people.test": ("test", "тест"),
        "right.money": ("balance and payouts", "баланс и выплаты"),
        "right.payer_data": ("payer's data", "данные плательщика"),
        "right.export": ("export", "выгрузка"),
        "right.approve": ("approve refunds", "одобрять возвраты"),
        "right.payout_details": ("wallet", "кошелёк"),
        "right.keys": ("API keys", "ключи API"),
        "right.logs": ("request log", "журнал запросов"),
        "right.shops": ("shops", "магазины"),
        "right.people": ("people", "люди"),
        "right.audit": ("audit log", "журнал действий"),
        "right.notes": ("notes on payments", "заметки к платежам"),
        "right.owner": ("make owners", "назначать владельцев"),
        "profile.email": ("E-mail address", "Адрес эл. почты"),
        "profile.email.new": ("New address", "Новый адрес"),
        "profile.email.change": ("Change the address", "Сменить адрес"),
        "profile.email.intro": (
            "A link goes to the new address. Until it is confirmed, the present one stays.",
            "На новый адрес придёт ссылка. Пока её не подтвердят, остаётся прежний.",
        ),
        "done.mailed": (
            "A link is on its way to the new address. It works for 30 minutes.",
            "Ссылка отправлена на новый адрес. Она действует 30 минут.",
        ),
        "profile.email.none": (
            "This service has no e-mail connected, so addresses cannot be changed.",
            "Почта к сервису не подключена, поэтому адреса не меняются.",
        ),
        "profile.email.confirm": ("Use this address", "Входить с этим адресом"),
        "profile.email.confirm.title": ("Confirm your new address", "Подтвердите новый адрес"),
        "profile.email.before": ("Present address", "Нынешний адрес"),
        "profile.password": ("Password", "Пароль"),
        "profile.present": ("Present password", "Нынешний пароль"),
        "profile.new": ("New password", "Новый пароль"),
        "profile.change": ("Change the password", "Сменить пароль"),
        "profile.app": ("Authenticator app", "Приложение с кодами"),
        "profile.app.on": ("set up; recovery codes left: {count}", "подключено; запасных кодов: {count}"),
        "profile.app.off": ("not set up", "не подключено"),
        "profile.app.begin": ("Set up", "Подключить"),
        "profile.app.scan": (
            "Scan the picture with the app, or type the secret, and enter the code that it shows.",
            "Отсканируйте картинку приложением или введите секрет, затем введите код.",
        ),
        "profile.app.secret": ("Secret", "Секрет"),
        "profile.app.confirm": ("Confirm", "Подтвердить"),
        "profile.app.remove": ("Remove the app", "Отключить приложение"),
        "profile.codes": ("Recovery codes", "Запасные коды"),
        "profile.codes.keep": (
            "Keep these codes where you keep no phone: each works once instead of a code of the app.",
            "Храните эти коды отдельно от телефона: каждый один раз заменит код из приложения.",
        ),
        "profile.codes.new": ("Create new recovery codes", "Создать новые запасные коды"),
        "passkeys": ("Passkeys", "Ключи доступа"),
        "passkey.new": ("New passkey", "Новый ключ доступа"),
        "passkey.add": ("Add a passkey", "Добавить ключ доступа"),
        "passkey.remove": ("Remove the passkey", "Удалить ключ доступа"),
        "passkey.where": ("Where", "Где"),
        "passkey.synced": ("on several devices", "на нескольких устройствах"),
        "passkey.single": ("only on this device: add a second one", "только на этом устройстве: добавьте второй"),
        "passkey.none": (
            "None yet. A passkey replaces password and code.",
            "Пока нет. Ключ доступа заменяет пароль и код.",
        ),
        "passkey.address": (
            "Passkeys need a name in the address of the dashboard; browsers offer none at an IP address.",
            "Ключам доступа нужно имя в адресе кабинета: на IP-адресе браузеры их не предлагают.",
        ),
        "profile.sessions": ("Sessions", "Сеансы"),
        "profile.device": ("Browser", "Браузер"),
        "profile.network": ("Network", "Сеть"),
        "profile.seen": ("Last seen", "Последняя активность"),
        "profile.this": ("this one", "этот"),
        "profile.end": ("End", "Завершить"),
        "profile.end_others": ("End all other sessions", "Завершить все остальные"),
        "error.LAST_OWNER": (
            "The account would have no owner: make another person an owner first.",
            "В аккаунте не осталось бы владельца: сначала назначьте другого.",
        ),
        "error.USER_NOT_FOUND": ("There is no such person.", "Такого человека нет."),
    }
)


async def people(ask: Ask) -> Page:
    members = await list_members(ask.ports, ask.actor.account.id)
    manages = ask.has(PersonRight.PEOPLE)
    table = Table(
        caption=ask.t("people"),
        columns=[
            Column(ask.t("people.mail")),
            Column(ask.t("people.role")),
            Column(ask.t("people.shops")),
            Column(ask.t("people.factor")),
            Column(ask.t("people.seen")),
        ],
        rows=[_member(ask, each, manages) for each in members],
        empty=ask.t("nothing"),
    )
    blocks: list[Block] = [table]
    if manages:
        blocks += await _invitations(ask)
    blocks.append(_rights(ask))
    return Page(ask.t("people"), blocks)


def _member(ask: Ask, each: Member, manages: bool) -> list[Value]:
    membership = each.membership
    name: Value = each.email
    is_self = each.user.id == ask.actor.user.id
    if is_self or (manages and may_manage(ask.actor.role, membership.role)):
        text = f"{each.email} ({ask.t('people.you')})" if is_self else each.email
        name = Link(text, ask.to(f"/people/{each.user.id}"))
    role = ask.t.of("role", membership.role)
    return [
        name,
        role if membership.live else f"{role}, {ask.t('people.test_only')}",
        ask.t("all") if membership.shops is None else str(len(membership.shops)),
        Badge(ask.t("yes"), "good") if each.user.has_second_factor else Badge(ask.t("no"), "plain"),
        ask.at(membership.seen_at),
    ]


async def _access_fields(ask: Ask, role: Role, shops: tuple[str, ...] | None, *, live: bool) -> list[Field]:
    roles = [(each.value, ask.t.of("role", each)) for each in Role if may_manage(ask.actor.role, each)]
    names = [(each.id, each.name) for each in await list_shops(ask.ports, ask.actor.account.id)]
    hint = ask.t("people.shops.hint")
    return [
        Field(name="role", label=ask.t("people.role"), type="select", value=role.value, options=roles),
        Field(name="shops", label=ask.t("people.shops"), type="checks", options=names, chosen=shops or (), hint=hint),
        Field(name="live", label=ask.t("people.live"), type="checkbox", value="yes" if live else ""),
    ]


async def _invitations(ask: Ask) -> list[Block]:
    found = await list_invitations(ask.ports, ask.actor.account.id)
    email = Field(name="email", label=ask.t("people.mail"), type="email", required=True)
    access = await _access_fields(ask, Role.VIEWER, None, live=True)
    title = ask.t("people.invite")
    action = ask.to("/people/invite")
    blocks: list[Block] = [
        Form(action=action, fields=[email, *access], submit=ask.t("people.invite.submit"), title=title)
    ]
    if found:
        blocks.append(
            Table(
                title=ask.t("people.open"),
                caption=ask.t("people.open"),
                columns=[Column(ask.t("people.mail")), Column(ask.t("people.role")), Column(ask.t("people.until"))],
                rows=[[mail, ask.t.of("role", each.role), ask.at(each.expires_at)] for each, mail in found],
                empty=ask.t("nothing"),
            )
        )
    blocks += [
        Form(
            action=ask.to("/people/revoke"),
            fields=[Field(name="invitation", type="hidden", value=each.id)],
            submit=f"{ask.t('people.revoke')}: {mail}",
        )
        for each, mail in found
    ]
    return blocks


def _rights(ask: Ask) -> Table:
    def cell(role: Role, right: PersonRight) -> Value:
        found = ROLES[role].get(right)
        if found is None:
            return None
        if len(found.modes) == 1:
            return Badge(ask.t("people.test"), "plain")
        return Badge(ask.t("people.confirmed"), "plain") if found.step_up else Badge(ask.t("yes"), "good")

    title = ask.t("people.rights")
    return Table(
        title=title,
        caption=title,
        columns=[Column(ask.t("people.right")), *(Column(ask.t.of("role", role)) for role in Role)],
        rows=[[ask.t.of("right", right), *(cell(role, right) for role in Role)] for right in PersonRight],
        empty="",
    )


async def send_invitation(ask: Ask) -> Page:
    wish = ask.value("role")
    made = await invite(
        ask.ports,
        ask.actor.account.id,
        ask.value("email"),
        Role(wish) if wish in [*Role] else Role.VIEWER,
        shops=tuple(ask.form.get("shops", ())) or None,
        live=bool(ask.value("live")),
        language=ask.language,
        inviter=ask.actor,
    )
    return invitation_page(ask, made)


def invitation_page(ask: Ask, made: NewInvitation) -> Page:
    """Return the page that shows the link of a new invitation once."""
    blocks: list[Block] = [
        Note(ask.t("people.link"), "warn"),
        Facts(None, [(ask.t("people.invited"), ask.copied(made.link))]),
    ]
    if made.is_mailed:
        blocks.append(Note(ask.t("people.mailed"), "good"))
    return Page(ask.t("people.invited"), blocks, [Link(ask.t("people"), ask.to("/people"))])


async def revoke(ask: Ask) -> Redirect:
    await revoke_invitation(ask.ports, ask.actor, ask.value("invitation"))
    return Redirect("/people", {"done": "removed"})


async def person(ask: Ask) -> Page:
    user_id = ask.path("user_id")
    members = await list_members(ask.ports, ask.actor.account.id)
    found = next((each for each in members if each.user.id == user_id), None)
    is_self = user_id == ask.actor.user.id
    manages = ask.has(PersonRight.PEOPLE)
    if found is None or not (is_self or (manages and may_manage(ask.actor.role, found.membership.role))):
        raise ask.missing("USER_NOT_FOUND")
    membership = found.membership
    blocks: list[Block] = []
    path = f"/people/{user_id}"
    if manages:
        fields = await _access_fields(ask, membership.role, membership.shops, live=membership.live)
        fields.append(Field(name="version", type="hidden", value=str(membership.version)))
        blocks.append(Form(action=ask.to(path), fields=fields, submit=ask.t("save"), title=ask.t("people.change")))
    word = ask.t("people.leave" if is_self else "people.remove")
    blocks.append(Form(action=ask.to(f"{path}/remove"), fields=[], submit=word, title=word, tone="danger"))
    return Page(found.email, blocks, [Link(ask.t("people"), ask.to("/people"))])


async def change(ask: Ask) -> Redirect:
    user_id = ask.path("user_id")
    wish, version = ask.value("role"), ask.value("version")
    await change_member(
        ask.ports,
        ask.actor,
        user_id,
        role=Role(wish) if wish in [*Role] else Role.VIEWER,
        shops=tuple(ask.form.get("shops", ())) or None,
        live=bool(ask.value("live")),
        version=int(version) if version.isascii() and version.isdigit() else None,
    )
    return Redirect("/people", {"done": "saved"})


async def remove(ask: Ask) -> Redirect:
    user_id = ask.path("user_id")
    await remove_member(ask.ports, ask.actor, user_id)
    if user_id == ask.actor.user.id:
        ask.drop_session()
        return Redirect("/login")
    return Redirect("/people", {"done": "removed"})


async def profile(ask: Ask) -> Page:
    user = ask.actor.user
    sessions = await list_sessions(ask.ports, user.id)
    state = ask.t("profile.app.on", count=len(user.recovery)) if user.has_second_factor else ask.t("profile.app.off")
    blocks: list[Block] = [
        Facts(None, [(ask.t("people.mail"), email_of(ask.ports, user)), (ask.t("profile.app"), state)]),
        Actions([Link(ask.t("notifications"), ask.to("/settings/notifications"))]),
        _email_form(ask),
        Form(
            action=ask.to("/profile/password"),
            fields=[
                Field(
                    name="present",
                    label=ask.t("profile.present"),
                    type="password",
                    required=True,
                    autocomplete="current-password",
                ),
                Field(
                    name="new",
                    label=ask.t("profile.new"),
                    type="password",
                    required=True,
                    hint=ask.t("invite.new.hint"),
                    autocomplete="new-password",
                ),
            ],
            submit=ask.t("profile.change"),
            title=ask.t("profile.password"),
        ),
    ]
    if user.has_second_factor:
        blocks += [
            Form(
                action=ask.to("/profile/codes"),
                fields=[],
                submit=ask.t("profile.codes.new"),
                title=ask.t("profile.codes"),
            ),
            Form(
                action=ask.to("/profile/app/remove"),
                fields=[],
                submit=ask.t("profile.app.remove"),
                title=ask.t("profile.app"),
                tone="danger",
            ),
        ]
    else:
        begin = ask.t("profile.app.begin")
        blocks.append(Form(action=ask.to("/profile/app"), fields=[], submit=begin, title=ask.t("profile.app")))
    blocks += await _passkeys(ask)
    blocks.append(
        Table(
            title=ask.t("profile.sessions"),
            caption=ask.t("profile.sessions"),
            columns=[
                Column(ask.t("profile.device")),
                Column(ask.t("profile.network")),
                Column(ask.t("created")),
                Column(ask.t("profile.seen")),
            ],
            rows=[_session(ask, each) for each in sessions],
            empty=ask.t("nothing"),
        )
    )
    blocks += [
        Form(
            action=ask.to("/profile/session"),
            fields=[Field(name="session", type="hidden", value=each.id)],
            submit=f"{ask.t('profile.end')}: {each.device}, {each.network}",
        )
        for each in sessions
        if each.id != ask.actor.session.id
    ]
    if len(sessions) > 2:
        action = ask.to("/profile/sessions/end")
        blocks.append(Form(action=action, fields=[], submit=ask.t("profile.end_others"), tone="danger"))
    options = list(LANGUAGES.items())
    language = Field(name="language", label=ask.t("language"), type="select", value=user.language, options=options)
    blocks.append(
        Form(action=ask.to("/profile/language"), fields=[language], submit=ask.t("save"), title=ask.t("language"))
    )
    return Page(ask.t("profile"), blocks)


def _email_form(ask: Ask) -> Block:
    if ask.ports.mailer is None:
        return Note(ask.t("profile.email.none"), "plain")
    label = ask.t("profile.email.new")
    address = Field(name="email", label=label, type="email", required=True, autocomplete="email")
    return Form(
        action=ask.to("/profile/email"),
        fields=[address],
        submit=ask.t("profile.email.change"),
        title=ask.t("profile.email"),
        intro=ask.t("profile.email.intro"),
    )


async def new_email(ask: Ask) -> Redirect:
    await request_email_change(ask.ports, ask.actor, ask.value("email"))
    return Redirect("/profile", {"done": "mailed"})


async def email_link(ask: Ask) -> Page:
    token = ask.query.get("token") or ask.value("token")
    change = show_email_change(ask.ports, ask.actor, token)
    return Page(
        ask.t("profile.email.confirm.title"),
        [
            Facts(
                None,
                [
                    (ask.t("profile.email.before"), email_of(ask.ports, ask.actor.user)),
                    (ask.t("profile.email.new"), change.address),
                ],
            ),
            Form(
                action=ask.to("/profile/email/confirm"),
                fields=[Field(name="token", type="hidden", value=token)],
                submit=ask.t("profile.email.confirm"),
            ),
        ],
        [Link(ask.t("profile"), ask.to("/profile"))],
    )


async def confirm_email(ask: Ask) -> Redirect:
    await confirm_email_change(ask.ports, ask.actor, ask.value("token"))
    return Redirect("/profile", {"done": "saved"})


async def _passkeys(ask: Ask) -> list[Block]:
    options = await creation_options(ask.ports, ask.actor)
    if options is None:
        return [Note(ask.t("passkey.address"), "plain")]
    found = await list_passkeys(ask.ports, ask.actor.user.id)
    title = ask.t("passkeys")
    blocks: list[Block] = [
        Table(
            title=title,
            caption=title,
            columns=[
                Column(ask.t("name")),
                Column(ask.t("passkey.where")),
                Column(ask.t("created")),
                Column(ask.t("key.used")),
            ],
            rows=[
                [
                    each.name,
                    ask.t("passkey.synced" if each.is_synced else "passkey.single"),
                    ask.at(each.created_at),
                    ask.at(each.used_at),
                ]
                for each in found
            ],
            empty=ask.t("passkey.none"),
        ),
        Form(
            action=ask.to("/profile/passkeys"),
            fields=[Field(name="name", label=ask.t("name"), maxlength=60)],
            submit=ask.t("passkey.add"),
            title=ask.t("passkey.new"),
            passkey="create",
            options=options,
        ),
    ]
    blocks += [
        Form(
            action=ask.to("/profile/passkeys/remove"),
            fields=[Field(name="passkey", type="hidden", value=each.id)],
            submit=f"{ask.t('passkey.remove')}: {each.name}",
            tone="danger",
        )
        for each in found
    ]
    return blocks


async def new_passkey(ask: Ask) -> Redirect:
    await add_passkey(ask.ports, ask.actor, ask.secret("reply"), ask.value("name"))
    return Redirect("/profile", {"done": "created"})


async def drop_passkey(ask: Ask) -> Redirect:
    await remove_passkey(ask.ports, ask.actor, ask.value("passkey"))
    return Redirect("/profile", {"done": "removed"})


def _session(ask: Ask, each: Session) -> list[Value]:
    is_this = each.id == ask.actor.session.id
    device = f"{each.device} ({ask.t('profile.this')})" if is_this else each.device
    return [device, each.network, ask.at(each.created_at), ask.at(each.seen_at)]


async def new_password(ask: Ask) -> Redirect:
    await change_password(ask.ports, ask.actor, ask.secret("present"), ask.secret("new"))
    return Redirect("/profile", {"done": "saved"})


async def begin_app(ask: Ask) -> Redirect:
    await begin_totp(ask.ports, ask.actor)
    return Redirect("/profile/app")


async def app(ask: Ask) -> Page | Redirect:
    pending = await pending_totp(ask.ports, ask.actor)
    if pending is None:
        return Redirect("/profile")
    code = Field(name="code", label=ask.t("login.code"), required=True, autocomplete="one-time-code")
    blocks: list[Block] = [
        Note(ask.t("profile.app.scan"), "plain"),
        Picture(_qr(pending.address), ask.t("profile.app")),
        Facts(None, [(ask.t("profile.app.secret"), ask.copied(pending.secret))]),
        Form(action=ask.to("/profile/app/confirm"), fields=[code], submit=ask.t("profile.app.confirm")),
    ]
    return Page(ask.t("profile.app"), blocks, [Link(ask.t("profile"), ask.to("/profile"))])


def _qr(text: str) -> str:
    """Return the SVG of a QR code."""
    import segno

    out = io.BytesIO()
    segno.make(text, error="m").save(out, kind="svg", xmldecl=False, svgns=True, nl=False, border=2, omitsize=True)
    return out.getvalue().decode()


async def confirm_app(ask: Ask) -> Page:
    return _codes(ask, await confirm_totp(ask.ports, ask.actor, ask.value("code")))


async def new_codes(ask: Ask) -> Page:
    return _codes(ask, await renew_recovery_codes(ask.ports, ask.actor))


def _codes(ask: Ask, codes: tuple[str, ...]) -> Page:
    title = ask.t("profile.codes")
    blocks: list[Block] = [
        Note(ask.t("profile.codes.keep"), "warn"),
        Facts(None, [(title, Pre("\n".join(codes)))]),
        Actions([Link(ask.t("profile"), ask.to("/profile"))]),
    ]
    return Page(title, blocks)


async def remove_app(ask: Ask) -> Redirect:
    await remove_totp(ask.ports, ask.actor)
    return Redirect("/profile", {"done": "removed"})


async def end_others(ask: Ask) -> Redirect:
    await end_other_sessions(ask.ports, ask.actor)
    return Redirect("/profile", {"done": "ended"})


async def end_one(ask: Ask) -> Redirect:
    await end_session(ask.ports, ask.actor.user.id, ask.value("session"))
    return Redirect("/profile", {"done": "ended"})


async def language(ask: Ask) -> Redirect:
    await set_language(ask.ports, ask.actor, ask.value("language"))
    return Redirect("/profile", {"done": "saved"})


_P = "/people/{user_id:str}"

PEOPLE = (
    get("/people", people),
    post("/people/invite", send_invitation, PersonRight.PEOPLE, retry="/people"),
    post("/people/revoke", revoke, PersonRight.PEOPLE, retry="/people"),
    get(_P, person),
    post(_P, change, PersonRight.PEOPLE, retry=_P),
    post(f"{_P}/remove", remove, retry=_P),
    get("/profile", profile),
    post("/profile/password", new_password, retry="/profile"),
    post("/profile/email", new_email, retry="/profile"),
    get("/profile/email", email_link),
    post("/profile/email/confirm", confirm_email, retry="/profile/email"),
    post("/profile/app", begin_app, retry="/profile"),
    get("/profile/app", app),
    post("/profile/app/confirm", confirm_app, retry="/profile/app"),
    post("/profile/app/remove", remove_app, retry="/profile"),
    post("/profile/codes", new_codes, retry="/profile"),
    post("/profile/passkeys", new_passkey, retry="/profile"),
    post("/profile/passkeys/remove", drop_passkey, retry="/profile"),
    post("/profile/sessions/end", end_others, retry="/profile"),
    post("/profile/session", end_one, retry="/profile"),
    post("/profile/language", language, retry="/profile"),
)
