"""The page of one subscription: the next charge, and a new binding (docs/dashboard.md "Subscriptions and
exchanges")."""

from uuid import uuid4

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.roles import PersonRight, Role, grant
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.invariants import everything
from tests.subscription_app import bound, choose_calendar, play, record, subscribed
from tests.tables import table


async def test_page_says_when_the_next_charge_is_possible(app: TestApp) -> None:
    made = await bound(app, interval="week")
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(f"/subscriptions/{made['id']}")
    viewer.sees("Next charge", "this period is paid", "08.01.2026 00:00:00", "0 of 4")
    await app.clock.advance(8 * 86400)
    viewer = await in_test_mode(await joined(app, Role.VIEWER, email="other@shop.example"))
    for language, word in (("en", "May be charged now"), ("ru", "Списать можно сейчас")):
        await viewer.open(f"/subscriptions/{made['id']}?lang={language}")
        check(viewer.page, language)
        viewer.sees(word)


async def test_page_counts_failed_attempts(app: TestApp) -> None:
    made = await bound(app, interval="week")
    await app.clock.advance(8 * 86400)
    headers = app.headers(Idempotency_Key=str(uuid4()))
    body = {"amount_rub": "500.00", "external_id": "try-1"}
    answer = await app.http.post(f"/api/v1/subscriptions/{made['id']}/charges", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    await app.simulate(answer.json()["id"], outcome="failed")
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/subscriptions/{made['id']}")
    support.sees("1 of 4", "Further attempts until", "try-1", "failed")


async def test_calendar_subscription_and_an_unconfirmed_one_have_a_window(app: TestApp) -> None:
    waits = await subscribed(app)
    await choose_calendar(app)
    calendar = await bound(app)
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(f"/subscriptions/{waits['id']}")
    viewer.sees("the payer has not confirmed")
    await viewer.open(f"/subscriptions/{calendar['id']}")
    viewer.sees("01.01.2026 03:00:00", "01.02.2026 03:00:00")


@table("role", list(Role))
async def test_role_with_payments_asks_for_a_new_binding(app: TestApp, role: Role) -> None:
    made = (await bound(app))["id"]
    await play(app, made, "mandate_lost")
    person = await in_test_mode(await joined(app, role))
    await person.open(f"/subscriptions/{made}")
    person.sees("consent was lost")
    offered = any(form.action == f"/subscriptions/{made}/rebind" for form in person.page.forms)
    assert "https://pay.example/s/" not in person.text, "the payer could not confirm there yet"
    assert offered is (grant(role, PersonRight.PAYMENTS, Mode.TEST) is not None)
    if not offered:
        return
    await person.send(f"/subscriptions/{made}/rebind")
    person.sees("Created.", f"https://pay.example/s/{made}")
    entries = [each for each in await everything(app.ports, AuditEntry) if each.action == "subscription.rebind"]
    assert (entries[-1].object_id, entries[-1].account_id) == (made, app.account.account_id)
    await play(app, made, "confirm")
    assert not (await record(app, made)).rebind_required


async def test_subscription_that_lost_nothing_cannot_be_bound_anew(app: TestApp) -> None:
    made = (await bound(app))["id"]
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/subscriptions/{made}")
    csrf = support.page.forms[0].values["csrf"][0]
    await support.post(f"/subscriptions/{made}/rebind", {"csrf": csrf, "key": str(uuid4())})
    assert support.answer.status_code == 409
