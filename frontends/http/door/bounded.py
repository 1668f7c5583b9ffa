"""Bounds on what a request may say before anybody has asked who it is: head, address and trailers
(docs/limits.md "Sizes"). The parser keeps whatever it is given, so bytes are counted before they reach it.
"""

from typing import Any

from .answers import JSON
from .corked import CorkedProtocol
from .errors import envelope

HEAD = 32 * 1024
"""Bytes of a head with its address, or of a body's framing and trailers, that may follow one another."""

HEADERS = 100
"""Headers of a request, its trailers among them."""

_REFUSED = envelope("HEADERS_TOO_LARGE", "The head of the request is over 32 KB, or has more than 100 headers")
_ANSWER = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
) % (JSON, len(_REFUSED), _REFUSED)


class BoundedProtocol(CorkedProtocol):
    """Closes a connection whose request says more than it may outside its body; 431 where none is answered yet."""

    _unproven = 0
    """Bytes that were fed since the last that were a whole head, or a piece of a body."""
    _too_many = False

    def data_received(self, data: bytes) -> None:
        """Feed the parser no more than may be a head at a time."""
        while data and not self.transport.is_closing():
            room = HEAD - self._unproven
            if room == 0 or self._too_many:
                self._refuse()
                return
            piece, data = (data, b"") if len(data) <= room else (data[:room], data[room:])
            self._unproven += len(piece)
            super().data_received(piece)
        if self._too_many:
            self._refuse()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep it, if there is room."""
        if len(self.headers) >= HEADERS:
            self._too_many = True
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Let the request begin, unless it has too many headers."""
        self._unproven = 0
        if not self._too_many:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """As the server's; but a request that was not let begin has none."""
        self._unproven = 0
        if not self._too_many:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """As the server's; but a request that was not let begin does not end either."""
        self._unproven = 0
        if not self._too_many:
            super().on_message_complete()

    def _refuse(self) -> None:
        """Close; what is being answered on this connection is not interrupted by another answer."""
        if self.transport.is_closing():
            return
        answering: Any = self.cycle  # None before the first request
        if answering is None or answering.response_complete:
            self.transport.write(_ANSWER)
        self.transport.close()
