"""Everything private of aiohttp that the adapters use. No other module imports private modules of aiohttp.

`INSIDES` says whether the installed version has all of it. Otherwise webhooks go through aiohttp's session
(notifier/exchanges.py), and aiohttp's own connections parse answers.
"""

from typing import TYPE_CHECKING, Any

import aiohttp

from ..ports.insides import examine

try:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest, ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.helpers import set_exception
    from aiohttp.http import HttpProcessingError
except ImportError:
    if not TYPE_CHECKING:  # INSIDES reports them, and nothing uses these
        ResponseHandler = ClientRequest = ConnectionKey = Connection = object
        HttpProcessingError = aiohttp.ClientError
        set_exception = None

__all__ = [
    "INSIDES",
    "ClientRequest",
    "Connection",
    "ConnectionKey",
    "HttpProcessingError",
    "ResponseHandler",
    "make_connections",
    "set_exception",
]

_HANDLER = "aiohttp.client_proto:ResponseHandler"
_REQUEST = "aiohttp.client_reqrep:ClientRequest"
_CONNECTION = "aiohttp.connector:Connection"
_CONNECTOR = "aiohttp.connector:BaseConnector"
_METHODS = {
    _HANDLER: (
        "abort", "close", "connection_lost", "data_received", "feed_data", "read", "set_exception",
        "set_response_params", "should_close", "_pause_reading_for_buffer", "_resume_reading_for_buffer",
    ),
    _REQUEST: ("connection_key", "request_info"),
    _CONNECTION: ("close", "protocol", "release", "transport"),
    _CONNECTOR: ("connect",),
}  # fmt: skip
_ATTRIBUTES = {
    _HANDLER: ("_buffer_paused", "_loop", "_payload", "_reading_paused", "transport"),
    _CONNECTOR: ("_factory", "_loop"),
}

INSIDES = examine(
    "aiohttp",
    (3, 14, 4),
    (3, 15),
    [
        "aiohttp.helpers:set_exception",
        "aiohttp.http:HttpProcessingError",
        "aiohttp.client_reqrep:ConnectionKey",
        *(f"{owner}.{method}" for owner, methods in _METHODS.items() for method in methods),
        *(f"{owner}#{attribute}" for owner, attributes in _ATTRIBUTES.items() for attribute in attributes),
    ],
)


def make_connections(connector: Any, protocol: Any) -> None:
    """Have the connector make its connections with this subclass of ResponseHandler."""
    connector._factory = lambda: protocol(loop=connector._loop)  # noqa: SLF001 - what this module is for
