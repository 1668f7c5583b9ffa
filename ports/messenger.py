"""The port of a bot that sends messages to people's chats (Telegram)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class ChatText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that somebody sent to the bot."""

    chat: str
    text: str

    def __repr__(self) -> str:
        return "ChatText(***)"


class Messenger(Protocol):
    """A bot. A person's private chat with it gets the person's notifications."""

    async def address(self, code: str) -> str:
        """Return an address that opens the chat with the bot, and sends it `/start <code>`. Raises: Unavailable;
        NotConfigured."""
        ...

    async def send(self, chat: str, text: str) -> None:
        """Send a text to a chat. A repeat of a text that has arrived is shown twice. Raises: Refused when the chat does
        not accept messages of the bot; Unavailable; OutcomeUnknown when it may have arrived; NotConfigured."""
        ...

    async def received(self) -> Sequence[ChatText]:
        """Return the texts of private chats since the last call. The service then drops the texts of the previous call.
        Raises: Unavailable; NotConfigured."""
        ...
