"""A payout is sent exactly once, with any crash, any answer of the network, and any number of concurrent runs
(docs/states.md "Payout": the hash is stored before the broadcast)."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import WITHDRAWAL_MOVES, WithdrawalStatus
from cambist.core.usecases.jobs import WORKER_LEASE
from cambist.core.usecases.settlement.withdrawal_progress import execute
from tests.crash_points import CrashPoint, Killed, fused
from tests.payout_kit import CREDIT, PAID, REST, WALLET, Payouts, open_payouts
from tests.tables import table

S = WithdrawalStatus
ZERO = Usdt(0)
POLL = 5


class CallFuse:
    """Kills at one call of the service's wallet, before or after it takes effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.calls = 0

    async def strike_before(self, _call: str) -> None:
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise Killed

    async def strike_after(self, _call: str) -> None:
        if self.calls == self.at and self.after:
            raise Killed


async def story(payouts: Payouts) -> None:
    """A settlement's payout, until the network says that it is final."""
    await payouts.pay_out()
    await payouts.app.work(60)


ROUGH = (Twist(ending=Ending.UNKNOWN_NOT_DONE), Twist(ending=Ending.UNKNOWN_DONE))
"""A network that loses the first broadcast, and the answer to the second."""


class Ended(msgspec.Struct, frozen=True):
    """Counts of a run."""

    commits: int
    calls: int
    signed: int


async def run_with_crash(
    commit: int = 0, call: int = 0, *, after: bool = False, outage: float = 0, weather: Sequence[Twist] = ()
) -> Ended:
    """Run the story with a crash. After an `outage` a new process continues, and the next settlement follows."""
    async with open_payouts() as payouts:
        payouts.script.broadcast.extend(weather)
        await payouts.credit()
        whole, app, sender = payouts.ports, payouts.app, payouts.sender
        commits, calls = CrashPoint(commit, after=after), CallFuse(call, after=after)
        app.ports = fused(whole, commits)
        sender.before, sender.after = calls.strike_before, calls.strike_after
        with suppress(Killed):
            await story(payouts)
        app.ports = whole
        sender.before = sender.after = None
        # The new process finds the job when the dead one's lease has ended.
        await app.clock.advance(outage)
        for _ in range(40):
            await app.work(POLL)
        await payouts.pay_out()
        await app.work(60)
        await check(payouts)
        return Ended(commits.commits, calls.calls, sender.count("sign"))


async def check(payouts: Payouts) -> None:
    assert await payouts.on_chain() == [(WALLET, PAID.units)]
    assert await payouts.balance_types() == (REST, ZERO, PAID)
    assert await payouts.jobs() == []
    for withdrawal in await payouts.every():
        assert WITHDRAWAL_MOVES.is_final(withdrawal.status)
        assert withdrawal.blob is None
        moves = await payouts.statuses(withdrawal.id)
        assert len(moves) == withdrawal.sequence
        assert [before for before, _ in moves] == [None, *(after for _, after in moves[:-1])]
    assert payouts.sender.hashes("broadcast") <= payouts.sender.hashes("sign")


WEATHERS: Mapping[str, tuple[Sequence[Twist], int, int]] = {
    # The payout, its signed transfer, `sent`, `completed`; find, sign, broadcast, state.
    "calm": ((), 4, 4),
    # One commit more writes the job alone, after the lost broadcast; find, sign, broadcast, state, broadcast, state.
    "rough": (ROUGH, 5, 6),
}
COMMITS = [
    pytest.param(weather, at, id=f"{name}-{at}")
    for name, (weather, commits, _) in WEATHERS.items()
    for at in range(1, commits + 1)
]
CALLS = [
    pytest.param(weather, at, id=f"{name}-{at}")
    for name, (weather, _, calls) in WEATHERS.items()
    for at in range(1, calls + 1)
]
OUTAGES = pytest.mark.parametrize("outage", [0, 3600], ids=["at_once", "long"])
AFTER = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


@table("name", WEATHERS)
async def test_the_story_has_as_many_steps_as_are_swept(name: str) -> None:
    weather, commits, calls = WEATHERS[name]
    assert await run_with_crash(weather=weather) == Ended(commits, calls, signed=1)


@OUTAGES
@AFTER
@pytest.mark.parametrize(("weather", "at"), COMMITS)
async def test_a_crash_at_any_commit_sends_it_exactly_once(
    weather: Sequence[Twist], at: int, after: bool, outage: float
) -> None:
    ended = await run_with_crash(commit=at, after=after, outage=outage, weather=weather)
    assert ended.commits == at


@OUTAGES
@AFTER
@pytest.mark.parametrize(("weather", "at"), CALLS)
async def test_a_crash_at_any_call_of_the_wallet_sends_it_exactly_once(
    weather: Sequence[Twist], at: int, after: bool, outage: float
) -> None:
    ended = await run_with_crash(call=at, after=after, outage=outage, weather=weather)
    assert ended.calls == at


async def test_transfer_of_a_dead_signer_is_broadcast_while_it_is_valid() -> None:
    async with open_payouts() as payouts:
        withdrawal = await payouts.made()
        [job] = await payouts.ports.storage.claim(1, WORKER_LEASE)
        with pytest.raises(Killed):
            await execute(fused(payouts.ports, CrashPoint(1, after=True)), job)
        assert (await payouts.record(withdrawal.id)).status is S.PROCESSING
        await payouts.app.clock.advance(WORKER_LEASE)
        await payouts.app.work(60)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED
        assert payouts.sender.count("sign") == 1


_ENDINGS = st.lists(st.sampled_from(sorted(Ending)).map(lambda ending: Twist(ending=ending)), max_size=16)


@settings(max_examples=60, deadline=None)
@given(find=_ENDINGS, sign=_ENDINGS, broadcast=_ENDINGS, state=_ENDINGS, settlements=st.integers(1, 4))
def test_chain_and_ledger_agree_whatever_the_wallet_answers(
    find: list[Twist], sign: list[Twist], broadcast: list[Twist], state: list[Twist], settlements: int
) -> None:
    async def run() -> None:
        async with open_payouts() as payouts:
            payouts.script.find.extend(find)
            payouts.script.sign.extend(sign)
            payouts.script.broadcast.extend(broadcast)
            payouts.script.state.extend(state)
            for _ in range(settlements):
                await payouts.credit()
                await payouts.pay_out()
                await payouts.app.work(1800)
            # Long enough for every backoff, and for as many further settlements as there are refusals.
            for _ in range(20):
                await payouts.app.work(20 * 3600)
                await payouts.pay_out()
            await payouts.app.work(3600)
            available, reserved, paid = await payouts.balance_types()
            credited = Usdt(settlements * CREDIT.units)
            assert available + reserved + paid == credited
            assert sum(units for _, units in await payouts.on_chain()) == paid.units
            assert available.units < 100
            assert reserved == ZERO
            assert await payouts.jobs() == []

    asyncio.run(run())
