"""Alarms to a chat that takes `{"text": …}` at an address of its own: Slack's incoming webhooks, and what is like them
(Mattermost, Rocket.Chat, Google Chat). The address is the secret."""

from urllib.parse import parse_qsl

import msgspec

from ...ports.alarms import Alarm
from ..provider_http import ProviderHttp
from .http import require_taken
from .texts import body_of

LONGEST = 3500
"""Characters: chats cut what is longer than four thousand."""


class SlackAlarms:
    """Fills the port Alarms."""

    name = "slack"
    mirrors = False

    def __init__(self, url: str, *, limit: float = 15.0) -> None:
        """Raises: NotConfigured for an address that is none."""
        base, _, query = url.partition("?")
        self._query = dict(parse_qsl(query))
        self._http = ProviderHttp("slack", base, limit=limit)

    def __repr__(self) -> str:
        return "<SlackAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Post a message. Raises: as the port."""
        # The three characters that Slack has a meaning for; the others show them as they are written.
        text = body_of(alarm, LONGEST).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        answer = await self._http.call(
            "POST",
            "",
            writes=True,
            body=msgspec.json.encode({"text": text}),
            query=self._query,
            headers={"Content-Type": "application/json"},
        )
        require_taken(answer)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()
