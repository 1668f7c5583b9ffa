"""An operator takes over a chain that bears no tag of the vault (core/usecases/ledger/adoption.py)."""

from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.chains import Chain, ChainHead, link_in
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, ExchangeStatus
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.returns import ReturnStatus
from cambist.core.domain.ledger import LEDGER
from cambist.core.domain.money import Usdt
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.actions.audit import note
from cambist.core.usecases.chains import CHAINS, extend_chain
from cambist.core.usecases.encrypted import tag_exchange, tag_return, tag_settings, tag_withdrawal
from cambist.core.usecases.ledger.adoption import adopt
from cambist.core.usecases.ledger.check import verify_ledger
from tests.apps import TestApp
from tests.domain.exchange_kit import NOW, exchange
from tests.domain.test_exchange_returns import late, planned, standing
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.planting import beneath
from tests.race_barriers import Interrupted
from tests.usecases.test_ledger import book, entry
from tests.usecases.test_ledger_check import changed, write

OTHERS = b"another tag"
NAMES = ("ledger", "audit")


async def head_of(app: TestApp, chain: Chain) -> ChainHead:
    head = await app.ports.storage.get(ChainHead, chain.head_id)
    assert head is not None
    return head


async def heads(app: TestApp) -> list[ChainHead]:
    return [await head_of(app, chain) for chain in CHAINS]


async def rows_of(app: TestApp, chain: Chain) -> list[Any]:
    async with app.ports.storage.unit() as unit:
        return await unit[chain.rows].find(order="number")


async def more(app: TestApp, name: str) -> None:
    """One more entry, and one more act."""
    app.made_up = True
    await book(app, entry(app, f"pay_{name}"))
    await note(app.ports, OperatorAction(operator="vera", name="look", object_id=name))


async def reencrypted(app: TestApp, chain: Chain, row: Any, seal: bytes) -> None:
    async with beneath(app.ports).unit() as unit:
        unit[chain.rows].change(row, seal=seal)
        await unit.commit()


async def untagged(app: TestApp, *chains: Chain) -> None:
    """A row each, chained by a version without tags."""
    await more(app, "old")
    for chain in CHAINS:
        await extend_chain(app.ports, chain)
    for chain in chains:
        for row in await rows_of(app, chain):
            await reencrypted(app, chain, row, link_in(row.seal))
        await write(app, save=(changed(await head_of(app, chain), tag=None),))


async def test_untagged_chains_are_adopted_and_continue(app: TestApp) -> None:
    """Waiting rows are chained after it immediately."""
    await untagged(app, *CHAINS)
    await more(app, "new")
    before = await heads(app)
    done = await adopt(app.ports)
    assert (done.chains, done.entries, done.actions) == (NAMES, 2, len(await rows_of(app, CHAINS[1])))
    report = await verify_ledger(app.ports)
    assert (report.first_bad_entry, report.first_bad_action) == (None, None)
    assert (report.unsealed, report.actions_unsealed) == (0, 0)
    assert [each.number for each in await heads(app)] == [each.number + 1 for each in before]
    assert (await adopt(app.ports)).chains == ()


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
async def test_a_head_that_the_vault_tagged_stays_as_it_is(app: TestApp, chain: Chain) -> None:
    await untagged(app, chain)
    kept = [each for each in await heads(app) if each.id != chain.head_id]
    assert (await adopt(app.ports, anyway=True)).chains == (chain.name,)
    assert [each for each in await heads(app) if each.id != chain.head_id] == kept


async def test_a_head_that_is_missing_is_made_where_the_rows_end(app: TestApp) -> None:
    await untagged(app, *CHAINS)
    before = await heads(app)
    await write(app, remove=before)
    assert (await adopt(app.ports)).chains == NAMES
    assert [(each.number, each.seal) for each in await heads(app)] == [(each.number, each.seal) for each in before]
    assert (await verify_ledger(app.ports)).first_bad_entry is None


@pytest.mark.parametrize("of_row", [True, False], ids=["a row", "the head"])
@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
async def test_existing_tag_shows_that_this_is_no_upgrade(app: TestApp, chain: Chain, of_row: bool) -> None:
    """Only an operator who confirms the history can continue the chain."""
    await untagged(app, *CHAINS)
    if of_row:
        [row, *_] = await rows_of(app, chain)
        tag = app.ports.vault.tag(row.seal, chain.row_aad(1))
        await reencrypted(app, chain, row, row.seal + tag)
    else:
        await write(app, save=(changed(await head_of(app, chain), tag=OTHERS),))
    before = await heads(app)
    with pytest.raises(Refusal, match="before, so this is no upgrade") as caught:
        await adopt(app.ports)
    assert caught.value.code == "INVALID_STATE"
    assert await heads(app) == before
    assert (await adopt(app.ports, anyway=True)).chains == NAMES


async def test_books_that_do_not_hold_are_taken_over_by_nobody(app: TestApp) -> None:
    await untagged(app, *CHAINS)
    [row] = await rows_of(app, LEDGER)
    await write(app, save=(changed(row, account_id="acc_thief"),))
    for anyway in (False, True):
        with pytest.raises(Refusal, match="do not hold") as caught:
            await adopt(app.ports, anyway=anyway)
        assert caught.value.code == "INVALID_STATE"


@pytest.mark.parametrize("changes", [{"number": 7}, {"seal": bytes(32)}])
async def test_adoption_refuses_a_head_that_another_process_moved_meanwhile(
    app: TestApp, changes: dict[str, Any]
) -> None:
    await untagged(app, *CHAINS)
    head = await head_of(app, LEDGER)

    async def seal() -> None:
        await write(app, save=(changed(head, **changes),))

    ports = changed(app.ports, storage=Interrupted(app.ports.storage, ChainHead, seal))
    with pytest.raises(Refusal, match="meanwhile") as caught:
        await adopt(ports)
    assert caught.value.code == "INVALID_STATE"
    assert (await head_of(app, LEDGER)).tag is None


def payout(name: str, **more: Any) -> Withdrawal:
    made = Withdrawal(
        id=f"wd_{name}", account_id="acc_mine", mode=Mode.LIVE, status=WithdrawalStatus.PENDING, amount=Usdt(5),
        wallet=WALLET, sender="w", network="TRON", created_at=NOW, sequence=1,
    )  # fmt: skip
    return changed(made, **more)  # type: ignore[no-any-return]  # it is one


def account(name: str, wallet: str | None, tag: bytes | None = None) -> Account:
    settings = Settings(payout_wallet=wallet)
    return Account(id=name, name=name, default_shop_id="s", created_at=NOW, settings=settings, settings_tag=tag)


def exchanged(name: str, **more: Any) -> Exchange:
    return exchange(id=name, active_slot=None, **more)


TAKEN = (
    account("acc_mine", WALLET),
    payout("mine"),
    exchanged("exc_waits"),
    exchanged("exc_sends", status=ExchangeStatus.RUB_SENDING),
    changed(planned(), id="planned", return_tag=None),
    changed(standing(ReturnStatus.SENDING), id="sending", return_tag=None),
)
LEFT = (
    account("acc_tagged", OTHER_WALLET, OTHERS),
    account("acc_none", None),
    payout("elsewhere", wallet=OTHER_WALLET),
    payout("tagged", tag=OTHERS),
    payout("over", status=WithdrawalStatus.COMPLETED),
    payout("others", account_id="acc_tagged", wallet=OTHER_WALLET),
    exchanged("exc_tagged", tag=OTHERS),
    exchanged("exc_over", status=ExchangeStatus.COMPLETED),
    changed(late(), id="still"),
    changed(standing(ReturnStatus.FAILED), id="failed", return_tag=None),
    changed(planned(), id="tagged", return_tag=OTHERS),
    changed(planned(), id="resolved", return_tag=None, resolved_at=NOW),
)
"""Rows that adoption leaves alone. For a payout to another wallet than the account's an operator makes a new payout."""


async def test_wallets_and_what_is_under_way_are_taken_over_where_no_tag_is(app: TestApp) -> None:
    await untagged(app, *CHAINS)
    await write(app, add=(*TAKEN, *LEFT))
    done = await adopt(app.ports)
    assert done.wallets == (("acc_mine", WALLET),)
    by: dict[Any, Any] = {
        Account: tag_settings, Withdrawal: tag_withdrawal, Exchange: tag_exchange, ExchangeTransfer: tag_return,
    }  # fmt: skip
    for each in TAKEN:
        found = await app.ports.storage.get(type(each), each.id)
        assert found == changed(by[type(each)](app.ports.vault, each), version=each.version + 1)
    for each in LEFT:
        assert await app.ports.storage.get(type(each), each.id) == each


async def test_wallets_are_not_adopted_without_a_chain(app: TestApp) -> None:
    await more(app, "old")
    await write(app, add=TAKEN)
    assert (await adopt(app.ports)).wallets == ()
    for each in TAKEN:
        assert await app.ports.storage.get(type(each), each.id) == each
