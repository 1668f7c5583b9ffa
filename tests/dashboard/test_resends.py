"""The page that resends a span of webhooks (docs/dashboard.md "For developers")."""

from cambist.core.domain.people.roles import Role
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_pages import check

PATH = "/developers/resends"


async def test_developer_resends_a_span_and_sees_its_progress(app: TestApp) -> None:
    for _ in range(3):
        payment = (await app.created())["id"]
        await app.simulate(payment, outcome="paid")
    await app.work(2)
    app.postman.webhooks.clear()
    developer = await in_test_mode(await joined(app, Role.DEVELOPER))
    await developer.open("/developers/events")
    assert PATH in developer.page.links
    await developer.open(PATH)
    given = {"from": "2026-01-01T03:00", "to": "2026-01-01T04:00", "type": "payment.status_changed"}
    await developer.send(PATH, **given)
    developer.sees("Created.", "running", "0 of 3", "developer@shop.example", "01.01.2026 03:00")
    check(developer.page, PATH)
    await developer.send(PATH, **given)
    assert developer.answer.status_code == 409
    developer.sees("Another resend is running")
    await app.work(2)
    for language, words in (("en", ("done", "3 of 3")), ("ru", ("закончена", "3 из 3"))):
        await developer.open(f"{PATH}?lang={language}")
        developer.sees(*words)
        check(developer.page, language)
    assert len(app.postman.webhooks) == 3


async def test_running_resend_is_stopped(app: TestApp) -> None:
    payment = (await app.created())["id"]
    await app.simulate(payment, outcome="paid")
    await app.work(2)
    developer = await in_test_mode(await joined(app, Role.DEVELOPER))
    await developer.open(PATH)
    await developer.send(PATH, **{"from": "2026-01-01T03:00", "to": "2026-01-01T04:00"})
    await developer.send(f"{PATH}/stop")
    developer.sees("Ended.", "stopped", "0 of 1")


async def test_span_that_is_none_keeps_the_form(app: TestApp) -> None:
    developer = await in_test_mode(await joined(app, Role.DEVELOPER))
    await developer.open(f"{PATH}?lang=ru")
    await developer.send(PATH, **{"from": "2026-01-01T04:00", "to": "2026-01-01T03:00"})
    assert developer.answer.status_code == 400
    form = next(each for each in developer.page.forms if "from" in each.values)
    assert form.values["from"] == ["2026-01-01T04:00"]
