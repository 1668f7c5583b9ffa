"""The suite of alarm channels, on all that are shipped (docs/adapters.md)."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from cambist.adapters.alarms.alertmanager import AlertmanagerAlarms
from cambist.adapters.alarms.mail import MailAlarms
from cambist.adapters.alarms.slack import SlackAlarms
from cambist.adapters.alarms.telegram import TelegramAlarms
from cambist.conformance import AlarmsHarness
from cambist.frontends.conformance.alarms import TestFailures, TestMessages, TestWhatItSays
from cambist.ports import Fault
from cambist.ports.alarms import Alarm
from cambist.testing import FakeProvider, ProviderFault
from tests.providers.test_alarm_channels import CHAT, TOKEN, Chat, Manager, Telegram
from tests.providers.test_mail_alarms import Server, serving

__all__ = ["TestFailures", "TestMessages", "TestWhatItSays"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd.*")


class TelegramHarness(AlarmsHarness):
    secrets = (TOKEN,)

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self._chat = Telegram(provider)
        self.channel = TelegramAlarms(TOKEN, CHAT, base_url=provider.url)

    def is_write(self, request: Any) -> bool:
        return str(request.path).endswith("/sendMessage")

    async def arrived(self) -> Sequence[str]:
        return [each["text"] for each in self._chat.sent]


class SlackHarness(AlarmsHarness):
    secrets = ("hunter2",)

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self._chat = Chat(provider)
        self.channel = SlackAlarms(f"{provider.url}/services/T/B/hunter2")

    async def arrived(self) -> Sequence[str]:
        return self._chat.texts


class AlertmanagerHarness(AlarmsHarness):
    secrets = ("hunter2",)

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self._manager = Manager(provider)
        self._taken: list[str] = []
        provider.on("POST", "/api/v2/alerts", self._post)
        self.channel = AlertmanagerAlarms(provider.url, user="cambist", password="hunter2")

    def _post(self, request: Any) -> Any:
        answer = self._manager.post(request)
        if answer.status == 200:
            alerts = msgspec.json.decode(request.body, type=list[dict[str, Any]])
            said = [text for alert in alerts for kind in ("labels", "annotations") for text in alert[kind].values()]
            self._taken.append("; ".join(said))
        return answer

    async def arrived(self) -> Sequence[str]:
        return self._taken


def sender(port: int) -> MailAlarms:
    """Return a sender for a server that requires neither encryption nor a login."""
    return MailAlarms(
        host="127.0.0.1",
        port=port,
        tls="off",
        sender="cambist@pay.example",
        recipients=("one@ops.example",),
        user=None,
        password=None,
    )


class MailHarness(AlarmsHarness):
    def __init__(self, mail: Server) -> None:
        self._mail = mail
        self.channel = sender(mail.port)

    async def arrived(self) -> Sequence[str]:
        return [f"{letter['Subject']}\n{letter.get_content()}" for _, letter in self._mail.letters]

    async def reached(self) -> Sequence[str]:
        return [address for to, _ in self._mail.letters for address in to]

    async def lose_next_answer(self, *, done: bool) -> None:
        assert done
        self._mail.hangs_up_after_data = True

    async def recover(self) -> None:
        self._mail.hangs_up_after_data = False

    async def be_away(self) -> None:
        self.channel = sender(port=1)


@pytest.fixture(params=["telegram", "slack", "alertmanager", "mail"])
async def alarms_harness(request: pytest.FixtureRequest) -> AsyncIterator[AlarmsHarness]:
    async with AsyncExitStack() as stack:
        if request.param == "mail":
            yield MailHarness(await stack.enter_async_context(serving(None)))
            return
        provider = await stack.enter_async_context(FakeProvider())
        kinds = {"telegram": TelegramHarness, "slack": SlackHarness, "alertmanager": AlertmanagerHarness}
        harness = cast("Any", kinds[request.param])(provider)
        yield harness
        await harness.channel.close()


class Careless(SlackAlarms):
    """Takes whatever happens for success."""

    async def tell(self, alarm: Alarm) -> None:
        with suppress(Fault):
            await super().tell(alarm)


async def test_a_channel_that_takes_whatever_happens_for_success_fails() -> None:
    rules = TestFailures()
    async with FakeProvider() as provider:
        harness = SlackHarness(provider)
        harness.channel = careless = Careless(f"{provider.url}/services/T/B/hunter2")
        for rule in (
            rules.test_an_answer_that_is_lost_says_nothing(harness),
            rules.test_how_long_it_wants_to_be_left_alone_is_told(harness),
            rules.test_alarm_that_did_not_arrive_is_never_taken_for_delivered(harness, ProviderFault.LOST_BEFORE),
        ):
            with pytest.raises(pytest.fail.Exception, match="the adapter raised no "):
                await rule
        await careless.close()


def test_every_suite_that_the_docs_name_can_be_run() -> None:
    """`pytest --pyargs cambist.conformance.NAME`."""
    page = (Path(__file__).parents[2] / "docs/adapters.md").read_text("utf-8")
    [table] = re.findall(r"\| `cambist\.conformance\.…` .*?\n\n", page, re.DOTALL)
    names = re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
    assert len(names) > 10
    for name in names:
        suite = import_module(f"cambist.conformance.{name}")
        assert [each for each in vars(suite) if each.startswith("Test")], name
