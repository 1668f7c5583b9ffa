"""The page of one payment: its timeline, notes, and the link by mail (docs/dashboard.md "Payments")."""

from cambist.core.domain.people.roles import Role
from tests.apps import TestApp
from tests.dashboard.browser import Html, in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.people_kit import with_mail


def steps(page: Html) -> int:
    return sum(given.get("class", "").startswith("step step--") for _, given in page.tags)


async def test_timeline_says_what_happened(app: TestApp) -> None:
    payment = (await app.created({"amount_rub": "500.00"}))["id"]
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    support.sees("What happened", "Created")
    assert steps(support.page) == 1
    await app.simulate(payment, outcome="paid")
    await app.work(2)
    await support.open(f"/payments/{payment}")
    await support.send("/refunds", amount_rub="120")
    await app.work(60)
    for language in ("en", "ru"):
        await support.open(f"/payments/{payment}?lang={language}")
        check(support.page, payment)
    await support.open(f"/payments/{payment}?lang=en")
    support.sees("Paid", "500.00", "Your program was informed", "Refund applied for", "by support@shop.example")
    support.sees("Money returned to the payer", "120.00")


async def test_timeline_names_a_failure_and_an_expiry(app: TestApp) -> None:
    failed, late = (await app.created())["id"], (await app.created())["id"]
    await app.simulate(failed, outcome="failed")
    await app.work(3600)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(f"/payments/{failed}")
    viewer.sees("Failed")
    await viewer.open(f"/payments/{late}")
    viewer.sees("Expired: nobody paid in time")


async def test_colleagues_write_and_delete_notes(app: TestApp) -> None:
    payment = (await app.created())["id"]
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    await support.send(f"/payments/{payment}/note", text="Will pay <b>tomorrow</b>")
    support.sees("Saved.", "Will pay <b>tomorrow</b>", "support@shop.example")
    finance = await in_test_mode(await joined(app, Role.FINANCE))
    await finance.open(f"/payments/{payment}")
    finance.sees("Will pay <b>tomorrow</b>")
    assert not any(form.action.endswith("/note/delete") for form in finance.page.forms)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(f"/payments/{payment}")
    assert "tomorrow" not in viewer.text
    await support.send(f"/payments/{payment}/note/delete")
    support.sees("Removed.", "No notes yet.")


async def test_refused_note_keeps_its_text(app: TestApp) -> None:
    payment = (await app.created())["id"]
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    text = "long " * 300
    await support.send(f"/payments/{payment}/note", text=text)
    assert support.answer.status_code == 400
    form = next(each for each in support.page.forms if each.action == f"/payments/{payment}/note")
    assert form.values["text"] == [text]


async def test_audit_log_shows_notes_without_their_text(app: TestApp) -> None:
    payment = (await app.created())["id"]
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open(f"/payments/{payment}")
    await owner.send(f"/payments/{payment}/note", text="Do not repeat me")
    await owner.open("/audit")
    owner.sees("note written", payment)
    assert "Do not repeat me" not in owner.text


async def test_link_goes_by_mail_and_into_the_timeline(app: TestApp) -> None:
    payment = (await app.created())["id"]
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    assert not any(form.action.endswith("/link") for form in support.page.forms)
    mailbox = with_mail(app)
    await support.open(f"/payments/{payment}")
    await support.send(f"/payments/{payment}/link", email="payer@mail.example")
    support.sees("Sent.", "Link sent to p***@mail.example")
    await app.work(1)
    assert [each.to for each in mailbox.letters] == ["payer@mail.example"]
