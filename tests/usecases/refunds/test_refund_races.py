"""Refunds of one payment, and money of one merchant, at once, on every storage: versions and unique rules decide, not
the order in which requests were read (docs/refunds.md "Rules"; ARCHITECTURE.md "Units and jobs")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import EntryKind, JournalEntry
from cambist.core.domain.money import Usdt
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.refunds.refunds import approve_refund, cancel_refund, reject_refund
from cambist.core.usecases.refunds.waiting import retry_waiting
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.ports.bank import RefundState, RefundStatus
from tests.invariants import everything
from tests.race_barriers import OtherCommit
from tests.refund_app import MARKET_100, SETTLED_100, RefundApp, begin, conclude, open_refund_app, receive, send


@pytest.fixture
async def refunds(url: str, tmp_path: Path) -> AsyncIterator[RefundApp]:
    """Yield an app whose books are compared with the objects at the end."""
    async with open_refund_app(database_url=url, data_dir=tmp_path) as opened:
        yield opened


async def test_applications_at_once_never_exceed_the_remainder(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    done = await asyncio.gather(*(refunds.make(payment_id, "40.00") for _ in range(8)), return_exceptions=True)
    assert sorted(each.code if isinstance(each, Refusal) else "made" for each in done) == [
        *["OVER_REMAINING"] * 6,
        *["made"] * 2,
    ]
    for refund in await everything(refunds.ports, Refund):
        await send(refunds.ports, refund.id)
    assert await refunds.left_at_bank(payment_id) == 20_00


async def test_cancel_reject_and_execution_at_once_have_one_winner(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    for _ in range(9):
        refund_id = (await refunds.make(payment_id, "1.00")).id
        cancelled, rejected, _ = await asyncio.gather(
            cancel_refund(refunds.ports, await refunds.caller(), refund_id),
            reject_refund(refunds.ports, refund_id, "no"),
            begin(refunds.ports, refund_id),
            return_exceptions=True,
        )
        ended = [each.status for each in (cancelled, rejected) if isinstance(each, Refund)]
        assert len(ended) <= 1
        assert await refunds.status(refund_id) == (ended[0] if ended else "processing")
        assert await refunds.said(refund_id) == (["rejected"] if ended == ["rejected"] else [])


async def test_the_money_of_one_refund_is_taken_once(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = (await refunds.make(payment_id)).id
    begun = await asyncio.gather(*(begin(refunds.ports, refund_id) for _ in range(6)))
    assert sorted(is_fresh for _, is_fresh in begun) == [False] * 5 + [True]
    await asyncio.gather(*(send(refunds.ports, refund_id) for _ in range(4)))
    assert await refunds.left_at_bank(payment_id) == 0
    taken = [entry for entry in await everything(refunds.ports, JournalEntry) if entry.kind is EntryKind.REFUND_TAKEN]
    assert len(taken) == 1


async def test_two_refunds_that_take_at_once_never_take_more_than_there_is(refunds: RefundApp) -> None:
    first, second = await refunds.settled(), await refunds.settled()
    made = [await refunds.make(payment_id) for payment_id in (first, second)]
    who = await refunds.caller()
    await asyncio.gather(
        *(begin(refunds.ports, refund.id) for refund in made), retry_waiting(refunds.ports, who.account_id, who.mode)
    )
    assert sorted([await refunds.status(refund.id) for refund in made]) == ["pending", "processing"]
    assert (await refunds.balance()).available == Usdt(2 * SETTLED_100 - MARKET_100)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([RefundStatus.DONE], ["completed"]),
        ([RefundStatus.FAILED], ["failed"]),
        ([RefundStatus.REVERSED], ["completed", "reversed"]),
        ([RefundStatus.DONE, RefundStatus.REVERSED], ["completed", "reversed"]),
    ],
)
async def test_banks_report_repeated_at_once_counts_once(
    refunds: RefundApp, words: list[RefundStatus], said: list[str]
) -> None:
    payment_id = await refunds.paid()
    refund_id = (await refunds.make(payment_id)).id
    await begin(refunds.ports, refund_id)
    await asyncio.gather(
        *(conclude(refunds.ports, refund_id, RefundState(status=word)) for word in words for _ in range(5))
    )
    assert await refunds.said(refund_id) == said
    assert (await refunds.payment(payment_id)).status == ("refunded" if said == ["completed"] else "paid")


async def test_approvals_and_the_job_at_once_are_one_refund(refunds: RefundApp) -> None:
    await refunds.set(refund_approval="manual")
    payment_id = await refunds.paid()
    refund_id = (await refunds.make(payment_id)).id
    await asyncio.gather(*(approve_refund(refunds.ports, refund_id) for _ in range(5)))
    await asyncio.gather(send(refunds.ports, refund_id), send(refunds.ports, refund_id))
    await refunds.bank().simulate_refund(refund_id, RefundStatus.DONE)
    await asyncio.gather(*(receive(refunds.ports, refund_id) for _ in range(5)))
    assert await refunds.said(payment_id) == ["paid", "refunded"]
    assert await refunds.said(refund_id) == ["completed"]


async def test_a_settlement_and_refunds_at_once_keep_the_books(refunds: RefundApp) -> None:
    payments = [await refunds.paid() for _ in range(4)]
    made = [await refunds.make(payment_id, "30.00") for payment_id in payments]
    who = await refunds.caller()
    await asyncio.gather(
        settle_own(refunds.ports, who),
        *(send(refunds.ports, refund.id) for refund in made),
        *(refunds.make(each, "20.00") for each in payments),
    )
    for refund, word in zip(made, (RefundStatus.DONE, RefundStatus.FAILED) * 2, strict=True):
        await conclude(refunds.ports, refund.id, RefundState(status=word))
    await asyncio.gather(
        *(conclude(refunds.ports, refund.id, RefundState(status=RefundStatus.REVERSED)) for refund in made[:2]),
        settle_own(refunds.ports, who),
    )


class Interrupted:
    """A storage before whose first commit something else happens, once."""

    def __init__(self, storage: Any, happens: Callable[[], Awaitable[Any]]) -> None:
        self._storage = storage
        self._happens: Callable[[], Awaitable[Any]] | None = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._storage.unit() as unit:

            async def commit_after() -> None:
                happens, self._happens = self._happens, None
                if happens is not None:
                    await happens()
                await unit.commit()

            yield OtherCommit(unit, commit_after)


async def test_settlement_between_balance_check_and_waiting_mark_is_not_missed(
    refunds: RefundApp,
) -> None:
    """Its `retry_waiting` did not find the refund waiting yet, and the next settlement is a day later."""
    refund_id = (await refunds.make(await refunds.settled())).id
    storage = Interrupted(refunds.ports.storage, refunds.settled)
    await begin(msgspec.structs.replace(refunds.ports, storage=storage), refund_id)
    assert await refunds.status(refund_id) == "processing"
