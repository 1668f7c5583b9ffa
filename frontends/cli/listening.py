"""Client of the test event feed over HTTP, which forwards each event to a local address: the work of `cambist listen`.

The position in the feed is a cursor in a file. It moves only after an event was forwarded and printed, so an event
interrupted by a kill comes again, and nothing is lost. The service signs every event, so this program needs no secret
except the API's.
"""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from ...core.domain.errors import CATALOGUE, Refusal
from ...ports.clock import Clock
from ...ports.faults import Fault, Unavailable

WAIT = 25
"""Seconds that the service may hold a request open while nothing happens."""
BETWEEN = 1.5
"""Seconds between two requests: at most 40 a minute, so the key's limit of 60 leaves room for the merchant's own
program."""
RECONNECT = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the next request after the service did not answer. The last value repeats."""
LOCAL_LIMIT = 10.0
"""Seconds for a complete local answer, as for a webhook receiver (docs/webhooks.md "What a receiver does")."""
FRESH = 60.0
"""Age in seconds after which the remaining events are requested again: their signatures have the time of the answer,
and receivers accept it for five minutes."""

_ANSWER = aiohttp.ClientTimeout(total=WAIT + 20, connect=10)


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One element of GET /sandbox/letters."""

    cursor: str
    id: str
    type: str
    object_id: str
    sequence: int
    resent: bool
    headers: dict[str, str]
    body: str


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of GET /sandbox/letters."""

    data: list[Letter]
    cursor: str
    more: bool
    signing_secret: str | None = None


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """An event and the answer of the local address; without such an address, neither status nor error."""

    at: datetime
    letter: Letter
    status: int | None = None
    error: str | None = None

    @property
    def object_status(self) -> str | None:
        """Value of `status` in the payload, if present."""
        payload = msgspec.json.decode(self.letter.body)
        status = payload.get("status") if isinstance(payload, dict) else None
        return status if isinstance(status, str) else None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Events to follow and the address to forward to. Its repr hides the secret."""

    base_url: str
    api_key: str
    api_secret: str
    forward_to: str | None = None
    types: str | None = None

    def __repr__(self) -> str:
        return f"Wish(base_url={self.base_url!r}, api_key={self.api_key!r}, api_secret=***)"


class CursorFile:
    """The stored cursor. It is written to a temporary file and renamed, so that a kill leaves the old or the new
    one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """Return the cursor; None if there is no file yet. Raises: OSError, Unavailable for a file of another kind."""
        try:
            text = self.path.read_text("utf-8").strip()
        except FileNotFoundError:
            return None
        if not text.isascii() or not text.isalnum():
            raise Unavailable(f"{self.path} is no file of a cursor")
        return text

    def write(self, cursor: str) -> None:
        """Store the cursor. Raises: OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        beside.write_text(cursor + "\n", "utf-8")
        beside.replace(self.path)


class Follower:
    """Follows one account's feed until it is cancelled."""

    def __init__(
        self,
        wish: Wish,
        cursors: CursorFile,
        clock: Clock,
        *,
        tell: Callable[[Handed], None],
        say: Callable[[str], None],
    ) -> None:
        """Create a follower. `tell` gets every event, `say` gets other messages for people."""
        self._wish = wish
        self._cursors = cursors
        self._clock = clock
        self._tell = tell
        self._say = say
        self._failures = 0
        self._secret: str | None = None

    async def follow(self, start: str) -> None:
        """Forward every event after `start` (a cursor, `now` or `beginning`), and continue.

        Raises: Refusal when the service refuses permanently (a wrong key, a cursor of another installation); OSError
        when the cursor cannot be stored.
        """
        cursor = start
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(cookie_jar=jar, auto_decompress=True) as session:
            while True:
                stretch = await self._ask(session, cursor)
                if stretch is not None:
                    self._show_secret(stretch.signing_secret)
                    cursor = await self._hand_over(session, stretch)
                await self._pause(answered=stretch is not None)

    async def _hand_over(self, session: aiohttp.ClientSession, stretch: Stretch) -> str:
        """Forward events in order. Return the cursor to continue from."""
        done: str | None = None
        answered_at = self._clock.monotonic()
        for letter in stretch.data:
            if done is not None and self._clock.monotonic() - answered_at > FRESH:
                return done
            self._tell(await self._forward(session, letter))
            done = letter.cursor
            self._cursors.write(done)
        self._cursors.write(stretch.cursor)
        return stretch.cursor

    async def _ask(self, session: aiohttp.ClientSession, cursor: str) -> Stretch | None:
        """Return the next page; None when there was no valid answer. Raises: Refusal."""
        query = {"after": cursor, "wait": str(WAIT), **({"types": self._wish.types} if self._wish.types else {})}
        headers = {"X-Api-Key": self._wish.api_key, "X-Api-Secret": self._wish.api_secret}
        url = f"{self._wish.base_url}/api/v1/sandbox/letters"
        try:
            async with session.get(
                url, params=query, headers=headers, timeout=_ANSWER, allow_redirects=False
            ) as response:
                body = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._failed(f"the service does not answer: {cause(error)}")
            return None
        if status == 200:
            try:
                stretch = msgspec.json.decode(body, type=Stretch)
            except msgspec.MsgspecError:
                self._failed("what answers is not the service")
                return None
            if self._failures:
                self._say("the service answers again")
            self._failures = 0
            return stretch
        if status == 429 or status >= 500:
            self._failed(f"the service answers {status}")
            return None
        raise refusal(status, body)

    def _failed(self, why: str) -> None:
        if not self._failures:
            self._say(f"{why}; trying again")
        self._failures += 1

    async def _forward(self, session: aiohttp.ClientSession, letter: Letter) -> Handed:
        """Post an event once. A failure is shown; POST /events/{id}/resend sends the event again."""
        now = self._clock.now()
        if self._wish.forward_to is None:
            return Handed(at=now, letter=letter)
        try:
            async with session.post(
                self._wish.forward_to,
                data=letter.body.encode(),
                headers=letter.headers,
                timeout=aiohttp.ClientTimeout(total=LOCAL_LIMIT),
                allow_redirects=False,
            ) as response:
                await response.read()
                return Handed(at=now, letter=letter, status=response.status)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Handed(at=now, letter=letter, error=cause(error))

    async def _pause(self, *, answered: bool) -> None:
        await self._clock.sleep(BETWEEN if answered else RECONNECT[min(self._failures, len(RECONNECT)) - 1])

    def _show_secret(self, secret: str | None) -> None:
        if secret is not None and secret != self._secret:
            self._say(f"the account has no webhook secret; letters are signed with {secret}")
        self._secret = secret


def cause(error: BaseException) -> str:
    """Return the cause of the error without the client's own address."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or "no connection"
    return str(error) or type(error).__name__


def refusal(status: int, body: bytes) -> Exception:
    """Return the service's refusal as our Refusal, if it is one."""
    try:
        error: dict[str, Any] = msgspec.json.decode(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return Fault(f"what answers {status} is not the service")
    return Refusal(code, message) if code in CATALOGUE else Fault(f"{code}: {message}")
