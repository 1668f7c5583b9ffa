"""Concurrent changes of one payout: runs of its job, an operator, and payouts and refunds that take the same money
(docs/settlement.md "Payouts")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.settlement.withdrawal_progress import execute
from cambist.core.usecases.settlement.withdrawals import cancel_withdrawal, pay_out
from cambist.ports.payouts import TransferState
from cambist.ports.storage import Unit
from tests.payout_kit import CREDIT, PAID, REST, WALLET, Payouts, open_payouts
from tests.race_barriers import BarrierStorage
from tests.tables import table

S = WithdrawalStatus
ZERO = Usdt(0)
READ = "cambist.core.usecases.settlement.withdrawals.balance_types"


class TestAtOnce:
    @table("lost", [False, True], ids=["sent", "lost"])
    async def test_first_stored_of_two_signed_transfers_is_the_only_one_broadcast(self, lost: bool) -> None:
        async with open_payouts() as payouts:
            payouts.script.broadcast.extend([Twist(ending=Ending.UNKNOWN_NOT_DONE)] * lost)
            withdrawal = await payouts.made()
            [job] = await payouts.ports.storage.claim(1, LEASE)

            async def another_run(call: str) -> None:
                if call == "sign":
                    payouts.sender.after = None
                    await execute(payouts.ports, job)

            payouts.sender.after = another_run
            await execute(payouts.ports, job)
            await payouts.app.work(60)
            assert payouts.sender.count("sign") == 2
            assert payouts.sender.count("broadcast") == 1 + lost
            [broadcast] = payouts.sender.hashes("broadcast")
            done = await payouts.record(withdrawal.id)
            assert (done.status, done.tx_hash) == (S.COMPLETED, broadcast)
            assert await payouts.on_chain() == [(WALLET, PAID.units)]

    async def test_a_run_that_comes_late_changes_nothing(self) -> None:
        async with open_payouts() as payouts:
            withdrawal = await payouts.made()
            [job] = await payouts.ports.storage.claim(1, LEASE)

            async def meanwhile(call: str) -> None:
                if call == "broadcast":
                    payouts.sender.after = None
                    await payouts.app.clock.advance(LEASE + 1)
                    await payouts.app.work(60)

            payouts.sender.after = meanwhile
            await execute(payouts.ports, job)
            done = await payouts.record(withdrawal.id)
            assert (done.status, done.sequence) == (S.COMPLETED, 4)
            assert await payouts.jobs() == []

    async def test_a_run_whose_job_was_taken_over_leaves_the_job_alone(self) -> None:
        async with open_payouts() as payouts:
            await payouts.made()
            [job] = await payouts.ports.storage.claim(1, LEASE)
            await payouts.app.clock.advance(LEASE + 1)
            [taken_over] = await payouts.ports.storage.claim(1, LEASE)
            payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
            await execute(payouts.ports, job)
            assert await payouts.jobs() == [taken_over]
            await execute(payouts.ports, taken_over)
            await payouts.app.work(60)
            assert await payouts.on_chain() == [(WALLET, PAID.units)]

    async def test_withdrawal_cancelled_while_it_was_signed_is_never_broadcast(self) -> None:
        async with open_payouts() as payouts:
            withdrawal = await payouts.made()

            async def operator(call: str) -> None:
                if call == "sign":
                    await cancel_withdrawal(payouts.ports, withdrawal.id, "a wrong wallet")

            payouts.sender.after = operator
            await payouts.app.work(600)
            assert (await payouts.record(withdrawal.id)).status is S.CANCELLED
            assert payouts.sender.count("broadcast") == 0
            assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)
            assert await payouts.jobs() == []

    async def test_withdrawal_signed_before_its_cancellation_goes_its_way(self) -> None:
        async with open_payouts() as payouts:
            withdrawal = await payouts.made()
            late = InterruptedStorage(payouts.ports.storage, payouts)
            with pytest.raises(Refusal) as refused:
                await cancel_withdrawal(msgspec.structs.replace(payouts.ports, storage=late), withdrawal.id, "why")
            assert refused.value.code == "INVALID_STATE"
            await payouts.app.work(60)
            assert (await payouts.record(withdrawal.id)).status is S.COMPLETED
            assert await payouts.on_chain() == [(WALLET, PAID.units)]

    async def test_a_wallet_lost_with_a_transfer_under_way_moves_no_money(self) -> None:
        async with open_payouts() as payouts:
            payouts.script.broadcast.append(Twist(ending=Ending.NOT_CONFIGURED))
            withdrawal = await payouts.made()
            await payouts.app.work(3599)
            assert (await payouts.record(withdrawal.id)).status is S.PROCESSING
            assert await payouts.balance_types() == (REST, PAID, ZERO)
            await payouts.app.work(1)
            assert (await payouts.record(withdrawal.id)).status is S.FAILED


class InterruptedUnit:
    """A unit between whose reads and commit the worker comes."""

    def __init__(self, unit: Unit, storage: "InterruptedStorage") -> None:
        self._unit = unit
        self._storage = storage

    def __getitem__(self, kind: Any) -> Any:
        return self._unit[kind]

    async def commit(self, *, durable: bool = True) -> None:
        await self._storage.interrupt()
        await self._unit.commit(durable=durable)


class InterruptedStorage:
    """A storage where a payout's job runs just before the first commit."""

    def __init__(self, storage: Any, payouts: Payouts) -> None:
        self._storage = storage
        self._payouts: Payouts | None = payouts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    async def interrupt(self) -> None:
        payouts, self._payouts = self._payouts, None
        if payouts is not None:
            await payouts.app.work()

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[InterruptedUnit]:
        async with self._storage.unit() as unit:
            yield InterruptedUnit(unit, self)


async def test_simultaneous_payouts_take_the_money_once_on_every_storage(url: str, tmp_path: Path) -> None:
    async with open_payouts(database_url=url, data_dir=tmp_path) as payouts:
        await payouts.credit()
        gated = msgspec.structs.replace(payouts.ports, storage=BarrierStorage(payouts.ports.storage, 4))
        ends = await asyncio.gather(*(pay_out(gated, payouts.account_id, payouts.mode) for _ in range(4)))
        [made] = [end for end in ends if end is not None]
        assert made.amount == PAID
        assert await payouts.balance_types() == (REST, PAID, ZERO)
        assert len(await payouts.every()) == 1


async def test_a_payout_is_stored_and_read_back_whole_on_every_storage(url: str, tmp_path: Path) -> None:
    async with open_payouts(database_url=url, data_dir=tmp_path) as payouts:
        made = await payouts.made()
        assert await payouts.record(made.id) == made
        [job] = [job for job in await payouts.ports.storage.claim(10, LEASE) if job.argument == made.id]
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        await execute(payouts.ports, job)
        stored = await payouts.record(made.id)
        [signed] = payouts.sender.signed.values()
        assert (stored.status, stored.blob, stored.signed_until) == (S.PROCESSING, signed.blob, signed.expires_at)
        await execute(payouts.ports, job)
        assert (await payouts.record(made.id)).status is S.SENT
        await payouts.sender.inner.simulate(signed.tx_hash, TransferState.FINAL)
        await execute(payouts.ports, job)
        assert (await payouts.record(made.id)).status is S.COMPLETED
        assert await payouts.balance_types() == (REST, ZERO, PAID)
        assert await payouts.jobs() == []


async def test_money_taken_by_a_refund_between_two_reads_is_not_paid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_payouts() as payouts:
        await payouts.credit()

        async def late(unit: Unit, owner: str, mode: Mode) -> dict[BalanceType, int]:
            found = await balance_types(unit, owner, mode)
            monkeypatch.setattr(READ, balance_types)
            await payouts.credit(Usdt(-PAID.units // 2))
            return found

        monkeypatch.setattr(READ, late)
        withdrawal = await payouts.pay_out()
        assert withdrawal is not None
        assert withdrawal.amount < PAID
        available, reserved, _ = await payouts.balance_types()
        assert available >= ZERO
        assert reserved == withdrawal.amount
