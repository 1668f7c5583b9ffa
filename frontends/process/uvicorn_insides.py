"""Everything private of uvicorn that the edge uses. No other module imports private modules of uvicorn.

The edge (frontends/http/edge) subclasses uvicorn's protocol, flow control and server, and writes attributes of its
request cycle. `INSIDES` says whether the installed version has all of it; otherwise the service runs on uvicorn's own
protocol (frontends/http/edge/plain_server.py).
"""

from typing import TYPE_CHECKING

from ...ports.insides import examine

try:
    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
except ImportError:
    if not TYPE_CHECKING:  # INSIDES reports them, and nothing uses these
        FlowControl = HttpToolsProtocol = object
        STATUS_LINE = {}

__all__ = ["INSIDES", "OF_PROTOCOL", "STATUS_LINE", "FlowControl", "HttpToolsProtocol"]

OF_PROTOCOL = (
    "access_log", "access_logger", "app", "app_state", "client", "config", "connections", "cycle",
    "expect_100_continue", "flow", "headers", "limit_concurrency", "logger", "loop", "parser", "pipeline", "root_path",
    "scheme", "scope", "server", "server_state", "tasks", "timeout_keep_alive", "timeout_keep_alive_task", "transport",
    "ws_protocol_class",
)  # fmt: skip
"""Attributes that uvicorn's protocol sets when it is created."""

_PROTOCOL = "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol"
_CYCLE = "uvicorn.protocols.http.httptools_impl:RequestResponseCycle"
_FLOW = "uvicorn.protocols.http.flow_control:FlowControl"
_SERVER = "uvicorn.server:Server"
_METHODS = {
    _PROTOCOL: (
        "connection_made", "connection_lost", "data_received", "on_body", "on_header", "on_headers_complete",
        "on_message_complete", "on_response_complete", "send_400_response", "_start_asgi_task",
    ),
    _CYCLE: ("run_asgi",),
    _FLOW: ("drain", "pause_reading", "pause_writing", "resume_reading", "resume_writing"),
    _SERVER: ("handle_exit", "on_tick", "shutdown", "startup"),
}  # fmt: skip
_ATTRIBUTES = {
    _PROTOCOL: OF_PROTOCOL,
    _CYCLE: (
        "body", "default_headers", "disconnected", "flow", "keep_alive", "message_event", "more_body", "on_response",
        "response_complete", "response_started", "scope", "transport", "waiting_for_100_continue",
    ),
    _FLOW: ("_transport", "read_paused", "write_paused"),
    _SERVER: ("config", "force_exit", "server_state", "should_exit"),
    "uvicorn.server:ServerState": ("connections", "default_headers", "tasks", "total_requests"),
}  # fmt: skip

INSIDES = examine(
    "uvicorn",
    (0, 53),
    (0, 55),
    [
        "uvicorn.protocols.http.httptools_impl:STATUS_LINE",
        *(f"{owner}.{method}" for owner, methods in _METHODS.items() for method in methods),
        *(f"{owner}#{attribute}" for owner, attributes in _ATTRIBUTES.items() for attribute in attributes),
    ],
)
