"""An attacker who can write to the database, but has no vault key, cannot redirect money by changing rows beside the
journal. The proof names each altered field (SECURITY.md)."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.chains import FIRST_LINK, Head, told
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import BalanceType, EntryKind, journal_entry
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.common.chains import CHAINS
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.checkpoint import Checkpoint
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.money_items import NOT_TAGGED
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.core.usecases.settlement.withdrawals import cancel_withdrawal, pay_out_now
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker
from tests.invariants import everything
from tests.usecases.ledger.test_ledger import book
from tests.usecases.settlement.test_settlement import caller, paid

AT_FIRST = Checkpoint(
    head=told([Head(chain=chain.name, number=0, link=FIRST_LINK) for chain in CHAINS], None),
    verified_at=datetime(2025, 1, 1, tzinfo=UTC),
    complete_at=datetime(2025, 1, 1, tzinfo=UTC),
    balances={},
    movements={},
)
WALLET, THIEF = tron_address(bytes(range(20))), tron_address(bytes(range(20, 40)))


async def settled(app: TestApp) -> None:
    """USDT are available; nothing is paid out without a wallet."""
    await paid(app, "500.00")
    await settle_own(app.ports, await caller(app))


async def with_wallet(app: TestApp) -> Account:
    """The merchant's account, once an operator set its wallet."""
    return await set_settings(app.ports, app.account.account_id, {"payout_wallet": WALLET})


async def differing(app: TestApp) -> list[tuple[str, str]]:
    """Return the row and field of each bad value; assert that the proof finds nothing else wrong, and that one from the
    checkpoint of an empty ledger finds the same."""
    report = await verify_ledger(app.ports)
    since = await verify_ledger(app.ports, since=AT_FIRST)
    assert (since.bad_values, since.entries, since.holds) == (report.bad_values, report.entries, report.holds)
    assert (report.first_bad_entry, report.bad_balances) == (None, ())
    assert report.holds == (not report.bad_values)
    return [(each.id, each.field) for each in report.bad_values]


async def unsigned(app: TestApp) -> Withdrawal:
    """The one payout, which waits for an operator although hours have passed: nothing of it was signed."""
    await app.work(3 * 3600)
    [payout] = await everything(app.ports, Withdrawal)
    assert (payout.status, payout.tx_hash, payout.blob) == (WithdrawalStatus.PENDING, None, None)
    needs = [need for need in (await read_action_items(app.ports)).found if need.of == "withdrawal"]
    assert [(need.object_id, need.text) for need in needs] == [(payout.id, f"{payout.amount} USDT {NOT_TAGGED}")]
    found: Withdrawal = payout
    return found


@pytest.mark.parametrize("tag", ["left", "taken away", "his own", "another account's"])
async def test_an_altered_wallet_is_paid_nothing(attacked: TestApp, attacker: Attacker, tag: str) -> None:
    await settled(attacked)
    account = await with_wallet(attacked)
    assert await differing(attacked) == []
    other = await create_account(attacked.ports, "Thief")
    theirs = await set_settings(attacked.ports, other.account_id, {"payout_wallet": THIEF})
    tags = {
        "left": account.settings_tag,
        "taken away": None,
        "his own": OWN.tag(b'{"payout_wallet":"' + THIEF.encode() + b'"}', f"accounts.settings:{account.id}"),
        "another account's": theirs.settings_tag,
    }
    forged = msgspec.structs.replace(account.settings, payout_wallet=THIEF)
    await attacker.write(msgspec.structs.replace(account, settings=forged, settings_tag=tags[tag]))
    assert await differing(attacked) == [(account.id, "accounts.settings")]
    with pytest.raises(Refusal, match="payout_wallet"):
        await set_settings(attacked.ports, account.id, {"refunds": "true"})

    await pay_out_now(attacked.ports, account.id, Mode.TEST)
    payout = await unsigned(attacked)
    await cancel_withdrawal(attacked.ports, payout.id, "a forged wallet")
    await with_wallet(attacked)
    await pay_out_now(attacked.ports, account.id, Mode.TEST)
    await attacked.work(3600)
    [_, second] = sorted(await everything(attacked.ports, Withdrawal), key=lambda each: each.created_at)
    assert (second.status, second.wallet) == (WithdrawalStatus.COMPLETED, WALLET)
    assert await differing(attacked) == []


PAYOUTS: dict[str, tuple[str, Sequence[str]]] = {
    "wallet": (f"wallet = '{THIEF}'", ["withdrawals.wallet"]),
    "wallet, and its tag taken away": (f"wallet = '{THIEF}', tag = NULL", ["withdrawals.wallet"]),
    "amount": ("amount = amount * 2", ["withdrawals.amount", "withdrawals.wallet"]),
}


@pytest.mark.parametrize("case", PAYOUTS)
async def test_an_altered_payout_is_not_signed(attacked: TestApp, attacker: Attacker, case: str) -> None:
    change, named = PAYOUTS[case]
    await settled(attacked)
    await with_wallet(attacked)
    payout = await pay_out_now(attacked.ports, attacked.account.account_id, Mode.TEST)
    assert await differing(attacked) == []
    await attacker.run(f"UPDATE withdrawals SET {change}")
    assert await differing(attacked) == [(payout.id, field) for field in named]
    await unsigned(attacked)


PAYMENTS: dict[str, tuple[str, Sequence[str]]] = {
    "what was asked": ("amount = amount * 1000", ["payments.amount"]),
    "what came": ("actual_amount = actual_amount * 1000", ["payments.actual_amount"]),
    "both": ("amount = amount * 1000, actual_amount = actual_amount * 1000", ["payments.actual_amount"]),
    "nothing came": ("status = 'failed', actual_amount = NULL", ["payments.status"]),
}


@pytest.mark.parametrize("case", PAYMENTS)
async def test_an_altered_payment_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    change, named = PAYMENTS[case]
    altered = await paid(attacked, "100.00")
    await paid(attacked, "200.00")
    assert await differing(attacked) == []
    await attacker.run(f"UPDATE payments SET {change} WHERE id = '{altered}'")
    assert await differing(attacked) == [(altered, field) for field in named]


MOVEMENTS: dict[str, tuple[str, str, Sequence[str]]] = {
    "what it brought": ("2", "pending = pending + 1", ["pending"]),
    "what the balance was": ("2", "pending_after = pending_after + 1", ["pending_after", "pending_after"]),
    "how many there were": ("2", "counts = '{}'", ["counts", "counts"]),
    "when": ("2", "at = at - 1", ["at"]),
    "by what": ("2", "object_id = (SELECT object_id FROM movements WHERE number = 1)", ["number"]),
    "its number": ("2", "number = 7", ["number", "id"]),
}
"""Changes to one of three receipts: its number, the SQL, and the fields that the proof names."""


@pytest.mark.parametrize("case", MOVEMENTS)
async def test_an_altered_movement_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    number, change, fields = MOVEMENTS[case]
    owner = f"{attacked.account.account_id}:test"
    for amount in ("100.00", "200.00", "300.00"):
        await paid(attacked, amount)
        await attacked.clock.advance(1)
    assert await differing(attacked) == [], "nothing is listed yet"
    await list_all(attacked.ports)
    assert await differing(attacked) == []
    await attacker.run(f"UPDATE movements SET {change} WHERE number = {number}")
    named = [field for _, field in await differing(attacked)]
    assert named == [f"movements.{field}" for field in fields]
    await attacker.run("DELETE FROM movements WHERE number = 3")
    assert (owner, "movements") in await differing(attacked)


async def test_the_movement_of_a_checkpoint_is_compared_with_it(attacked: TestApp, attacker: Attacker) -> None:
    for amount in ("100.00", "200.00"):
        await paid(attacked, amount)
    await list_all(attacked.ports)
    since = (await verify_ledger(attacked.ports)).checkpoint
    await paid(attacked, "300.00")
    await list_all(attacked.ports)
    assert (await verify_ledger(attacked.ports, since=since)).holds
    await attacker.run("UPDATE movements SET pending_after = pending_after + 1 WHERE number = 2")
    bad = (await verify_ledger(attacked.ports, since=since)).bad_values
    assert bad[0].field == "movements.available_after"


async def test_the_proof_ends_for_entries_that_nobody_books(attacked: TestApp, attacker: Attacker) -> None:
    """The entry's object or kind moves no balance: the proof names the entry, and does not fail."""
    for change in ("object_id = 'x'", "kind = 'review'"):
        await paid(attacked, "100.00")
        await attacker.run(f"UPDATE journal SET {change} WHERE place IS NULL")
        report = await verify_ledger(attacked.ports)
        assert report.first_bad_entry is not None
        assert (f"{attacked.account.account_id}:test", "movements") in [
            (each.id, each.field) for each in report.bad_values
        ]


async def test_a_payment_that_is_called_paid_is_named(attacked: TestApp, attacker: Attacker) -> None:
    """Money that nobody brought would be settled and paid out."""
    payment = await attacked.created()
    await attacker.run("UPDATE payments SET status = 'paid', actual_amount = amount")
    assert await differing(attacked) == [(payment["id"], "payments.actual_amount")]


async def test_a_live_payment_that_is_gone_is_named(attacked: TestApp) -> None:
    money = {BalanceType.BANK: -5, BalanceType.PENDING: 5}
    for number in (1, 2):
        lost = f"pay_{number}"
        await book(
            attacked,
            journal_entry(
                EntryKind.RECEIPT,
                lost,
                account_id=attacked.account.account_id,
                mode=Mode.LIVE,
                at=attacked.clock.now(),
                postings=money,
            ),
        )
        assert (lost, "payments.id") in await differing(attacked)
        await paid(attacked)
