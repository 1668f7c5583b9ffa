"""Actions of two operators, on every storage: an action requested once is carried out once, in spite of concurrent
operators and crashes at any step (docs/operations.md "Two pairs of eyes")."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.operators.pending_actions import ActionStatus, PendingAction
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.actions.decisions import Waits
from cambist.core.usecases.operators.pending_actions import Confirmed, confirm_action, list_actions, reject_action
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
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


async def asked(ports: Ports, account_id: str, operator: str = "olga", address: str = WALLETS[0]) -> PendingAction:
    told = OperatorAction(operator=operator, name="account.set", object_id=account_id)
    with pytest.raises(Waits) as waiting:
        await set_settings(acting(ports, told), account_id, {"payout_wallet": address})
    return waiting.value.action


def by(ports: Ports, operator: str) -> Ports:
    return acting(ports, OperatorAction(operator=operator, name="action.confirm"))


async def wallet(ports: Ports, account_id: str) -> str | None:
    account = await ports.storage.get(Account, account_id)
    assert account is not None
    return account.settings.payout_wallet


async def test_an_action_is_kept_as_it_was_asked_for(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    action = await asked(ports, account_id)
    assert await list_actions(ports) == [await ports.storage.get(PendingAction, action.id)]
    [kept] = await everything(ports, PendingAction)
    assert kept == action
    assert kept.arguments == {"payout_wallet": WALLETS[0]}


async def test_simultaneous_decisions_have_one_winner(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    action = await asked(ports, account_id)
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 4))
    ends = await asyncio.gather(
        *(confirm_action(by(gated, name), action.id) for name in ("ivan", "vera", "igor")),
        reject_action(by(gated, "anna"), action.id),
        return_exceptions=True,
    )
    assert [isinstance(end, PendingAction | Confirmed) for end in ends].count(True) == 1
    assert [isinstance(end, Refusal) for end in ends].count(True) == 3
    [kept] = await everything(ports, PendingAction)
    assert kept.status in (ActionStatus.CONFIRMED, ActionStatus.REJECTED)
    assert await wallet(ports, account_id) == (WALLETS[0] if kept.status is ActionStatus.CONFIRMED else None)
    done = [row for row in await everything(ports, AuditEntry) if row.action in ("action.confirm", "action.reject")]
    assert [row.operator for row in done] == [kept.decided_by]


async def test_simultaneous_requests_make_one_pending_action(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 3))
    actions = await asyncio.gather(*(asked(gated, account_id, name) for name in ("olga", "ivan", "vera")))
    assert len({action.id for action in actions}) == 1
    [kept] = await everything(ports, PendingAction)
    assert kept.id == actions[0].id


async def test_second_of_two_simultaneous_wallet_requests_is_refused(ports: Ports) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, 2))
    tellings = (OperatorAction(operator=name, name="account.set") for name in ("olga", "ivan"))
    ends = await asyncio.gather(
        *(
            set_settings(acting(gated, told), account_id, {"payout_wallet": address})
            for told, address in zip(tellings, WALLETS, strict=True)
        ),
        return_exceptions=True,
    )
    [kept] = await everything(ports, PendingAction)
    assert sorted(type(end).__name__ for end in ends) == ["Refusal", "Waits"]
    assert [kept.id in str(end) for end in ends] == [True, True]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commit", [1, 2])
async def test_crash_while_requesting_leaves_one_action_at_most(ports: Ports, commit: int, after: bool) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    told = OperatorAction(operator="olga", name="account.set", object_id=account_id)
    dying = acting(fused(ports, CrashPoint(commit, after=after)), told)
    with pytest.raises(Killed):
        await set_settings(dying, account_id, {"payout_wallet": WALLETS[0]})
    assert len(await list_actions(ports)) == int(commit == 2 and after)
    assert await wallet(ports, account_id) is None
    action = await asked(ports, account_id)
    assert [each.id for each in await list_actions(ports)] == [action.id]


@pytest.mark.parametrize("after", [False, True])
async def test_crash_while_confirming_leaves_decision_and_effect_or_neither(ports: Ports, after: bool) -> None:
    account_id = (await create_account(ports, "Merchant")).account_id
    action = await asked(ports, account_id)
    with pytest.raises(Killed):
        await confirm_action(by(fused(ports, CrashPoint(1, after=after)), "ivan"), action.id)
    assert await wallet(ports, account_id) == (WALLETS[0] if after else None)
    [kept] = await everything(ports, PendingAction)
    assert kept.status is (ActionStatus.CONFIRMED if after else ActionStatus.WAITING)
    rows = [(row.operator, row.action) for row in await everything(ports, AuditEntry)]
    both = [("ivan", "action.confirm"), ("olga", "account.set"), ("olga", "action.ask")]
    assert sorted(rows) == (both if after else [("olga", "action.ask")])
