"""Notes on payments and their links by mail (docs/dashboard.md "Payments")."""

import asyncio
import logging
from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.guesses import BUDGETS
from cambist.core.domain.people.payment_notes import LINKS_MOST, NOTE_LONGEST, NOTES_MOST, PaymentNotes
from cambist.core.domain.people.people import Letter
from cambist.core.domain.people.roles import PersonRight, Role, grant
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.people.payment_links import send_link
from cambist.core.usecases.people.payment_notes import add_note, delete_note, list_notes
from cambist.core.usecases.sandbox.data import forget_test_data
from tests.apps import TestApp
from tests.invariants import everything
from tests.people_kit import person, with_mail
from tests.tables import table

SECRET = "Anna called from +79990001122"


async def made(app: TestApp) -> str:
    return str((await app.created())["id"])


async def test_note_is_read_by_colleagues_and_deleted_by_its_author(app: TestApp) -> None:
    payment = await made(app)
    support, owner = await person(app, Role.SUPPORT), await person(app, Role.OWNER)
    note = await add_note(app.ports, support, payment, "  Asks for the cheque\r\nagain ")
    [seen] = await list_notes(app.ports, owner, payment)
    assert (seen.note.text, seen.author, seen.is_own) == ("Asks for the cheque\nagain", "support@shop.example", False)
    with pytest.raises(Refusal) as foreign:
        await delete_note(app.ports, owner, payment, note.id)
    assert foreign.value.code == "NOTE_NOT_FOUND"
    await delete_note(app.ports, support, payment, note.id)
    assert await list_notes(app.ports, owner, payment) == []


async def test_note_is_encrypted_and_neither_logged_nor_audited(app: TestApp, caplog: pytest.LogCaptureFixture) -> None:
    payment = await made(app)
    support = await person(app, Role.SUPPORT)
    with caplog.at_level(logging.DEBUG):
        note = await add_note(app.ports, support, payment, SECRET)
        [seen] = await list_notes(app.ports, support, payment)
    [stored] = await everything(app.ports, PaymentNotes)
    assert b"Anna" not in stored.body
    entries = [each for each in await everything(app.ports, AuditEntry) if each.action == "payment.note"]
    assert [(each.object_id, each.operator) for each in entries] == [(payment, support.user.id)]
    assert entries[0].account_id == app.account.account_id
    for text in (caplog.text, repr(entries), repr(stored), repr(note), repr(seen)):
        assert "Anna" not in text
        assert "9990001122" not in text


@table("text", ["", "  \n ", "a" * (NOTE_LONGEST + 1), "a\u202eb", "a\x07b"])
async def test_note_without_readable_text_is_refused(app: TestApp, text: str) -> None:
    payment = await made(app)
    support = await person(app, Role.SUPPORT, email=f"{len(text)}-{abs(hash(text))}@shop.example")
    with pytest.raises(Refusal) as refused:
        await add_note(app.ports, support, payment, text)
    assert refused.value.code == "VALIDATION_ERROR"


async def test_number_of_notes_is_bounded_also_for_concurrent_ones(app: TestApp) -> None:
    payment = await made(app)
    support = await person(app, Role.SUPPORT)
    for number in range(NOTES_MOST - 1):
        await add_note(app.ports, support, payment, f"Note {number}")
    tries = [add_note(app.ports, support, payment, "One more") for _ in range(2)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    refused = [each for each in results if isinstance(each, Refusal)]
    assert [each.code for each in refused] == ["INVALID_STATE"]
    assert len(await list_notes(app.ports, support, payment)) == NOTES_MOST


async def test_form_sent_twice_is_one_note(app: TestApp) -> None:
    payment = await made(app)
    support = await person(app, Role.SUPPORT)
    key = app.ports.ids.uuid()
    for _ in range(2):
        await add_note(app.ports, support, payment, "Once", key=key)
    assert len(await list_notes(app.ports, support, payment)) == 1


async def test_notes_of_foreign_payments_do_not_exist(app: TestApp) -> None:
    payment = await made(app)
    limited_to = await create_shop(app.ports, app.account.account_id, "Second", "0.05")
    limited = await person(app, Role.SUPPORT, shops=(limited_to.id,))
    app.account = await create_account(app.ports, "Other")
    stranger = await person(app, Role.OWNER)
    for actor in (limited, stranger):
        for call in (
            list_notes(app.ports, actor, payment),
            add_note(app.ports, actor, payment, "Mine"),
            delete_note(app.ports, actor, payment, "note_1"),
            send_link(app.ports, actor, payment, "a@b.example"),
        ):
            with pytest.raises(Refusal) as refused:
                await call
            assert refused.value.code == "PAYMENT_NOT_FOUND"


@table("role", list(Role))
async def test_role_writes_notes_and_sends_links_by_the_table(app: TestApp, role: Role) -> None:
    with_mail(app)
    payment = await made(app)
    actor = await person(app, role)
    calls = {
        PersonRight.NOTES: (list_notes(app.ports, actor, payment), add_note(app.ports, actor, payment, "Text")),
        PersonRight.PAYMENTS: (send_link(app.ports, actor, payment, "payer@mail.example"),),
    }
    for right, tries in calls.items():
        for call in tries:
            if grant(role, right, Mode.TEST) is not None:
                await call
                continue
            with pytest.raises(Refusal) as denied:
                await call
            assert denied.value.code == "PERSON_RIGHT_MISSING"


async def test_notes_go_with_the_test_payment(app: TestApp) -> None:
    payment = await made(app)
    owner = await person(app, Role.OWNER)
    await add_note(app.ports, owner, payment, "Text")
    await forget_test_data(app.ports, owner.caller)
    assert await everything(app.ports, PaymentNotes) == []


async def test_link_is_mailed_and_only_its_mask_is_kept(app: TestApp) -> None:
    mailbox = with_mail(app)
    payment = await made(app)
    support = await person(app, Role.SUPPORT)
    mailbox.letters.clear()
    sent = await send_link(app.ports, support, payment, "Payer@Mail.Example", "en")
    assert sent.to == "p***@mail.example"
    await app.work(1)
    [letter] = [each for each in mailbox.letters if each.to == "payer@mail.example"]
    assert letter.subject == "Payment to Merchant: 100.00 RUB"
    assert f"https://pay.example/p/{payment}" in letter.text
    assert await everything(app.ports, Letter) == []
    [stored] = await everything(app.ports, PaymentNotes)
    entries = [each for each in await everything(app.ports, AuditEntry) if each.action == "payment.send_link"]
    assert [(each.object_id, each.after) for each in entries] == [(payment, "notes=0 links=1")]
    for text in (repr(entries), repr(stored), repr(sent), str(stored.body)):
        assert "payer@" not in text


async def test_links_are_bounded_per_payment_and_hour(app: TestApp) -> None:
    with_mail(app)
    payment, other = await made(app), await made(app)
    support = await person(app, Role.SUPPORT)
    for number in range(LINKS_MOST):
        await send_link(app.ports, support, payment, f"payer{number}@mail.example")
    with pytest.raises(Refusal) as refused:
        await send_link(app.ports, support, payment, "more@mail.example")
    assert (refused.value.code, refused.value.retry_after) == ("LINK_LIMIT", 3600)
    await send_link(app.ports, support, other, "more@mail.example")


async def test_person_sends_a_bounded_number_of_links_over_all_payments(app: TestApp) -> None:
    """Payments cost nothing in test mode, and mails go to addresses that somebody types."""
    with_mail(app)
    support, colleague = await person(app, Role.SUPPORT), await person(app, Role.ADMIN)
    most = BUDGETS["link"].most
    for number in range(most):
        await send_link(app.ports, support, await made(app), f"payer{number}@mail.example")
    payment = await made(app)
    with pytest.raises(Refusal) as refused:
        await send_link(app.ports, support, payment, "more@mail.example")
    assert (refused.value.code, refused.value.retry_after) == ("LINK_LIMIT", 3600)
    await send_link(app.ports, colleague, payment, "more@mail.example")


async def test_link_is_not_sent_once_it_is_of_no_use(app: TestApp) -> None:
    payment = await made(app)
    support = await person(app, Role.SUPPORT)
    with pytest.raises(Refusal) as without_mail:
        await send_link(app.ports, support, payment, "payer@mail.example")
    assert without_mail.value.code == "FEATURE_NOT_ENABLED"
    with_mail(app)
    with pytest.raises(Refusal) as no_address:
        await send_link(app.ports, support, payment, "payer\r\nBcc: all@mail.example")
    assert no_address.value.code == "VALIDATION_ERROR"
    await app.clock.advance(timedelta(minutes=15).total_seconds())
    with pytest.raises(Refusal) as late:
        await send_link(app.ports, support, payment, "payer@mail.example")
    assert late.value.code == "INVALID_STATE"
