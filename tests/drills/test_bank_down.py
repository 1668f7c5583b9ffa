"""A bank goes down under a service at work and comes back: its operator is woken once, by mail and in the chat, and
hears once that it is over (docs/alarms.md). Real processes, a real mail server, a chat over HTTP; the clock is
libfaketime's."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.core.usecases.recurring_jobs import TELL_ALARMS
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.testing import FakeProvider
from tests.drills.test_clock_steps import going_by, needs_faketime, set_clock
from tests.patience import drill_of
from tests.providers.test_alarm_channels import Chat
from tests.providers.test_mail_alarms import Server, serving
from tests.providers.yookassa.fake import KEY, SHOP, YooKassaFake
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import eventually, installation

POLL = 65
"""Seconds by which the clock is set forward: a little more than what lies between two looks of the alarms."""
CHANNELS = ("email", "slack")
LATER = 3
"""Polls at which no alarm may be repeated."""
MANY = 12
"""Payments by which a gateway is judged."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd.*")


class Watch:
    """The service's clock, which the drill sets forward poll by poll."""

    def __init__(self, file: Path, ports: Ports, mail: Server, chat: Chat) -> None:
        """`ports` are of an app on the data of the service."""
        self.file = file
        self.ports = ports
        self.mail = mail
        self.chat = chat
        self._ahead = 0

    @property
    def told(self) -> tuple[int, int]:
        """Letters, and texts in the chat."""
        return len(self.mail.letters), len(self.chat.texts)

    @property
    def urgent(self) -> bool:
        """Whether the newest letter is urgent."""
        return bool(self.mail.letters) and "URGENT" in self.mail.letters[-1][1]["Subject"]

    async def until_urgent(self, trade: Callable[[], Awaitable[object]]) -> tuple[int, int]:
        """Look, with trade in between, until the newest letter is urgent. The polls of open payments that went well a
        minute ago let the gateway pass through `degraded`, which is reported once, too."""
        for _ in range(12):
            await self.look(trade)
            if self.urgent and self.told[0] == self.told[1]:
                assert self.told <= (2, 2), self.chat.texts
                return self.told
        raise AssertionError(f"told {self.told}: {self.chat.texts}")

    async def until(self, wanted: tuple[int, int], trade: Callable[[], Awaitable[object]]) -> None:
        """Poll, with trade in between, until these alarms were sent."""
        for _ in range(12):
            await self.look(trade)
            if self.told >= wanted:
                return
        raise AssertionError(f"told {self.told}: {self.chat.texts}")

    async def look(self, trade: Callable[[], Awaitable[object]]) -> None:
        """Wait until each channel polled once more and sent its messages."""
        self._ahead += POLL
        set_clock(self.file, self._ahead)
        begun = datetime.now(UTC) + timedelta(seconds=self._ahead)
        await trade()

        async def has_been() -> bool:
            jobs = [await self.ports.storage.get(Job, TELL_ALARMS.id_of(channel)) for channel in CHANNELS]
            return all(job is not None and job.due > begun and job.leased_until is None for job in jobs)

        await eventually(has_been, every=0.1)


async def shops(edge: Merchant, count: int) -> set[int]:
    """Payments that are begun; how they were answered."""
    answers = await asyncio.gather(*(edge.create(str(uuid4())) for _ in range(count)))
    return {answer.status for answer in answers}


@pytest.mark.drill
@drill_of("tests/usecases/alarms/test_alarms.py")
@needs_faketime
async def test_an_operator_is_woken_once_and_hears_once_that_it_is_over(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        mail = await stack.enter_async_context(serving(None))
        provider = await stack.enter_async_context(FakeProvider())
        fake = await stack.enter_async_context(YooKassaFake(lambda: datetime.now(UTC)))
        chat = Chat(provider)
        place = stack.enter_context(
            installation(
                tmp_path,
                banks="yookassa",
                yookassa_shop_id=SHOP,
                yookassa_secret_key=KEY,
                yookassa_url=fake.api,
                alarms=",".join(CHANNELS),
                slack_url=f"{provider.url}/services/T/B/hunter2",
                email_host="127.0.0.1",
                email_port=str(mail.port),
                email_tls="off",
                email_from="cambist@pay.example",
                email_to="one@ops.example",
                alarm_backup_hours="0",
            )
        )
        account = await place.account()
        offset = tmp_path / "offset"
        set_clock(offset, 0)
        watch = Watch(offset, await stack.enter_async_context(place.app()), mail, chat)
        with going_by(place, offset):
            service, base = await asyncio.to_thread(place.serve)
        edge = await stack.enter_async_context(merchant(base, account.live))

        assert await shops(edge, MANY) == {201}
        await watch.look(lambda: shops(edge, 2))
        assert watch.told == (0, 0), (mail.letters, watch.chat.texts)

        fake.be_away()
        assert 201 not in await shops(edge, MANY)
        woken = await watch.until_urgent(lambda: shops(edge, MANY))
        to, letter = mail.letters[-1]
        assert to == ["one@ops.example"]
        assert "yookassa" in letter.get_content()
        assert "yookassa" in watch.chat.texts[-1]
        for _ in range(LATER):
            await watch.look(lambda: shops(edge, MANY))
        assert watch.told == woken, "while it lasts nobody is woken again"

        await fake.come_back()

        async def is_taken() -> bool:
            return await shops(edge, 1) == {201}

        await eventually(is_taken)
        ended = (woken[0] + 1, woken[1] + 1)
        await watch.until(ended, lambda: shops(edge, 4))
        _, over = mail.letters[-1]
        assert "yookassa" in over.get_content()
        assert "over" in f"{over['Subject']} {over.get_content()}".lower()
        assert "over" in watch.chat.texts[-1].lower()
        for _ in range(LATER):
            await watch.look(lambda: shops(edge, 2))
        assert watch.told == ended, "it is over once"
        assert await asyncio.to_thread(service.terminate) == 0, service.err
        assert KEY not in service.out + service.err
