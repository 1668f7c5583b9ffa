"""Private chats of a Telegram bot, as its API answers (core.telegram.org/bots/api)."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from cambist.adapters.alarms.telegram_chats import TelegramChats
from cambist.ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.messenger import Messenger
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

TOKEN = "123456789:AAHunter2-hunter2_hunter2hunter2abc"


class BotApi:
    """Keeps updates until the next offset confirms them, as Telegram does."""

    def __init__(self, provider: FakeProvider) -> None:
        self.updates: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.fault: ProviderAnswer | None = None
        self.name = "cambist_bot"
        self.webhook = ""
        provider.on("POST", "/bot{token}/{method}", self.answer)

    def answer(self, request: ProviderRequest) -> ProviderAnswer:
        if self.fault is not None:
            return self.fault
        body = msgspec.json.decode(request.body)
        match request.parts["method"]:
            case "getMe":
                return self.of({"id": 1, "is_bot": True, "username": self.name})
            case "getWebhookInfo":
                return self.of({"url": self.webhook, "pending_update_count": 0})
            case "getUpdates":
                self.updates = [each for each in self.updates if each["update_id"] >= body.get("offset", 0)]
                return self.of(self.updates[: body["limit"]])
            case _:
                self.sent.append(body)
                return self.of({"message_id": len(self.sent)})

    @staticmethod
    def of(result: Any) -> ProviderAnswer:
        return ProviderAnswer.of_json({"ok": True, "result": result})

    def write(self, text: str | None, *, chat: int = 4711, kind: str = "private") -> None:
        message: dict[str, Any] = {"message_id": 1, "chat": {"id": chat, "type": kind}}
        message |= {} if text is None else {"text": text}
        self.updates.append({"update_id": 100 + len(self.updates), "message": message})


def error(code: int, description: str, **parameters: Any) -> ProviderAnswer:
    said = {"ok": False, "error_code": code, "description": description, "parameters": parameters}
    return ProviderAnswer.of_json(said, code)


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider() as opened:
        yield opened


@pytest.fixture
async def chats(provider: FakeProvider) -> AsyncIterator[TelegramChats]:
    opened = TelegramChats(TOKEN, base_url=provider.url)
    yield opened
    await opened.close()


async def test_address_opens_the_chat_with_the_code(provider: FakeProvider, chats: TelegramChats) -> None:
    api, messenger = BotApi(provider), chats
    port: Messenger = messenger
    assert await port.address("abc") == "https://t.me/cambist_bot?start=abc"
    api.name = "another"
    assert await port.address("abc") == "https://t.me/cambist_bot?start=abc"


async def test_texts_are_read_once_and_from_private_chats_only(provider: FakeProvider, chats: TelegramChats) -> None:
    api = BotApi(provider)
    api.write("/start abc")
    api.write("/start abc", chat=-100, kind="supergroup")
    api.write(None, chat=5)
    api.updates.append({"update_id": 104, "edited_message": {"text": "x"}})
    assert [(each.chat, each.text) for each in await chats.received()] == [("4711", "/start abc"), ("5", "")]
    assert await chats.received() == []
    assert api.updates == []


async def test_text_is_sent_without_previews_and_cut_to_the_limit(provider: FakeProvider, chats: TelegramChats) -> None:
    api = BotApi(provider)
    await chats.send("4711", "hello")
    await chats.send("4711", "😀" * 3000)
    first, second = api.sent
    assert (first["chat_id"], first["text"], first["link_preview_options"]) == ("4711", "hello", {"is_disabled": True})
    assert len(second["text"].encode("utf-16-le")) // 2 <= 4096
    assert second["text"].endswith("😀 …")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (error(403, "Forbidden: bot was blocked by the user"), Refused),
        (error(400, "Bad Request: chat not found"), Refused),
        (error(401, "Unauthorized"), NotConfigured),
        (error(429, "Too Many Requests", retry_after=35), Unavailable),
        (error(502, "Bad Gateway"), OutcomeUnknown),
    ],
)
async def test_refusals_of_the_bot_are_faults(
    provider: FakeProvider, chats: TelegramChats, said: ProviderAnswer, fault: type[Fault]
) -> None:
    BotApi(provider).fault = said
    with pytest.raises(fault) as caught:
        await chats.send("4711", "hello")
    assert "unter2" not in f"{caught.value!r} {chats!r}"


async def test_check_finds_a_bot_whose_updates_go_elsewhere(provider: FakeProvider, chats: TelegramChats) -> None:
    api = BotApi(provider)
    await chats.check()
    api.webhook = "https://else.example/hook"
    with pytest.raises(NotConfigured, match="has a webhook"):
        await chats.check()
    api.fault = error(401, "Unauthorized")
    with pytest.raises(NotConfigured, match="token"):
        await chats.check()


async def test_other_reader_of_the_updates_is_a_wrong_setting(provider: FakeProvider, chats: TelegramChats) -> None:
    BotApi(provider).fault = error(409, "Conflict: can't use getUpdates method while webhook is active")
    with pytest.raises(NotConfigured, match="another reader"):
        await chats.received()
