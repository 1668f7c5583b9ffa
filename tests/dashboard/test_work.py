"""What each role does on its first day (docs/dashboard.md)."""

import re

from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.people.invitations import invite
from tests.apps import WEBHOOK_URL, TestApp
from tests.dashboard.browser import BASE, Browser, in_test_mode, joined
from tests.invariants import everything
from tests.people_kit import PASSWORD

WALLET = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"


async def paid(app: TestApp, **order: str) -> str:
    payment: str = (await app.created({"amount_rub": "500.00", **order}))["id"]
    await app.simulate(payment, outcome="paid")
    await app.work(2)
    return payment


async def test_support_finds_an_order_and_refunds_a_part(app: TestApp) -> None:
    payment = await paid(app, external_id="order-77", client_phone="+79001234567")
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/payments?q=order-77")
    support.sees("order-77", "500.00")
    await support.open(f"/payments/{payment}")
    support.sees("***4567")
    assert "+79001234567" not in support.text
    await support.send("/refunds", amount_rub="120,50", reason="Broken")
    support.sees("Created.", "120.50", "Broken")
    await app.work(60)
    await support.open(f"/payments/{payment}")
    support.sees("completed")


async def test_refund_by_a_double_click_is_one_refund(app: TestApp) -> None:
    payment = await paid(app)
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    form = next(each for each in support.page.forms if "amount_rub" in each.values)
    values = {**form.values, "amount_rub": "100"}
    await support.post(form.action, values)
    first = support.path
    await support.post(form.action, values)
    assert support.path == first


async def test_looking_at_payer_data_is_audited(app: TestApp) -> None:
    payment = await paid(app, client_phone="+79001234567")
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    await support.send(f"/payments/{payment}/payer")
    support.sees("+79001234567")
    actions = [(each.action, each.object_id) for each in await everything(app.ports, AuditEntry)]
    assert ("payment.reveal", payment) in actions


async def test_another_person_approves_a_refund(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"refund_approval": "manual"})
    payment = await paid(app)
    finance = await in_test_mode(await joined(app, Role.FINANCE))
    await finance.open(f"/payments/{payment}")
    await finance.send("/refunds", amount_rub="100")
    refund = finance.path
    finance.sees("waits for approval", "another person must approve")
    await finance.post(f"{refund}/approve", {"csrf": finance.page.forms[0].values["csrf"][0]})
    assert finance.answer.status_code == 409
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/home")
    owner.sees("Refunds to approve: 1")
    await owner.open(refund)
    await owner.send(f"{refund}/approve")
    owner.sees("Approved.")
    await app.work(60)
    await owner.open(refund)
    owner.sees("completed")


async def test_rejected_refund_names_its_reason(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"refund_approval": "manual"})
    payment = await paid(app)
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments/{payment}")
    await support.send("/refunds")
    refund = support.path
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open(refund)
    await owner.send(f"{refund}/reject", reason="No receipt")
    owner.sees("Rejected.", "No receipt")


async def test_developer_makes_a_key_that_works(app: TestApp) -> None:
    developer = await in_test_mode(await joined(app, Role.DEVELOPER))
    await developer.open("/developers/keys")
    await developer.send("/developers/keys", name="shop", rights=["read", "payments"])
    key, secret = re.findall(r"svc_test_[0-9a-f]+|\b[0-9a-f]{64}\b", developer.answer.text)[:2]
    answer = await app.http.get("/api/v1/account", headers={"X-Api-Key": key, "X-Api-Secret": secret})
    assert answer.json()["key"]["rights"] == ["read", "payments"]
    await developer.open("/developers/keys")
    assert secret not in developer.answer.text
    await developer.send("/developers/keys/end", key=key)
    developer.sees("Ended.")
    answer = await app.http.get("/api/v1/account", headers={"X-Api-Key": key, "X-Api-Secret": secret})
    assert answer.status_code == 401


async def test_developers_live_key_moves_no_money(app: TestApp) -> None:
    developer = await joined(app, Role.DEVELOPER)
    await developer.open("/developers/keys")
    assert 'value="refunds"' not in developer.answer.text
    await developer.send("/developers/keys", name="shop", rights=["read", "refunds"])
    assert developer.answer.status_code == 403
    own = re.search(r'name="key" value="(svc_live_[^"]+)"', developer.answer.text)
    assert own is None, "the mode's own key has all rights"
    await developer.open("/developers/keys")
    await developer.post(
        "/developers/keys/rotate",
        {"csrf": developer.page.forms[0].values["csrf"][0], "key": app.account.live.api_key},
    )
    assert developer.answer.status_code == 403


async def test_developer_sets_the_webhook_address_and_sends_an_event_again(app: TestApp) -> None:
    payment = await paid(app)
    developer = await in_test_mode(await joined(app, Role.DEVELOPER))
    await developer.open("/developers/webhooks")
    developer.sees(WEBHOOK_URL)
    await developer.send("/developers/webhooks/own", url="https://user:word@new.example/hooks", types=[])
    developer.sees("Saved.", "https://new.example/hooks", "Authorization")
    await developer.send("/developers/webhooks/test")
    developer.sees("HTTP 200")
    await developer.open(f"/developers/events?q={payment}")
    link = next(each for each in developer.page.links if each.startswith("/developers/events/evt_"))
    await developer.open(link)
    developer.sees(payment, '"event": "payment.status_changed"')
    before = len(app.postman.webhooks)
    await developer.send(f"{link}/resend")
    developer.sees("Sent again.")
    await app.work(2)
    assert [each.url for each in app.postman.webhooks[before:]] == ["https://new.example/hooks"]


async def test_further_endpoint_is_made_changed_and_deleted(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/developers/webhooks")
    await owner.send("/developers/webhooks", url="https://books.example/hooks", description="Books", types=[])
    owner.sees("Copy the secret now")
    await owner.open("/developers/webhooks")
    link = next(each for each in owner.page.links if "/we_" in each)
    await owner.open(link)
    await owner.send(f"{link}/headers", headers="X-Tenant: 7\nAuthorization: Bearer 7f3a")
    owner.sees("Saved.", "X-Tenant, Authorization")
    await owner.send(f"{link}/delete")
    owner.sees("Removed.")


async def test_owner_makes_a_shop_and_disables_it(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/shops")
    await owner.send("/shops", name="Цветы")
    owner.sees("Created.", "Цветы")
    shop = owner.path
    await owner.send(shop, name="Розы", return_url="https://shop.example/thanks")
    owner.sees("Saved.", "Розы")
    await owner.send(f"{shop}/disable")
    owner.sees("Switch on")
    await owner.open("/shops")
    owner.sees("Розы", "switched off", "not set yet")


async def test_only_the_owner_sets_the_wallet(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/settings")
    await owner.send("/settings/wallet", payout_wallet="no wallet")
    assert owner.answer.status_code == 400
    await owner.open("/settings")
    await owner.send("/settings/wallet", payout_wallet=WALLET)
    owner.sees("Saved.")
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    await admin.open("/settings")
    assert not any(form.action == "/settings/wallet" for form in admin.page.forms)


async def test_owner_invites_changes_and_removes_a_person(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/people")
    await owner.send("/people/invite", email="ivan@shop.example", role="support")
    link = re.search(r"https://pay\.example(/invite\?token=[0-9a-f]+)", owner.answer.text)
    assert link is not None
    ivan = Browser(app)
    await ivan.open(link[1])
    await ivan.send("/invite", password=PASSWORD)
    assert ivan.path == "/home"
    await owner.open("/people")
    owner.sees("ivan@shop.example")
    path = next(each for each in owner.page.links if "/people/usr_" in each and "ivan" in owner.text)
    members = [each for each in owner.page.links if "/people/usr_" in each]
    for each in members:
        await owner.open(each)
        if "ivan@shop.example" in owner.page.headings:
            path = each
            break
    await owner.send(path, role="viewer")
    owner.sees("Saved.")
    assert (await ivan.open("/home")).path == "/login", "a changed role ends the sessions"
    await owner.open(path)
    await owner.send(f"{path}/remove")
    owner.sees("Removed.")
    assert "ivan@shop.example" not in owner.text


async def test_audit_log_names_the_person(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/shops")
    await owner.send("/shops", name="Audited")
    await owner.open("/audit")
    owner.sees("owner@shop.example", "name: Audited")


async def test_operators_actions_name_no_operator_to_the_merchant(app: TestApp) -> None:
    ports = acting(app.ports, OperatorAction(operator="olga-the-operator", name="account.set"))
    await set_settings(ports, app.account.account_id, {"acceptance": "false"})
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/audit")
    owner.sees("operator of the service")
    assert "olga-the-operator" not in owner.text


async def test_test_clock_moves_and_settles(app: TestApp) -> None:
    await paid(app)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/developers/sandbox")
    await owner.send("/developers/sandbox/clock", hours="48")
    owner.sees("The clock was moved.")
    await owner.open("/payouts")
    owner.sees("500.00")
    link = next(each for each in owner.page.links if "/settlements/" in each)
    await owner.open(link)
    owner.sees("Market rate", "payment")
    await owner.open("/balance")
    owner.sees("Available")


async def test_payer_is_simulated_on_the_page_of_a_payment(app: TestApp) -> None:
    payment = (await app.created())["id"]
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open(f"/payments/{payment}")
    await owner.send(f"/payments/{payment}/simulate", outcome="paid")
    owner.sees("Saved.", "paid")


async def test_person_of_two_accounts_switches_between_them(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    other = await create_account(app.ports, "Second company")
    made = await invite(app.ports, other.account_id, "owner@shop.example", Role.VIEWER, language="en")
    await owner.open(made.link.removeprefix(BASE))
    await owner.send("/invite", password=PASSWORD)
    await owner.open("/accounts")
    owner.sees("Second company", "Merchant")
    await owner.send("/switch", account=other.account_id)
    owner.sees("Second company")


async def test_person_ends_one_of_the_other_sessions(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    other = Browser(app)
    await other.open("/login")
    await other.send("/login", email="owner@shop.example", password=PASSWORD)
    assert other.path == "/home"
    await owner.open("/profile")
    await owner.send("/profile/session")
    assert (await other.open("/home")).path == "/login"
    assert (await owner.open("/home")).path == "/home"


async def test_refused_form_keeps_what_was_typed(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/people")
    await owner.send("/people/invite", email="no address", role="support")
    assert owner.answer.status_code == 400
    assert ("div", {"class": "note note--bad", "role": "alert"}) in owner.page.tags
    form = next(each for each in owner.page.forms if each.action == "/people/invite")
    assert (form.values["email"], form.values["role"]) == (["no address"], ["support"])
    await owner.send("/people/invite", email="new@shop.example")
    owner.sees("Pass this link on")


async def test_refused_form_does_not_repeat_a_password(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/profile")
    await owner.send("/profile/password", present=PASSWORD, new="short")
    assert owner.answer.status_code == 400
    assert PASSWORD not in owner.answer.text
    assert "short" not in [given.get("value") for _, given in owner.page.tags]


async def test_refused_form_of_one_object_is_shown_again(app: TestApp) -> None:
    payment = await paid(app)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/shops")
    await owner.send("/shops", name="Flowers")
    shop = owner.path
    await owner.send(shop, name="", return_url="https://shop.example/thanks")
    assert (owner.answer.status_code, owner.page.headings) == (400, ["Flowers"])
    form = next(each for each in owner.page.forms if each.action == shop)
    assert (form.values["name"], form.values["return_url"]) == ([""], ["https://shop.example/thanks"])
    await owner.send(shop, name="Roses")
    owner.sees("Saved.", "Roses")
    assert "https://shop.example/thanks" in owner.answer.text
    await owner.open(f"/payments/{payment}")
    await owner.send("/refunds", amount_rub="9000000", reason="Broken")
    assert owner.answer.status_code == 400
    form = next(each for each in owner.page.forms if each.action == "/refunds")
    assert (form.values["amount_rub"], form.values["reason"]) == (["9000000"], ["Broken"])
    await owner.send("/refunds", amount_rub="100")
    owner.sees("Created.", "Broken")


async def test_refused_password_of_an_invitation_is_asked_for_again(app: TestApp) -> None:
    made = await invite(app.ports, app.account.account_id, "ivan@shop.example", Role.VIEWER, language="en")
    ivan = Browser(app)
    await ivan.open(made.link.removeprefix(BASE))
    await ivan.send("/invite", password="short")
    assert ivan.answer.status_code == 400
    ivan.sees("12 to 128 characters", "ivan@shop.example")
    russian = next(link for link in ivan.page.links if "lang=ru" in link)
    await ivan.open(russian)
    ivan.sees("Придумайте пароль")
    await ivan.send("/invite", password=PASSWORD)
    assert ivan.path == "/home"


async def test_language_link_of_a_refused_form_opens_its_page(app: TestApp) -> None:
    payment = await paid(app)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open(f"/payments/{payment}")
    await owner.send("/refunds", amount_rub="9000000")
    await owner.open(next(link for link in owner.page.links if "lang=ru" in link))
    assert (owner.answer.status_code, owner.path) == (200, f"/payments/{payment}")
    await owner.open("/people")
    for path, values in (("/people/invite", {"email": "no address"}), ("/people/revoke", {"invitation": "inv_1"})):
        csrf = owner.page.forms[0].values["csrf"][0]
        await owner.post(path, {"csrf": csrf, **values})
        assert owner.answer.status_code >= 400
        await owner.open(next(link for link in owner.page.links if "lang=en" in link))
        assert (owner.answer.status_code, owner.path) == (200, "/people")
    stranger = Browser(app)
    await stranger.open("/payments?status=paid")
    await stranger.send("/login", email="owner@shop.example", password="a wrong sentence")
    await stranger.open(next(link for link in stranger.page.links if "lang=ru" in link))
    assert stranger.answer.status_code == 200
    assert stranger.page.forms[0].values["next"] == ["/payments?status=paid"]
