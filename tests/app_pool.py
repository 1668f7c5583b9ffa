"""Pool of HTTP apps for tests. Building the HTTP app takes twenty times as long as the rest of an app, so a new app
reuses the HTTP app of a closed one.

`create_app` builds each HTTP app, as in production, but on ports that forward every call to the ports of the current
app. An HTTP app serves one app at a time; between two apps its ports lead nowhere.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.server.app import create_app
from cambist.ports.bundle import Ports, Urls
from tests.stand_in import StandIn

_OWN = ("urls", "has_verifier", "started", "cell")
"""Ports that a face keeps for itself, because nothing can stand in for a plain value."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""Nothing is older."""


def _is_remembered(scope: Any) -> bool:
    """Whether a face keeps something of an app by this request: for some seconds what its look at the parts found, or
    for a minute which merchants' clients may come to the KYC page without a link."""
    path = scope["path"].rstrip("/")
    if path == "/kyc":
        return b"session=" not in scope["query_string"]
    return "health" in path or path == "/kyc/begin"


class Lent(StandIn):
    """Stands for an object that is another one in every app."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        object.__setattr__(self, "_now", None)

    def _original(self) -> Any:
        return self._now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._now, name, value)


class Face:
    """An HTTP face, and its state about the app it is lent to. It owns only values that are not objects of the app."""

    def __init__(
        self,
        urls: Urls,
        has_verifier: bool = True,
        absent: frozenset[str] = frozenset(),
        cell: str | None = None,
    ) -> None:
        self._parts = {name: Lent() for name in Ports.__struct_fields__ if name not in _OWN and name not in absent}
        self._streams = Lent()
        parts: Any = self._parts | dict.fromkeys(absent)  # each stands for its port
        streams: Any = self._streams
        ports = Ports(**parts, urls=urls, has_verifier=has_verifier, started=_BEGINNING, cell=cell)
        self.app = create_app(ports, streams=streams)

    def lend(self, ports: Ports | None) -> None:
        """Reach these ports from now on; None: nobody's."""
        for name, part in self._parts.items():
            object.__setattr__(part, "_now", ports and getattr(ports, name))
        object.__setattr__(self._streams, "_now", ports and WindowStreams())


_Kind = tuple[Urls, bool, frozenset[str], str | None]

_FREE: dict[_Kind, list[Face]] = {}


class LentApp:
    """The ASGI application of one app. It takes a face at the first request: most tests never knock."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._face: Face | None = None
        self._remembers = False
        self._unanswered = 0
        """Requests that never ended: in an app that was killed, or by raising."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._face is None:
            self._face = _taken(self._ports)
        self._remembers = self._remembers or _is_remembered(scope)
        self._unanswered += 1
        await self._face.app(scope, receive, send)
        self._unanswered -= 1

    def serve(self, ports: Ports) -> None:
        """Serve these ports of the same app from now on."""
        self.give_back()
        self._ports = ports

    def give_back(self) -> None:
        """The app is closed. A face that remembers something of it goes to nobody."""
        face, self._face = self._face, None
        if face is not None:
            face.lend(None)
            if not self._remembers and not self._unanswered:
                _FREE.setdefault(_kind(self._ports), []).append(face)


def _kind(ports: Ports) -> _Kind:
    """The plain values by which faces differ, and the optional ports that are absent."""
    absent = frozenset(name for name in Ports.__struct_fields__ if name not in _OWN and getattr(ports, name) is None)
    return ports.urls, ports.has_verifier, absent, ports.cell


def _taken(ports: Ports) -> Face:
    free = _FREE.get(_kind(ports))
    face = free.pop() if free else Face(*_kind(ports))
    face.lend(ports)
    return face


@contextmanager
def lent_app(ports: Ports) -> Iterator[LentApp]:
    """The HTTP face of an app, while it is open."""
    app = LentApp(ports)
    try:
        yield app
    finally:
        app.give_back()
