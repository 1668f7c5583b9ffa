"""Actions of two operators, on every storage: an action requested once is carried out once, in spite of concurrent
operators and crashes at any step (docs/operations.md "Two pairs of eyes")."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import Act, AuditEntry
from cambist.core.domain.operators.pending_acts import ActStatus, PendingAct
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.acts.audit import acting
from cambist.core.usecases.acts.decisions import Waits
from cambist.core.usecases.operators.pending_acts import Confirmed, confirm_act, list_acts, reject_act
from cambist.frontends.compose import open_app
from cambist.frontends.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.storage import Storage
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.race_barriers import BarrierStorage

WALLETS = ("TP2XF6cQrytbPzkiympYZe7ptUkDacptok", "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH")


@pytest.fixture
async def ports(storage: Storage) -> AsyncIterator[Ports]:
    """Ports over an empty storage of each kind, where wallets need two operators."""
    async with open_app(Settings(database_url="memory://", four_eyes=("payout_wallet",))) as app:
        yield msgspec.structs.replace(app.ports, storage=storage)


async def asked(ports: Ports, account_id: str, operator: str = "olga", address: str = WALLETS[0]) -> PendingAct:
    told = Act(operator=operator, name="account.set", object_id=account_id)
    with pytest.raises(Waits) as waiting:
        await set_settings(acting(ports, told), account_id, {"payout_wallet": address})
    return waiting.value.act


def by(ports: Ports, operator: str) -> Ports:
    return acting(ports, Act(operator=operator, name="act.confirm"))


async def wallet(ports: Ports, account_id: str) -> str | None:
    account = await ports.storage.get(Account, account_id)
    assert account is not None
    return account.settings.payout_wallet


async def test_an_act_is_kept_as_it_was_asked_for(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    act = await asked(ports, account_id)
    assert await list_acts(ports) == [await ports.storage.get(PendingAct, act.id)]
    [kept] = await everything(ports, PendingAct)
    assert kept == act
    assert kept.arguments == {"payout_wallet": WALLETS[0]}


async def test_of_many_that_decide_at_once_one_does(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    act = await asked(ports, account_id)
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 4))
    ends = await asyncio.gather(
        *(confirm_act(by(gated, name), act.id) for name in ("ivan", "vera", "igor")),
        reject_act(by(gated, "anna"), act.id),
        return_exceptions=True,
    )
    assert [isinstance(end, PendingAct | Confirmed) for end in ends].count(True) == 1
    assert [isinstance(end, Refusal) for end in ends].count(True) == 3
    [kept] = await everything(ports, PendingAct)
    assert kept.status in (ActStatus.CONFIRMED, ActStatus.REJECTED)
    assert await wallet(ports, account_id) == (WALLETS[0] if kept.status is ActStatus.CONFIRMED else None)
    done = [row for row in await everything(ports, AuditEntry) if row.act in ("act.confirm", "act.reject")]
    assert [row.operator for row in done] == [kept.decided_by]


async def test_of_many_that_ask_at_once_one_waits(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 3))
    acts = await asyncio.gather(*(asked(gated, account_id, name) for name in ("olga", "ivan", "vera")))
    assert len({act.id for act in acts}) == 1
    [kept] = await everything(ports, PendingAct)
    assert kept.id == acts[0].id


async def test_of_two_that_ask_for_different_wallets_at_once_one_is_told_of_the_other(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 2))
    tellings = (Act(operator=name, name="account.set") for name in ("olga", "ivan"))
    ends = await asyncio.gather(
        *(
            set_settings(acting(gated, told), account_id, {"payout_wallet": address})
            for told, address in zip(tellings, WALLETS, strict=True)
        ),
        return_exceptions=True,
    )
    [kept] = await everything(ports, PendingAct)
    assert sorted(type(end).__name__ for end in ends) == ["Refusal", "Waits"]
    assert [kept.id in str(end) for end in ends] == [True, True]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commit", [1, 2])
async def test_who_dies_while_asking_leaves_one_act_at_most(ports: Ports, commit: int, after: bool) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    told = Act(operator="olga", name="account.set", object_id=account_id)
    dying = acting(fused(ports, CrashPoint(commit, after=after)), told)
    with pytest.raises(Killed):
        await set_settings(dying, account_id, {"payout_wallet": WALLETS[0]})
    assert len(await list_acts(ports)) == int(commit == 2 and after)
    assert await wallet(ports, account_id) is None
    act = await asked(ports, account_id)
    assert [each.id for each in await list_acts(ports)] == [act.id]


@pytest.mark.parametrize("after", [False, True])
async def test_who_dies_while_confirming_leaves_both_or_neither(ports: Ports, after: bool) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    act = await asked(ports, account_id)
    with pytest.raises(Killed):
        await confirm_act(by(fused(ports, CrashPoint(1, after=after)), "ivan"), act.id)
    assert await wallet(ports, account_id) == (WALLETS[0] if after else None)
    [kept] = await everything(ports, PendingAct)
    assert kept.status is (ActStatus.CONFIRMED if after else ActStatus.WAITING)
    rows = [(row.operator, row.act) for row in await everything(ports, AuditEntry)]
    both = [("ivan", "act.confirm"), ("olga", "account.set"), ("olga", "act.ask")]
    assert sorted(rows) == (both if after else [("olga", "act.ask")])
