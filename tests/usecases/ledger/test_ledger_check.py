"""`verify_ledger` passes on a ledger with history, and names the first bad entry of a ledger that was tampered with
(ARCHITECTURE.md "Money")."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.chains import FIRST_LINK, ChainHead, Head, link_in
from cambist.core.domain.ledger import LEDGER, BalanceType, JournalEntry, LedgerAccount, Posting
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AUDIT
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.common.chains import ALTERED, NO_HEAD
from cambist.core.usecases.ledger import chain_check, check, checkpoint, movement_check, value_check
from cambist.core.usecases.ledger.check import LedgerReport, verify_ledger
from cambist.core.usecases.ledger.ledger import post
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.settlement.settlement import settle_own
from tests.apps import TestApp
from tests.invariants import everything
from tests.planting import beneath
from tests.usecases.ledger.test_ledger import book, entry, journal, plain
from tests.usecases.settlement.test_settlement import caller, paid


async def lived_in(app: TestApp) -> list[JournalEntry]:
    """Six receipts, settled and chained in this order, and two that are not chained yet."""
    for number in range(6):
        await paid(app, f"{100 + number}.00")
    await settle_own(app.ports, await caller(app))
    await paid(app, "200.00")
    await paid(app, "300.00")
    sealed = [each for each in await journal(app) if each.number is not None]
    assert len(sealed) == 12
    app.made_up = True
    return sorted(sealed, key=lambda each: each.number or 0)


async def write(app: TestApp, *, save: tuple[Any, ...] = (), add: tuple[Any, ...] = (), remove: Any = ()) -> None:
    """Change stored rows as no use case does."""
    async with beneath(app.ports).unit() as unit:
        for record in save:
            unit[type(record)].save(record)
        for record in add:
            unit[type(record)].add(record)
        for record in remove:
            unit[type(record)].remove(record)
        await unit.commit()


def changed(record: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(record, **fields)


async def head_of(app: TestApp) -> ChainHead:
    head = await app.ports.storage.get(ChainHead, LEDGER.head_id)
    assert head is not None
    return head


async def test_a_lived_in_ledger_holds(app: TestApp) -> None:
    report = await verify_ledger(app.ports)
    assert (report.holds, report.entries, report.unsealed) == (True, 0, 0)
    await lived_in(app)
    report = await verify_ledger(app.ports)
    assert (report.holds, report.entries, report.unsealed, report.bad_balances) == (True, 14, 2, ())
    assert report.tagged_head == report.head


Tampering = Callable[[TestApp, list[JournalEntry]], Awaitable[None]]


async def _posting_changed(app: TestApp, chain: list[JournalEntry]) -> None:
    more = tuple(Posting(posting.balance_type, posting.amount * 2) for posting in chain[4].postings)
    await write(app, save=(changed(chain[4], postings=more),))


async def _account_changed(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(chain[4], account_id="acc_other"),))


async def _moment_changed(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(chain[4], at=chain[4].at - timedelta(days=1)),))


async def _deleted(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, remove=(chain[4],))


async def _deleted_and_moved_up(app: TestApp, chain: list[JournalEntry]) -> None:
    later = tuple(changed(each, number=(each.number or 0) - 1) for each in chain[5:])
    await write(app, save=later, remove=(chain[4],))


def _forged(app: TestApp, object_id: str, number: int | None, seal: bytes | None = b"") -> JournalEntry:
    return changed(entry(app, object_id), number=number, seal=seal)  # type: ignore[no-any-return]  # it is one


async def _inserted_before(app: TestApp, chain: list[JournalEntry]) -> None:
    # Ids are in the order of the chain here: `!` comes before whatever the fifth one's object is called.
    await write(app, add=(_forged(app, "!", 5),))


async def _inserted_after(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, add=(_forged(app, "~", 5),))


async def _inserted_below(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, add=(_forged(app, "~", 0),))


async def _inserted_at_the_end(app: TestApp, chain: list[JournalEntry]) -> None:
    last = _forged(app, "~", 13)
    await write(app, add=(changed(last, seal=LEDGER.link(last, 13, link_in(chain[-1].seal))),))


async def _swapped(app: TestApp, chain: list[JournalEntry]) -> None:
    one, two = chain[4], chain[5]
    await write(app, save=(changed(one, number=6, seal=two.seal), changed(two, number=5, seal=one.seal)))


async def _swapped_with_their_seals(app: TestApp, chain: list[JournalEntry]) -> None:
    one, two = chain[4], chain[5]
    await write(app, save=(changed(one, number=6), changed(two, number=5)))


async def _seal_changed(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(chain[4], seal=bytes(32)),))


async def _seal_taken_away(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(chain[4], seal=None),))


async def _number_taken_away(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(chain[4], number=None, seal=None),))


async def _head_changed(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, save=(changed(await head_of(app), seal=bytes(32)),))


async def _head_deleted(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, remove=(await head_of(app),))


async def _cut_off(app: TestApp, chain: list[JournalEntry]) -> None:
    await write(app, remove=chain[10:])


async def _out_of_balance(app: TestApp, chain: list[JournalEntry]) -> None:
    [loose, *_] = [each for each in await journal(app) if each.number is None]
    wrong = tuple(changed(posting, amount=posting.amount + (posting.amount > 0)) for posting in loose.postings)
    await write(app, save=(changed(loose, postings=wrong),))


async def _renamed(app: TestApp, chain: list[JournalEntry]) -> None:
    [loose, *_] = [each for each in await journal(app) if each.number is None]
    await write(app, save=(changed(loose, revision=2),))


CHAINED_5 = "is not what was chained"
TAMPERINGS: dict[str, tuple[Tampering, tuple[int | None, str]]] = {
    "a posting changed": (_posting_changed, (5, CHAINED_5)),
    "an account changed": (_account_changed, (5, CHAINED_5)),
    "a moment changed": (_moment_changed, (5, CHAINED_5)),
    "an entry deleted": (_deleted, (5, "is missing from the chain")),
    "an entry deleted, the rest moved up": (_deleted_and_moved_up, (5, CHAINED_5)),
    "an entry inserted before one of its number": (_inserted_before, (5, CHAINED_5)),
    "an entry inserted after one of its number": (_inserted_after, (5, "has a number that is not its own")),
    "an entry inserted below the chain": (_inserted_below, (0, "has a number that is not its own")),
    "an entry added to the chain": (_inserted_at_the_end, (14, "the chain should end at number 12")),
    "two swapped": (_swapped, (5, CHAINED_5)),
    "two swapped with their seals": (_swapped_with_their_seals, (5, CHAINED_5)),
    "a seal changed": (_seal_changed, (5, CHAINED_5)),
    "a seal taken away": (_seal_taken_away, (5, CHAINED_5)),
    "an entry unsealed": (_number_taken_away, (5, "is missing from the chain")),
    "the head changed": (_head_changed, (13, "the chain should end at number 12")),
    "the head deleted": (_head_deleted, (None, NO_HEAD)),
    "the last entries cut off": (_cut_off, (11, "the chain should end at number 12")),
    "an unsealed entry out of balance": (_out_of_balance, (None, "1 RUB too much")),
    "an unsealed entry of another key": (_renamed, (None, "has another id than its kind, object and revision say")),
}


@pytest.mark.parametrize("case", TAMPERINGS)
async def test_the_first_bad_entry_is_named(app: TestApp, case: str) -> None:
    """Verify recomputes balances, checks the zero sums and a hash chain, and names the first bad entry
    (ARCHITECTURE.md "Money")."""
    tamper, (number, reason) = TAMPERINGS[case]
    chain = await lived_in(app)
    await tamper(app, chain)
    report = await verify_ledger(app.ports)
    assert not report.holds
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.number, report.first_bad_entry.reason) == (number, reason)
    assert report.tagged_head is None, "no backup tells it"
    by_number = {each.number: each.id for each in await journal(app) if each.number is not None}
    if reason == CHAINED_5 and "inserted" not in case:
        assert report.first_bad_entry.id == by_number[5]
    if "inserted" in case:
        assert report.first_bad_entry.id in ("receipt:!:1", "receipt:~:1")


async def test_entries_cut_off_with_their_head_fail_the_tag_and_the_balances(
    app: TestApp,
) -> None:
    chain = await lived_in(app)
    head = await head_of(app)
    await write(app, save=(changed(head, number=10, seal=link_in(chain[9].seal)),), remove=chain[10:])
    report = await verify_ledger(app.ports)
    assert report.first_bad_entry is not None
    assert (report.holds, report.first_bad_entry.reason, report.entries) == (False, ALTERED, 12)
    gone = {balance_type for each in chain[10:] for balance_type, _ in plain(each)}
    assert {bad.id.split(":")[2] for bad in report.bad_balances} == gone


OTHER = bytes(31) + b"1"
ELSEWHERE, BEYOND = "is of another history", "has no place in it: the chain ends at 12"


@pytest.mark.parametrize(
    ("chain", "number", "is_true", "word"),
    [
        ("ledger", 5, True, None), ("ledger", 5, False, ELSEWHERE), ("ledger", 12, False, ELSEWHERE),
        ("ledger", 0, True, None), ("ledger", 0, False, ELSEWHERE), ("ledger", 13, False, BEYOND),
        ("audit", 0, True, None), ("audit", 0, False, ELSEWHERE), ("somebody's", 5, False, None),
    ],
)  # fmt: skip
async def test_head_published_before_is_confirmed_by_its_chain(
    app: TestApp, chain: str, number: int, is_true: bool, word: str | None
) -> None:
    """Even if the chain is consistent, its history is another one. A head of no chain is rejected."""
    entries = await lived_in(app)
    there = link_in(entries[number - 1].seal) if 0 < number <= len(entries) else FIRST_LINK
    report = await verify_ledger(
        app.ports, against=[Head(chain=chain, number=number, link=there if is_true else OTHER)]
    )
    assert (report.first_bad_entry, report.first_bad_action) == (None, None)
    assert [word in each for each in report.differing if word is not None] == [True] * (word is not None)
    assert report.holds is (word is None)


async def test_two_heads_of_one_place_cannot_both_be_true(app: TestApp) -> None:
    chain = await lived_in(app)
    heads = [Head(chain="ledger", number=5, link=link) for link in (link_in(chain[4].seal), OTHER)]
    assert len((await verify_ledger(app.ports, against=heads)).differing) == 1


@pytest.mark.parametrize(
    ("is_chained", "has_head", "is_altered", "reason"),
    [
        (False, True, False, None), (False, False, False, NO_HEAD), (False, True, True, ALTERED),
        (True, True, False, None), (True, False, False, NO_HEAD), (True, True, True, ALTERED),
    ],
)  # fmt: skip
async def test_rows_have_a_head_that_the_vault_tagged(
    app: TestApp, is_chained: bool, has_head: bool, is_altered: bool, reason: str | None
) -> None:
    """The head must exist even before the first entry is chained. Otherwise an attacker could remove it and rewrite the
    history."""
    app.made_up = True
    await book(app, entry(app, "pay_1"))
    if is_chained:
        await list_all(app.ports)
    head = await head_of(app)
    if not has_head:
        await write(app, remove=(head,))
    if is_altered:
        assert head.tag is not None
        await write(app, save=(changed(head, tag=head.tag[:-1] + bytes([head.tag[-1] ^ 1])),))
    bad = (await verify_ledger(app.ports)).first_bad_entry
    assert (bad and bad.reason) == reason


async def test_forged_action_is_named_and_no_head_is_published(app: TestApp) -> None:
    app.made_up = True
    head = await app.ports.storage.get(ChainHead, AUDIT.head_id)
    assert head is not None
    await write(app, save=(changed(head, tag=bytes(33)),))
    report = await verify_ledger(app.ports)
    assert report.first_bad_action is not None
    assert (report.first_bad_entry, report.holds, report.tagged_head) == (None, False, None)


@pytest.mark.parametrize("balance", [1, -1])
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_running_balance_of_one_unit_is_missed(app: TestApp, balance: int, is_kept: bool) -> None:
    app.made_up = True
    if is_kept:
        made = LedgerAccount(
            id="acc_1:test:bank:0", owner="acc_1", mode=Mode.TEST, balance_type=BalanceType.BANK, balance=balance
        )
        await write(app, add=(made,))
    else:
        async with beneath(app.ports).unit() as unit:
            post(unit, entry(app, "pay_1", kopecks=-balance))
            await unit.commit()
        async with app.ports.storage.unit() as unit:
            await write(app, remove=await unit[LedgerAccount].find(balance_type=BalanceType.BANK))
    [bad] = (await verify_ledger(app.ports)).bad_balances
    assert (bad.kept, bad.counted) == ((balance, 0) if is_kept else (0, balance))


async def test_altered_running_balance_is_named_with_its_correct_value(app: TestApp) -> None:
    await lived_in(app)
    row = f"{app.account.account_id}:test:available:0"
    async with beneath(app.ports).unit() as unit:
        account = await unit[LedgerAccount].get(row)
        assert account is not None
        unit[LedgerAccount].increase(row, "balance", 1)
        invented = LedgerAccount(
            id="acc_other:test:available:0",
            owner="acc_other",
            mode=Mode.TEST,
            balance_type=BalanceType.AVAILABLE,
            balance=7,
        )
        unit[LedgerAccount].add(invented)
        await unit.commit()
    report = await verify_ledger(app.ports)
    assert (report.holds, report.first_bad_entry) == (False, None)
    assert [(bad.id, bad.kept, bad.counted) for bad in report.bad_balances] == sorted(
        [(row, account.balance + 1, account.balance), (invented.id, 7, 0)]
    )


async def test_a_running_balance_that_was_deleted_is_named(app: TestApp) -> None:
    await lived_in(app)
    row = f"{app.account.account_id}:test:available:0"
    async with beneath(app.ports).unit() as unit:
        account = await unit[LedgerAccount].get(row)
        assert account is not None
        unit[LedgerAccount].remove(account)
        await unit.commit()
    [bad] = (await verify_ledger(app.ports)).bad_balances
    assert (bad.id, bad.kept, bad.counted) == (row, 0, account.balance)


@pytest.mark.parametrize("number", [1000, 999, -5, 0])
async def test_an_inserted_entry_is_seen_wherever_the_walk_turns_a_page(app: TestApp, number: int) -> None:
    await book(app, *(entry(app, f"pay_{each}") for each in range(1001)))
    await list_all(app.ports)
    await write(app, add=(_forged(app, "~", number),))
    report = await verify_ledger(app.ports)
    assert report.first_bad_entry is not None
    assert (report.first_bad_entry.id, report.entries) == ("receipt:~:1", 1002)
    app.made_up = True


@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_pages_of_any_size_say_the_same(app: TestApp, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Check a sound ledger, and one with altered balances, payments and a place."""
    await lived_in(app)
    await list_all(app.ports)
    told: list[int] = []

    async def by_pages() -> LedgerReport:
        with monkeypatch.context() as patched:
            for module, name in (
                (check, "BATCH"),
                (chain_check, "BATCH"),
                (checkpoint, "BATCH"),
                (value_check, "BATCH"),
                (movement_check, "BATCH"),
            ):
                patched.setattr(module, name, size)
            return await verify_ledger(app.ports, progress=told.append)

    assert (await by_pages()).holds
    assert told == [*range(size, 14 + 1, size)]
    payments = sorted(await everything(app.ports, Payment), key=lambda each: each.id)
    [listed, *_] = [each for each in await journal(app) if each.place == 9]
    altered = tuple(changed(each, actual_amount=Rub(1)) for each in (payments[-1], payments[2]))
    await write(app, save=(*altered, changed(listed, place=7)))
    async with beneath(app.ports).unit() as unit:
        for row in await unit[LedgerAccount].find():
            unit[LedgerAccount].increase(row.id, "balance", 1)
        await unit.commit()
    report = await verify_ledger(app.ports)
    assert len(report.bad_balances) > 5
    assert {each.field.partition(".")[0] for each in report.bad_values} == {"payments", "movements"}
    assert await by_pages() == report
