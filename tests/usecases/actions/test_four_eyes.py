"""Two pairs of eyes: an action that one operator requests takes effect when another operator confirms it, once, and as
it was shown (docs/operations.md "Two pairs of eyes")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.operators.pending_actions import ActionStatus, PendingAction, is_same_operator
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.accounts import accounts, keys, shops
from cambist.core.usecases.actions.audit import acting, has_written, list_audit
from cambist.core.usecases.actions.decisions import Waits
from cambist.core.usecases.common.encrypted import open_webhook_secret, tag_settings
from cambist.core.usecases.common.units import retrying
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.operators import create_operator, end_operator
from cambist.core.usecases.operators.pending_actions import (
    CARRIED_OUT,
    confirm_action,
    get_action,
    list_actions,
    reject_action,
)
from cambist.core.usecases.operators.review import list_suspense, resolve_mismatch
from cambist.core.usecases.operators.unanswered import end_unanswered
from cambist.core.usecases.refunds.refunds import approve_refund, cancel_refund, create_refund_for, reject_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.settlement.withdrawals import accept_sent
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.faults import Stale
from cambist.ports.jobs import Job
from cambist.ports.storage import Queueing, Unit
from tests.crash_points import CrashPoint, Killed, fused
from tests.exchange_app import open_exchange_app
from tests.invariants import everything
from tests.race_barriers import BarrierStorage, OtherCommit
from tests.refund_app import RefundApp, open_refund_app
from tests.usecases.exchanges.test_exchange_return import BACK, late_usdt

ALL = ("payout_wallet", "refunds", "suspense")
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
SECRET = "another-secret-of-the-tests"


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app(four_eyes=ALL, four_eyes_refund_above=Rub(50_00)) as opened:
        yield opened


def by(ports: Ports, operator: str, name: str = "refund.approve", **more: Any) -> Ports:
    return acting(ports, OperatorAction(operator=operator, name=name, **more))


async def waits(doing: Awaitable[Any]) -> PendingAction:
    with pytest.raises(Waits) as waiting:
        await doing
    return waiting.value.action


async def refused(doing: Awaitable[Any]) -> str:
    with pytest.raises(Refusal) as refusal:
        await doing
    return f"{refusal.value.code}: {refusal.value.message}"


async def rows(ports: Ports) -> list[tuple[str, str, str | None]]:
    found: list[AuditEntry] = (await list_audit(ports, limit=100))[::-1]
    return [(row.operator, row.action, row.object_id) for row in found]


async def applied(refunds: RefundApp, amount: str | None = None) -> str:
    """An application of live mode that waits for approval."""
    return await refunds.apply(await refunds.paid(mode="live"), amount, mode="live")


async def asked(refunds: RefundApp, refund_id: str, operator: str = "olga") -> PendingAction:
    ports = by(refunds.ports, operator, object_id=refund_id, reason="the goods came back")
    return await waits(approve_refund(ports, refund_id))


async def test_an_action_takes_effect_when_another_operator_confirms_it(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    assert (await refunds.refund(refund_id)).approved_at is None
    assert [each.id for each in await list_actions(refunds.ports)] == [action.id]
    assert [(line.field, line.before, line.after) for line in action.shown][1:] == [
        ("refund", "100.00 RUB", "100.00 RUB"),
        ("approved", "no, pending", "yes"),
    ]
    await refunds.app.work(5)
    assert await refunds.status(refund_id) == "pending"
    done = (await confirm_action(by(refunds.ports, "ivan", "action.confirm", object_id=action.id), action.id)).action
    assert (done.status, done.operator, done.decided_by) == ("confirmed", "olga", "ivan")
    await refunds.app.work(5)
    assert await refunds.status(refund_id) == "completed"
    assert await list_actions(refunds.ports) == []
    assert [each.id for each in await list_actions(refunds.ports, waiting=False)] == [action.id]


async def test_both_names_stand_in_the_audit_log(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    await confirm_action(by(refunds.ports, "ivan", "action.confirm", reason="seen the parcel"), action.id)
    assert sorted(await rows(refunds.ports)) == [
        ("ivan", "action.confirm", refund_id),
        ("olga", "action.ask", refund_id),
        ("olga", "refund.approve", refund_id),
    ]
    by_name = {row.action: row for row in await list_audit(refunds.ports, limit=100)}
    assert by_name["action.confirm"].after == f"action={action.id} does=refund.approve asked_by=olga"
    assert by_name["action.confirm"].reason == "seen the parcel"
    assert by_name["refund.approve"].reason == "the goods came back"


@pytest.mark.parametrize("name", ["olga", "OLGA", " olga ", "ｏlga"])
async def test_requesting_operator_cannot_confirm(refunds: RefundApp, name: str) -> None:
    action = await asked(refunds, await applied(refunds))
    assert is_same_operator("olga", name)
    said = await refused(confirm_action(by(refunds.ports, name, "action.confirm"), action.id))
    assert said.startswith("INVALID_STATE: olga requested it")


async def test_a_refund_below_the_sum_needs_nobody_else(refunds: RefundApp) -> None:
    refund_id = await applied(refunds, "50.00")
    await approve_refund(by(refunds.ports, "olga"), refund_id)
    assert (await refunds.refund(refund_id)).approved_at is not None


async def test_small_refunds_of_one_payment_are_counted_together(refunds: RefundApp) -> None:
    payment_id = await refunds.paid(mode="live")
    first, second = [await refunds.apply(payment_id, "30.00", mode="live") for _ in range(2)]
    await approve_refund(by(refunds.ports, "olga"), first)
    await waits(approve_refund(by(refunds.ports, "olga"), second))


async def test_an_operators_refund_that_would_be_sent_at_once_waits(refunds: RefundApp) -> None:
    await refunds.set(refund_approval="auto")
    payment_id = await refunds.paid(mode="live")
    action = await waits(create_refund_for(by(refunds.ports, "olga", "refund.create"), payment_id, reason="by phone"))
    again = await waits(create_refund_for(by(refunds.ports, "vera", "refund.create"), payment_id, reason="by phone"))
    assert again.id == action.id
    assert not (await refunds.payment(payment_id)).refund_pending
    await confirm_action(by(refunds.ports, "ivan"), action.id)
    assert (await refunds.payment(payment_id)).refund_pending
    await refunds.app.work(5)
    assert (await refunds.payment(payment_id)).status == "refunded"


async def test_merchants_actions_and_test_mode_need_no_second_operator(refunds: RefundApp) -> None:
    await refunds.set(refund_approval="auto")
    live = await applied(refunds)
    assert (await refunds.refund(live)).approved_at is not None
    await refunds.set(refund_approval="manual")
    simulated = await refunds.apply(await refunds.paid())
    await approve_refund(by(refunds.ports, "olga"), simulated)
    assert (await refunds.refund(simulated)).approved_at is not None


async def test_a_payout_wallet_waits(refunds: RefundApp) -> None:
    account_id = refunds.app.account.account_id
    action = await waits(set_wallet(refunds.ports, "olga"))
    assert (action.object_id, action.mode, action.account_id) == (account_id, None, account_id)
    assert action.shown[1].before == "-"
    assert await wallet(refunds) is None
    await confirm_action(by(refunds.ports, "ivan"), action.id)
    assert await wallet(refunds) == WALLET
    await set_wallet(refunds.ports, "olga")
    await waits(set_wallet(refunds.ports, "olga", ""))


def set_wallet(ports: Ports, operator: str, address: str = WALLET) -> Awaitable[Account]:
    async def doing() -> Account:
        async with ports.storage.unit() as unit:
            [account] = await unit[Account].find(limit=1)
        return await accounts.set_settings(by(ports, operator, "account.set"), account.id, {"payout_wallet": address})

    return doing()


async def wallet(refunds: RefundApp) -> str | None:
    return (await refunds.caller()).account.settings.payout_wallet


async def test_secret_that_waits_is_encrypted_and_shown_at_the_confirmation(refunds: RefundApp) -> None:
    wish = {"payout_wallet": WALLET, "webhook_secret": SECRET}
    account_id = refunds.app.account.account_id
    action = await waits(accounts.set_settings(by(refunds.ports, "olga"), account_id, wish))
    [kept] = await everything(refunds.ports, PendingAction)
    assert SECRET not in str(msgspec.to_builtins(kept))
    done = await confirm_action(by(refunds.ports, "ivan"), action.id)
    assert done.secrets == {"webhook_secret": SECRET}
    assert SECRET not in repr(done)
    account = (await refunds.caller()).account
    assert account.settings.payout_wallet == WALLET
    assert account.webhook_secret is not None
    assert open_webhook_secret(refunds.ports.vault, account_id, account.webhook_secret) == SECRET


async def second_transfer(refunds: RefundApp) -> tuple[str, Suspense]:
    payment_id = await refunds.paid(mode="live")
    await refunds.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    [money] = await list_suspense(refunds.ports)
    return payment_id, money


async def test_money_in_suspense_waits(refunds: RefundApp) -> None:
    _, money = await second_transfer(refunds)
    action = await waits(return_suspense(by(refunds.ports, "olga", "payment.return"), money.id))
    await refunds.app.work(6)
    assert (await list_suspense(refunds.ports))[0].resolved_at is None
    await confirm_action(by(refunds.ports, "ivan"), action.id)
    await refunds.app.work(6)
    assert await list_suspense(refunds.ports) == []


@pytest.mark.parametrize(("outcome", "status"), [("paid", "paid"), ("failed", "failed")])
async def test_the_review_of_another_amount_waits(refunds: RefundApp, outcome: str, status: str) -> None:
    made = await refunds.app.create({"amount_rub": "100.00"}, mode="live")
    payment_id = made.json()["id"]
    await refunds.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, amount_kopecks=60_00))
    action = await waits(resolve_mismatch(by(refunds.ports, "olga", "payment.resolve"), payment_id, outcome))
    assert (await refunds.payment(payment_id)).status == "amount_mismatch"
    assert await everything(refunds.ports, Suspense) == []
    await confirm_action(by(refunds.ports, "ivan"), action.id)
    assert (await refunds.payment(payment_id)).status == status
    await refunds.app.work(6)


async def test_money_of_an_exchange_waits_and_goes_to_the_address_that_was_shown() -> None:
    async with open_exchange_app(receiver=False, four_eyes=ALL) as app:
        exchange_id = await late_usdt(app)
        app.app.made_up = True
        async with app.ports.storage.unit() as unit:
            [transfer] = await app.transfers()
            unit[ExchangeTransfer].save(msgspec.structs.replace(transfer, mode=Mode.LIVE))
            await unit.commit()
        action = await waits(return_money(by(app.ports, "olga", "exchange.return"), exchange_id, BACK))
        assert ("goes to", "-", BACK) in [(line.field, line.before, line.after) for line in action.shown]
        assert (await app.transfers())[0].sent_back is None
        await confirm_action(by(app.ports, "ivan"), action.id)
        back = (await app.transfers())[0].sent_back
        assert back is not None
        assert back.address == BACK


async def test_action_on_an_object_that_moved_meanwhile_is_not_confirmed(refunds: RefundApp) -> None:
    """The action is done as shown, or not at all; the confirming operator sees what changed."""
    first = await waits(set_wallet(refunds.ports, "olga"))
    async with refunds.ports.storage.unit() as unit:
        [account] = await unit[Account].find(limit=1)
        other = msgspec.structs.replace(account.settings, payout_wallet=BACK)
        unit[Account].save(tag_settings(refunds.ports.vault, msgspec.structs.replace(account, settings=other)))
        await unit.commit()
    said = await refused(confirm_action(by(refunds.ports, "ivan"), first.id))
    assert said == (
        "INVALID_STATE: The object changed since the action was requested: "
        f"payout_wallet was - → {WALLET}, and is {BACK} → {WALLET}"
    )
    assert await wallet(refunds) == BACK
    refund_id = await applied(refunds)
    second = await asked(refunds, refund_id)
    await reject_refund(by(refunds.ports, "vera", "refund.reject"), refund_id, "no")
    assert (await refused(confirm_action(by(refunds.ports, "ivan"), second.id))).startswith(
        "INVALID_STATE: The refund is"
    )
    assert {each.status for each in await everything(refunds.ports, PendingAction)} == {ActionStatus.WAITING}


async def test_repeated_request_after_a_change_makes_a_new_action(refunds: RefundApp) -> None:
    first = await waits(set_wallet(refunds.ports, "olga"))
    async with refunds.ports.storage.unit() as unit:
        [account] = await unit[Account].find(limit=1)
        unit[Account].save(msgspec.structs.replace(account, name="Another name"))
        await unit.commit()
    said = await refused(set_wallet(refunds.ports, "vera"))
    assert first.id in said
    second = await waits(set_wallet(refunds.ports, "olga"))
    assert second.id != first.id
    assert (await get_action(refunds.ports, first.id)).status == "withdrawn"


async def test_two_confirmations_at_once_execute_once(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    gated = msgspec.structs.replace(refunds.ports, storage=BarrierStorage(refunds.ports.storage, 2))
    ends = await asyncio.gather(
        *(confirm_action(by(gated, name), action.id) for name in ("ivan", "vera")), return_exceptions=True
    )
    told = [str(end) for end in ends if isinstance(end, Refusal)]
    assert len(told) == 1
    assert told[0].startswith("The action was confirmed already by")
    assert [row for row in await rows(refunds.ports) if row[1] == "refund.approve"] == [
        ("olga", "refund.approve", refund_id)
    ]


async def test_confirmed_and_rejected_at_once_is_one_of_both(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    gated = msgspec.structs.replace(refunds.ports, storage=BarrierStorage(refunds.ports.storage, 2))
    ends = await asyncio.gather(
        confirm_action(by(gated, "ivan"), action.id),
        reject_action(by(gated, "vera"), action.id),
        return_exceptions=True,
    )
    assert [isinstance(end, Refusal) for end in ends].count(True) == 1
    is_approved = (await refunds.refund(refund_id)).approved_at is not None
    assert (await get_action(refunds.ports, action.id)).status == ("confirmed" if is_approved else "rejected")


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_leaves_the_action_done_and_confirmed_or_neither(refunds: RefundApp, after: bool) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    with pytest.raises(Killed):
        await confirm_action(by(fused(refunds.ports, CrashPoint(1, after=after)), "ivan"), action.id)
    is_approved = (await refunds.refund(refund_id)).approved_at is not None
    assert is_approved is after
    assert (await get_action(refunds.ports, action.id)).status == ("confirmed" if after else "waiting")
    assert ("ivan", "action.confirm", refund_id) in await rows(refunds.ports) or not after


async def test_two_that_ask_at_once_ask_for_one(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    gated = msgspec.structs.replace(refunds.ports, storage=BarrierStorage(refunds.ports.storage, 2))
    actions = await asyncio.gather(*(waits(approve_refund(by(gated, name), refund_id)) for name in ("olga", "ivan")))
    assert actions[0].id == actions[1].id
    assert len(await everything(refunds.ports, PendingAction)) == 1


class Losing:
    """A storage whose first commits of a pending action lose to somebody else."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self._left = 3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self._storage.unit() as unit:

            async def commit() -> None:
                self._left -= 1
                if self._left >= 0:
                    raise Stale("somebody else was quicker")
                await unit.commit()

            yield OtherCommit(unit, commit)


async def test_request_that_holds_the_fair_lock_does_not_wait_for_itself(refunds: RefundApp) -> None:
    """An action that lost twice to others has the turn of its process while it is written down."""
    losing = msgspec.structs.replace(refunds.ports, storage=Losing(refunds.ports.storage))
    assert isinstance(refunds.ports.storage, Queueing)
    async with refunds.ports.storage.turn():
        asking = asyncio.ensure_future(waits(set_wallet(losing, "olga")))
        done, _ = await asyncio.wait([asking], timeout=10)
        asking.cancel()
    assert done
    assert [each.id for each in await list_actions(refunds.ports)] == [asking.result().id]


async def test_action_is_rejected_by_others_and_withdrawn_by_its_requester(refunds: RefundApp) -> None:
    for name, status in (("ivan", "rejected"), ("olga", "withdrawn")):
        refund_id = await applied(refunds)
        action = await asked(refunds, refund_id)
        assert (await reject_action(by(refunds.ports, name, "action.reject", reason="no"), action.id)).status == status
        assert (name, "action.reject", refund_id) in await rows(refunds.ports)
        assert await refused(confirm_action(by(refunds.ports, "vera"), action.id)) == (
            f"INVALID_STATE: The action was {status} already by {name}"
        )
        assert (await refused(reject_action(by(refunds.ports, "vera"), action.id))).startswith("INVALID_STATE")
        assert (await asked(refunds, refund_id)).id != action.id


async def test_pending_action_is_among_the_action_items(refunds: RefundApp) -> None:
    action = await asked(refunds, await applied(refunds))
    needs = [need for need in (await read_action_items(refunds.ports)).found if need.of == "action"]
    assert [(need.kind, need.object_id, need.text) for need in needs] == [
        ("confirm", action.id, "olga asks for refund.approve")
    ]
    await reject_action(by(refunds.ports, "ivan"), action.id)
    assert "action" not in [need.of for need in (await read_action_items(refunds.ports)).found]


async def test_pending_action_expires(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    await refunds.app.clock.advance(3 * 86_400 - 1)
    assert len(await list_actions(refunds.ports)) == 1
    await refunds.app.clock.advance(1)
    assert await list_actions(refunds.ports) == []
    assert await refused(confirm_action(by(refunds.ports, "ivan"), action.id)) == (
        "INVALID_STATE: The action has expired: request it again"
    )
    assert (await asked(refunds, refund_id, "ivan")).operator == "ivan"
    assert (await get_action(refunds.ports, action.id)).status == "expired"


async def test_an_unknown_action_is_none(refunds: RefundApp) -> None:
    for action_id in ("", "action_x", "ref_x", "action_\0"):
        for doing in (confirm_action, reject_action):
            assert (await refused(doing(by(refunds.ports, "ivan"), action_id))).startswith("ACTION_NOT_FOUND")


async def test_a_program_that_names_nobody_is_refused(refunds: RefundApp) -> None:
    """The host of an embedded service, too, passes the one gate."""
    refund_id = await applied(refunds)
    assert (await refused(approve_refund(refunds.ports, refund_id))).startswith("SECOND_OPERATOR_NEEDED")
    assert (await refunds.refund(refund_id)).approved_at is None
    assert await everything(refunds.ports, PendingAction) == []
    assert await rows(refunds.ports) == []
    action = await asked(refunds, refund_id)
    assert (await refused(confirm_action(refunds.ports, action.id))).startswith("VALIDATION_ERROR")
    small = await applied(refunds, "10.00")
    await approve_refund(refunds.ports, small)
    assert await rows(refunds.ports) == [("olga", "action.ask", refund_id)]


async def test_undeclared_use_case_is_refused(refunds: RefundApp) -> None:
    """A use case of tomorrow that writes a wallet, and forgot the gate."""
    account_id = refunds.app.account.account_id

    async def work(unit: Unit) -> None:
        account = await unit[Account].get(account_id)
        assert account is not None
        settings = msgspec.structs.replace(account.settings, payout_wallet=WALLET)
        unit[Account].save(msgspec.structs.replace(account, settings=settings))

    ports = by(refunds.ports, "olga", "account.improve")
    assert (await refused(retrying(ports.storage, work))).startswith("SECOND_OPERATOR_NEEDED")
    assert not has_written(ports)
    assert await wallet(refunds) is None


async def test_a_merchant_may_still_cancel_what_waits(refunds: RefundApp) -> None:
    refund_id = await applied(refunds)
    action = await asked(refunds, refund_id)
    await cancel_refund(refunds.ports, await refunds.caller(Mode.LIVE), refund_id)
    assert (await refused(confirm_action(by(refunds.ports, "ivan"), action.id))).startswith("INVALID_STATE")
    assert [job for job in await everything(refunds.ports, Job) if job.kind.startswith("refund")] == []


async def test_one_operator_is_enough_without_the_setting() -> None:
    async with open_refund_app() as refunds:
        refund_id = await applied(refunds)
        await approve_refund(by(refunds.ports, "olga"), refund_id)
        await set_wallet(refunds.ports, "olga")
        assert await everything(refunds.ports, PendingAction) == []


def test_every_use_case_that_may_wait_declares_itself_by_its_own_name() -> None:
    """`CARRIED_OUT` calls the use case that `gated` names. Otherwise the confirmed action could differ from the one
    that waited."""
    declared: dict[str, Callable[..., Any]] = {
        "set_settings": accounts.set_settings,
        "approve_refund": approve_refund,
        "create_refund_for": create_refund_for,
        "return_suspense": return_suspense,
        "return_money": return_money,
        "resolve_mismatch": resolve_mismatch,
        "create_shop": shops.create_shop,
        "set_shop": shops.set_shop,
        "create_key": keys.create_key,
        "rotate_key": keys.rotate_key,
        "set_key": keys.set_key,
        "accept_sent": accept_sent,
        "end_unanswered": end_unanswered,
        "resume": resume,
        "create_operator": create_operator,
        "end_operator": end_operator,
    }
    assert set(CARRIED_OUT) == set(declared)
    for name, use_case in declared.items():
        code = getattr(use_case, "__wrapped__", use_case).__code__
        assert "gated" in code.co_names, name
        assert name in code.co_consts, name
