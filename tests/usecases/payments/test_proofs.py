"""The check of a delivery proof in a whole app, by virtual time: every end, every race, jobs run twice, crashes
(docs/payments.md "Delivery proofs")."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.payments.proof_checks import CHAIN_AWAY, POLLS, SETTLEMENT_POLL
from cambist.core.usecases.jobs import LEASE, run, run_due
from cambist.core.usecases.payments.proof_checks import check
from cambist.core.usecases.payments.proofs import CHECK
from cambist.ports.chain import Network, TokenMove, TransactionState
from cambist.ports.faults import Stale
from cambist.ports.jobs import Job
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.proof_kit import CREDIT, DAY, HASH, OTHER_HASH, THIRD_HASH, Exchange, open_exchange

AWAY = Twist(ending=Ending.UNAVAILABLE)
BACKOFF = sum(POLLS, timedelta()).total_seconds()


@pytest.fixture
async def exchange() -> AsyncIterator[Exchange]:
    async with open_exchange() as opened:
        yield opened


class TestCheck:
    async def test_a_final_transfer_of_the_credit_confirms_at_the_first_look(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined()
        assert (await exchange.submit(payment_id))["status"] == "accepted"
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed", None)
        assert await exchange.jobs(CHECK.kind) == []

    @pytest.mark.parametrize(
        ("named", "network"), [("TRC20", Network.TRON), ("ERC20", Network.ETHEREUM), ("BEP20", Network.BSC)]
    )
    @pytest.mark.parametrize("spelling", [HASH, f"0x{HASH}", f" {HASH.upper()} "])
    async def test_each_network_is_asked_on_its_own_chain(
        self, exchange: Exchange, named: str, network: Network, spelling: str
    ) -> None:
        payment_id = await exchange.settled()
        await exchange.mined(network=network)
        await exchange.submit(payment_id, spelling, named)
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_another_amount_is_confirmed_amount_differs(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined(usdt=98)
        await exchange.submit(payment_id)
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed_amount_differs", None)

    async def test_seen_in_a_block_it_awaits_confirmations_and_then_confirms(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id)
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("in_review", None)
        await exchange.chain.simulate(Network.TRON, HASH, TransactionState.IN_BLOCK)
        await exchange.app.work(POLLS[0].total_seconds())
        assert await exchange.status(payment_id) == ("awaiting_confirmations", None)
        await exchange.mined()
        await exchange.app.work(POLLS[0].total_seconds())
        assert await exchange.status(payment_id) == ("confirmed", None)

    @pytest.mark.parametrize("state", [None, TransactionState.IN_BLOCK])
    async def test_not_found_or_never_final_ends_rejected_after_the_last_look(
        self, exchange: Exchange, state: TransactionState | None
    ) -> None:
        payment_id = await exchange.settled()
        if state is not None:
            await exchange.chain.simulate(Network.TRON, HASH, state)
        await exchange.submit(payment_id)
        await exchange.app.work(BACKOFF - 1)
        before, reason = await exchange.status(payment_id)
        assert (before, reason) == ("in_review" if state is None else "awaiting_confirmations", None)
        await exchange.app.work(1)
        assert await exchange.status(payment_id) == ("rejected", "not_found_or_unconfirmed")
        assert await exchange.jobs(CHECK.kind) == []

    @pytest.mark.parametrize(
        ("state", "moves"),
        [
            (TransactionState.REVERTED, [TokenMove(CREDIT.units)]),
            (TransactionState.FINAL, []),
            (TransactionState.FINAL, [TokenMove(CREDIT.units, genuine=False)]),
        ],
    )
    async def test_reverted_or_without_genuine_usdt_it_is_invalid(
        self, exchange: Exchange, state: TransactionState, moves: list[TokenMove]
    ) -> None:
        payment_id = await exchange.settled()
        await exchange.chain.simulate(Network.TRON, HASH, state, moves)
        await exchange.submit(payment_id)
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("rejected", "invalid")

    async def test_malformed_hash_is_invalid_without_asking_the_chain(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        exchange.script.lookup.append(AWAY)
        assert (await exchange.submit(payment_id, "https://tronscan.example/tx/1"))["status"] == "accepted"
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("rejected", "invalid")
        assert list(exchange.script.lookup) == [AWAY]

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.NOT_CONFIGURED, Ending.NOT_SUPPORTED])
    async def test_a_chain_that_is_away_for_days_rejects_nobody(self, exchange: Exchange, ending: Ending) -> None:
        payment_id = await exchange.settled()
        await exchange.mined()
        exchange.script.lookup.extend([Twist(ending=ending)] * 2000)
        await exchange.submit(payment_id)
        await exchange.app.work(3 * DAY)
        assert await exchange.status(payment_id) == ("in_review", None)
        assert len(exchange.script.lookup) == 2000 - 3 * DAY // CHAIN_AWAY.total_seconds() - 1
        exchange.script.lookup.clear()
        await exchange.app.work(CHAIN_AWAY.total_seconds())
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_before_the_settlement_it_is_in_review_and_is_compared_after_it(self, exchange: Exchange) -> None:
        payment_id = await exchange.paid()
        await exchange.mined()
        await exchange.submit(payment_id)
        await exchange.app.work(20 * 3600)
        assert await exchange.status(payment_id) == ("in_review", None)
        await exchange.settle(payment_id)
        await exchange.app.work(SETTLEMENT_POLL.total_seconds())
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_chain_is_not_polled_while_a_proof_waits_for_the_settlement(self, exchange: Exchange) -> None:
        payment_id = await exchange.paid()
        await exchange.mined()
        await exchange.submit(payment_id)
        await exchange.app.work()
        exchange.script.lookup.append(AWAY)
        await exchange.app.work(20 * 3600)
        assert list(exchange.script.lookup) == [AWAY]

    async def test_refunded_before_the_settlement_nobody_looks_for_ever(self, exchange: Exchange) -> None:
        payment_id = await exchange.paid()
        await exchange.mined()
        await exchange.submit(payment_id)
        await exchange.app.work()
        await exchange.change(payment_id, status=PaymentStatus.REFUNDED)
        await exchange.app.work(SETTLEMENT_POLL.total_seconds())
        assert (await exchange.status(payment_id), await exchange.jobs(CHECK.kind)) == (("in_review", None), [])

    async def test_no_status_of_a_proof_changes_the_payment(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        before = await exchange.payment(payment_id)
        for tx_hash in (HASH, OTHER_HASH):
            await exchange.submit(payment_id, tx_hash)
            await exchange.app.work()
        await exchange.mined(OTHER_HASH)
        await exchange.app.work(BACKOFF)
        assert await exchange.status(payment_id) == ("confirmed", None)
        assert await exchange.payment(payment_id) == before

    async def test_a_job_whose_proof_is_decided_already_is_done_without_a_look(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined()
        await exchange.submit(payment_id)
        await exchange.app.work()
        record, now = await exchange.record(payment_id), exchange.app.clock.now()
        exchange.script.lookup.append(AWAY)
        async with exchange.app.ports.storage.unit() as unit:
            unit[Job].add(CHECK.first(payment_id, now, now))
            await unit.commit()
        await exchange.app.work()
        assert (await exchange.record(payment_id), await exchange.jobs(CHECK.kind)) == (record, [])
        assert list(exchange.script.lookup) == [AWAY]


class TestReplacement:
    async def test_the_old_hash_stops_being_valid(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id, HASH)
        await exchange.app.work()
        await exchange.submit(payment_id, OTHER_HASH)
        await exchange.mined(HASH)
        await exchange.app.work(3600)
        assert await exchange.status(payment_id) == ("in_review", None)
        await exchange.mined(OTHER_HASH)
        await exchange.app.work(BACKOFF)
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_the_same_hash_in_another_network_is_a_replacement(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id, HASH, "TRC20")
        await exchange.mined(HASH, network=Network.BSC)
        assert (await exchange.submit(payment_id, HASH, "BEP20"))["network"] == "BEP20"
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_the_same_again_neither_moves_nor_restarts_anything(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id)
        await exchange.app.work(60)
        before, jobs = await exchange.record(payment_id), await exchange.jobs(CHECK.kind)
        assert (await exchange.submit(payment_id, f"0X{HASH}"))["status"] == "in_review"
        assert (await exchange.record(payment_id), await exchange.jobs(CHECK.kind)) == (before, jobs)

    async def test_in_review_for_over_a_day_the_same_hash_starts_the_check_anew(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        exchange.script.lookup.extend([AWAY] * 1000)
        await exchange.submit(payment_id)
        await exchange.app.work(DAY)
        assert (await exchange.submit(payment_id))["status"] == "in_review"
        await exchange.app.work(1)
        exchange.script.lookup.clear()
        await exchange.mined()
        assert (await exchange.submit(payment_id))["status"] == "accepted"
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_a_rejection_and_its_reason_stay_until_another_hash_is_sent(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.chain.simulate(Network.TRON, HASH, TransactionState.REVERTED)
        await exchange.submit(payment_id)
        await exchange.app.work(10 * DAY)
        assert (await exchange.submit(payment_id))["reason"] == "invalid"
        assert await exchange.status(payment_id) == ("rejected", "invalid")
        await exchange.submit(payment_id, OTHER_HASH)
        assert await exchange.status(payment_id) == ("accepted", None)

    async def test_a_transfer_that_came_too_late_may_be_sent_again(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id)
        await exchange.app.work(BACKOFF)
        await exchange.mined()
        assert await exchange.submit(payment_id) == {"network": "TRC20", "tx_hash": HASH, "status": "accepted"}
        await exchange.app.work()
        assert await exchange.status(payment_id) == ("confirmed", None)

    async def test_a_hash_that_comes_while_the_old_one_is_looked_up_wins(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined(HASH)
        await exchange.submit(payment_id, HASH)
        exchange.script.lookup.append(Twist(silence=5))
        looking = asyncio.create_task(run_due(exchange.app.ports))
        await exchange.app.clock.advance(4)
        await exchange.submit(payment_id, OTHER_HASH)
        await exchange.app.clock.advance(1)
        await looking
        assert (await exchange.record(payment_id)).tx_hash == OTHER_HASH
        assert await exchange.status(payment_id) == ("in_review", None)
        [job] = await exchange.jobs(CHECK.kind)
        assert job.due == exchange.app.clock.now() + POLLS[0]


async def posted(exchange: Exchange, *orders: tuple[str, str]) -> list[httpx.Response]:
    """The answers to (payment, hash) that are all sent at once."""
    return await asyncio.gather(
        *(exchange.post(payment_id, {"network": "TRC20", "tx_hash": tx_hash}) for payment_id, tx_hash in orders)
    )


class TestRaces:
    @pytest.mark.parametrize("first", [True, False])
    async def test_two_hashes_at_once_have_one_winner_and_one_conflict(self, exchange: Exchange, first: bool) -> None:
        payment_id = await exchange.settled()
        if not first:
            await exchange.submit(payment_id, THIRD_HASH)
        answers = await posted(exchange, (payment_id, HASH), (payment_id, OTHER_HASH))
        [won] = [answer for answer in answers if answer.status_code == 200]
        [lost] = [answer for answer in answers if answer is not won]
        assert (lost.status_code, lost.json()["error"]["code"]) == (409, "DELIVERY_PROOF_CONFLICT")
        assert (await exchange.read(payment_id)).json() == won.json()
        assert len(await exchange.jobs(CHECK.kind)) == 1

    async def test_the_same_hash_twice_at_once_is_one_submission(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        answers = await posted(exchange, *[(payment_id, HASH)] * 5)
        assert [answer.status_code for answer in answers] == [200] * 5
        assert {answer.text for answer in answers} == {answers[0].text}
        assert (await exchange.record(payment_id)).submission == 1

    async def test_a_move_by_the_check_is_no_conflict(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.submit(payment_id, HASH)
        [answer], _ = await asyncio.gather(posted(exchange, (payment_id, OTHER_HASH)), run_due(exchange.app.ports))
        assert (answer.status_code, answer.json()["tx_hash"]) == (200, OTHER_HASH)

    async def test_a_confirmation_that_comes_first_locks(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined(HASH)
        await exchange.submit(payment_id, HASH)
        await exchange.app.work()
        [answer] = await posted(exchange, (payment_id, OTHER_HASH))
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "DELIVERY_PROOF_LOCKED")
        assert (await exchange.read(payment_id)).json()["tx_hash"] == HASH


class TestOnePaymentPerTransaction:
    async def test_a_hash_of_another_payment_is_rejected_already_used_in_any_account(self, exchange: Exchange) -> None:
        another = await exchange.another_merchant()
        mine, alsomine, theirs = (
            await exchange.settled(),
            await exchange.settled(),
            await exchange.settled(another),
        )
        await exchange.mined()
        assert (await exchange.submit(mine))["status"] == "accepted"
        assert (await exchange.submit(alsomine, f"0x{HASH.upper()}"))["status"] == "accepted"
        assert (await exchange.submit(theirs, merchant=another))["status"] == "accepted"
        await exchange.app.work()
        assert await exchange.status(mine) == ("confirmed", None)
        assert await exchange.status(alsomine) == ("rejected", "already_used")
        assert await exchange.status(theirs, merchant=another) == ("rejected", "already_used")

    async def test_simultaneous_submissions_of_a_hash_have_one_holder(self, exchange: Exchange) -> None:
        payments = [await exchange.settled() for _ in range(6)]
        await exchange.mined()
        answers = await posted(exchange, *((payment_id, HASH) for payment_id in payments))
        assert {answer.json()["status"] for answer in answers} == {"accepted"}
        await exchange.app.work()
        ends = [await exchange.status(payment_id) for payment_id in payments]
        assert sorted(ends) == [("confirmed", None), *[("rejected", "already_used")] * 5]

    async def test_the_same_hash_on_another_network_is_another_transaction(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        await exchange.mined(network=Network.TRON)
        await exchange.mined(network=Network.BSC)
        await exchange.submit(first, HASH, "TRC20")
        await exchange.submit(second, HASH, "BEP20")
        await exchange.app.work()
        assert [await exchange.status(one) for one in (first, second)] == [("confirmed", None)] * 2

    async def test_a_replaced_hash_is_free_for_others(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        await exchange.submit(first, HASH)
        await exchange.submit(first, OTHER_HASH)
        await exchange.mined()
        await exchange.submit(second, HASH)
        await exchange.app.work()
        assert await exchange.status(second) == ("confirmed", None)

    async def test_a_rejected_hash_is_free_for_others(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        await exchange.submit(first)
        await exchange.app.work(BACKOFF)
        await exchange.mined()
        await exchange.submit(second)
        await exchange.app.work()
        assert await exchange.status(second) == ("confirmed", None)
        await exchange.submit(first)
        await exchange.app.work()
        assert await exchange.status(first) == ("rejected", "already_used")

    async def test_hash_released_by_another_payment_before_the_check_is_taken(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        await exchange.mined()
        await exchange.submit(first, HASH)
        await exchange.submit(second, HASH)
        assert (await exchange.record(second)).claim is None
        await exchange.submit(first, OTHER_HASH)
        await exchange.app.work()
        assert await exchange.status(second) == ("confirmed", None)

    async def test_already_used_may_be_sent_again_once_the_other_let_go(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        for payment_id in (first, second):
            await exchange.submit(payment_id, HASH)
        await exchange.app.work()
        assert await exchange.status(second) == ("rejected", "already_used")
        await exchange.submit(first, OTHER_HASH)
        await exchange.mined()
        await exchange.submit(second, HASH)
        await exchange.app.work()
        assert await exchange.status(second) == ("confirmed", None)

    async def test_malformed_hash_is_held_by_no_payment(self, exchange: Exchange) -> None:
        first, second = await exchange.settled(), await exchange.settled()
        for payment_id in (first, second):
            await exchange.submit(payment_id, "no hash".replace(" ", "-"))
        await exchange.app.work()
        assert [await exchange.status(one) for one in (first, second)] == [("rejected", "invalid")] * 2


class TestJobsRunTwice:
    async def test_two_workers_at_one_check_write_once(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined()
        await exchange.submit(payment_id)
        ports = exchange.app.ports
        [slow] = await ports.storage.claim(1, LEASE)
        await exchange.app.clock.advance(LEASE + 1)
        await run_due(ports)
        record = await exchange.record(payment_id)
        assert record.status == "confirmed"
        await run(ports, slow)
        assert (await exchange.record(payment_id), await exchange.jobs(CHECK.kind)) == (record, [])

    async def test_a_worker_whose_proof_was_replaced_writes_nothing(self, exchange: Exchange) -> None:
        payment_id = await exchange.settled()
        await exchange.mined(HASH)
        await exchange.submit(payment_id, HASH)
        [slow] = await exchange.app.ports.storage.claim(1, LEASE)
        await exchange.submit(payment_id, OTHER_HASH)
        before, jobs = await exchange.record(payment_id), await exchange.jobs(CHECK.kind)
        with pytest.raises(Stale):
            await check(exchange.app.ports, slow)
        assert (await exchange.record(payment_id), await exchange.jobs(CHECK.kind)) == (before, jobs)

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("at", range(1, 6))
    async def test_killed_at_any_commit_it_ends_as_if_it_had_not_been(
        self, exchange: Exchange, at: int, after: bool
    ) -> None:
        first, payment_id = await exchange.settled(), await exchange.settled()
        await exchange.submit(first, HASH)
        await exchange.submit(payment_id, HASH)
        await exchange.submit(first, OTHER_HASH)
        await exchange.mined()
        whole = exchange.app.ports
        exchange.app.ports = msgspec.structs.replace(
            whole, storage=CrashingStorage(whole.storage, CrashPoint(at, after=after))
        )
        with contextlib.suppress(Killed):
            await exchange.app.work(30)
        exchange.app.ports = whole
        # The dead worker's lease ends first.
        await exchange.app.work(LEASE + 1)
        await exchange.app.work(BACKOFF)
        assert await exchange.status(payment_id) == ("confirmed", None)
        assert await exchange.status(first) == ("rejected", "not_found_or_unconfirmed")
        assert await exchange.jobs(CHECK.kind) == []
