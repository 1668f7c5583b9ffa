"""A letter as one request that is written whole, at once.

aiohttp's own request merges headers three times, wraps the body for streaming, and (below Python 3.12) writes it in a
task of its own: a fifth of what a delivery costs (by CPU time 0.70 of the bare client instead of 0.57,
docs/performance.md). Response, connections, TLS and their errors are aiohttp's in both.
"""

from typing import Any

import aiohttp
from aiohttp import hdrs
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import StreamWriter

from ...ports.notifier import Letter


class WholeRequest(ClientRequest):
    """A POST of which `data` is the Letter, headers and body."""

    DEFAULT_HEADERS = {hdrs.ACCEPT: "*/*", hdrs.ACCEPT_ENCODING: "identity"}  # noqa: RUF012 - as aiohttp declares it
    """Packed answers are not for us."""
    _letter: Letter

    def update_body_from_data(self, body: Letter, _stacklevel: int = 3) -> None:
        """The headers are complete then."""
        self._letter = body
        self.headers.update(body.headers)
        self.headers[hdrs.CONTENT_LENGTH] = str(len(body.body))

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Raises: ClientConnectionResetError when the connection is closing."""
        if conn.protocol is None:
            raise aiohttp.ClientConnectionResetError("the connection was given back")
        writer = StreamWriter(conn.protocol, self.loop)
        response = self.response_class(
            self.method,
            self.original_url,
            writer=None,
            continue100=None,
            timer=self._timer,
            request_info=self.request_info,
            traces=[],
            loop=self.loop,
            session=self.session,
            stream_writer=writer,
        )
        await writer.write_headers(f"POST {self.url.raw_path_qs} HTTP/1.1", self.headers)
        await writer.write_eof(self._letter.body)
        return response


REQUEST: type[ClientRequest] = WholeRequest if aiohttp.__version__.startswith("3.14.") else ClientRequest
"""aiohttp's minor versions may change what a request and a response are made of. One that is not known here sends its
own requests; so do the contract tests, once more."""


def parts(letter: Letter, request: type[ClientRequest]) -> dict[str, Any]:
    """What the client is given of a letter."""
    if issubclass(request, WholeRequest):
        return {"data": letter}
    return {"data": letter.body, "headers": {hdrs.ACCEPT_ENCODING: "identity", **letter.headers}}
