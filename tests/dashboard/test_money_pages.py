"""The statement of a day and the page of a payout (docs/dashboard.md "Balance and payouts")."""

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.people.roles import Role
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.usecases.people.sessions import start_session
from tests.apps import TestApp
from tests.dashboard.browser import Browser, in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.invariants import everything
from tests.payout_kit import open_payouts
from tests.people_kit import joined as member
from tests.tables import table


async def test_statement_has_opening_movements_and_closing(app: TestApp) -> None:
    for _ in range(2):
        payment = (await app.created({"amount_rub": "500.00"}))["id"]
        await app.simulate(payment, outcome="paid")
    await app.work(5)
    finance = await in_test_mode(await joined(app, Role.FINANCE))
    await finance.open("/balance")
    assert "/balance/day" in finance.page.links
    for language, words in (
        ("en", ("Statement of 01.01.2026", "Balance at the beginning", "payment received", "2", "1,000.00")),
        ("ru", ("Выписка за 01.01.2026", "Баланс на начало", "оплата", "2", "1\u202f000,00", "Баланс сейчас")),
    ):
        await finance.open(f"/balance/day?lang={language}")
        finance.sees(*(" ".join(word.split()) for word in words))
        check(finance.page, language)
    await finance.open("/balance/day?day=2025-12-31&lang=en")
    finance.sees("Statement of 31.12.2025", "Balance at the end")
    assert "payment received" not in finance.text
    assert "/balance/day?day=2026-01-01&lang=en" in finance.page.links


@table("day", ["2026-02-30", "0001-01-01", "9999-12-31", "x", "2026-01-01'--", ""])
async def test_day_that_is_none_shows_today_or_the_first(app: TestApp, day: str) -> None:
    finance = await in_test_mode(await joined(app, Role.FINANCE, email=f"f{abs(hash(day))}@shop.example"))
    await finance.open(f"/balance/day?day={day}")
    finance.sees("Statement of 01.01.2000" if day == "0001-01-01" else "Statement of 01.01.2026")


@table(("mode", "leads"), [(Mode.LIVE, True), (Mode.TEST, False)])
async def test_live_payout_leads_to_its_transaction(mode: Mode, leads: bool) -> None:
    async with open_payouts(mode=mode) as payouts:
        app = payouts.app
        await payouts.credit()
        await payouts.pay_out()
        await app.work(600)
        [payout] = await everything(app.ports, Withdrawal)
        user = await member(app.ports, app.account.account_id, Role.FINANCE)
        session = await start_session(app.ports, user.id, method="passkey", mode=mode)
        finance = Browser(app)
        finance.http.headers["Cookie"] = f"__Host-cambist={session.token}"
        await finance.open(f"/payouts/{payout.id}?lang=en")
        finance.sees(payout.tx_hash or "-", "payout prepared", "payout sent", "TRC20")
        outside = [each for each in finance.page.links if each.startswith("https://")]
        assert outside == ([f"https://tronscan.org/#/transaction/{payout.tx_hash}"] if leads else [])
        check(finance.page, payout.id)
