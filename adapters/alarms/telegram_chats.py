"""Messages to people's private chats by a Telegram bot, and the texts that people send it."""

from collections.abc import Sequence

import msgspec

from ...ports.faults import NotConfigured, Refused
from ...ports.messenger import ChatText
from .settings import TELEGRAM_API
from .telegram import LIMIT, LONGEST, BotApi, Said, message_to, require_ok

_UPDATES = 100
_CUT = " …"


class _Chat(msgspec.Struct, kw_only=True):
    id: int
    type: str = ""


class _Text(msgspec.Struct, kw_only=True):
    chat: _Chat
    text: str = ""


class _Update(msgspec.Struct, kw_only=True):
    update_id: int
    message: _Text | None = None


class _Updates(Said, kw_only=True):
    result: list[_Update] = msgspec.field(default_factory=list)


class _Me(msgspec.Struct, kw_only=True):
    username: str = ""


class _WithMe(Said, kw_only=True):
    result: _Me | None = None


class _Webhook(msgspec.Struct, kw_only=True):
    url: str = ""


class _WithWebhook(Said, kw_only=True):
    result: _Webhook | None = None


class TelegramChats:
    """Implement the port Messenger. The bot must have no webhook, and no other reader of its updates."""

    name = "telegram"

    def __init__(self, token: str, *, base_url: str = TELEGRAM_API, limit: float = LIMIT) -> None:
        """`base_url`: as in `BotApi`."""
        self._api = BotApi(token, base_url=base_url, limit=limit)
        self._name = ""
        self._next: int | None = None

    def __repr__(self) -> str:
        return "<TelegramChats>"

    async def address(self, code: str) -> str:
        """Return the address of the chat. Raises: the same as the port."""
        self._name = self._name or await self._own_name()
        return f"https://t.me/{self._name}?start={code}"

    async def check(self) -> None:
        """Check that the bot exists, and that its updates come to us. Raises: NotConfigured; Unavailable."""
        await self._own_name()
        said = await self._api.call("getWebhookInfo", {}, _WithWebhook, writes=False)
        _require_configured(said)
        if said.result is not None and said.result.url:
            raise NotConfigured("telegram: the bot has a webhook, which gets its updates: give it none")

    async def _own_name(self) -> str:
        said = await self._api.call("getMe", {}, _WithMe, writes=False)
        _require_configured(said)
        if said.result is None or not said.result.username:
            raise NotConfigured("telegram: the bot has no name")
        return said.result.username

    async def send(self, chat: str, text: str) -> None:
        """Send a text. Raises: the same as the port."""
        if len(text.encode("utf-16-le")) // 2 > LONGEST:
            text = text.encode("utf-16-le")[: 2 * (LONGEST - len(_CUT))].decode("utf-16-le", "ignore") + _CUT
        said = await self._api.call("sendMessage", message_to(chat, text), Said, writes=True)
        if said.error_code == 403:
            raise Refused("telegram: 403: the person blocked the bot")
        require_ok(said)

    async def received(self) -> Sequence[ChatText]:
        """Return texts of private chats. Raises: the same as the port."""
        body = {"limit": _UPDATES, "timeout": 0, "allowed_updates": ["message"]}
        if self._next is not None:
            body["offset"] = self._next
        said = await self._api.call("getUpdates", body, _Updates, writes=False)
        try:
            require_ok(said)
        except Refused as refused:
            raise NotConfigured(f"{refused}: the bot's texts go to another reader") from None
        if said.result:
            self._next = max(each.update_id for each in said.result) + 1
        messages = [each.message for each in said.result if each.message is not None]
        return [ChatText(chat=str(each.chat.id), text=each.text) for each in messages if each.chat.type == "private"]

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()


def _require_configured(said: Said) -> None:
    """Raises: NotConfigured or Unavailable for an answer that is not ok."""
    try:
        require_ok(said)
    except Refused as refused:
        raise NotConfigured(str(refused)) from None
