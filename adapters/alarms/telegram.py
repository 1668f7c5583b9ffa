"""Alarms to a Telegram chat by a bot (core.telegram.org/bots/api). Every address contains the token, so addresses never
appear in logs or faults."""

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ...ports.alarms import Alarm
from ...ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from ..provider_http import Answer, ProviderHttp
from .http import require_taken
from .settings import TELEGRAM_API
from .texts import body_of, plain

LONGEST = 4096
"""Maximum characters of a message."""
LIMIT = 15.0
"""Seconds for one call."""
_DESCRIPTION = 100

log = logging.getLogger("cambist.alarms")


class _Parameters(msgspec.Struct, kw_only=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class Said(msgspec.Struct, kw_only=True):
    """Common part of all answers."""

    ok: bool
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = msgspec.field(default_factory=_Parameters)


S = TypeVar("S", bound=Said)


def message_to(chat: str, text: str, *, silent: bool = False) -> dict[str, Any]:
    """Return the body of `sendMessage`."""
    return {
        "chat_id": chat,
        "text": text,
        "disable_notification": silent,
        "link_preview_options": {"is_disabled": True},
    }


class BotApi:
    """Methods of a bot."""

    def __init__(self, token: str, *, base_url: str = TELEGRAM_API, limit: float = LIMIT) -> None:
        """`base_url`: address of a proxy or of a self-hosted Bot API server."""
        self._token = token
        self._http = ProviderHttp("telegram", base_url, limit=limit)

    def __repr__(self) -> str:
        return "<BotApi>"

    async def call(self, method: str, body: Mapping[str, Any], shape: type[S], *, writes: bool) -> S:
        """Call a method. Raises: Unavailable, OutcomeUnknown, or the fault of a proxy's answer."""
        answer: Answer = await self._http.call(
            "POST",
            f"/bot{self._token}/{method}",
            writes=writes,
            body=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
        )
        try:
            return answer.decoded(shape)
        except (OutcomeUnknown, Unavailable):
            require_taken(answer)  # a proxy in front of Telegram may have answered
            raise

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


class TelegramAlarms:
    """Implement the port Alarms."""

    name = "telegram"
    mirrors = False

    def __init__(self, token: str, chat_id: str, *, base_url: str = TELEGRAM_API, limit: float = LIMIT) -> None:
        """`chat_id`: a number or `@channel`. `base_url`: as in `BotApi`."""
        self._chat = chat_id
        self._api = BotApi(token, base_url=base_url, limit=limit)

    def __repr__(self) -> str:
        return "<TelegramAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Send a message, without a sound if it is silent. Raises: the same as the port."""
        text = body_of(alarm, LONGEST)
        said = await self._send(text, silent=alarm.silent)
        moved = said.parameters.migrate_to_chat_id
        if moved is not None and not said.ok:
            log.warning("the Telegram chat became a supergroup: set CAMBIST_TELEGRAM_CHAT_ID to its new id %d", moved)
            self._chat = str(moved)
            said = await self._send(text, silent=alarm.silent)
        require_ok(said)

    async def check(self) -> None:
        """Check that the bot and the chat exist. Raises: NotConfigured; Unavailable."""
        for method, body in (("getMe", {}), ("getChat", {"chat_id": self._chat})):
            try:
                require_ok(await self._api.call(method, body, Said, writes=False))
            except Refused as refused:
                raise NotConfigured(str(refused)) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def _send(self, text: str, *, silent: bool) -> Said:
        return await self._api.call("sendMessage", message_to(self._chat, text, silent=silent), Said, writes=True)


def require_ok(said: Said) -> None:
    """Raises: the fault of an answer that is not ok."""
    if said.ok:
        return
    told = f"telegram: {said.error_code} {plain(said.description)[:_DESCRIPTION]}"
    if said.error_code in (401, 404):
        raise NotConfigured(f"telegram: {said.error_code}: the token is not taken")
    if said.error_code == 429:
        raise Unavailable(told, retry_after=said.parameters.retry_after)
    if said.error_code >= 500:
        raise OutcomeUnknown(told)
    raise Refused(told)
