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
    MERCHANT_PURSES,
    Currency,
    EntryKind,
    JournalEntry,
    Posting,
    Purse,
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


def entry(postings: dict[Purse, int], *, object_id: str = "pay_1", mode: Mode = Mode.TEST) -> JournalEntry:
    return journal_entry(EntryKind.RECEIPT, object_id, account_id="acc_1", mode=mode, at=AT, postings=postings)


def test_each_purse_has_one_currency() -> None:
    rub = {purse.value for purse in Purse if currency_of(purse) is Currency.RUB}
    payments = {"pending", "review", "suspense", "bank", "refunding", "converted_rub"}
    assert rub == payments | {"exchanging_rub", "remitting", "stock_rub", "losses_rub"}


def test_each_purse_is_the_merchants_or_the_services() -> None:
    merchants = {purse.value for purse in Purse if owner_of(purse, "acc_1") == "acc_1"}
    payments = {"pending", "review", "suspense", "available", "reserved", "paid_out", "refunded_usdt"}
    assert merchants == payments | {"exchanging_rub", "exchanging_usdt", "suspense_usdt"}


def test_an_entry_is_unique_by_kind_object_and_revision() -> None:
    made = entry({Purse.BANK: -5, Purse.PENDING: 5})
    assert made.id == entry_id(EntryKind.RECEIPT, "pay_1") == "receipt:pay_1:1"
    assert ledger_account_id("acc_1", Mode.LIVE, Purse.AVAILABLE) == "acc_1:live:available:0"


@table(
    ("postings", "place"),
    [
        ({Purse.BANK: -5, Purse.PENDING: 5}, None),
        ({Purse.RESERVED: -5, Purse.PAID_OUT: 5}, None),
        ({Purse.PENDING: -5, Purse.CONVERTED_RUB: 5, Purse.CONVERTED_USDT: -1, Purse.AVAILABLE: 1}, None),
        ({Purse.BANK: -5, Purse.SUSPENSE: 5}, 0),
        ({Purse.BANK: -5, Purse.SUSPENSE: 5, Purse.PENDING: 0}, 0),
    ],
)
def test_an_entry_that_moves_no_balance_has_no_place_among_movements(
    postings: dict[Purse, int], place: int | None
) -> None:
    assert entry(postings).place == place


@table(
    ("postings", "fault"),
    [
        ({Purse.BANK: -5, Purse.PENDING: 4}, "-1 RUB too much"),
        ({Purse.PENDING: 5}, "5 RUB too much"),
        ({Purse.AVAILABLE: 7, Purse.RESERVED: -6}, "1 USDT too much"),
        ({Purse.PENDING: -5, Purse.AVAILABLE: 5}, "-5 RUB too much, 5 USDT too much"),
        ({}, "nothing is posted"),
        ({Purse.BANK: 0, Purse.PENDING: 0}, "nothing is posted"),
    ],
)
def test_what_does_not_sum_to_zero_per_currency_is_no_entry(postings: dict[Purse, int], fault: str) -> None:
    with pytest.raises(Unbalanced, match=fault):
        entry(postings)
    assert imbalance(tuple(Posting(purse, amount) for purse, amount in postings.items() if amount)) == fault


@given(st.dictionaries(st.sampled_from(list(Purse)), st.integers(-(10**15), 10**15), min_size=1))
def test_an_entry_moves_balances_by_exactly_its_postings(amounts: dict[Purse, int]) -> None:
    rub = sum(amount for purse, amount in amounts.items() if currency_of(purse) is Currency.RUB)
    usdt = sum(amount for purse, amount in amounts.items() if currency_of(purse) is Currency.USDT)
    balanced = dict(amounts)
    balanced[Purse.BANK] = balanced.get(Purse.BANK, 0) - rub
    balanced[Purse.FEES] = balanced.get(Purse.FEES, 0) - usdt
    if not any(balanced.values()):
        return
    made = entry(balanced)
    rows = balances_moved(made)
    assert {row.purse: row.balance for row in rows} == {purse: amount for purse, amount in balanced.items() if amount}
    assert sum(row.balance for row in rows) == 0
    for row in rows:
        assert row.owner == ("acc_1" if row.purse in MERCHANT_PURSES else "service") == owner_of(row.purse, "acc_1")
        assert row.id.startswith(f"{row.owner}:test:{row.purse}:")


@table(("purse", "rows"), [(purse, {Purse.PENDING: 4, Purse.BANK: 16}.get(purse, 1)) for purse in Purse])
def test_a_balance_that_every_payment_moves_is_spread_over_rows(purse: Purse, rows: int) -> None:
    other = next(each for each in Purse if each is not purse and currency_of(each) is currency_of(purse))
    moved = (entry({purse: 1, other: -1}, object_id=f"pay_{number}") for number in range(200))
    assert len({row.id for made in moved for row in balances_moved(made) if row.purse is purse}) == rows


def test_the_balances_of_an_owner_and_mode_are_one_range_of_ids() -> None:
    low, high = balance_ids("acc_1", Mode.TEST)
    for purse in Purse:
        assert low <= ledger_account_id("acc_1", Mode.TEST, purse, 15) < high
        assert not low <= ledger_account_id("acc_1", Mode.LIVE, purse) < high
        assert not low <= ledger_account_id("acc_12", Mode.TEST, purse) < high


CHANGES = {
    "kind": EntryKind.REVIEW,
    "object_id": "pay_2",
    "revision": 2,
    "account_id": "acc_2",
    "mode": Mode.LIVE,
    "at": AT + timedelta(microseconds=1),
    "postings": (Posting(Purse.BANK, -6), Posting(Purse.PENDING, 6)),
}


@table("field", CHANGES)
def test_the_seal_covers_all_that_an_entry_says(field: str) -> None:
    made = entry({Purse.BANK: -5, Purse.PENDING: 5})
    other = msgspec.structs.replace(made, **{field: CHANGES[field]})
    assert LEDGER.link(made, 1, FIRST_LINK) != LEDGER.link(other, 1, FIRST_LINK)


def test_the_seal_covers_its_place_and_the_seal_before() -> None:
    made = entry({Purse.BANK: -5, Purse.PENDING: 5})
    first = LEDGER.link(made, 1, FIRST_LINK)
    assert LEDGER.link(made, 1, FIRST_LINK) == first
    assert LEDGER.link(made, 2, FIRST_LINK) != first
    assert LEDGER.link(made, 1, first) != first
