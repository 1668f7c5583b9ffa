"""New tags after the vault's keys were lost (core/usecases/operators/retagging.py; docs/operations.md "Lost keys")."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.chains import Chain, ChainHead
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.ledger import LEDGER, JournalEntry
from cambist.core.domain.money import Usdt
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.actions.audit import note
from cambist.core.usecases.common.chains import CHAINS, extend_audit
from cambist.core.usecases.common.encrypted import TAGGED, tag_exchange, tag_return, tag_settings, tag_withdrawal
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.operators.reencrypt import field_name
from cambist.core.usecases.operators.retagging import retag
from cambist.ports.bundle import Ports
from cambist.ports.vault import VaultError
from tests.apps import TestApp, open_test_app
from tests.domain.exchange_kit import NOW, exchange
from tests.domain.test_exchange_returns import planned
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.race_barriers import Interrupted
from tests.usecases.ledger.test_ledger import book, entry
from tests.usecases.ledger.test_ledger_check import changed, write
from tests.usecases.operators.test_reencrypt import AFTER, keyed

HEADS = {"ChainHead.ledger": 1, "ChainHead.audit": 1}


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    """An app with a chained entry and a chained action, both tagged by the app's own key."""
    async with open_test_app(receiver=False) as opened:
        opened.made_up = True
        await grow(opened, opened.ports, "old")
        yield opened


async def grow(app: TestApp, ports: Ports, name: str) -> None:
    await book(app, entry(app, f"pay_{name}"))
    await note(ports, OperatorAction(operator="vera", name="look", object_id=name))
    await list_all(ports)
    await extend_audit(ports)


async def head_of(app: TestApp, chain: Chain) -> ChainHead:
    head = await app.ports.storage.get(ChainHead, chain.head_id)
    assert head is not None
    return head


def successor(app: TestApp) -> Ports:
    """The app with another key of the same id, as a new key file has it."""
    vault = app.ports.vault
    fresh = type(AFTER)({vault.current: bytes([9]) * 32}, vault.current, bytes(range(32)))
    return keyed(app.ports, fresh)


@pytest.mark.parametrize("same_id", [True, False])
async def test_books_hold_and_grow_under_the_new_key(app: TestApp, same_id: bool) -> None:
    ports = successor(app) if same_id else keyed(app.ports, AFTER)
    assert not (await verify_ledger(ports)).holds
    await grow(app, ports, "waits")
    assert (await verify_ledger(ports)).unsealed == 1, "a chain grew under a head of another key"
    done = await retag(ports)
    assert (done.values.items() >= HEADS.items(), done.rows > 0) == (True, same_id)
    report = await verify_ledger(ports)
    assert (report.first_bad_entry, report.first_bad_action) == (None, None)
    assert (report.unsealed, report.actions_unsealed) == (0, 0)
    again = await retag(ports)
    assert (again.values, again.rows) == ({}, 0)


async def test_missing_head_is_made_where_the_rows_end(app: TestApp) -> None:
    before = [await head_of(app, chain) for chain in CHAINS]
    await write(app, remove=before)
    assert (await retag(app.ports)).values == HEADS
    after = [await head_of(app, chain) for chain in CHAINS]
    assert [(each.number, each.seal) for each in after] == [(each.number, each.seal) for each in before]


async def test_fitting_tags_stay_as_they_are(app: TestApp) -> None:
    before = [await head_of(app, chain) for chain in CHAINS]
    done = await retag(app.ports)
    assert (done.values, done.rows) == ({}, 0)
    assert [await head_of(app, chain) for chain in CHAINS] == before


async def test_books_that_do_not_hold_are_refused(app: TestApp) -> None:
    [row] = [each async for rows in app.ports.storage.scan(JournalEntry) for each in rows]
    await write(app, save=(changed(row, account_id="acc_thief"),))
    with pytest.raises(Refusal, match="do not hold") as caught:
        await retag(keyed(app.ports, AFTER))
    assert caught.value.code == "INVALID_STATE"


@pytest.mark.parametrize("changes", [{"number": 7}, {"seal": bytes(32)}])
async def test_head_that_another_process_moved_is_refused(app: TestApp, changes: dict[str, Any]) -> None:
    head = await head_of(app, LEDGER)

    async def move() -> None:
        await write(app, save=(changed(head, **changes),))

    ports = changed(app.ports, storage=Interrupted(app.ports.storage, ChainHead, move), vault=AFTER)
    with pytest.raises(Refusal, match="meanwhile") as caught:
        await retag(ports)
    assert caught.value.code == "INVALID_STATE"


async def test_interrupted_run_is_finished_by_the_next_one(app: TestApp) -> None:
    ports = successor(app)
    await write(app, add=(account(app, "acc_mine", WALLET),))

    def stop(_field: str, _count: int) -> None:
        raise KeyboardInterrupt

    for _ in range(2):  # after the rows of the ledger, and after those of the audit log
        with pytest.raises(KeyboardInterrupt):
            await retag(ports, progress=stop)
    assert (await retag(ports)).wallets == (("acc_mine", WALLET),)
    report = await verify_ledger(ports)
    assert (report.first_bad_entry, report.first_bad_action) == (None, None)


def account(app: TestApp, name: str, wallet: str | None) -> Account:
    made = Account(id=name, name=name, default_shop_id="s", created_at=NOW, settings=Settings(payout_wallet=wallet))
    return tag_settings(app.ports.vault, made)


def payout(app: TestApp, name: str, wallet: str, status: WithdrawalStatus = WithdrawalStatus.PENDING) -> Withdrawal:
    made = Withdrawal(
        id=f"wd_{name}", account_id="acc_mine", mode=Mode.LIVE, status=status, amount=Usdt(5),
        wallet=wallet, sender="w", network="TRON", created_at=NOW, sequence=1,
    )  # fmt: skip
    return tag_withdrawal(app.ports.vault, made)


async def test_rows_that_move_money_are_tagged_and_wallets_listed(app: TestApp) -> None:
    vault = app.ports.vault
    bare: ExchangeTransfer = changed(planned(), id="bare", return_tag=None)
    rows = (
        account(app, "acc_mine", WALLET),
        payout(app, "mine", WALLET),
        payout(app, "over", OTHER_WALLET, WithdrawalStatus.COMPLETED),
        tag_exchange(vault, exchange(id="exc_waits", active_slot=None)),
        tag_return(vault, changed(planned(), id="planned")),
    )
    elsewhere = payout(app, "elsewhere", OTHER_WALLET)
    await write(app, add=(*rows, elsewhere, bare))
    ports = keyed(app.ports, AFTER)
    done = await retag(ports)
    assert (done.wallets, done.left) == ((("acc_mine", WALLET),), ("wd_elsewhere",))
    by_type = {field.record: field for field in TAGGED}
    for row in rows:
        kept: Any = await app.ports.storage.get(type(row), row.id)
        by_type[type(row)].judge(AFTER, kept)
        assert done.values[field_name(by_type[type(row)])] >= 1
    kept = await app.ports.storage.get(Withdrawal, elsewhere.id)
    with pytest.raises(VaultError):
        by_type[Withdrawal].judge(AFTER, kept)
    assert await app.ports.storage.get(ExchangeTransfer, bare.id) == bare, "a tag that was taken away stays away"
