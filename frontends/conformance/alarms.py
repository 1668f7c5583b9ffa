"""Contract of an alarm channel (ports/alarms.py). Your conftest.py provides a fixture `alarms_harness`, an
AlarmsHarness."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ...ports.alarms import Alarm, AlarmLine, TellsMerchants
from ...ports.checking import Checkable
from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ..fake_provider.faults import ProviderFault
from .expectations import must_raise
from .harnesses import AlarmsHarness, check_hidden, check_name

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PLACE = "https://pay.example"
BEGUN = AlarmLine(
    id="gateway:live:bank", kind="gateway", text="gateway bank: down", urgent=True, since=NOW - timedelta(minutes=2)
)
GOING_ON = AlarmLine(id="payout:wd_1", kind="payout", text="payout wd_1: not final", since=NOW - timedelta(hours=4))
MOST = 300
"""Lines of one message. The service sends at most five of a kind, and has about twenty kinds."""
NOT_DONE = (ProviderFault.LOST_BEFORE, ProviderFault.SERVER_ERROR)


def alarm(number: int = 1, **more: Any) -> Alarm:
    """Return a message that says that a gateway went down."""
    return Alarm(**{"id": f"alarm_{number}", "at": NOW, "place": PLACE, "begun": (BEGUN,), **more})


class TestMessages:
    """A message arrives and can be read."""

    async def test_begin_and_end_of_a_problem_arrive(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.channel.tell(alarm())
        [began] = await alarms_harness.arrived()
        assert BEGUN.text in began, "a message has the text of the problem that began"
        await alarms_harness.channel.tell(alarm(2, at=NOW + timedelta(minutes=9), begun=(), over=(BEGUN,)))
        _, over = await alarms_harness.arrived()
        assert BEGUN.text in over, "a message has the text of the problem that is over"

    async def test_it_says_which_installation_speaks(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.channel.tell(alarm())
        [text] = await alarms_harness.arrived()
        assert "pay.example" in text, "a message names the installation that sends it"

    async def test_the_same_message_again_is_taken(self, alarms_harness: AlarmsHarness) -> None:
        """A message is repeated after an unknown outcome. The channel may show it twice, but must not raise."""
        await alarms_harness.channel.tell(alarm())
        await alarms_harness.channel.tell(alarm())
        assert BEGUN.text in (await alarms_harness.arrived())[-1], "a repeated message is accepted, shown again or not"

    async def test_a_test_and_what_wakes_nobody_arrive(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.channel.tell(alarm(begun=(), is_test=True))
        await alarms_harness.channel.tell(alarm(2, silent=True, going_on=(GOING_ON,)))
        assert len(await alarms_harness.arrived()) == 2, "a test message and a silent one arrive, too"

    async def test_the_longest_message_is_taken(self, alarms_harness: AlarmsHarness) -> None:
        """A channel with a lower limit shortens the text and puts urgent lines first."""
        many = tuple(
            AlarmLine(id=f"kind{number}:1", kind=f"kind{number}", text=f"kind{number}: {'я' * 200}")
            for number in range(MOST)
        )
        await alarms_harness.channel.tell(alarm(begun=(*many, BEGUN), over=many, going_on=many))
        [text] = await alarms_harness.arrived()
        assert BEGUN.text in text, "a shortened message keeps its urgent lines"

    @pytest.mark.parametrize("text", ["<!channel> & <b>", "a\r\nBcc: all@ops.example", "\x1b[31m\x00", "*_`[~>#+|{}.!"])
    async def test_nothing_in_it_is_obeyed(self, alarms_harness: AlarmsHarness, text: str) -> None:
        """The text may contain names that a merchant chose."""
        evil = AlarmLine(id="review:pay_1", kind="review", text=text)
        await alarms_harness.channel.tell(alarm(begun=(BEGUN, evil)))
        [arrived] = await alarms_harness.arrived()
        assert BEGUN.text in arrived, "hostile text in one line leaves the other lines readable"
        assert not re.search(r"[\x00\x1b]|[\r\n]Bcc:", arrived), "control characters and headers in a text are removed"

    async def test_messages_at_once_all_arrive(self, alarms_harness: AlarmsHarness) -> None:
        await asyncio.gather(*(alarms_harness.channel.tell(alarm(number)) for number in range(5)))
        assert len(await alarms_harness.arrived()) == 5, "messages sent at the same time all arrive"

    async def test_a_merchant_is_told_at_his_own_address(self, alarms_harness: AlarmsHarness) -> None:
        channel = alarms_harness.channel
        if not isinstance(channel, TellsMerchants):
            pytest.skip("the channel reaches operators alone")
        await channel.tell_merchant("dev@shop.example", alarm(for_merchant=True))
        assert await alarms_harness.reached() == ["dev@shop.example"], "a merchant's message goes to its address alone"


class TestFailures:
    """A channel distinguishes messages that certainly did not arrive from messages that may have. Both are sent again,
    but only after a certain failure may another channel take over."""

    @pytest.mark.parametrize("fault", NOT_DONE)
    async def test_alarm_that_did_not_arrive_is_never_taken_for_delivered(
        self, alarms_harness: AlarmsHarness, fault: ProviderFault
    ) -> None:
        await alarms_harness.spoil_write(fault)
        with must_raise(
            "a message that did not arrive is never taken for delivered", OutcomeUnknown, Unavailable
        ) as raised:
            await alarms_harness.channel.tell(alarm())
        check_hidden(alarms_harness.secrets, alarms_harness.channel, raised.value)
        await self._works(alarms_harness)

    async def test_an_answer_that_is_lost_says_nothing(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.lose_next_answer(done=True)
        with must_raise("after a lost answer nobody knows whether the message arrived", OutcomeUnknown):
            await alarms_harness.channel.tell(alarm())
        await alarms_harness.recover()
        await alarms_harness.channel.tell(alarm())
        assert BEGUN.text in (await alarms_harness.arrived())[-1], (
            "after a lost answer the same message can be sent again"
        )

    async def test_a_channel_that_is_away_was_certainly_not_reached(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.be_away()
        with must_raise("a channel that was not reached certainly delivered nothing", Unavailable):
            await alarms_harness.channel.tell(alarm())

    async def test_how_long_it_wants_to_be_left_alone_is_told(self, alarms_harness: AlarmsHarness) -> None:
        await alarms_harness.spoil_write(ProviderFault.BUSY, retry_after=35)
        with must_raise("a channel that asks for a pause certainly delivered nothing", Unavailable) as raised:
            await alarms_harness.channel.tell(alarm())
        assert raised.value.retry_after == 35, "Retry-After of the answer is in the fault"
        await self._works(alarms_harness)

    async def test_a_call_that_is_given_up_leaves_the_channel_working(self, alarms_harness: AlarmsHarness) -> None:
        held = await alarms_harness.hold_next_write(done=False)
        async with _cancelled(alarms_harness.channel.tell(alarm())):
            await held.arrived()
        await held.release()
        await alarms_harness.channel.tell(alarm(2))
        assert BEGUN.text in (await alarms_harness.arrived())[-1], "after a cancelled call the next message arrives"

    async def test_credentials_that_are_refused(self, alarms_harness: AlarmsHarness) -> None:
        """`check` passes before the credentials are refused, and raises afterwards."""
        channel = alarms_harness.channel
        if isinstance(channel, Checkable):
            await channel.check()
        await alarms_harness.refuse_credentials()
        with must_raise("refused credentials are a fault of the configuration", NotConfigured) as refused:
            await channel.tell(alarm())
        check_hidden(alarms_harness.secrets, channel, refused.value)
        if isinstance(channel, Checkable):
            with must_raise("`check` finds credentials that are refused", NotConfigured):
                await channel.check()

    async def test_no_credential_is_logged(
        self, alarms_harness: AlarmsHarness, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A channel's URL may itself be its credential."""
        with caplog.at_level("DEBUG"):
            await alarms_harness.channel.tell(alarm())
            await alarms_harness.spoil_write(ProviderFault.SERVER_ERROR)
            with must_raise("a server's error is a fault", Fault):
                await alarms_harness.channel.tell(alarm(2))
        check_hidden((*alarms_harness.secrets,), alarms_harness.channel, caplog.text)

    @staticmethod
    async def _works(harness: AlarmsHarness) -> None:
        await harness.recover()
        await harness.channel.tell(alarm(9))
        [text] = await harness.arrived()
        assert BEGUN.text in text, "after a failure the next message arrives, and only that one"


class TestWhatItSays:
    """A channel describes itself with fields that are stored with its messages, or read before it is used."""

    async def test_its_name_can_be_stored(self, alarms_harness: AlarmsHarness) -> None:
        check_name(alarms_harness.channel)

    async def test_it_mirrors_or_not_and_stays_so(self, alarms_harness: AlarmsHarness) -> None:
        mirrors = alarms_harness.channel.mirrors
        assert isinstance(mirrors, bool), "`mirrors` is a bool"
        await alarms_harness.channel.tell(alarm())
        assert alarms_harness.channel.mirrors is mirrors, "`mirrors` never changes"

    async def test_no_credential_shows(self, alarms_harness: AlarmsHarness) -> None:
        check_hidden(alarms_harness.secrets, alarms_harness.channel)


@asynccontextmanager
async def _cancelled(call: Any) -> AsyncIterator[None]:
    """Run the call while the block runs, and cancel it at the end."""
    task = asyncio.ensure_future(call)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
