"""Races for one transaction and for one payment, on every storage: the unique rule and the version decide, not the
order in which requests were read (docs/payments.md "Delivery proofs")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.proofs import DeliveryProof, ProofOrder
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.payments.proof_checks import check
from cambist.core.usecases.payments.proofs import submit_proof
from cambist.ports.faults import Stale
from cambist.ports.storage import Unit
from tests.proof_kit import HASH, OTHER_HASH, Exchange, open_exchange
from tests.race_barriers import BarrierStorage


@pytest.fixture
async def exchange(url: str, tmp_path: Path) -> AsyncIterator[Exchange]:
    async with open_exchange(database_url=url, data_dir=tmp_path) as opened:
        yield opened


class InterruptedStorage:
    """A storage where something happens just before its n-th unit reads."""

    def __init__(self, storage: Any, at: int, happening: Callable[[], Awaitable[None]]) -> None:
        self._storage = storage
        self._left = at
        self._happening = happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        self._left -= 1
        if self._left == 0:
            await self._happening()
        async with self._storage.unit() as unit:
            yield unit


async def at_once(exchange: Exchange, *orders: tuple[str, str]) -> list[DeliveryProof | Refusal]:
    """The ends of submissions of (payment, hash) that have all read before one of them writes."""
    async with exchange.app.ports.storage.unit() as unit:
        account = await unit[Account].get(exchange.app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.LIVE, key_id="svc_live_races")
    gated = BarrierStorage(exchange.app.ports.storage, len(orders))
    ports = msgspec.structs.replace(exchange.app.ports, storage=gated)

    async def submit(payment_id: str, tx_hash: str) -> DeliveryProof | Refusal:
        try:
            return await submit_proof(ports, caller, payment_id, lambda: ProofOrder(network="TRC20", tx_hash=tx_hash))
        except Refusal as refusal:
            return refusal

    return await asyncio.gather(*(submit(*order) for order in orders))


async def test_payments_with_one_hash_at_once_prove_exactly_one(exchange: Exchange) -> None:
    payments = [await exchange.settled() for _ in range(5)]
    await exchange.mined()
    ends = await at_once(exchange, *((payment_id, HASH) for payment_id in payments))
    assert [end.status for end in ends] == ["accepted"] * 5
    assert len([end for end in ends if isinstance(end, DeliveryProof) and end.claim is not None]) == 1
    await exchange.app.work()
    read = [await exchange.status(payment_id) for payment_id in payments]
    assert sorted(read, key=str) == [("confirmed", None), *[("rejected", "already_used")] * 4]


@pytest.mark.parametrize("is_first", [True, False])
async def test_two_hashes_of_one_payment_at_once_have_one_winner(exchange: Exchange, is_first: bool) -> None:
    payment_id = await exchange.settled()
    if not is_first:
        await exchange.submit(payment_id, "c" * 64)
    ends = await at_once(exchange, (payment_id, HASH), (payment_id, OTHER_HASH))
    [won] = [end for end in ends if isinstance(end, DeliveryProof)]
    [lost] = [end for end in ends if isinstance(end, Refusal)]
    assert (await exchange.record(payment_id)).tx_hash == won.tx_hash
    assert (lost.status, lost.code) == (409, "DELIVERY_PROOF_CONFLICT")
    assert len(await exchange.jobs("proof.check")) == 1


async def test_one_hash_sent_twice_at_once_is_one_submission(exchange: Exchange) -> None:
    payment_id = await exchange.settled()
    first, second = await at_once(exchange, (payment_id, HASH), (payment_id, HASH))
    assert first == second == await exchange.record(payment_id)


async def test_two_payments_that_exchange_their_hashes_at_once_both_end(exchange: Exchange) -> None:
    first, second = await exchange.settled(), await exchange.settled()
    await exchange.submit(first, HASH)
    await exchange.submit(second, OTHER_HASH)
    await at_once(exchange, (first, OTHER_HASH), (second, HASH))
    for tx_hash in (HASH, OTHER_HASH):
        await exchange.mined(tx_hash)
    await exchange.app.work()
    ends = {await exchange.status(first), await exchange.status(second)}
    assert ends <= {("confirmed", None), ("rejected", "already_used")}
    assert ("confirmed", None) in ends


async def test_two_checks_of_a_free_transaction_have_one_winner(exchange: Exchange) -> None:
    holder, *rivals = [await exchange.settled() for _ in range(3)]
    await exchange.mined()
    for payment_id in (holder, *rivals):
        await exchange.submit(payment_id, HASH)
    await exchange.submit(holder, OTHER_HASH)
    ports = exchange.app.ports
    jobs = [job for job in await ports.storage.claim(10, LEASE) if job.argument in rivals]
    # Each check reads once before the unit that takes the transaction.
    gated = msgspec.structs.replace(ports, storage=BarrierStorage(ports.storage, len(rivals)))
    await asyncio.gather(*(check(gated, job) for job in jobs))
    assert sorted([await exchange.status(payment_id) for payment_id in rivals], key=str) == [
        ("confirmed", None),
        ("rejected", "already_used"),
    ]


async def test_check_takes_no_transaction_for_a_replaced_hash(exchange: Exchange) -> None:
    holder, payment_id = await exchange.settled(), await exchange.settled()
    for each in (holder, payment_id):
        await exchange.submit(each, HASH)
    await exchange.submit(holder, OTHER_HASH)
    ports = exchange.app.ports
    [job] = [job for job in await ports.storage.claim(10, LEASE) if job.argument == payment_id]

    async def replace() -> None:
        await exchange.submit(payment_id, "c" * 64)

    late = msgspec.structs.replace(ports, storage=InterruptedStorage(ports.storage, 2, replace))
    with pytest.raises(Stale):
        await check(late, job)
    assert (await exchange.record(payment_id)).claim == f"TRC20:{'c' * 64}"
