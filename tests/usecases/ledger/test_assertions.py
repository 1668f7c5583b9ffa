"""Production's own storage refuses to commit an impossible state (docs/reliability.md "Assertions")."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.assertions import RULES, Breach
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, LedgerAccount, Posting, journal_entry
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.domain.settlement.settlement import Settlement, SettlementItem
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.assertions import AssertingStorage
from cambist.core.usecases.common.encrypted import event_body_aad
from cambist.core.usecases.ledger.ledger import post
from cambist.core.usecases.payments.tallies import add_payment, remove_payment, save_moved
from cambist.frontends.conformance.storage.kit import START, payment
from cambist.ports.faults import Stale
from cambist.ports.storage import Unit
from tests.domain import assertion_kit
from tests.tables import table

replaced: Any = msgspec.structs.replace
PAID = payment("pay_1", status=PaymentStatus.PAID, actual_amount=Rub(100_00), paid_at=START, sequence=1)
REFUND = Refund(
    id="ref_1",
    account_id="acc_1",
    mode=Mode.TEST,
    payment_id="pay_1",
    shop_id="shop_1",
    status=RefundStatus.PENDING,
    amount=Rub(40_00),
    created_at=START,
)
PAYOUT = replaced(assertion_kit.PAYOUT, mode=Mode.TEST)
STATEMENT = Settlement(
    id="set_1", batch_id="b", account_id="acc_1", mode=Mode.TEST, cutoff=START, rate_market="90", started_at=START
)
LINE = replaced(assertion_kit.LINE, shop_id="shop_1")


def entry(kind: EntryKind, object_id: str, postings: dict[BalanceType, int]) -> JournalEntry:
    return journal_entry(kind, object_id, account_id="acc_1", mode=Mode.TEST, at=START, postings=postings)


VAULT = MemoryVault()
RECEIPT = entry(EntryKind.RECEIPT, "pay_1", {BalanceType.BANK: -5, BalanceType.PENDING: 5})


def event(object_id: str, sequence: int, previous: str = "") -> Event:
    made = assertion_kit.event(object_id, sequence, previous)
    return msgspec.structs.replace(made, mode=Mode.TEST, body=VAULT.encrypt(made.body, event_body_aad(made.id)))


async def _unbalanced(unit: Unit) -> None:
    unit[JournalEntry].add(replaced(RECEIPT, postings=(Posting(BalanceType.BANK, -5), Posting(BalanceType.PENDING, 6))))


async def _rewritten(unit: Unit) -> None:
    post(unit, RECEIPT)
    unit[JournalEntry].change(RECEIPT, account_id="acc_2")


async def _balance_alone(unit: Unit) -> None:
    unit[LedgerAccount].accrue(
        LedgerAccount(id="l", owner="acc_1", mode=Mode.TEST, balance_type=BalanceType.AVAILABLE, balance=1)
    )


async def _entry_alone(unit: Unit) -> None:
    unit[JournalEntry].add(RECEIPT)


async def _more_than_was_reserved(unit: Unit) -> None:
    found = await unit[Withdrawal].get("wd_1")
    assert found is not None
    unit[Withdrawal].save(replaced(found, status=WithdrawalStatus.COMPLETED))
    post(unit, entry(EntryKind.PAYOUT_SENT, "wd_1", {BalanceType.RESERVED: -501, BalanceType.PAID_OUT: 501}))


async def _payout_of_nothing(unit: Unit) -> None:
    post(unit, entry(EntryKind.PAYOUT_SENT, "wd_9", {BalanceType.RESERVED: -1, BalanceType.PAID_OUT: 1}))


async def _more_than_came(unit: Unit) -> None:
    post(unit, entry(EntryKind.REFUND_TAKEN, "ref_9", {BalanceType.PENDING: -101, BalanceType.REFUNDING: 101}))


async def _no_such_move(unit: Unit) -> None:
    found = await unit[Payment].get("pay_1")
    assert found is not None
    save_moved(unit, found, replaced(found, status=PaymentStatus.EXPIRED, sequence=2))
    unit[Event].add(event("pay_1", 2, "paid"))


async def _jump(unit: Unit) -> None:
    [found] = await unit[Payment].find()
    unit[Payment].save(replaced(found, sequence=3))
    unit[Event].add(event("pay_1", 3))


async def _untold(unit: Unit) -> None:
    unit[Payment].change(PAID, sequence=2)


async def _told_twice(unit: Unit) -> None:
    unit[Payment].change(PAID, sequence=2)
    unit[Event].add(event("pay_1", 2))
    unit[Event].add(replaced(event("pay_1", 2), id="evt_other"))


async def _from_elsewhere(unit: Unit) -> None:
    assert await unit[Payment].get("pay_1") == PAID
    save_moved(unit, PAID, replaced(PAID, status=PaymentStatus.SETTLED, sequence=2))
    unit[Event].add(event("pay_1", 2, "pending"))


async def _refunded_beyond(unit: Unit) -> None:
    unit[Payment].change(PAID, refund_taken=Rub(100_01))


async def _refunded_below(unit: Unit) -> None:
    unit[Payment].change(PAID, refund_taken=Rub(-1))


async def _taken_for_no_refund(unit: Unit) -> None:
    unit[Payment].change(PAID, refund_taken=Rub(40_00))


async def _refund_takes_other(unit: Unit) -> None:
    unit[Payment].change(PAID, refund_taken=Rub(39_00))
    unit[Refund].change(REFUND, status=RefundStatus.PROCESSING)


async def _counts_one_too_few(unit: Unit) -> None:
    unit[Tally].accrue(*tallies_of(PAID, -1))


async def _removed_twice(unit: Unit) -> None:
    remove_payment(unit, PAID)
    unit[Tally].accrue(*tallies_of(PAID, -1))


async def _counts_another_status(unit: Unit) -> None:
    unit[Tally].accrue(*tallies_of(PAID, 1))
    unit[Payment].add(payment("pay_2"))


async def _new_and_beyond(unit: Unit) -> None:
    add_payment(unit, payment("pay_2", sequence=1))


async def _settled_again(unit: Unit) -> None:
    unit[Payment].change(replaced(PAID, settlement_id="set_0"), settlement_id="set_1")
    unit[SettlementItem].add(LINE)
    unit[Settlement].increase("set_1", "credit", 7)


async def _another_sum(unit: Unit) -> None:
    unit[SettlementItem].add(LINE)
    unit[Settlement].increase("set_1", "credit", 8)


PLANTED: tuple[tuple[str, Callable[[Unit], Awaitable[None]]], ...] = (
    ("journal_entry", _unbalanced),
    ("journal_entry", _rewritten),
    ("running_balance", _balance_alone),
    ("running_balance", _entry_alone),
    ("payout", _more_than_was_reserved),
    ("payout", _payout_of_nothing),
    ("below_zero", _more_than_came),
    ("status", _no_such_move),
    ("event_sequence", _jump),
    ("event_sequence", _untold),
    ("event_sequence", _told_twice),
    ("previous_status", _from_elsewhere),
    ("refund", _refunded_beyond),
    ("refund", _refunded_below),
    ("refund", _taken_for_no_refund),
    ("refund", _refund_takes_other),
    ("tally", _counts_one_too_few),
    ("tally", _removed_twice),
    ("tally", _counts_another_status),
    ("event_sequence", _new_and_beyond),
    ("statement", _settled_again),
    ("statement", _another_sum),
)


async def seeded() -> tuple[MemoryStorage, AssertingStorage, list[str]]:
    """A payment that came, with a refund and a payout that wait; and the rules that were broken."""
    kept, told = MemoryStorage(VirtualClock()), list[str]()
    async with kept.unit() as unit:
        add_payment(unit, PAID)
        unit[Refund].add(REFUND)
        unit[Withdrawal].add(PAYOUT)
        unit[Settlement].add(STATEMENT)
        post(unit, entry(EntryKind.RECEIPT, "pay_0", {BalanceType.BANK: -100, BalanceType.PENDING: 100}))
        post(unit, entry(EntryKind.PAYOUT_RESERVED, "wd_1", {BalanceType.AVAILABLE: -500, BalanceType.RESERVED: 500}))
        await unit.commit()
    return kept, AssertingStorage(kept, told.append, VAULT), told


@table("rule, plant", PLANTED)
async def test_a_unit_that_breaks_a_rule_is_not_committed(rule: str, plant: Callable[[Unit], Awaitable[None]]) -> None:
    kept, storage, told = await seeded()
    before = {name: dict(rows.rows) for name, rows in kept._tables.items()}
    async with storage.unit() as unit:
        await plant(unit)
        with pytest.raises(Breach) as refused:
            await unit.commit()
    assert (refused.value.rule, told) == (rule, [rule])
    assert {name: dict(rows.rows) for name, rows in kept._tables.items()} == before


def test_every_rule_has_its_corruption() -> None:
    assert {rule for rule, _ in PLANTED} == set(RULES)
    assert all(inspect.getdoc(rule) for rule in RULES.values())


async def test_unit_that_keeps_the_rules_is_committed() -> None:
    _, storage, told = await seeded()
    async with storage.unit() as unit:
        found = await unit[Payment].get("pay_1")
        assert found == PAID
        save_moved(unit, PAID, replaced(PAID, status=PaymentStatus.SETTLED, sequence=2, settlement_id="set_1"))
        unit[Event].add(event("pay_1", 2, "paid"))
        unit[SettlementItem].add(LINE)
        unit[Settlement].increase("set_1", "credit", 7)
        post(unit, RECEIPT)
        await unit.commit()
    async with storage.unit() as unit:
        post(unit, entry(EntryKind.PAYOUT_RELEASED, "wd_1", {BalanceType.RESERVED: -500, BalanceType.AVAILABLE: 500}))
        unit[Withdrawal].change(PAYOUT, status=WithdrawalStatus.CANCELLED, sequence=2)
        unit[Event].add(event("wd_1", 2))
        await unit.commit()
    assert told == []


async def test_ledger_account_over_several_rows_is_judged_by_their_sum() -> None:
    """A refund's row of `pending` is another one than its payment's."""
    _, storage, told = await seeded()
    for number in range(10):
        async with storage.unit() as unit:
            post(
                unit,
                entry(EntryKind.REFUND_TAKEN, f"ref_{number}", {BalanceType.PENDING: -10, BalanceType.REFUNDING: 10}),
            )
            await unit.commit()
    assert told == []
    async with storage.unit() as unit:
        post(unit, entry(EntryKind.REFUND_TAKEN, "ref_10", {BalanceType.PENDING: -1, BalanceType.REFUNDING: 1}))
        with pytest.raises(Breach):
            await unit.commit()


async def test_change_between_two_reads_of_a_unit_is_stale_and_breaks_no_rule() -> None:
    kept, storage, told = await seeded()
    async with storage.unit() as unit:
        found = await unit[Payment].get("pay_1")
        assert found is not None
        async with kept.unit() as other:
            other[Payment].save(replaced(found, sequence=2))
            await other.commit()
        assert [each.sequence for each in await unit[Payment].find()] == [2]
        unit[Payment].save(replaced(found, sequence=2))
        unit[Event].add(event("pay_1", 2))
        with pytest.raises(Stale):
            await unit.commit()
    assert told == []
