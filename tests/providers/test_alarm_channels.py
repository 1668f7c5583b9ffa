"""Chat and Alertmanager as channels of alarms, against fakes that are as strict as they are (docs/alarms.md)."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from cambist.adapters.alarms.alertmanager import AlertmanagerAlarms
from cambist.adapters.alarms.slack import SlackAlarms
from cambist.adapters.alarms.telegram import TelegramAlarms
from cambist.adapters.alarms.texts import body_of, subject_of
from cambist.frontends.telemetry.masking import masked
from cambist.ports import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.alarms import Alarm, AlarmLine, Alarms
from cambist.testing import FakeProvider, ProviderAnswer, ProviderFault, ProviderRequest

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TOKEN = "123456789:AAHunter2-hunter2_hunter2hunter2abc"
CHAT, MOVED = "-1001234567890", -1009876543210
PLACE = "https://pay.example"


def line(number: int = 1, *, kind: str = "payout", urgent: bool = False) -> AlarmLine:
    return AlarmLine(
        id=f"{kind}:{number}", kind=kind, text=f"{kind} {number}: stuck", urgent=urgent, since=NOW - timedelta(hours=1)
    )


def alarm(**more: Any) -> Alarm:
    return Alarm(**{"id": "alarm_1", "at": NOW, "place": PLACE, "begun": (line(urgent=True),), **more})


class Telegram:
    """Refuses what the Bot API refuses."""

    def __init__(self, provider: FakeProvider) -> None:
        self.sent: list[dict[str, Any]] = []
        self.moved = False
        provider.on("POST", "/bot{token}/{method}", self.answer)

    def answer(self, request: ProviderRequest) -> ProviderAnswer:
        if request.parts["token"] != TOKEN:
            return self.error(401, "Unauthorized")
        if request.headers.get("content-type") != "application/json":
            return self.error(400, "Bad Request: message text is empty")
        body = msgspec.json.decode(request.body)
        method = request.parts["method"]
        if method == "getMe":
            return ProviderAnswer.of_json({"ok": True, "result": {"id": 1, "is_bot": True}})
        if self.moved and body.get("chat_id") == CHAT:
            more = {"migrate_to_chat_id": MOVED}
            return self.error(400, "Bad Request: group chat was upgraded to a supergroup chat", more)
        if body.get("chat_id") not in (CHAT, str(MOVED)):
            return self.error(400, "Bad Request: chat not found")
        if method == "getChat":
            return ProviderAnswer.of_json({"ok": True, "result": {"id": -1, "type": "supergroup"}})
        text = body.get("text", "")
        if method != "sendMessage" or not text.strip():
            return self.error(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            return self.error(400, "Bad Request: message is too long")
        if "parse_mode" in body:
            return self.error(400, "Bad Request: can't parse entities")
        self.sent.append(body)
        return ProviderAnswer.of_json({"ok": True, "result": {"message_id": len(self.sent)}})

    @staticmethod
    def error(code: int, description: str, parameters: dict[str, Any] | None = None) -> ProviderAnswer:
        said: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
        return ProviderAnswer.of_json(said | ({} if parameters is None else {"parameters": parameters}), code)


class Chat:
    """Takes what an incoming webhook of Slack takes."""

    def __init__(self, provider: FakeProvider) -> None:
        self.texts: list[str] = []
        self.queries: list[Any] = []
        provider.on("POST", "/services/T/B/hunter2", self.answer)

    def answer(self, request: ProviderRequest) -> ProviderAnswer:
        if request.headers.get("content-type") != "application/json":
            return ProviderAnswer(status=400, body=b"invalid_payload")
        text = msgspec.json.decode(request.body, type=dict[str, str])["text"]
        if not text or re.search(r"<(?!https?://)|&(?!amp;|lt;|gt;)", text):
            return ProviderAnswer(status=400, body=b"no_text")
        self.texts.append(text)
        self.queries.append(dict(request.query))
        return ProviderAnswer(status=200, body=b"ok")


class Manager:
    """Alertmanager's API of version 2, with the checks of its `Validate` and its default for a missing start."""

    def __init__(self, provider: FakeProvider) -> None:
        self.alerts: dict[str, tuple[datetime, datetime]] = {}
        provider.on("POST", "/api/v2/alerts", self.post)
        provider.on("GET", "/api/v2/status", lambda _: ProviderAnswer.of_json({"cluster": {"status": "ready"}}))

    def post(self, request: ProviderRequest) -> ProviderAnswer:
        if request.headers.get("content-type") != "application/json":
            return ProviderAnswer(status=415)
        for alert in msgspec.json.decode(request.body, type=list[dict[str, Any]]):
            labels: dict[str, str] = alert["labels"]
            ends = datetime.fromisoformat(alert["endsAt"])
            starts = datetime.fromisoformat(alert.get("startsAt", alert["endsAt"]))
            names = all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in labels)
            if not labels or not names or not all(labels.values()) or starts > ends:
                return ProviderAnswer.of_json("invalid alert", 400)
            assert set(alert) <= {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}
            self.alerts[labels["problem"]] = (starts, ends)
        return ProviderAnswer(status=200)

    def firing(self, at: datetime) -> set[str]:
        return {name for name, (starts, ends) in self.alerts.items() if starts <= at < ends}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider() as opened:
        yield opened


def telegram(provider: FakeProvider) -> TelegramAlarms:
    return TelegramAlarms(TOKEN, CHAT, base_url=provider.url)


def slack(provider: FakeProvider) -> SlackAlarms:
    return SlackAlarms(f"{provider.url}/services/T/B/hunter2")


def alertmanager(provider: FakeProvider) -> AlertmanagerAlarms:
    return AlertmanagerAlarms(provider.url)


class TestTelegram:
    async def test_a_message_is_text_without_previews_and_sounds_unless_it_is_silent(
        self, provider: FakeProvider
    ) -> None:
        chat, channel = Telegram(provider), telegram(provider)
        await channel.tell(alarm())
        await channel.tell(alarm(silent=True))
        assert [each["disable_notification"] for each in chat.sent] == [False, True]
        assert chat.sent[0]["link_preview_options"] == {"is_disabled": True}
        assert "! payout 1: stuck (since 2026-11-23 11:00 UTC)" in chat.sent[0]["text"]
        await channel.check()
        await channel.close()

    async def test_the_longest_message_is_taken(self, provider: FakeProvider) -> None:
        chat, channel = Telegram(provider), telegram(provider)
        many = tuple(line(number, kind=f"kind{number}") for number in range(500))
        await channel.tell(alarm(begun=many, over=many))
        assert chat.sent[0]["text"].endswith(f"…\n\n{PLACE}\n")
        await channel.close()

    async def test_a_group_that_became_a_supergroup_is_followed(self, provider: FakeProvider) -> None:
        chat, channel = Telegram(provider), telegram(provider)
        chat.moved = True
        await channel.tell(alarm())
        await channel.tell(alarm())
        assert [each["chat_id"] for each in chat.sent] == [str(MOVED)] * 2
        assert len(provider.requests) == 3
        await channel.close()

    @pytest.mark.parametrize(
        ("said", "fault"),
        [
            (Telegram.error(401, "Unauthorized"), NotConfigured),
            (Telegram.error(404, "Not Found"), NotConfigured),
            (Telegram.error(400, "Bad Request: chat not found"), Refused),
            (Telegram.error(403, "Forbidden: bot was woken up"), Refused),
            (Telegram.error(429, "Too Many Requests", {"retry_after": 35}), Unavailable),
            (Telegram.error(502, "Bad Gateway"), OutcomeUnknown),
        ],
    )
    async def test_refused_alarm_did_not_arrive(
        self, provider: FakeProvider, said: ProviderAnswer, fault: type[Fault]
    ) -> None:
        provider.on("POST", "/bot{token}/{method}", lambda _: said)
        channel = telegram(provider)
        with pytest.raises(fault) as caught:
            await channel.tell(alarm())
        assert getattr(caught.value, "retry_after", None) == (35 if said.status == 429 else None)
        await channel.close()

    async def test_a_chat_that_is_not_there_is_found_by_the_check(self, provider: FakeProvider) -> None:
        Telegram(provider)
        channel = TelegramAlarms(TOKEN, "@nobody", base_url=provider.url)
        with pytest.raises(NotConfigured, match="chat not found"):
            await channel.check()
        await channel.close()

    @pytest.mark.parametrize("fault", [ProviderFault.LOST_AFTER, ProviderFault.SERVER_ERROR, ProviderFault.HUGE])
    async def test_the_token_is_in_no_fault_and_no_log(
        self, provider: FakeProvider, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        provider.next(fault, always=True)
        channel = telegram(provider)
        with caplog.at_level("DEBUG"), pytest.raises(OutcomeUnknown) as caught:
            await channel.tell(alarm())
        told = f"{caught.value!r} {caught.value.__cause__!r} {channel!r} {caplog.text}"
        assert "unter2" not in told
        assert "unter2" not in masked(f"POST https://api.telegram.org/bot{TOKEN}/sendMessage")
        await channel.close()


class TestSlack:
    async def test_a_message_has_its_three_characters_escaped(self, provider: FakeProvider) -> None:
        chat, channel = Chat(provider), slack(provider)
        await channel.tell(alarm(begun=(AlarmLine(id="x", kind="x", text="a<b> & <!channel>"),)))
        assert "a&lt;b&gt; &amp; &lt;!channel&gt;" in chat.texts[0]
        await channel.close()

    async def test_an_address_may_have_a_query(self, provider: FakeProvider) -> None:
        chat = Chat(provider)
        channel = SlackAlarms(f"{provider.url}/services/T/B/hunter2?key=a%2Bb&token=c")
        await channel.tell(alarm())
        assert chat.queries == [{"key": "a+b", "token": "c"}]
        await channel.close()


class TestAlertmanager:
    async def test_ongoing_problem_fires_until_it_is_over_or_no_longer_sent(self, provider: FakeProvider) -> None:
        manager, channel = Manager(provider), alertmanager(provider)
        begun = AlarmLine(id="ledger", kind="ledger", text="it does not hold", urgent=True)
        await channel.tell(alarm(begun=(begun,), going_on=(line(1),), over=(line(2),)))
        assert manager.firing(NOW) == {"ledger", "payout:1"}
        assert manager.firing(NOW + timedelta(minutes=5)) == set()
        later = NOW + timedelta(minutes=1)
        await channel.tell(alarm(at=later, begun=(), going_on=(line(1),), over=(begun,)))
        assert manager.firing(later) == {"payout:1"}
        await channel.check()
        await channel.tell(alarm(begun=(), is_test=True))
        assert "test" in manager.firing(NOW)
        await channel.tell(alarm(begun=()))
        await channel.close()

    async def test_logs_in_where_it_has_to(self, provider: FakeProvider) -> None:
        Manager(provider)
        channel = AlertmanagerAlarms(provider.url, user="cambist", password="hunter2")
        await channel.check()
        assert provider.requests[0].headers["authorization"] == "Basic Y2FtYmlzdDpodW50ZXIy"
        assert "hunter2" not in repr(channel)
        await channel.close()


@pytest.mark.parametrize("make", [slack, alertmanager])
@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (301, Refused),
        (400, Refused),
        (401, NotConfigured),
        (403, NotConfigured),
        (404, NotConfigured),
        (410, NotConfigured),
        (429, Unavailable),
        (500, OutcomeUnknown),
        (503, Unavailable),
    ],
)
async def test_a_status_says_whether_it_arrived(
    provider: FakeProvider, make: Callable[[FakeProvider], Alarms], status: int, fault: type[Fault]
) -> None:
    provider.next(ProviderAnswer(status=status, body=b"no"), always=True)
    channel = make(provider)
    with pytest.raises(fault) as caught:
        await channel.tell(alarm())
    assert "unter2" not in f"{caught.value!r} {channel!r}"
    await cast("Any", channel).close()


class TestTexts:
    def test_a_kind_with_many_is_cut_and_counted(self) -> None:
        text = body_of(alarm(begun=tuple(line(number) for number in range(12)), going_on=(line(99),)), 4000)
        assert text.count("stuck") == 5
        assert "and 7 more of this kind" in text
        assert "Still going on: 1 (cambist alarm list)" in text

    def test_urgent_problem_comes_first_and_is_in_the_subject(self) -> None:
        both = alarm(begun=(line(1), line(2, kind="gateway", urgent=True)), over=(line(3),))
        assert subject_of(both) == "[pay.example] URGENT, 2 new, 1 over: gateway 2: stuck"
        assert body_of(both, 4000).index("gateway 2") < body_of(both, 4000).index("payout 1")

    def test_nothing_in_it_is_obeyed(self) -> None:
        evil = AlarmLine(id="x", kind="x", text="a\r\nBcc: all@example\x1b[31m")
        assert not re.search(r"[\r\x1b]|\nBcc", body_of(alarm(begun=(evil,)), 4000))

    def test_a_merchant_reads_what_he_can_do_and_no_command_of_operators(self) -> None:
        text = body_of(alarm(for_merchant=True), 4000)
        assert "GET /api/v1/webhook-endpoint" in text
        assert "cambist" not in text.replace(PLACE, "")
        assert "answers again" in body_of(alarm(for_merchant=True, begun=(), over=(line(),)), 4000)

    def test_a_test_says_that_it_is_one(self) -> None:
        test = alarm(begun=(), is_test=True)
        assert "This is a test" in body_of(test, 4000)
        assert subject_of(test) == "[pay.example] test: alarms arrive here"
