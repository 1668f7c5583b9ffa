"""Payment links and the counter on the dashboard (docs/dashboard.md "Payment links", "Counter")."""

from cambist.core.domain.people.roles import Role
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.people_kit import with_mail


async def test_support_makes_a_link_sees_its_payment_and_archives_it(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/links")
    assert "/links/new" in support.page.links
    await support.open("/links/new")
    await support.send("/links", description="Pottery class", amount_rub="2 500,00", label_0="Your name", email="yes")
    support.sees("Created.", "Pottery class", "active", "₽", "0 / 1", "https://pay.example/l/plink_")
    check(support.page, "link")
    path = support.path
    link_id = path.rpartition("/")[2]
    pressed = await app.http.post(f"/l/{link_id}", data={"field_0": "Anna", "field_1": "anna@mail.example"})
    payment_id = pressed.headers["location"].rpartition("/")[2]
    await app.simulate(payment_id, outcome="paid")
    await support.open(path)
    support.sees("paid in full", "1 / 1", "Your name: Anna; E-mail: anna@mail.example")
    await support.send(f"{path}/archive")
    support.sees("Archived.", "archived")
    await support.open("/links?lang=ru")
    support.sees("Pottery class", "в архиве")
    check(support.page, "ru")


async def test_support_sends_a_link_by_mail(app: TestApp) -> None:
    box = with_mail(app)
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/links/new")
    await support.send("/links", description="Pottery class", amount_rub="2500")
    path = support.path
    await support.send(f"{path}/send", email="nobody")
    assert support.answer.status_code in (400, 422)
    await support.open(path)
    await support.send(f"{path}/send", email="anna@mail.example")
    await app.work(1)
    letter = box.letters[-1]
    assert letter.to == "anna@mail.example"
    for word in ("2500.00", "Pottery class", f"/l/{path.rpartition('/')[2]}"):
        assert word in letter.text
    await support.open(path)
    await support.send(f"{path}/archive")
    assert f"{path}/send" not in [each.action for each in support.page.forms]


async def test_viewer_sees_links_but_not_what_payers_filled_in(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/links/new")
    await support.send("/links", description="Class", amount_rub="100", label_0="Your name")
    path = support.path
    await app.http.post(f"/l/{path.rpartition('/')[2]}", data={"field_0": "Anna"})
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(path)
    viewer.sees("Class")
    assert "Anna" not in viewer.text
    await viewer.open("/links/new")
    assert viewer.answer.status_code == 403


async def test_form_with_a_fault_names_it_and_keeps_what_was_typed(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    for language, text in (("en", "from 30.00 to"), ("ru", "от 30.00 до")):
        await support.open(f"/links/new?lang={language}")
        await support.send("/links", description="Class", amount_rub="10", expires_at="2026-01-03")
        assert support.answer.status_code == 422
        support.sees(text)
        form = next(each for each in support.page.forms if "description" in each.values)
        assert form.values["description"] == ["Class"]
    await support.open("/links/new")
    await support.send("/links", description="Class", expires_at="2025-12-31")
    support.sees("at most 30 days ahead")
    await support.send("/links", description="Class", reusable="yes", payments_max="many")
    support.sees("from 1 to 10000")


async def test_counter_shows_the_qr_code_and_says_when_it_is_paid(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/counter")
    await support.send("/counter", amount_rub="490,50", description="Two coffees")
    support.sees("490.50", "Waiting for the payer")
    assert '<meta http-equiv="refresh" content="3">' in support.answer.text
    assert "<svg" in support.answer.text
    path = support.path
    check(support.page, "counter")
    await app.simulate(path.rpartition("/")[2], outcome="paid")
    await support.open(path)
    support.sees("Paid.")
    assert 'http-equiv="refresh"' not in support.answer.text


async def test_counter_refuses_an_amount_below_the_minimum(app: TestApp) -> None:
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/counter")
    await support.send("/counter", amount_rub="5")
    support.sees("The smallest amount is 30")
