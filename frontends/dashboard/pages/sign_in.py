"""Sign-in, sign-out, invitation, forgotten password, confirmation, and the switch of account and mode
(docs/dashboard.md "Sign-in")."""

import re
from urllib.parse import parse_qsl

from ....core.domain.accounts.accounts import Mode
from ....core.domain.errors import Refusal
from ....core.domain.people.people import User
from ....core.usecases.people.invitations import accept_invitation, show_invitation
from ....core.usecases.people.passkeys import (
    confirm_by_passkey,
    confirm_options,
    sign_in_by_passkey,
    sign_in_options,
)
from ....core.usecases.people.resets import is_reset_open, request_reset, reset_password
from ....core.usecases.people.sessions import (
    change_session,
    end_session,
    list_accounts_of,
    start_session,
)
from ....core.usecases.people.sign_in import (
    check_code,
    check_password,
    device_token,
    half_signed_in,
    half_token,
    is_known_device,
    require_password,
    warn_of_sign_in,
)
from ..blocks import Block, Column, Facts, Field, Form, Link, Note, Table
from ..cookies import DEVICE, HALF
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask

add(
    {
        "login.title": ("Sign in", "Вход"),
        "login.email": ("E-mail", "Эл. почта"),
        "login.password": ("Password", "Пароль"),
        "login.submit": ("Sign in", "Войти"),
        "login.forgot": ("Forgot your password?", "Забыли пароль?"),
        "login.passkey": ("Sign in with a passkey", "Войти ключом доступа"),
        "login.passkey.failed": (
            "The passkey was not accepted: try again, or use your password.",
            "Ключ доступа не принят: повторите или войдите с паролем.",
        ),
        "login.code.title": ("Enter the code", "Введите код"),
        "login.code": ("Code", "Код"),
        "login.code.hint": (
            "Six digits of your authenticator app, or a recovery code",
            "Шесть цифр из приложения или запасной код",
        ),
        "login.code.submit": ("Continue", "Продолжить"),
        "logout": ("Sign out", "Выйти"),
        "invite.title": ("Join {account}", "Присоединиться к {account}"),
        "invite.role": ("Your role", "Ваша роль"),
        "invite.new": ("Choose a password", "Придумайте пароль"),
        "invite.new.hint": (
            "At least 12 characters; four random words are easy to keep",
            "Не короче 12 знаков; легко запомнить четыре случайных слова",
        ),
        "invite.present": ("Your password", "Ваш пароль"),
        "invite.submit": ("Join", "Присоединиться"),
        "reset.title": ("Forgotten password", "Забытый пароль"),
        "reset.submit": ("Send a link", "Отправить ссылку"),
        "reset.sent": (
            "If somebody has this address, a link is on its way. It works for 30 minutes.",
            "Если такой адрес есть, ссылка отправлена. Она действует 30 минут.",
        ),
        "reset.no_mail": (
            "This service has no e-mail connected: ask its operator for a link.",
            "Почта к сервису не подключена: попросите ссылку у оператора.",
        ),
        "reset.new.title": ("Choose a new password", "Придумайте новый пароль"),
        "reset.new.submit": ("Set the password", "Задать пароль"),
        "confirm.title": ("Confirm that it is you", "Подтвердите, что это вы"),
        "confirm.intro": (
            "What you are about to do needs your password or passkey again. It then counts for 10 minutes.",
            "Для этого действия нужен ещё раз пароль или ключ доступа. Подтверждение действует 10 минут.",
        ),
        "confirm.submit": ("Confirm", "Подтвердить"),
        "confirm.passkey": ("Confirm with a passkey", "Подтвердить ключом доступа"),
        "accounts": ("Accounts", "Аккаунты"),
        "accounts.enter": ("Open", "Открыть"),
        "role.owner": ("owner", "владелец"),
        "role.admin": ("admin", "администратор"),
        "role.finance": ("finance", "финансы"),
        "role.support": ("support", "поддержка"),
        "role.developer": ("developer", "разработчик"),
        "role.viewer": ("viewer", "наблюдатель"),
        "error.SIGN_IN_FAILED": (
            "Address, password or code is wrong.",
            "Адрес, пароль или код неверны.",
        ),
        "error.TOO_MANY_GUESSES": (
            "Too many attempts: try again later, or reset your password.",
            "Слишком много попыток: повторите позже или задайте новый пароль.",
        ),
        "error.INVITATION_NOT_FOUND": (
            "This invitation is void: ask for a new one.",
            "Приглашение недействительно: попросите новое.",
        ),
        "error.RESET_VOID": ("This link is void: ask for a new one.", "Ссылка недействительна: запросите новую."),
        "error.FORM_REFUSED": (
            "The form is not from this page: open the page again and repeat.",
            "Форма не с этой страницы: откройте страницу заново и повторите.",
        ),
        "error.NO_ACCOUNT": (
            "You belong to no account here: ask an owner of the account for an invitation.",
            "Вы не состоите ни в одном аккаунте: попросите приглашение у владельца.",
        ),
        "error.PERSON_RIGHT_MISSING": (
            "Your role does not have the right for this.",
            "У вашей роли нет права на это.",
        ),
        "error.SECOND_FACTOR_NEEDED": (
            "Your role works with live money: set up an authenticator app in your profile first, or use a passkey.",
            "Ваша роль работает с настоящими деньгами: подключите приложение с кодами или войдите ключом доступа.",
        ),
        "error.LIVE_MODE_DENIED": (
            "You may work in test mode only: ask an owner for live mode.",
            "Вам доступен только тестовый режим: попросите владельца о боевом.",
        ),
    }
)


_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+\Z")
"""Paths to which a sign-in may redirect. Ours need no other characters, and others have tricked browsers and
programs."""
_FIELDS_MOST = 50


def _next(ask: Ask, given: str) -> Redirect:
    """Redirect to the requested page with its query, or to the home page if it is not ours."""
    path, _, query = given.partition("?")
    if not _PATH.match(path) or not ask.is_page(path):
        return Redirect("/home")
    try:
        # Encode the query anew, so that no part of the caller's text is copied unchecked.
        return Redirect(path, dict(parse_qsl(query, max_num_fields=_FIELDS_MOST)))
    except ValueError:
        return Redirect(path)


async def login(ask: Ask) -> Page | Redirect:
    if ask.signed_in is not None:
        return Redirect("/home")
    return _login_page(ask, ask.query.get("next", ""))


def _login_page(ask: Ask, following: str, fault: str = "", status: int = 200) -> Page:
    fields = [
        Field(name="email", label=ask.t("login.email"), type="email", required=True, autocomplete="username"),
        Field(
            name="password",
            label=ask.t("login.password"),
            type="password",
            required=True,
            autocomplete="current-password",
        ),
        Field(name="next", type="hidden", value=following),
    ]
    blocks: list[Block] = [] if not fault else [Note(fault, "bad")]
    blocks += [
        Form(action=ask.to("/login"), fields=fields, submit=ask.t("login.submit")),
        *_passkey_form(ask, following),
        Note("", "plain", Link(ask.t("login.forgot"), ask.to("/reset"))),
    ]
    return Page(ask.t("login.title"), blocks, status=status, has_form=True)


def _passkey_form(ask: Ask, following: str) -> list[Block]:
    options = sign_in_options(ask.ports, ask.browser)
    if options is None:
        return []
    return [
        Form(
            action=ask.to("/login/passkey"),
            fields=[Field(name="next", type="hidden", value=following)],
            submit=ask.t("login.passkey"),
            passkey="get",
            options=options,
        )
    ]


async def log_in_by_passkey(ask: Ask) -> Page | Redirect:
    following = ask.value("next")
    try:
        user = await sign_in_by_passkey(ask.ports, ask.secret("reply"), ask.browser)
    except Refusal as refusal:
        return _login_page(ask, following, ask.t("login.passkey.failed"), refusal.status)
    return await _enter(ask, user, following, method="passkey")


async def log_in(ask: Ask) -> Page | Redirect:
    following = ask.value("next")
    try:
        passed = await check_password(ask.ports, ask.value("email"), ask.secret("password"), ask.cookie(DEVICE))
    except Refusal as refusal:
        if refusal.code not in ("SIGN_IN_FAILED", "TOO_MANY_GUESSES"):
            raise
        return _login_page(ask, following, ask.t.of("error", refusal.code), refusal.status)
    if passed.needs_code:
        ask.keep_half(half_token(ask.ports, passed.user))
        return Redirect("/login/code", {"next": following or None})
    return await _enter(ask, passed.user, following)


async def _enter(ask: Ask, user: User, following: str, method: str = "password") -> Redirect:
    """Start the session, and notify the person of a sign-in from a new browser."""
    new = await start_session(ask.ports, user.id, method=method, device=ask.device)
    if not is_known_device(ask.ports, user.id, ask.cookie(DEVICE)):
        await warn_of_sign_in(ask.ports, user, ask.device.name, ask.device.network)
    ask.keep_session(new.token)
    ask.keep_device(device_token(ask.ports, user.id))
    return _next(ask, following)


async def code(ask: Ask) -> Page | Redirect:
    if await half_signed_in(ask.ports, ask.cookie(HALF)) is None:
        return Redirect("/login")
    return _code_page(ask, ask.query.get("next", ""))


def _code_page(ask: Ask, following: str, fault: str = "", status: int = 200) -> Page:
    fields = [
        Field(
            name="code",
            label=ask.t("login.code"),
            hint=ask.t("login.code.hint"),
            required=True,
            autocomplete="one-time-code",
        ),
        Field(name="next", type="hidden", value=following),
    ]
    blocks: list[Block] = [] if not fault else [Note(fault, "bad")]
    blocks.append(Form(action=ask.to("/login/code"), fields=fields, submit=ask.t("login.code.submit")))
    return Page(ask.t("login.code.title"), blocks, status=status, has_form=True)


async def enter_code(ask: Ask) -> Page | Redirect:
    user = await half_signed_in(ask.ports, ask.cookie(HALF))
    if user is None:
        return Redirect("/login")
    try:
        user = await check_code(ask.ports, user, ask.value("code"))
    except Refusal as refusal:
        if refusal.code not in ("SIGN_IN_FAILED", "TOO_MANY_GUESSES"):
            raise
        return _code_page(ask, ask.value("next"), ask.t.of("error", refusal.code), refusal.status)
    return await _enter(ask, user, ask.value("next"))


async def log_out(ask: Ask) -> Redirect:
    await end_session(ask.ports, ask.actor.user.id, ask.actor.session.id)
    ask.drop_session()
    return Redirect("/login")


async def invitation(ask: Ask) -> Page:
    token = ask.query.get("token") or ask.value("token")
    shown = await show_invitation(ask.ports, token)
    is_new = not shown.has_password
    fields = [
        Field(name="token", type="hidden", value=token),
        Field(name="email", type="hidden", value=shown.email),
        Field(
            name="password",
            label=ask.t("invite.new" if is_new else "invite.present"),
            type="password",
            required=True,
            hint=ask.t("invite.new.hint") if is_new else "",
            autocomplete="new-password" if is_new else "current-password",
        ),
    ]
    facts = [
        (ask.t("login.email"), shown.email),
        (ask.t("invite.role"), ask.t.of("role", shown.invitation.role)),
    ]
    return Page(
        ask.t("invite.title", account=shown.account.name),
        [Facts(None, facts), Form(action=ask.to("/invite"), fields=fields, submit=ask.t("invite.submit"))],
        has_form=True,
    )


async def join(ask: Ask) -> Redirect:
    user = await accept_invitation(ask.ports, ask.value("token"), ask.secret("password"), ask.language)
    if user.has_second_factor:
        ask.keep_half(half_token(ask.ports, user))
        return Redirect("/login/code")
    return await _enter(ask, user, "")


async def forgot(ask: Ask) -> Page:
    token = ask.query.get("token") or ask.value("token")
    if token:
        return await _new_password_page(ask, token)
    blocks: list[Block] = []
    if ask.query.get("sent"):
        blocks.append(Note(ask.t("reset.sent"), "good"))
    if ask.ports.mailer is None:
        blocks.append(Note(ask.t("reset.no_mail"), "warn"))
    email = Field(name="email", label=ask.t("login.email"), type="email", required=True, autocomplete="username")
    blocks.append(Form(action=ask.to("/reset"), fields=[email], submit=ask.t("reset.submit")))
    return Page(ask.t("reset.title"), blocks, has_form=True)


async def _new_password_page(ask: Ask, token: str) -> Page:
    if not await is_reset_open(ask.ports, token):
        raise Refusal("RESET_VOID", "This link is void: ask for a new one")
    fields = [
        Field(name="token", type="hidden", value=token),
        Field(
            name="password",
            label=ask.t("invite.new"),
            type="password",
            required=True,
            hint=ask.t("invite.new.hint"),
            autocomplete="new-password",
        ),
    ]
    form = Form(action=ask.to("/reset"), fields=fields, submit=ask.t("reset.new.submit"))
    return Page(ask.t("reset.new.title"), [form], has_form=True)


async def reset(ask: Ask) -> Redirect:
    token = ask.value("token")
    if token:
        await reset_password(ask.ports, token, ask.secret("password"))
        return Redirect("/login")
    await request_reset(ask.ports, ask.value("email"))
    return Redirect("/reset", {"sent": "1"})


async def confirm(ask: Ask) -> Page:
    return await _confirm_page(ask, ask.query.get("next", ""))


async def _confirm_page(ask: Ask, following: str, fault: str = "", status: int = 200) -> Page:
    fields = [
        Field(
            name="password",
            label=ask.t("login.password"),
            type="password",
            required=True,
            autocomplete="current-password",
        ),
        Field(name="next", type="hidden", value=following),
    ]
    if ask.actor.user.has_second_factor:
        hint = ask.t("login.code.hint")
        fields.append(
            Field(name="code", label=ask.t("login.code"), required=True, hint=hint, autocomplete="one-time-code")
        )
    blocks: list[Block] = [] if not fault else [Note(fault, "bad")]
    intro = ask.t("confirm.intro")
    blocks.append(Form(action=ask.to("/confirm"), fields=fields, submit=ask.t("confirm.submit"), intro=intro))
    options = await confirm_options(ask.ports, ask.actor)
    if options is not None:
        blocks.append(
            Form(
                action=ask.to("/confirm/passkey"),
                fields=[Field(name="next", type="hidden", value=following)],
                submit=ask.t("confirm.passkey"),
                passkey="get",
                options=options,
            )
        )
    return Page(ask.t("confirm.title"), blocks, status=status)


async def confirmed_by_passkey(ask: Ask) -> Page | Redirect:
    following = ask.value("next")
    try:
        await confirm_by_passkey(ask.ports, ask.actor, ask.secret("reply"))
    except Refusal as refusal:
        return await _confirm_page(ask, following, ask.t("login.passkey.failed"), refusal.status)
    return await _step_up(ask, following)


async def confirmed(ask: Ask) -> Page | Redirect:
    user = ask.actor.user
    try:
        await require_password(ask.ports, user, ask.secret("password"))
        if user.has_second_factor:
            await check_code(ask.ports, user, ask.value("code"))
    except Refusal as refusal:
        if refusal.code not in ("SIGN_IN_FAILED", "TOO_MANY_GUESSES"):
            raise
        return await _confirm_page(ask, ask.value("next"), ask.t.of("error", refusal.code), refusal.status)
    return await _step_up(ask, ask.value("next"))


async def _step_up(ask: Ask, following: str) -> Redirect:
    new = await change_session(ask.ports, ask.actor, steps_up=True)
    ask.keep_session(new.token)
    return _next(ask, following)


async def accounts(ask: Ask) -> Page:
    found = await list_accounts_of(ask.ports, ask.actor.user.id)
    blocks: list[Block] = [
        Table(
            caption=ask.t("accounts"),
            columns=[Column(ask.t("account")), Column(ask.t("invite.role"))],
            rows=[[account.name, ask.t.of("role", membership.role)] for membership, account in found],
            empty=ask.t("nothing"),
        )
    ]
    blocks += [
        Form(
            action=ask.to("/switch"),
            fields=[Field(name="account", type="hidden", value=account.id)],
            submit=f"{ask.t('accounts.enter')}: {account.name}",
        )
        for _, account in found
        if account.id != ask.actor.account.id
    ]
    return Page(ask.t("accounts"), blocks)


async def switch(ask: Ask) -> Redirect:
    wanted = ask.value("mode")
    mode = Mode(wanted) if wanted in [*Mode] else None
    new = await change_session(ask.ports, ask.actor, account_id=ask.value("account") or None, mode=mode)
    ask.keep_session(new.token)
    return Redirect("/home")


SIGN_IN = (
    get("/login", login, is_public=True),
    post("/login", log_in, is_public=True, retry="/login"),
    post("/login/passkey", log_in_by_passkey, is_public=True, retry="/login"),
    get("/login/code", code, is_public=True),
    post("/login/code", enter_code, is_public=True, retry="/login/code"),
    post("/logout", log_out),
    get("/invite", invitation, is_public=True),
    post("/invite", join, is_public=True, retry="/invite"),
    get("/reset", forgot, is_public=True),
    post("/reset", reset, is_public=True, retry="/reset"),
    get("/confirm", confirm),
    post("/confirm", confirmed, retry="/confirm"),
    post("/confirm/passkey", confirmed_by_passkey, retry="/confirm"),
    get("/accounts", accounts),
    post("/switch", switch, retry="/home"),
)
