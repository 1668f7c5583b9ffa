"""Alarms to chats that accept `{"text": …}` at a secret address: Slack's incoming webhooks and compatible ones
(Mattermost, Rocket.Chat, Google Chat)."""

from urllib.parse import parse_qsl

import msgspec

from ...ports.alarms import Alarm
from ..provider_http import ProviderHttp
from .http import require_taken
from .texts import body_of

LONGEST = 3500
"""Maximum characters, because chats truncate at about four thousand."""


class SlackAlarms:
    """Implement the port Alarms."""

    name = "slack"
    mirrors = False

    def __init__(self, url: str, *, limit: float = 15.0) -> None:
        """Raises: NotConfigured for an invalid address."""
        base, _, query = url.partition("?")
        self._query = dict(parse_qsl(query))
        self._http = ProviderHttp("slack", base, limit=limit)

    def __repr__(self) -> str:
        return "<SlackAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Post a message. Raises: the same as the port."""
        # Escape the three characters that are special in Slack. The other chats show the escapes as they are.
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
