"""Providers that fail, callers that go away, several processes and clocks that differ: the same rules for every port
that asks a provider (docs/adapters.md "When the provider fails"). A suite says what its operations are by a Work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from ...adapters.clock import SystemClock
from ...ports.clock import Clock
from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ...ports.notices import InboundNotice
from ..fake_provider.faults import UNCLEAR, ProviderFault
from ..fake_provider.provider import FakeProvider, HeldCall
from ..fake_provider.requests import ProviderRequest, is_write
from .hidden import check_hidden, unplayed

Ask = Callable[[], Awaitable[Any]]


class ProviderBench:
    """What every bench of an adapter has that speaks to a provider by HTTP."""

    secrets: tuple[str, ...] = ()
    """Credentials that it was made with: none may show."""
    clock: Clock = SystemClock()
    """What the adapter was given."""
    provider: FakeProvider | None = None
    """The provider that the adapter speaks to, where it is such a fake: it plays all that goes wrong on the wire."""

    def is_write(self, request: ProviderRequest) -> bool:
        """Whether this changes anything at the provider; override it where reads are POSTs, too."""
        return is_write(request)

    def forge(self, notice: InboundNotice, operation: str, other: str) -> InboundNotice:
        """The notice of this operation, changed so that it would be about something else, under the signature that it
        has: where its body has no id of ours, by one byte more. Override it where not all of the body is signed."""
        body = notice.body.replace(operation.encode(), other.encode())
        return msgspec.structs.replace(notice, body=body if body != notice.body else body + b" ")

    async def outlast_lost_calls(self) -> None:
        """So much time passes that no call whose answer was lost can still arrive. Only an adapter whose provider knows
        no keys has to wait for it before it repeats anything."""

    async def spoil_write(self, fault: ProviderFault, *, retry_after: int | datetime | None = None) -> None:
        """The next writing call meets this fault, and is carried out if `fault.done`."""
        self._fake("faults of writing calls").next(fault, matching=self.is_write, retry_after=retry_after)

    async def spoil_reads(self, fault: ProviderFault) -> None:
        """All reading calls meet this fault, until `recover`."""
        provider = self._fake("faults of reading calls")
        provider.next(fault, matching=lambda request: not self.is_write(request), always=True)

    async def recover(self) -> None:
        """No call meets a fault any more."""
        self._fake("faults that end").recover()

    async def hold_next_write(self, *, done: bool) -> HeldCall:
        """The next writing call gets no answer before it is released; it is carried out before (`done`) or after it."""
        return self._fake("answers that are slow").hold_next(matching=self.is_write, done=done)

    async def skew(self, span: timedelta) -> None:
        """The provider's clock is ahead of ours by so much from now on; behind, where it is less than nothing."""
        unplayed("clocks that differ")

    async def lose_next_answer(self, *, done: bool) -> None:
        """The next writing call gets no answer; `done`: the provider has carried it out all the same."""
        lost = ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE
        self._fake("answers that are lost").next(lost, matching=self.is_write)

    async def be_away(self) -> None:
        """No connection to the provider can be made from now on."""
        self._fake("a provider that is away").be_away()

    async def refuse_credentials(self) -> None:
        """The provider does not take the adapter's credentials from now on."""
        self._fake("credentials that are refused").next(ProviderFault.UNAUTHORIZED, always=True)

    def _fake(self, what: str) -> FakeProvider:
        if self.provider is None:
            unplayed(what)
        return self.provider


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried."""

    bench: ProviderBench
    adapter: object
    hidden: tuple[str, ...] = ()
    """Personal data in what it is asked, which no fault may show, either."""


class Reading(Tried, frozen=True, kw_only=True):
    """What an adapter is asked without changing anything, each ready to be called as often as needed."""

    reads: tuple[Ask, ...] = ()
    """Only the provider can answer these."""
    finds: tuple[Ask, ...] = ()
    """Look for what is there. The adapter may have noted that; that it is not there only the provider can say."""


class Work(Tried, frozen=True, kw_only=True):
    """An operation that changes something at the provider."""

    write: Ask
    """Ask for it: the first time, and again."""
    is_there: Callable[[], Awaitable[bool]]
    """Whether the provider has it, as the adapter finds it by its operation alone."""
    once: Ask
    """Assert that it was done, once and no more."""
    beside: Ask | None = None
    """Ask for it as the next process does: by another adapter of the same name."""
    outlasts: bool = False
    """Of money that goes: a repeat may have to wait until nothing of a lost call can still arrive."""
    in_one_call: bool = True
    """One writing call of the provider is all of it. Else what was done halfway may be found, or not."""


_TELLING = [
    *(fault for fault in UNCLEAR if fault not in (ProviderFault.HUGE, ProviderFault.ENDLESS)),
    ProviderFault.BUSY,
    ProviderFault.UNAUTHORIZED,
]
"""Whose answers may be in a fault's text; the two that are left out take long, and say nothing more."""


async def _unknown(work: Work) -> Fault:
    with pytest.raises(OutcomeUnknown) as raised:
        await work.write()
    await _outlast(work)
    return raised.value


async def _outlast(work: Work) -> None:
    if work.outlasts:
        await work.bench.outlast_lost_calls()


async def _says_nothing(read: Reading) -> None:
    for ask in read.reads:
        with pytest.raises(Unavailable):
            await ask()
    for ask in read.finds:
        try:
            found = await ask()
        except Unavailable:
            continue
        assert found is not None, "a read that failed is told as an absence"


class ReadRules:
    """A read that fails says nothing about what is read."""

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_read_that_fails_is_unavailable_and_no_absence(self, read: Reading, fault: ProviderFault) -> None:
        await read.bench.spoil_reads(fault)
        await _says_nothing(read)
        await read.bench.recover()
        for ask in (*read.reads, *read.finds):
            await ask()

    async def test_a_limit_on_reads_says_nothing_about_what_is_read(self, read: Reading) -> None:
        await read.bench.spoil_reads(ProviderFault.BUSY)
        await _says_nothing(read)

    @pytest.mark.parametrize("fault", _TELLING)
    async def test_no_credential_shows_in_faults_and_logs_of_reads(
        self, read: Reading, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Of any logger that Python has, at any level: what a client's library logs of the adapter's calls, too."""
        caplog.set_level(logging.DEBUG)
        await read.bench.spoil_reads(fault)
        told: list[object] = []
        for ask in (*read.reads, *read.finds):
            try:
                await ask()
            except Fault as fault_told:
                told.append(fault_told)
        assert len(told) >= len(read.reads), "a read did not fail"
        check_hidden((*read.bench.secrets, *read.hidden), read.adapter, *told, caplog.text)


class WriteRules:
    """What an answer means is told by three ends, and nothing is done twice or lost by it."""

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_write_without_a_clear_answer_is_unknown_and_once(self, work: Work, fault: ProviderFault) -> None:
        """Half an answer, a 5xx, a redirect, what cannot be read: none says that nothing was done."""
        await work.bench.spoil_write(fault)
        await _unknown(work)
        if work.in_one_call or not fault.done:
            assert await work.is_there() is fault.done
        await work.write()
        await work.once()

    async def test_a_limit_of_the_provider_was_certainly_not_executed(self, work: Work) -> None:
        """429: and when to come back, where the provider says it in seconds."""
        await work.bench.spoil_write(ProviderFault.BUSY, retry_after=7)
        with pytest.raises(Unavailable) as busy:
            await work.write()
        assert busy.value.retry_after == 7
        assert not await work.is_there()

    async def test_a_limit_that_ends_at_a_moment_is_one_too(self, work: Work) -> None:
        """The date may be passed over; taken for a number it may not be."""
        until = work.bench.clock.now() + timedelta(minutes=2)
        await work.bench.spoil_write(ProviderFault.BUSY, retry_after=until)
        with pytest.raises(Unavailable) as busy:
            await work.write()
        assert busy.value.retry_after is None or 0 <= busy.value.retry_after <= 120

    @pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN])
    async def test_credentials_that_are_refused_once_refuse_one_call(self, work: Work, fault: ProviderFault) -> None:
        """In the middle of life: the next call is as good as before."""
        await work.bench.spoil_write(fault)
        with pytest.raises(NotConfigured):
            await work.write()
        assert not await work.is_there()
        await work.write()
        await work.once()

    @pytest.mark.parametrize("fault", _TELLING)
    async def test_no_credential_shows_in_faults_and_logs(
        self, work: Work, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await work.bench.spoil_write(fault)
        with pytest.raises(Fault) as raised:
            await work.write()
        check_hidden((*work.bench.secrets, *work.hidden), work.adapter, raised.value, caplog.text)

    @pytest.mark.parametrize("minutes", [-4, 4])
    async def test_clocks_that_differ_hide_nothing(self, work: Work, minutes: int) -> None:
        """What was made there seems to be made before it was asked for, or in time to come."""
        await work.bench.skew(timedelta(minutes=minutes))
        await work.bench.spoil_write(ProviderFault.LOST_AFTER)
        await _unknown(work)
        assert await work.is_there() or not work.in_one_call
        await work.write()
        await work.once()


class CancelRules:
    """A call that takes too long is cancelled, wherever it stands (docs/adapters.md "A bank: three ends")."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_call_that_was_cancelled_is_done_once(self, work: Work, done: bool) -> None:
        """Whether the provider carried it out before the caller went away, or does so after it."""
        held = await work.bench.hold_next_write(done=done)
        call = asyncio.ensure_future(work.write())
        await held.arrived()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await held.release()
        await _outlast(work)
        assert await work.is_there() or not work.in_one_call, "it was made, and is not found"
        await work.write()
        await work.once()


class TwoProcessRules:
    """Several processes have an adapter each, of one name, over one storage and one provider."""

    async def test_what_one_did_the_other_repeats(self, work: Work) -> None:
        await work.write()
        await _beside(work)()
        await work.once()

    async def test_both_at_once_do_it_once(self, work: Work) -> None:
        beside = _beside(work)
        await asyncio.gather(*(ask() for ask in (work.write, beside) * 3))
        await work.once()


def _beside(work: Work) -> Ask:
    if work.beside is None:
        unplayed("a second process")
    return work.beside
