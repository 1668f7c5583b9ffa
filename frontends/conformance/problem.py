"""Rules under provider failures, cancelled calls, several processes and clock skew, common to all ports that call a
provider (docs/adapters.md "When the provider fails"). A suite describes its operation with a Work."""

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
from ...ports.notifications import InboundNotification
from ..fake_provider.faults import UNCLEAR, ProviderFault
from ..fake_provider.provider import FakeProvider, HeldCall
from ..fake_provider.requests import ProviderRequest, is_write
from .expectations import may_raise, must_answer, must_raise
from .hidden import check_hidden, unplayed

Ask = Callable[[], Awaitable[Any]]


class ProviderHarness:
    """Common part of the harnesses of adapters that call a provider over HTTP."""

    secrets: tuple[str, ...] = ()
    """Credentials of the adapter. None of them may show."""
    clock: Clock = SystemClock()
    """The adapter's clock."""
    provider: FakeProvider | None = None
    """The fake provider behind the adapter, if there is one. It simulates all failures of the connection."""

    def is_write(self, request: ProviderRequest) -> bool:
        """Return whether this request changes anything at the provider. Override it if reads are POSTs too."""
        return is_write(request)

    def forge(self, notification: InboundNotification, operation: str, other: str) -> InboundNotification:
        """Return the notification changed to name another operation, with the original signature. If its body has no id
        of ours, a byte is appended instead. Override it if only a part of the body is signed."""
        body = notification.body.replace(operation.encode(), other.encode())
        return msgspec.structs.replace(notification, body=body if body != notification.body else body + b" ")

    async def outlast_lost_calls(self) -> None:
        """Let enough time pass that no call with a lost answer can still arrive. Only adapters whose provider has no
        idempotency keys must wait for it before they repeat a call."""

    async def spoil_write(self, fault: ProviderFault, *, retry_after: int | datetime | None = None) -> None:
        """Let the next writing call meet this fault. The provider executes the call if `fault.done`."""
        self._fake("faults of writing calls", "spoil_write").next(
            fault, matching=self.is_write, retry_after=retry_after
        )

    async def spoil_reads(self, fault: ProviderFault) -> None:
        """Let all reading calls meet this fault, until `recover`."""
        provider = self._fake("faults of reading calls", "spoil_reads")
        provider.next(fault, matching=lambda request: not self.is_write(request), always=True)

    async def recover(self) -> None:
        """End all faults."""
        self._fake("faults that end", "recover").recover()

    async def hold_next_write(self, *, done: bool) -> HeldCall:
        """Hold the answer of the next writing call until it is released. The provider executes the call before (`done`)
        or after the release."""
        return self._fake("answers that are slow", "hold_next_write").hold_next(matching=self.is_write, done=done)

    async def skew(self, span: timedelta) -> None:
        """Move the provider's clock ahead of ours by this span from now on, or behind if the span is negative."""
        unplayed("clocks that differ")

    async def lose_next_answer(self, *, done: bool) -> None:
        """Lose the answer of the next writing call. With `done`, the provider executes the call all the same."""
        lost = ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE
        self._fake("answers that are lost", "lose_next_answer").next(lost, matching=self.is_write)

    async def be_away(self) -> None:
        """Let no connection to the provider succeed from now on."""
        self._fake("a provider that is away", "be_away").be_away()

    async def refuse_credentials(self) -> None:
        """Let the provider reject the adapter's credentials from now on."""
        self._fake("credentials that are refused", "refuse_credentials").next(ProviderFault.UNAUTHORIZED, always=True)

    def _fake(self, what: str, method: str) -> FakeProvider:
        if self.provider is None:
            unplayed(what, "provider", method)
        return self.provider


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter under test and its harness."""

    harness: ProviderHarness
    adapter: object
    hidden: tuple[str, ...] = ()
    """Personal data in the requests, which no fault may contain."""


class Reading(Tried, frozen=True, kw_only=True):
    """Reading calls of an adapter. Each can be repeated any number of times."""

    reads: tuple[Ask, ...] = ()
    """Reads that only the provider can answer."""
    finds: tuple[Ask, ...] = ()
    """Searches for an existing object. The adapter may answer them from its notes, but only the provider can say that
    an object does not exist."""


class Work(Tried, frozen=True, kw_only=True):
    """An operation that changes something at the provider."""

    write: Ask
    """Sends the operation, for the first time or again."""
    is_there: Callable[[], Awaitable[bool]]
    """Return whether the provider has the operation, found by its id alone."""
    once: Ask
    """Asserts that the operation was executed exactly once."""
    beside: Ask | None = None
    """Sends the operation through another adapter of the same name, as a second process does."""
    outlasts: bool = False
    """A repeat may have to wait until no lost call can still arrive. Set for operations that send money."""
    in_one_call: bool = True
    """The operation takes a single writing call. If false, a half-finished operation may or may not be found."""


_TELLING = [
    *(fault for fault in UNCLEAR if fault not in (ProviderFault.HUGE, ProviderFault.ENDLESS)),
    ProviderFault.BUSY,
    ProviderFault.UNAUTHORIZED,
]
"""Faults whose answers could end up in a fault's text. The two omitted ones take long and add nothing."""


_LIMIT = "a call that met the provider's limit was certainly not executed"


async def _unknown(work: Work) -> Fault:
    rule = "a writing call without a clear answer has an unknown outcome: it may have been done"
    with must_raise(rule, OutcomeUnknown) as raised:
        await work.write()
    await _outlast(work)
    return raised.value


async def _outlast(work: Work) -> None:
    if work.outlasts:
        await work.harness.outlast_lost_calls()


async def _says_nothing(read: Reading) -> None:
    for ask in read.reads:
        with must_raise("a read that failed is Unavailable", Unavailable):
            await ask()
    for ask in read.finds:
        with may_raise("a read that failed is Unavailable", Unavailable):
            assert await ask() is not None, "a read that failed must not be reported as an absence"


class ReadRules:
    """A failed read says nothing about the object."""

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_read_that_fails_is_unavailable_and_no_absence(self, read: Reading, fault: ProviderFault) -> None:
        await read.harness.spoil_reads(fault)
        await _says_nothing(read)
        await read.harness.recover()
        with must_answer("when the provider answers again, so must the adapter"):
            for ask in (*read.reads, *read.finds):
                await ask()

    async def test_a_limit_on_reads_says_nothing_about_what_is_read(self, read: Reading) -> None:
        await read.harness.spoil_reads(ProviderFault.BUSY)
        await _says_nothing(read)

    @pytest.mark.parametrize("fault", _TELLING)
    async def test_no_credential_shows_in_faults_and_logs_of_reads(
        self, read: Reading, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Checks all Python loggers at every level, so the logs of the HTTP client count too."""
        caplog.set_level(logging.DEBUG)
        await read.harness.spoil_reads(fault)
        told: list[object] = []
        for ask in (*read.reads, *read.finds):
            try:
                await ask()
            except Fault as fault_told:
                told.append(fault_told)
        assert len(told) >= len(read.reads), "a read that failed must raise a fault"
        check_hidden((*read.harness.secrets, *read.hidden), read.adapter, *told, caplog.text)


class WriteRules:
    """Each answer leads to one of three outcomes, and no operation is executed twice or lost."""

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_write_without_a_clear_answer_is_unknown_and_once(self, work: Work, fault: ProviderFault) -> None:
        """A partial answer, a 5xx, a redirect or an unreadable answer does not prove that nothing was done."""
        await work.harness.spoil_write(fault)
        await _unknown(work)
        if work.in_one_call or not fault.done:
            assert await work.is_there() is fault.done, "the operation id must show whether the operation was done"
        await work.write()
        await work.once()

    async def test_a_limit_of_the_provider_was_certainly_not_executed(self, work: Work) -> None:
        """The provider answers 429, with the delay in seconds if it gives one."""
        await work.harness.spoil_write(ProviderFault.BUSY, retry_after=7)
        with must_raise(_LIMIT, Unavailable) as busy:
            await work.write()
        assert busy.value.retry_after == 7, "`retry_after` must be the seconds that the provider states"
        assert not await work.is_there(), "an operation that met a limit must not be found"

    async def test_a_limit_that_ends_at_a_moment_is_one_too(self, work: Work) -> None:
        """The adapter may ignore a date, but must not read it as a number."""
        until = work.harness.clock.now() + timedelta(minutes=2)
        await work.harness.spoil_write(ProviderFault.BUSY, retry_after=until)
        with must_raise(_LIMIT, Unavailable) as busy:
            await work.write()
        wait = busy.value.retry_after
        assert wait is None or 0 <= wait <= 120, "`retry_after` must be the seconds until the date, or None"

    @pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN])
    async def test_credentials_that_are_refused_once_refuse_one_call(self, work: Work, fault: ProviderFault) -> None:
        """Credentials may be rejected at any time. The next call works again."""
        await work.harness.spoil_write(fault)
        with must_raise("an operator must learn of refused credentials", NotConfigured):
            await work.write()
        assert not await work.is_there(), "an operation with refused credentials must not be found"
        await work.write()
        await work.once()

    @pytest.mark.parametrize("fault", _TELLING)
    async def test_no_credential_shows_in_faults_and_logs(
        self, work: Work, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await work.harness.spoil_write(fault)
        with must_raise("a writing call that fails must raise a fault", Fault) as raised:
            await work.write()
        check_hidden((*work.harness.secrets, *work.hidden), work.adapter, raised.value, caplog.text)

    @pytest.mark.parametrize("minutes", [-4, 4])
    async def test_clocks_that_differ_hide_nothing(self, work: Work, minutes: int) -> None:
        """With clock skew, an object may seem older than its request, or created in the future."""
        await work.harness.skew(timedelta(minutes=minutes))
        await work.harness.spoil_write(ProviderFault.LOST_AFTER)
        await _unknown(work)
        assert await work.is_there() or not work.in_one_call, "clock skew must not hide an operation"
        await work.write()
        await work.once()


class CancelRules:
    """A call that takes too long is cancelled, wherever it stands (docs/adapters.md "A bank: three outcomes")."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_call_that_was_cancelled_is_done_once(self, work: Work, done: bool) -> None:
        """The provider executes the call before or after the caller goes away."""
        held = await work.harness.hold_next_write(done=done)
        call = asyncio.ensure_future(work.write())
        await held.arrived()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):  # an adapter that swallows it would never end
            await call
        await held.release()
        await _outlast(work)
        assert await work.is_there() or not work.in_one_call, "an operation whose call was cancelled must be found"
        await work.write()
        await work.once()


class TwoProcessRules:
    """Several processes each have an adapter of the same name, on one storage and one provider."""

    async def test_second_process_repeats_the_operation_of_the_first(self, work: Work) -> None:
        await work.write()
        await _beside(work)()
        await work.once()

    async def test_both_at_once_do_it_once(self, work: Work) -> None:
        beside = _beside(work)
        await asyncio.gather(*(ask() for ask in (work.write, beside) * 3))
        await work.once()


def _beside(work: Work) -> Ask:
    if work.beside is None:
        unplayed("a second process", "another")
    return work.beside
