"""An attacker who can write to the database, but has no vault key, cannot have money settled that the signed journal
does not give to that account (SECURITY.md)."""

import logging
from collections.abc import Mapping
from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.settlement.settlement import Correction, Settlement
from cambist.core.usecases.accounts.accounts import NewAccount, create_account
from cambist.core.usecases.ledger.balance import read_balance
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_settlement
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.settlement_items import CONTRADICTED
from cambist.core.usecases.settlement.settlement import settle_own
from tests.apps import TestApp
from tests.attacks.kit import Attacker
from tests.attacks.test_money_rows import differing
from tests.usecases.settlement.test_settlement import caller, paid, payment

EDITS: Mapping[str, str] = {
    "another amount": "amount = amount * 1000, actual_amount = actual_amount * 1000",
    "more than came": "actual_amount = actual_amount * 1000",
    "another mode": "mode = 'live'",
    "an impossible markup": "markup = '-9'",
    "a markup that is no number": "markup = 'x'",
    "an infinite markup": "markup = 'NaN'",
}


async def as_caller(app: TestApp, account: NewAccount) -> Caller:
    found = await app.ports.storage.get(Account, account.account_id)
    assert found is not None
    return Caller(account=found, mode=Mode.TEST, key_id="a-key")


async def unsettled(app: TestApp) -> list[tuple[str, bool]]:
    """Payments of action items that settlements left, days later, each with whether the journal contradicts it."""
    await app.clock.advance(timedelta(days=2).total_seconds())
    found = [each for each in (await read_action_items(app.ports)).found if each.kind == "unsettled"]
    expected = Level.FAILED if found else Level.OK
    assert (await check_settlement(app.ports)).level is expected
    return [(each.object_id, each.brief == CONTRADICTED and each.urgent) for each in found]


async def called_unsettled(attacker: Attacker, payment_id: str) -> None:
    """Write the row by which a settlement finds the payment, as it is now."""
    await attacker.run(f"DELETE FROM unsettled WHERE id LIKE '%{payment_id}'")
    await attacker.run(
        "INSERT INTO unsettled (id, created_at, paid_at, version) SELECT account_id || ':' || mode || ':' ||"
        f" printf('%017d', created_at) || ':' || id, created_at, paid_at, 0 FROM payments WHERE id = '{payment_id}'"
    )


async def test_payment_moved_to_another_account_is_not_settled(
    attacked: TestApp, attacker: Attacker, caplog: pytest.LogCaptureFixture
) -> None:
    stolen = await paid(attacked, "1000.00")
    await paid(attacked, "200.00")
    thief = await create_account(attacked.ports, "Thief")
    await attacker.run(
        f"UPDATE payments SET account_id = '{thief.account_id}', shop_id = '{thief.default_shop_id}'"
        f" WHERE id = '{stolen}'"
    )
    await called_unsettled(attacker, stolen)
    assert (stolen, "payments.account_id") in await differing(attacked)
    who = await as_caller(attacked, thief)
    with caplog.at_level(logging.ERROR):
        assert (await settle_own(attacked.ports, who)).payments == 0
    assert f"{stolen} is not settled: its receipt is booked for account {attacked.account.account_id}" in caplog.text
    balance = await read_balance(attacked.ports, who)
    assert (balance.available.units, balance.pending.kopecks) == (0, 0)
    assert (await settle_own(attacked.ports, await caller(attacked))).payments == 1, "the others go on"
    assert await unsettled(attacked) == [(stolen, True)]


@pytest.mark.parametrize("case", EDITS)
async def test_altered_payment_alone_is_not_settled(attacked: TestApp, attacker: Attacker, case: str) -> None:
    altered, other = await paid(attacked, "100.00"), await paid(attacked, "200.00")
    await attacker.run(f"UPDATE payments SET {EDITS[case]} WHERE id = '{altered}'")
    for mode in Mode:
        who = await caller(attacked, mode)
        settled = await settle_own(attacked.ports, who)
        assert settled.payments == (1 if mode is Mode.TEST else 0)
    assert (await payment(attacked, other)).status is PaymentStatus.SETTLED
    assert (await payment(attacked, altered)).status is PaymentStatus.PAID
    found = await attacked.ports.storage.get(Payment, altered)
    assert found is not None
    assert found.amount_usdt is None


async def test_payment_that_is_called_paid_is_not_settled(attacked: TestApp, attacker: Attacker) -> None:
    made = (await attacked.created())["id"]
    await attacker.run("UPDATE payments SET status = 'paid', actual_amount = amount, paid_at = created_at")
    await called_unsettled(attacker, made)
    assert (await settle_own(attacked.ports, await caller(attacked))).payments == 0
    assert await unsettled(attacked) == [(made, True)]


async def test_settled_payment_that_is_called_paid_is_not_settled_again(attacked: TestApp, attacker: Attacker) -> None:
    again, other = await paid(attacked, "100.00"), await paid(attacked, "200.00")
    await settle_own(attacked.ports, await caller(attacked))
    third = await paid(attacked, "300.00")
    await attacker.run(f"UPDATE payments SET status = 'paid', settlement_id = NULL WHERE id = '{again}'")
    await called_unsettled(attacker, again)
    statement = await settle_own(attacked.ports, await caller(attacked))
    assert (statement.payments, str(statement.amount)) == (1, "300.00")
    assert (await payment(attacked, third)).status is PaymentStatus.SETTLED
    assert (await payment(attacked, other)).settlement_id != statement.id
    assert await unsettled(attacked) == [(again, True)]


async def test_invented_correction_is_not_settled(attacked: TestApp, attacker: Attacker) -> None:
    settled = await paid(attacked, "100.00")
    await settle_own(attacked.ports, await caller(attacked))
    waiting = await paid(attacked, "500.00")
    of = await payment(attacked, settled)
    await attacker.write(
        Correction(
            id="ref_invented",
            account_id=of.account_id,
            mode=of.mode,
            payment_id=of.id,
            shop_id=of.shop_id,
            amount=Rub(500_00),
            since=attacked.clock.now(),
        )
    )
    statement = await settle_own(attacked.ports, await caller(attacked))
    assert (statement.payments, str(statement.amount)) == (1, "500.00")
    assert (await payment(attacked, waiting)).status is PaymentStatus.SETTLED
    found = await attacked.ports.storage.get(Settlement, statement.id)
    assert found is not None
    assert found.items == 1
