"""The engine of signed transfers, tested with each kind that uses it and one kind of the tests: with any answer of a
wallet, any crash and any number of concurrent runs, the USDT leave once (docs/settlement.md "Payouts"; ARCHITECTURE.md
"Signed transfers")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.payouts.simulator import LIFETIME
from cambist.adapters.script import Ending, Twist
from cambist.core.usecases.common.schedule import FollowUp
from cambist.core.usecases.signed_transfers.engine import ANEW, FORGED, NOT_WIRED, follow, refuse, sign_only
from cambist.ports.bundle import Ports
from cambist.ports.faults import Held, Stale, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.payouts import Senders, SentTransfer, SignedTransfer, TransferState
from tests.crash_points import CrashPoint, Killed, fused
from tests.payout_kit import DEARER, OTHER_WALLET, ReplacingWallet, lost_wallet
from tests.signed_kit import GIFTS, KINDS, Subject, open_subject, read_gift

SIGNED_ANEW = {"payout": False, "exchange": True, "return": True, "gift": True}
"""Whether a kind is signed again once the network proved that its transfer never moves."""

E = Ending
T = TransferState


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
async def subject(kind: str) -> AsyncIterator[Subject]:
    async with open_subject(kind) as opened:
        yield opened


class TestTheEnds:
    async def test_final_is_the_end(self, subject: Subject) -> None:
        assert await subject.run() == 5
        sent = await subject.tx_hash()
        await subject.on_chain(T.FINAL)
        assert await subject.run() is None
        assert await subject.is_over()
        assert await subject.moved() == [sent]
        assert [name for name, _ in subject.wallet.calls] == ["find", "sign", "broadcast", "state"]

    async def test_transfer_that_never_expires_is_polled_until_it_is_final(self, subject: Subject) -> None:
        """It is sent again as long as the network does not know it. A replacement by the wallet has the hash that
        people search for."""
        wallet = ReplacingWallet(subject.wallet.inner)
        senders = Senders(senders={wallet.name: wallet}, modes={"test": wallet.name})
        ports = msgspec.structs.replace(subject.ports, senders=senders)
        assert await subject.run(ports) == 15
        [first] = wallet.hashes("sign")
        assert await subject.tx_hash() == first
        await subject.on_chain(T.UNSEEN)
        await subject.app.clock.advance(LIFETIME.total_seconds() / 2)
        assert await subject.run(ports) == 15
        assert wallet.count("broadcast") == 2
        await subject.on_chain(T.FINAL)
        assert await subject.run(ports) is None
        assert await subject.is_over()
        shown = msgspec.to_builtins(await subject.now(), builtin_types=(bytes,))
        assert DEARER in f"{shown}", "it shows what is on the chain"

    async def test_refused_is_the_end_and_nothing_was_sent(self, subject: Subject) -> None:
        subject.wallet.script.sign.append(Twist(ending=E.REFUSED, reason="amount"))
        assert await subject.run() is None
        assert await subject.is_over()
        assert await subject.run() is None
        assert subject.wallet.calls == [("find", "-"), ("sign", "-")]

    async def test_never_is_the_end_or_the_way_to_another_transfer(self, subject: Subject, kind: str) -> None:
        await subject.run()
        first = await subject.tx_hash()
        await subject.on_chain(T.FAILED)
        assert await subject.run() == (ANEW.total_seconds() if SIGNED_ANEW[kind] else None)
        assert await subject.is_over() is not SIGNED_ANEW[kind]
        assert await subject.tx_hash() is None
        await subject.until_over()
        assert await subject.is_over()
        assert first not in await subject.moved()
        assert len(await subject.moved()) == subject.wallet.count("sign") - 1 == SIGNED_ANEW[kind]

    async def test_ended_transfer_is_not_polled(self, subject: Subject) -> None:
        await subject.until_over()
        asked = len(subject.wallet.calls)
        assert await subject.run() is None
        assert len(subject.wallet.calls) == asked


SILENT: dict[str, tuple[str, Twist, bool, float]] = {
    # The call, its answer, whether the subject is signed then, and seconds until it is retried.
    "find is away": ("find", Twist(ending=E.UNAVAILABLE), False, 10),
    "find names its pause": ("find", Twist(ending=E.UNAVAILABLE, retry_after=90), False, 90),
    "find is refused": ("find", Twist(ending=E.REFUSED), False, 10),
    "find is unknown": ("find", Twist(ending=E.UNKNOWN_DONE), False, 10),
    "find is not wired": ("find", Twist(ending=E.NOT_CONFIGURED), False, 3600),
    "sign is away": ("sign", Twist(ending=E.UNAVAILABLE), False, 10),
    "sign names its pause": ("sign", Twist(ending=E.UNAVAILABLE, retry_after=90), False, 90),
    "sign is unknown": ("sign", Twist(ending=E.UNKNOWN_DONE), False, 10),
    "sign is not wired": ("sign", Twist(ending=E.NOT_CONFIGURED), False, 3600),
    "sign is not supported": ("sign", Twist(ending=E.NOT_SUPPORTED), False, 3600),
    "broadcast is away": ("broadcast", Twist(ending=E.UNAVAILABLE), True, 5),
    "broadcast is refused": ("broadcast", Twist(ending=E.REFUSED), True, 5),
    "broadcast is lost": ("broadcast", Twist(ending=E.UNKNOWN_NOT_DONE), True, 5),
    "broadcast's answer is lost": ("broadcast", Twist(ending=E.UNKNOWN_DONE), True, 5),
    "broadcast is not wired": ("broadcast", Twist(ending=E.NOT_CONFIGURED), True, 3600),
    "broadcast is not supported": ("broadcast", Twist(ending=E.NOT_SUPPORTED), True, 3600),
}

UNSEEN: dict[str, tuple[Twist, float]] = {
    "away": (Twist(ending=E.UNAVAILABLE), 5),
    "away, with a pause": (Twist(ending=E.UNAVAILABLE, retry_after=600), 600),
    "away, with a short one": (Twist(ending=E.UNAVAILABLE, retry_after=1), 5),
    "refused": (Twist(ending=E.REFUSED), 5),
    "unknown": (Twist(ending=E.UNKNOWN_DONE), 5),
    "not wired": (Twist(ending=E.NOT_CONFIGURED), 3600),
    "not supported": (Twist(ending=E.NOT_SUPPORTED), 3600),
}


class TestWhatSaysNothing:
    @pytest.mark.parametrize("case", SILENT)
    async def test_transfer_is_retried_and_sent_once(self, subject: Subject, case: str) -> None:
        call, twist, is_signed, pause = SILENT[case]
        getattr(subject.wallet.script, call).append(twist)
        assert await subject.run() == pause
        assert (await subject.tx_hash() is not None) is is_signed
        if pause < LIFETIME.total_seconds():
            await subject.app.clock.advance(pause)
            await subject.until_over()
            assert len(await subject.moved()) == 1
            assert subject.wallet.hashes("broadcast") == subject.wallet.hashes("sign") - {"-"}

    @pytest.mark.parametrize("case", UNSEEN)
    async def test_a_look_that_fails_moves_nothing(self, subject: Subject, case: str) -> None:
        await subject.run()
        before = await subject.now()
        twist, pause = UNSEEN[case]
        subject.wallet.script.state.append(twist)
        assert await subject.run() == pause
        assert await subject.now() == before

    @pytest.mark.parametrize(
        ("attempts", "pause"), [(0, 10), (1, 10), (2, 30), (3, 120), (4, 600), (5, 3600), (6, 3600), (1000, 3600)]
    )
    async def test_signing_is_tried_again_by_the_backoff(self, subject: Subject, attempts: int, pause: float) -> None:
        subject.wallet.script.sign.append(Twist(ending=E.UNAVAILABLE))
        assert await subject.run(attempts=attempts) == pause

    @pytest.mark.parametrize(
        ("passed", "pause"),
        [(-60, 5), (299.999999, 5), (300, 60), (3599.999999, 60), (3600, 600), (864_000, 600)],
    )
    async def test_the_longer_it_takes_the_rarer_it_is_asked(
        self, subject: Subject, passed: float, pause: float
    ) -> None:
        await subject.run()
        await subject.on_chain(T.IN_BLOCK)
        await subject.app.clock.advance(LIFETIME.total_seconds() + passed)
        assert await subject.run() == pause
        assert not await subject.is_over()

    @pytest.mark.parametrize(("before_its_end", "times"), [(0.000001, 2), (0, 1)])
    async def test_transfer_is_sent_again_until_no_block_can_take_it(
        self, subject: Subject, before_its_end: float, times: int
    ) -> None:
        subject.wallet.script.broadcast.append(Twist(ending=E.UNKNOWN_NOT_DONE))
        await subject.run()
        await subject.app.clock.advance(LIFETIME.total_seconds() - before_its_end)
        await subject.run()
        assert subject.wallet.count("broadcast") == times

    async def test_transfer_waits_for_its_wallet(self, subject: Subject) -> None:
        assert await subject.run(lost_wallet(subject.ports)) == NOT_WIRED.total_seconds()
        await subject.run()
        assert await subject.run(lost_wallet(subject.ports)) == NOT_WIRED.total_seconds()
        await subject.until_over()
        assert len(await subject.moved()) == 1

    async def test_forged_transfer_is_never_signed(self, subject: Subject, caplog: pytest.LogCaptureFixture) -> None:
        decided = await subject.now()
        await subject.untag()
        assert await subject.run() == FORGED.total_seconds()
        with pytest.raises(Unavailable, match="tagged"):
            await sign_only(subject.row, subject.ports, await subject.now())
        assert (subject.wallet.calls, await subject.tx_hash()) == ([], None)
        assert "an operator is to look" in caplog.text
        await subject.put(decided)
        await subject.until_over()
        assert len(await subject.moved()) == 1

    async def test_a_held_copy_neither_signs_nor_sends(self, subject: Subject) -> None:
        held = {"sign"}

        async def hold(call: str) -> None:
            if call in held:
                raise Held("held")

        subject.wallet.before = hold
        assert await subject.run() == 10
        assert await subject.tx_hash() is None
        held = {"broadcast"}
        assert await subject.run() == 5
        assert (await subject.tx_hash() is None, await subject.moved()) == (False, [])
        held = set()
        await subject.until_over()
        assert len(await subject.moved()) == 1


class TestAWalletThatRemembersMore:
    """The database was restored from a backup that is older than the transfer."""

    async def test_transfer_that_the_wallet_sent_is_adopted(self, subject: Subject) -> None:
        decided = await subject.now()
        await subject.run()
        sent = await subject.tx_hash()
        await subject.put(decided)
        assert await subject.tx_hash() is None
        await subject.run()
        assert await subject.tx_hash() == sent
        await subject.until_over()
        assert (subject.wallet.count("sign"), await subject.moved()) == (1, [sent])

    async def test_transfer_is_found_without_a_stored_signature(
        self, subject: Subject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decided = await subject.now()
        await subject.run()
        await subject.put(decided)
        found = await subject.wallet.inner.find(self._operation(subject))
        assert found is not None
        self._says(subject, monkeypatch, msgspec.structs.replace(found.signed, blob=b""))
        await subject.run()
        await subject.on_chain(T.FINAL)
        await subject.until_over()
        assert (subject.wallet.count("sign"), subject.wallet.count("broadcast")) == (1, 1)

    @pytest.mark.parametrize("wrong", [{"units": 1}, {"address": OTHER_WALLET[::-1]}], ids=str)
    async def test_differently_sent_transfer_is_not_signed_again(
        self, subject: Subject, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
    ) -> None:
        decided = await subject.now()
        await subject.run()
        await subject.put(decided)
        self._says(subject, monkeypatch, **wrong)
        assert await subject.run() == 10
        assert (await subject.tx_hash(), subject.wallet.count("sign")) == (None, 1)

    async def test_wallet_forgets_a_transfer_that_never_moved(self, subject: Subject) -> None:
        decided = await subject.now()
        await subject.run()
        first = await subject.tx_hash()
        await subject.on_chain(T.FAILED)
        await subject.put(decided)
        await subject.until_over()
        assert first not in await subject.moved()
        assert len(await subject.moved()) == 1

    @staticmethod
    def _operation(subject: Subject) -> str:
        [signed] = subject.wallet.signed.values()
        return signed.operation

    @staticmethod
    def _says(
        subject: Subject, monkeypatch: pytest.MonkeyPatch, signed: SignedTransfer | None = None, **other: Any
    ) -> None:
        find = subject.wallet.find

        async def told(operation: str) -> SentTransfer | None:
            found = await find(operation)
            if found is None:
                return None
            return msgspec.structs.replace(found, signed=signed or found.signed, **other)

        monkeypatch.setattr(subject.wallet, "find", told)


class TestAtOnce:
    async def test_first_of_two_signatures_to_be_stored_counts(self, subject: Subject) -> None:
        async def another(call: str) -> None:
            if call == "sign":
                subject.wallet.after = None
                await subject.run()

        subject.wallet.after = another
        await subject.run()
        assert subject.wallet.count("sign") == 2
        assert subject.wallet.hashes("broadcast") == {await subject.tx_hash()}
        assert subject.wallet.count("broadcast") == 1
        await subject.until_over()
        assert len(await subject.moved()) == 1

    async def test_many_send_once_and_end_once(self, subject: Subject) -> None:
        await asyncio.gather(*(self._quietly(subject) for _ in range(6)))
        await subject.on_chain(T.IN_BLOCK)
        await asyncio.gather(*(self._quietly(subject) for _ in range(6)))
        await subject.on_chain(T.FINAL)
        await asyncio.gather(*(self._quietly(subject) for _ in range(6)))
        assert await subject.is_over()
        assert len(await subject.moved()) == len(subject.wallet.hashes("broadcast")) == 1

    @staticmethod
    async def _quietly(subject: Subject) -> None:
        with suppress(AssertionError):  # the subject moved on since its run
            await subject.run()

    async def test_simultaneous_runs_make_each_event_once(self, subject: Subject) -> None:
        subject.wallet.script.broadcast.append(Twist(ending=E.UNKNOWN_DONE))
        await subject.run()
        await asyncio.gather(*(self._quietly(subject) for _ in range(6)))
        events = await subject.app.events(subject.id)
        assert [event["status"] for event in events] == [each for each in ("pending", "processing", "sent") if events]
        await subject.until_over()

    async def test_transfer_cancelled_while_it_was_signed_is_never_sent(self, subject: Subject) -> None:
        async def operator(call: str) -> None:
            if call == "sign":
                subject.wallet.after = None
                await refuse(subject.row, subject.ports, await subject.now(), "called off")

        subject.wallet.after = operator
        assert await subject.run() is None
        assert (await subject.is_over(), subject.wallet.count("broadcast")) == (True, 0)

    async def test_signed_transfer_cannot_be_cancelled(self, subject: Subject) -> None:
        unsigned = await subject.now()
        await subject.run()
        for seen in (unsigned, await subject.now()):
            await refuse(subject.row, subject.ports, seen, "called off")
        await subject.until_over()
        assert len(await subject.moved()) == 1

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if SIGNED_ANEW[kind]])
    async def test_late_proof_of_absence_is_of_the_transfer_it_was_made_for(self, subject: Subject) -> None:
        """Otherwise a slow run would have the second transfer signed again, and the client would be paid twice."""
        await subject.run()
        await subject.on_chain(T.FAILED)

        async def meanwhile(call: str) -> None:
            if call == "state":
                subject.wallet.after = None
                await subject.run()
                await subject.run()

        subject.wallet.after = meanwhile
        await subject.run()
        second = await subject.tx_hash()
        assert second is not None
        await subject.until_over()
        assert (await subject.moved(), subject.wallet.count("sign")) == ([second], 2)

    async def test_deleted_transfer_is_neither_stored_nor_sent(self) -> None:
        async with open_subject("gift") as subject:

            async def forget(call: str) -> None:
                if call == "sign":
                    await subject.remove()

            subject.wallet.after = forget
            with pytest.raises(Stale):
                await subject.run()
            assert subject.wallet.count("broadcast") == 0

    async def test_transfer_deleted_before_its_outcome_came_is_not_recreated(self) -> None:
        async with open_subject("gift") as subject:
            await subject.run()
            await subject.on_chain(T.FINAL)

            async def forget(call: str) -> None:
                if call == "state":
                    await subject.remove()

            subject.wallet.after = forget
            with pytest.raises(Stale):
                await subject.run()
            assert await subject.ports.storage.get(subject.row.record, subject.id) is None


class Fuse(CrashPoint):
    """Kills at one point of a story: a commit, or a call of the wallet, before or after it takes effect."""

    async def before_call(self, _call: str) -> None:
        self.commits += 1
        if self.commits == self.at and not self.after:
            raise Killed

    async def after_call(self, _call: str) -> None:
        if self.commits == self.at and self.after:
            raise Killed


POINTS = {"payout": 7, "exchange": 6, "return": 6, "gift": 7}
"""Find, sign, stored, broadcast, the network's acceptance if the engine waits for it, state, final state."""
POINTS_ANEW = {"payout": 7, "exchange": 12, "return": 12, "gift": 13}
"""The same after a first transfer that provably can never move. A payout ends there; a gift is reported once."""


async def swept(kind: str, at: int, *, after: bool, never: bool) -> int:
    """The story with a crash at a point, gone on with by another process; how many points it came by. `never`: the
    first transfer that is stored never moves."""
    doomed: list[str] = []
    async with open_subject(kind) as opened:
        fuse = Fuse(at, after=after)
        opened.wallet.before, opened.wallet.after = fuse.before_call, fuse.after_call
        with suppress(Killed):
            await _story(opened, fused(opened.ports, fuse), doomed if never else None)
        opened.wallet.before = opened.wallet.after = None
        await _story(opened, opened.ports, doomed if never else None)
        assert await opened.is_over()
        assert len(await opened.moved()) == (SIGNED_ANEW[kind] if never else 1)
        return fuse.commits


async def _story(subject: Subject, ports: Ports, doomed: list[str] | None) -> None:
    """Run until the subject has ended. The network fails the first stored transfer if the subject can hold a `doomed`
    one."""
    for _ in range(20):
        sent = await subject.tx_hash()
        if doomed is not None and not doomed and sent is not None:
            doomed.append(sent)
            await subject.on_chain(T.FAILED)
        if await subject.is_over():
            return
        pause = await subject.run(ports)
        await subject.app.clock.advance(pause or 0)


class TestCrashes:
    @pytest.mark.parametrize("never", [False, True], ids=["final", "never"])
    async def test_the_story_has_as_many_points_as_are_swept(self, kind: str, never: bool) -> None:
        assert await swept(kind, 0, after=False, never=never) == (POINTS_ANEW if never else POINTS)[kind]

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("never", [False, True], ids=["final", "never"])
    async def test_a_crash_between_any_two_steps_sends_it_once(self, kind: str, never: bool, after: bool) -> None:
        for at in range(1, (POINTS_ANEW if never else POINTS)[kind] + 1):
            assert await swept(kind, at, after=after, never=never) == at

    async def test_signed_unsent_transfer_is_sent_by_the_next_run(self, subject: Subject) -> None:
        signed = await sign_only(subject.row, subject.ports, await subject.now())
        assert await sign_only(subject.row, subject.ports, signed) == signed
        assert subject.wallet.count("broadcast") == 0
        sent = await subject.tx_hash()
        await subject.until_over()
        assert (subject.wallet.count("sign"), await subject.moved()) == (1, [sent])


FOLLOW = FollowUp("gift.follow")


class TestItsJob:
    """The job of a subject that has no other job; `bring` leaves the job to the run that has it."""

    @pytest.fixture
    def kind(self) -> str:
        return "gift"

    async def claimed(self, subject: Subject, attempts: int = 1) -> Job:
        now = subject.ports.clock.now()
        job = msgspec.structs.replace(FOLLOW.first(subject.id, now, now), attempts=attempts)
        async with subject.ports.storage.unit() as unit:
            unit[Job].add(job)
            await unit.commit()
        claimed: Job = await self.standing(subject)
        return claimed

    async def standing(self, subject: Subject) -> Any:
        return await subject.ports.storage.get(Job, FOLLOW.id_of(subject.id))

    async def test_job_is_rescheduled_and_removed_at_the_end(self, subject: Subject) -> None:
        job = await self.claimed(subject)
        await follow(GIFTS, subject.ports, job)
        job = await self.standing(subject)
        assert job.due == subject.ports.clock.now() + timedelta(seconds=5)
        assert read_gift(await subject.now()).times_taken == 1
        await subject.on_chain(T.FINAL)
        await follow(GIFTS, subject.ports, job)
        assert (await self.standing(subject), await subject.is_over()) == (None, True)

    async def test_pause_of_the_job_follows_its_attempts(self, subject: Subject) -> None:
        subject.wallet.script.sign.append(Twist(ending=E.UNAVAILABLE))
        await follow(GIFTS, subject.ports, await self.claimed(subject, attempts=4))
        assert (await self.standing(subject)).due == subject.ports.clock.now() + timedelta(minutes=10)

    async def test_job_of_another_runner_is_left_alone(self, subject: Subject) -> None:
        job = await self.claimed(subject)
        async with subject.ports.storage.unit() as unit:
            taken_over = unit[Job].save(msgspec.structs.replace(job, attempts=2))
            await unit.commit()
        await follow(GIFTS, subject.ports, job)
        assert await self.standing(subject) == taken_over
        assert await subject.tx_hash() is not None

    async def test_job_of_a_deleted_subject_is_removed(self, subject: Subject) -> None:
        job = await self.claimed(subject)
        await subject.remove()
        await follow(GIFTS, subject.ports, job)
        assert await self.standing(subject) is None

    async def test_deleted_job_is_not_recreated(self, subject: Subject) -> None:
        job = await self.claimed(subject)
        async with subject.ports.storage.unit() as unit:
            unit[Job].remove(job)
            await unit.commit()
        await follow(GIFTS, subject.ports, job)
        assert (await self.standing(subject), await subject.tx_hash() is None) == (None, False)

    async def test_simultaneous_runs_count_the_broadcast_once(self, subject: Subject) -> None:
        job = await self.claimed(subject)
        subject.wallet.script.broadcast.append(Twist(ending=E.UNKNOWN_NOT_DONE))
        await follow(GIFTS, subject.ports, job)
        job = await self.standing(subject)
        await asyncio.gather(*(follow(GIFTS, subject.ports, job) for _ in range(4)))
        assert read_gift(await subject.now()).times_taken == 1
