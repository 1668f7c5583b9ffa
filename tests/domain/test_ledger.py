"""Double entry: postings sum to zero per currency, entries are unique per kind, object and revision, and the chain is
made over all that an entry says (ARCHITECTURE.md "Money")."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import FIRST_LINK
from cambist.core.domain.ledger import (
    LEDGER,
    MERCHANT_BALANCE_TYPES,
    BalanceType,
    Currency,
    EntryKind,
    JournalEntry,
    Posting,
    Unbalanced,
    balance_ids,
    balances_moved,
    currency_of,
    entry_id,
    imbalance,
    journal_entry,
    ledger_account_id,
    owner_of,
)
from tests.tables import table

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)


def entry(postings: dict[BalanceType, int], *, object_id: str = "pay_1", mode: Mode = Mode.TEST) -> JournalEntry:
    return journal_entry(EntryKind.RECEIPT, object_id, account_id="acc_1", mode=mode, at=AT, postings=postings)


def test_each_balance_type_has_one_currency() -> None:
    rub = {balance_type.value for balance_type in BalanceType if currency_of(balance_type) is Currency.RUB}
    payments = {"pending", "review", "suspense", "bank", "refunding", "converted_rub"}
    assert rub == payments | {"exchanging_rub", "remitting", "stock_rub", "losses_rub"}


def test_each_balance_type_is_the_merchants_or_the_services() -> None:
    merchants = {balance_type.value for balance_type in BalanceType if owner_of(balance_type, "acc_1") == "acc_1"}
    payments = {"pending", "review", "suspense", "available", "reserved", "paid_out", "refunded_usdt"}
    assert merchants == payments | {"exchanging_rub", "exchanging_usdt", "suspense_usdt"}


def test_an_entry_is_unique_by_kind_object_and_revision() -> None:
    made = entry({BalanceType.BANK: -5, BalanceType.PENDING: 5})
    assert made.id == entry_id(EntryKind.RECEIPT, "pay_1") == "receipt:pay_1:1"
    assert ledger_account_id("acc_1", Mode.LIVE, BalanceType.AVAILABLE) == "acc_1:live:available:0"


@table(
    ("postings", "place"),
    [
        ({BalanceType.BANK: -5, BalanceType.PENDING: 5}, None),
        ({BalanceType.RESERVED: -5, BalanceType.PAID_OUT: 5}, None),
        (
            {
                BalanceType.PENDING: -5,
                BalanceType.CONVERTED_RUB: 5,
                BalanceType.CONVERTED_USDT: -1,
                BalanceType.AVAILABLE: 1,
            },
            None,
        ),
        ({BalanceType.BANK: -5, BalanceType.SUSPENSE: 5}, 0),
        ({BalanceType.BANK: -5, BalanceType.SUSPENSE: 5, BalanceType.PENDING: 0}, 0),
    ],
)
def test_an_entry_that_moves_no_balance_has_no_place_among_movements(
    postings: dict[BalanceType, int], place: int | None
) -> None:
    assert entry(postings).place == place


@table(
    ("postings", "fault"),
    [
        ({BalanceType.BANK: -5, BalanceType.PENDING: 4}, "-1 RUB too much"),
        ({BalanceType.PENDING: 5}, "5 RUB too much"),
        ({BalanceType.AVAILABLE: 7, BalanceType.RESERVED: -6}, "1 USDT too much"),
        ({BalanceType.PENDING: -5, BalanceType.AVAILABLE: 5}, "-5 RUB too much, 5 USDT too much"),
        ({}, "nothing is posted"),
        ({BalanceType.BANK: 0, BalanceType.PENDING: 0}, "nothing is posted"),
    ],
)
def test_entry_must_sum_to_zero_per_currency(postings: dict[BalanceType, int], fault: str) -> None:
    with pytest.raises(Unbalanced, match=fault):
        entry(postings)
    assert (
        imbalance(tuple(Posting(balance_type, amount) for balance_type, amount in postings.items() if amount)) == fault
    )


@given(st.dictionaries(st.sampled_from(list(BalanceType)), st.integers(-(10**15), 10**15), min_size=1))
def test_an_entry_moves_balances_by_exactly_its_postings(amounts: dict[BalanceType, int]) -> None:
    rub = sum(amount for balance_type, amount in amounts.items() if currency_of(balance_type) is Currency.RUB)
    usdt = sum(amount for balance_type, amount in amounts.items() if currency_of(balance_type) is Currency.USDT)
    balanced = dict(amounts)
    balanced[BalanceType.BANK] = balanced.get(BalanceType.BANK, 0) - rub
    balanced[BalanceType.FEES] = balanced.get(BalanceType.FEES, 0) - usdt
    if not any(balanced.values()):
        return
    made = entry(balanced)
    rows = balances_moved(made)
    assert {row.balance_type: row.balance for row in rows} == {
        balance_type: amount for balance_type, amount in balanced.items() if amount
    }
    assert sum(row.balance for row in rows) == 0
    for row in rows:
        assert (
            row.owner
            == ("acc_1" if row.balance_type in MERCHANT_BALANCE_TYPES else "service")
            == owner_of(row.balance_type, "acc_1")
        )
        assert row.id.startswith(f"{row.owner}:test:{row.balance_type}:")


@table(
    ("balance_type", "rows"),
    [
        (balance_type, {BalanceType.PENDING: 4, BalanceType.BANK: 16}.get(balance_type, 1))
        for balance_type in BalanceType
    ],
)
def test_a_balance_that_every_payment_moves_is_spread_over_rows(balance_type: BalanceType, rows: int) -> None:
    other = next(
        each for each in BalanceType if each is not balance_type and currency_of(each) is currency_of(balance_type)
    )
    moved = (entry({balance_type: 1, other: -1}, object_id=f"pay_{number}") for number in range(200))
    assert len({row.id for made in moved for row in balances_moved(made) if row.balance_type is balance_type}) == rows


def test_the_balances_of_an_owner_and_mode_are_one_range_of_ids() -> None:
    low, high = balance_ids("acc_1", Mode.TEST)
    for balance_type in BalanceType:
        assert low <= ledger_account_id("acc_1", Mode.TEST, balance_type, 15) < high
        assert not low <= ledger_account_id("acc_1", Mode.LIVE, balance_type) < high
        assert not low <= ledger_account_id("acc_12", Mode.TEST, balance_type) < high


CHANGES = {
    "kind": EntryKind.REVIEW,
    "object_id": "pay_2",
    "revision": 2,
    "account_id": "acc_2",
    "mode": Mode.LIVE,
    "at": AT + timedelta(microseconds=1),
    "postings": (Posting(BalanceType.BANK, -6), Posting(BalanceType.PENDING, 6)),
}


@table("field", CHANGES)
def test_the_seal_covers_all_that_an_entry_says(field: str) -> None:
    made = entry({BalanceType.BANK: -5, BalanceType.PENDING: 5})
    other = msgspec.structs.replace(made, **{field: CHANGES[field]})
    assert LEDGER.link(made, 1, FIRST_LINK) != LEDGER.link(other, 1, FIRST_LINK)


def test_the_seal_covers_its_place_and_the_seal_before() -> None:
    made = entry({BalanceType.BANK: -5, BalanceType.PENDING: 5})
    first = LEDGER.link(made, 1, FIRST_LINK)
    assert LEDGER.link(made, 1, FIRST_LINK) == first
    assert LEDGER.link(made, 2, FIRST_LINK) != first
    assert LEDGER.link(made, 1, first) != first
