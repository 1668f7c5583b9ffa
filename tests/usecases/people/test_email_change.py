"""Changing one's e-mail address (docs/dashboard.md "Your profile")."""

import re
from typing import Any

import httpx
import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.people import User
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.people.email_change import (
    confirm_email_change,
    request_email_change,
    show_email_change,
)
from cambist.core.usecases.people.factors import change_password
from cambist.core.usecases.people.resets import is_reset_open, new_reset_link
from cambist.core.usecases.people.sessions import Actor, find_actor
from cambist.core.usecases.people.sign_in import check_password
from cambist.core.usecases.people.users import email_of
from tests.app_pool import lent_app
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, joined
from tests.invariants import everything
from tests.people_kit import PASSWORD, Mailbox, person, signed_in, token_of, with_mail
from tests.tables import table

NEW = "olga@new.example"


def link_to(mailbox: Mailbox, address: str) -> str:
    """Return the link in the last e-mail to an address."""
    text = next(each.text for each in reversed(mailbox.letters) if each.to == address)
    found = re.search(r"https://\S+/profile/email\?token=\S+", text)
    assert found is not None, text
    return found[0]


async def asked(app: TestApp, actor: Actor, mailbox: Mailbox, address: str = NEW) -> str:
    """Request a change of the address, and return the token of the link."""
    await request_email_change(app.ports, actor, address)
    await run_due(app.ports)
    return token_of(link_to(mailbox, address))


async def refused(code: str, work: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        await work
    assert refusal.value.code == code


async def test_address_changes_when_the_link_is_confirmed(app: TestApp) -> None:
    actor = await person(app)
    mailbox = with_mail(app)
    other = (await signed_in(app.ports, actor.user))[1]
    reset = await new_reset_link(app.ports, "owner@shop.example")
    assert reset is not None
    token = await asked(app, actor, mailbox)
    assert [each.to for each in mailbox.letters] == [NEW, "owner@shop.example"]
    assert "o***@new.example" in mailbox.letters[1].text
    assert email_of(app.ports, actor.user) == "owner@shop.example", "nothing changed yet"
    after = await confirm_email_change(app.ports, actor, token)
    assert email_of(app.ports, after) == NEW
    assert (await check_password(app.ports, NEW, PASSWORD, "")).user.id == actor.user.id
    await refused("SIGN_IN_FAILED", check_password(app.ports, "owner@shop.example", PASSWORD, ""))
    assert await find_actor(app.ports, other) is None, "other sessions end"
    assert not await is_reset_open(app.ports, token_of(reset)), "links to the old address are void"
    await run_due(app.ports)
    assert [each.to for each in mailbox.letters[2:]] == ["owner@shop.example", NEW]
    actions = [(each.action, each.operator) for each in await everything(app.ports, AuditEntry)]
    assert ("person.email", actor.user.id) in actions


async def test_session_that_confirmed_continues(app: TestApp) -> None:
    mailbox = with_mail(app)
    first = await person(app)
    actor, session = await signed_in(app.ports, first.user)
    await confirm_email_change(app.ports, actor, await asked(app, actor, mailbox))
    assert await find_actor(app.ports, session) is not None


async def test_link_works_once_and_for_thirty_minutes(app: TestApp) -> None:
    mailbox = with_mail(app)
    first = await person(app)
    actor, session = await signed_in(app.ports, first.user)
    token, second = await asked(app, actor, mailbox), await asked(app, actor, mailbox, "third@new.example")
    await confirm_email_change(app.ports, actor, token)
    present = await find_actor(app.ports, session)
    assert present is not None
    for each in (token, second):
        with pytest.raises(Refusal):
            show_email_change(app.ports, present, each)
    late = await asked(app, present, mailbox, "late@new.example")
    await app.clock.advance(1801)
    with pytest.raises(Refusal):
        show_email_change(app.ports, present, late)


async def test_link_is_of_its_person_only(app: TestApp) -> None:
    mailbox = with_mail(app)
    owner, admin = await person(app), await person(app, Role.ADMIN)
    token = await asked(app, owner, mailbox)
    await refused("RESET_VOID", confirm_email_change(app.ports, admin, token))


@table("spoil", ["", "x", "%00", "a" * 4000, "токен", "=" * 8])
async def test_altered_link_is_void(app: TestApp, spoil: str) -> None:
    mailbox = with_mail(app)
    await app.clock.advance(3601)
    people = await everything(app.ports, User)
    actor = (await signed_in(app.ports, people[0]))[0] if people else await person(app)
    token = await asked(app, actor, mailbox)
    for each in (spoil, f"{token}{spoil}x", token[:-4] + spoil, token.swapcase()):
        with pytest.raises(Refusal) as void:
            show_email_change(app.ports, actor, each)
        assert void.value.code == "RESET_VOID"


async def test_link_is_void_after_another_change_of_the_sign_in(app: TestApp) -> None:
    mailbox = with_mail(app)
    first = await person(app)
    actor, session = await signed_in(app.ports, first.user)
    token = await asked(app, actor, mailbox)
    await change_password(app.ports, actor, PASSWORD, "another sentence of four words")
    present = await find_actor(app.ports, session)
    assert present is not None
    await refused("RESET_VOID", confirm_email_change(app.ports, present, token))


async def test_request_needs_a_fresh_confirmation_and_mail(app: TestApp) -> None:
    actor = await person(app)
    await refused("INVALID_STATE", request_email_change(app.ports, actor, NEW))
    with_mail(app)
    late = msgspec.structs.replace(actor, stepped_up=False)
    await refused("STEP_UP_NEEDED", request_email_change(app.ports, late, NEW))
    await refused("INVALID_STATE", request_email_change(app.ports, actor, "Owner@Shop.example"))
    await refused("VALIDATION_ERROR", request_email_change(app.ports, actor, "no address"))


async def test_strangers_get_five_mails_an_hour_at_most(app: TestApp) -> None:
    mailbox = with_mail(app)
    actor = await person(app)
    for number in range(5):
        await request_email_change(app.ports, actor, f"stranger{number}@new.example")
    await refused("TOO_MANY_GUESSES", request_email_change(app.ports, actor, NEW))
    await run_due(app.ports)
    assert NEW not in [each.to for each in mailbox.letters]


async def test_address_of_another_person_gives_no_sign(app: TestApp) -> None:
    owner, _ = await person(app), await person(app, Role.ADMIN)
    mailbox = with_mail(app)
    await request_email_change(app.ports, owner, "admin@shop.example")
    await run_due(app.ports)
    assert [each.to for each in mailbox.letters] == ["owner@shop.example"]


async def test_address_that_was_taken_meanwhile_is_refused(app: TestApp) -> None:
    mailbox = with_mail(app)
    owner = await person(app)
    token = await asked(app, owner, mailbox)
    await person(app, Role.ADMIN, email=NEW)
    await refused("INVALID_STATE", confirm_email_change(app.ports, owner, token))
    assert len(await everything(app.ports, User)) == 2


async def test_link_that_a_scanner_opens_changes_nothing(app: TestApp) -> None:
    """Pages: opening the link shows a form for the password and does not use the link up; a stranger must sign in
    first."""
    mailbox = with_mail(app)
    with lent_app(app.ports) as face:
        app.http = httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url=BASE)
        owner = await joined(app, Role.OWNER)
        await app.clock.advance(601)
        await owner.open("/profile")
        await owner.send("/profile/email", email=NEW)
        assert owner.path == "/confirm"
        await owner.send("/confirm", password=PASSWORD)
        await owner.send("/profile/email", email=NEW)
        owner.sees("A link is on its way")
        await run_due(app.ports)
        link = link_to(mailbox, NEW).removeprefix(BASE)
        scanner = Browser(app)
        await scanner.http.head(link)
        await scanner.open(link)
        assert scanner.path == "/login"
        assert NEW not in scanner.text
        await owner.open(link)
        owner.sees("owner@shop.example", NEW)
        await scanner.send("/login", email="owner@shop.example", password=PASSWORD)
        assert scanner.path == "/profile/email", "the page after the sign-in keeps the link"
        await scanner.send("/profile/email/confirm")
        scanner.sees("Saved.", NEW)
        assert (await owner.open("/home")).path == "/login"
