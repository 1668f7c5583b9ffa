"""Every edit of a row's owner or amount of money is reported by `cambist ledger verify` (SECURITY.md)."""

from collections.abc import Mapping

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.core.usecases.settlement.withdrawals import pay_out_now
from tests.apps import TestApp
from tests.attacks.kit import Attacker
from tests.attacks.test_money_rows import differing, with_wallet
from tests.usecases.settlement.test_settlement import caller, paid

THIEF = "acc_00000000-0000-7000-8000-000000000000"
EDITS: Mapping[str, tuple[str, str]] = {
    "payment of another account": (f"UPDATE payments SET account_id = '{THIEF}'", "payments.account_id"),
    "payment of another mode": ("UPDATE payments SET mode = 'live'", "payments.mode"),
    "payment in no statement": ("UPDATE payments SET settlement_id = NULL", "payments.settlement_id"),
    "payment in another statement": ("UPDATE payments SET settlement_id = 'stl_x'", "payments.settlement_id"),
    "payment of another amount": ("UPDATE payments SET amount = amount + 1", "payments.amount"),
    "payment that brought more": ("UPDATE payments SET actual_amount = actual_amount + 1", "payments.actual_amount"),
    "payment that failed": ("UPDATE payments SET status = 'failed'", "payments.status"),
    "statement of another account": (f"UPDATE settlements SET account_id = '{THIEF}'", "settlements.account_id"),
    "statement of another mode": ("UPDATE settlements SET mode = 'live'", "settlements.account_id"),
    "statement with more credit": ("UPDATE settlements SET credit = credit + 1", "settlements.credit"),
    "statement with less fee": ("UPDATE settlements SET fee = fee - 1", "settlements.fee"),
    "statement with more RUB": ("UPDATE settlements SET amount = amount + 1", "settlements.amount"),
    "statement with more payments": ("UPDATE settlements SET payments = payments + 1", "settlements.payments"),
    "statement with more lines": ("UPDATE settlements SET items = items + 1", "settlements.items"),
    "statement at another rate": ("UPDATE settlements SET rate_market = '1'", "settlement_items.markup"),
    "statement at an impossible rate": ("UPDATE settlements SET rate_market = 'x'", "settlement_items.markup"),
    "statement that is gone": ("DELETE FROM settlements", "payments.settlement_id"),
    "line with more credit": ("UPDATE settlement_items SET credit = credit + 1", "settlement_items.credit"),
    "line with less fee": ("UPDATE settlement_items SET fee = fee - 1", "settlement_items.fee"),
    "line with more RUB": ("UPDATE settlement_items SET amount = amount + 1", "settlement_items.amount"),
    "line at another markup": ("UPDATE settlement_items SET markup = '0'", "settlement_items.markup"),
    "line that is gone": ("DELETE FROM settlement_items", "payments.settlement_id"),
    "payout of another account": (f"UPDATE withdrawals SET account_id = '{THIEF}'", "withdrawals.account_id"),
    "payout of another mode": ("UPDATE withdrawals SET mode = 'live'", "withdrawals.mode"),
    "payout of more": ("UPDATE withdrawals SET amount = amount + 1", "withdrawals.amount"),
    "payout called completed": ("UPDATE withdrawals SET status = 'completed'", "withdrawals.status"),
    "payout called failed": ("UPDATE withdrawals SET status = 'failed'", "withdrawals.status"),
    "key of another account": (f"UPDATE api_keys SET account_id = '{THIEF}'", "api_keys.account_id"),
}


@pytest.mark.parametrize("case", EDITS)
async def test_edited_row_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    edit, field = EDITS[case]
    await paid(attacked, "500.00")
    await settle_own(attacked.ports, await caller(attacked))
    await with_wallet(attacked)
    await pay_out_now(attacked.ports, attacked.account.account_id, Mode.TEST)
    assert await differing(attacked) == []
    await attacker.run(edit)
    assert field in {named for _, named in await differing(attacked)}


async def test_ledger_account_below_zero_is_named(attacked: TestApp, attacker: Attacker) -> None:
    await paid(attacked, "500.00")
    await settle_own(attacked.ports, await caller(attacked))
    await attacker.run("DELETE FROM journal WHERE kind = 'receipt'")
    await attacker.balance()
    report = await verify_ledger(attacked.ports)
    owner = f"{attacked.account.account_id}:test:pending"
    assert (owner, "ledger_accounts.balance") in [(each.id, each.field) for each in report.bad_values]
