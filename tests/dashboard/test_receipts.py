"""Receipts in the dashboard: list, one receipt, trying it again (docs/dashboard.md "Receipts")."""

from cambist.core.domain.people.roles import Role
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.dashboard.test_pages import check

ITEM = {"name": "Boots", "price": "404.06", "vat": "22", "subject": "commodity", "method": "full_payment"}
RECEIPT = {"items": [ITEM], "tax_system": "osn", "customer": {"email": "buyer@example.com"}}


async def test_failed_receipt_is_found_and_tried_again(app: TestApp) -> None:
    payment = (await app.created({"amount_rub": "404.06", "receipt": RECEIPT}))["id"]
    await app.simulate(payment, outcome="paid")
    await app.work(1)
    [receipt] = (await app.get(f"/receipts?payment_id={payment}")).json()["data"]
    viewer = await in_test_mode(await joined(app, Role.VIEWER))
    await viewer.open(f"/receipts/{receipt['id']}")
    viewer.sees("failed", "simulated: the cash register rejects it")
    assert not any(form.action.endswith("/retry") for form in viewer.page.forms)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for language in ("en", "ru"):
        for path in ("/receipts", f"/receipts/{receipt['id']}", f"/payments/{payment}"):
            await owner.open(f"{path}?lang={language}")
            check(owner.page, path)
    await owner.open("/receipts?status=failed&lang=en")
    owner.sees(receipt["id"][-12:], "404.06")
    await owner.open(f"/receipts/{receipt['id']}?lang=en")
    await owner.send(f"/receipts/{receipt['id']}/retry")
    owner.sees("It is tried again.", "not written yet")
    await app.work(1)
    await owner.open(f"/receipts/{receipt['id']}?lang=en")
    owner.sees("written", "9999078900000001")
