"""The panel in which a tester plays the payer: only where the bank is a simulator."""

from typing import Any

import httpx
import msgspec
from litestar import Litestar

from cambist.frontends.http.payer.window import window_router
from cambist.ports.bank import BankCapabilities
from cambist.ports.bank_routes import BankRoutes
from tests.apps import TestApp
from tests.tables import table
from tests.windows import with_face


async def action(app: TestApp, payment: dict[str, Any], headers: dict[str, str] | None = None, **form: str) -> Any:
    return await app.http.post(f"/p/{payment['id']}/simulate", data=form, headers=headers or {})


async def status(app: TestApp, payment: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await app.get(f"/payments/{payment['id']}")).json()
    return found


async def test_pay_in_the_panel_pays_and_leads_back_to_the_page(app: TestApp) -> None:
    payment = await app.created({"amount_rub": "250.00"})
    answer = await action(app, payment, action="pay")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/p/{payment['id']}")
    paid = await status(app, payment)
    assert (paid["status"], paid["actual_amount_rub"]) == ("paid", "250.00")
    assert [event["status"] for event in await app.events(payment["id"])] == ["paid"]


async def test_underpay_sends_half_and_the_payment_goes_under_review(app: TestApp) -> None:
    payment = await app.created({"amount_rub": "250.01"})
    await action(app, payment, action="underpay")
    short = await status(app, payment)
    assert (short["status"], short["actual_amount_rub"]) == ("amount_mismatch", "125.00")


async def test_fail_takes_the_chosen_reason_and_keeps_the_chosen_language(app: TestApp) -> None:
    payment = await app.created()
    form = {"action": "fail", "reason": "insufficient_funds"}
    answer = await app.http.post(f"/p/{payment['id']}/simulate?lang=en", data=form)
    assert answer.headers["Location"] == f"/p/{payment['id']}?lang=en"
    failed = await status(app, payment)
    assert (failed["status"], failed["failure_reason"]) == ("failed", "insufficient_funds")


async def test_an_expired_payment_can_be_paid_late_but_not_fail(app: TestApp) -> None:
    payment = await app.created()
    await app.work(15 * 60)
    html = (await app.http.get(f"/p/{payment['id']}")).text
    assert ('value="pay"' in html, 'value="fail"' in html) == (True, False)
    assert (await action(app, payment, action="fail", reason="unknown")).status_code == 303
    assert (await status(app, payment))["status"] == "expired"
    await action(app, payment, action="pay")
    assert (await status(app, payment))["status"] == "paid"


async def test_an_action_that_comes_too_late_changes_nothing(app: TestApp) -> None:
    """Two clicks, or two tabs."""
    payment = await app.created()
    await action(app, payment, action="pay")
    for form in ({"action": "pay"}, {"action": "underpay"}, {"action": "fail", "reason": "unknown"}):
        assert (await action(app, payment, None, **form)).status_code == 303
    assert (await status(app, payment))["status"] == "paid"
    assert len(await app.events(payment["id"])) == 1


async def test_nothing_is_played_while_the_bank_has_not_answered(app: TestApp) -> None:
    """There is no invoice yet that a payer could pay."""
    payment = await with_face(app, "preparing")
    assert "<form" not in (await app.http.get(f"/p/{payment['id']}")).text
    assert (await action(app, payment, action="pay")).status_code == 303
    assert (await status(app, payment))["status"] == "pending"


async def test_panel_is_marked_as_test_and_live_pages_name_the_simulated_bank(
    app: TestApp,
) -> None:
    """A fresh installation runs live mode on simulators too."""
    for mode, head in (("test", "Test mode"), ("live", "Simulated bank")):
        payment = (await app.create(mode=mode)).json()
        html = (await app.http.get(f"/p/{payment['id']}?lang=en")).text
        assert head in html
        assert 'value="underpay"' in html
    assert (await action(app, payment, action="pay")).status_code == 303


class RealBank:
    """The simulator, saying that it is a real bank."""

    capabilities = BankCapabilities(simulated=False)

    def __init__(self, bank: Any) -> None:
        self._bank = bank

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bank, name)


async def test_with_a_real_bank_there_is_no_panel_and_the_post_is_404(app: TestApp) -> None:
    payment = (await app.create(mode="live")).json()
    banks: dict[str, Any] = {name: RealBank(bank) for name, bank in app.ports.banks.banks.items()}
    real = msgspec.structs.replace(app.ports, banks=BankRoutes(banks=banks, order=app.ports.banks.order))
    transport = httpx.ASGITransport(Litestar([window_router(real)], openapi_config=None, logging_config=None))  # type: ignore[arg-type]  # litestar's and httpx's ASGI types differ in name only
    async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
        page = await client.get(f"/p/{payment['id']}?lang=en")
        answer = await client.post(f"/p/{payment['id']}/simulate", data={"action": "pay"})
        garbage = await client.post(f"/p/{payment['id']}/simulate", data={"action": "dance"})
    assert page.status_code == 200
    assert ("<form" in page.text, "Simulated" in page.text) == (False, False)
    assert (answer.status_code, garbage.status_code) == (404, 404)
    found = (await app.get(f"/payments/{payment['id']}", mode="live")).json()
    assert found["status"] == "pending"


async def test_the_panel_of_an_unknown_or_closed_payment_is_404(app: TestApp) -> None:
    payment = await app.created()
    assert (await app.http.post("/p/pay_x/simulate", data={"action": "pay"})).status_code == 404
    await action(app, payment, action="pay")
    await app.clock.advance(60)
    assert (await action(app, payment, action="pay")).status_code == 404


FORMS: list[tuple[dict[str, str], dict[str, str], int]] = [
    ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, {"action": "fail", "reason": "unknown"}, 303),
    ({"Origin": "https://pay.example"}, {"action": "pay"}, 303),
    ({"Origin": "null"}, {"action": "pay"}, 303),
    ({"Sec-Fetch-Site": "cross-site"}, {"action": "pay"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Origin": "https://pay.example"}, {"action": "pay"}, 403),
    ({"Origin": "https://evil.example"}, {"action": "pay"}, 403),
    ({"Origin": "https://pay.example:8443"}, {"action": "pay"}, 403),
    ({}, {}, 400),
    ({}, {"action": "PAY"}, 400),
    ({}, {"action": "fail", "reason": "because"}, 400),
    ({"Content-Type": "application/json"}, {"action": "pay"}, 400),
]


@table(("headers", "form", "expected"), FORMS)
async def test_the_panel_takes_forms_of_its_own_page_only(
    app: TestApp, headers: dict[str, str], form: dict[str, str], expected: int
) -> None:
    """Forms of other sites are recognised by `Sec-Fetch-Site`, or by `Origin` if that is missing."""
    payment = await app.created()
    answer = await action(app, payment, headers, **form)
    assert answer.status_code == expected
    assert ((await status(app, payment))["status"] == "pending") is (expected != 303)
