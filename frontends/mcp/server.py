"""The server over standard input and output: the tools of a key, and the guides as resources.

Descriptions come from the service at the first use, so they always fit it. Nothing is logged, because arguments may
name people.
"""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ..client.clients import AsyncClient
from ..client.errors import CambistError
from ..client.requests import Request
from .guides import GuideResource, guide_resources
from .tools import ApiTool, BadArguments, api_tools

_MARKDOWN = "text/markdown"
_INSTRUCTIONS = """Tools for cambist, a payment service: each is one operation of its HTTP API. Amounts are decimal \
strings in roubles, times are ISO 8601 in UTC. A creating tool needs an idempotency_key: a new UUID for each new \
object, the same UUID to repeat a call whose answer was lost. Errors have code, message and the advice whether to try \
again. The resources are the guides of the service."""
_OF_TEST = "\nThe key is of test mode: no real money moves, and the simulate tools stand for payers and banks."
_OF_LIVE = "\nThe key is of live mode: there are only tools that read."
_READ_ONLY = "This server has only tools that read, because its key is of live mode."


class Bridge:
    """Answers the protocol's requests by calls to the service with one key pair."""

    def __init__(self, client: AsyncClient, *, is_live: bool) -> None:
        self._client = client
        self._is_live = is_live
        self._tools: Mapping[str, ApiTool] | None = None
        self._guides: Mapping[str, GuideResource] | None = None

    @property
    def instructions(self) -> str:
        """Text for the model about all tools."""
        return _INSTRUCTIONS + (_OF_LIVE if self._is_live else _OF_TEST)

    async def list_tools(self, _: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Return the tools of the key. Raises: MCPError when the service does not answer or refuses the key."""
        return types.ListToolsResult(tools=[_described(tool) for tool in (await self._known_tools()).values()])

    async def call_tool(self, _: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        """Call an operation, and return its answer or the envelope of its error. Raises: MCPError for a tool that this
        key does not have."""
        tool = (await self._known_tools()).get(asked.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"No tool {asked.name[:100]!r}." + self._why_none())
        try:
            answer = await self._client.send(tool.request(self._client.base_url, asked.arguments or {}))
        except BadArguments as error:
            return _result({"error": {"code": "VALIDATION_ERROR", "message": str(error)}}, is_error=True)
        except CambistError as error:
            return _result(_envelope(error), is_error=True)
        return _result(answer, is_error=False)

    async def list_resources(self, _: Any, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """Return the guides. Raises: MCPError when the service does not answer."""
        guides = (await self._known_guides()).values()
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=each.uri, name=each.name, title=each.title, description=each.about, mime_type=_MARKDOWN
                )
                for each in guides
            ]
        )

    async def read_resource(self, _: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return a guide as Markdown. Raises: MCPError for an unknown one, or when the service does not answer."""
        guide = (await self._known_guides()).get(asked.uri)
        if guide is None:
            raise MCPError(types.INVALID_PARAMS, f"No resource {asked.uri[:200]!r}.")
        text = (await self._fetched(guide.path)).decode("utf-8")
        contents = types.TextResourceContents(uri=guide.uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _known_tools(self) -> Mapping[str, ApiTool]:
        if self._tools is None:
            document = msgspec.json.decode(await self._fetched("/openapi.json"))
            try:
                account = await self._client.account.get()
            except CambistError as error:
                raise MCPError(types.INTERNAL_ERROR, error.message, _envelope(error)) from None
            self._tools = api_tools(document, is_live=self._is_live, rights=account.key.rights)
        return self._tools

    async def _known_guides(self) -> Mapping[str, GuideResource]:
        if self._guides is None:
            self._guides = guide_resources((await self._fetched("/llms.txt")).decode("utf-8"))
        return self._guides

    async def _fetched(self, path: str) -> bytes:
        """Return a public file of the service. Raises: MCPError."""
        wanted = Request(method="GET", path=self._client.base_url + path, read=bytes, repeatable=True)
        try:
            return await self._client.send(wanted)
        except CambistError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message, _envelope(error)) from None

    def _why_none(self) -> str:
        return f" {_READ_ONLY}" if self._is_live else ""


async def serve(client: AsyncClient, *, is_live: bool) -> None:
    """Serve until standard input ends."""
    bridge = Bridge(client, is_live=is_live)
    server: Server[Any] = Server(
        "cambist",
        version=metadata.version("cambist"),
        instructions=bridge.instructions,
        on_list_tools=bridge.list_tools,
        on_call_tool=bridge.call_tool,
        on_list_resources=bridge.list_resources,
        on_read_resource=bridge.read_resource,
    )
    async with client, stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _described(tool: ApiTool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=tool.is_reading,
        destructive_hint=not tool.is_reading and not tool.is_additive,
        idempotent_hint=tool.is_repeatable,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=f"{tool.title}. {tool.method} {tool.path}",
        input_schema=dict(tool.schema),
        annotations=hints,
    )


def _result(document: Any, *, is_error: bool) -> types.CallToolResult:
    text = msgspec.json.encode(document).decode()
    structured = document if isinstance(document, dict) else None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured, is_error=is_error
    )


def _envelope(error: CambistError) -> dict[str, Any]:
    """Return the envelope of the API, with the advice of the client beside it."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    more = {
        "details": error.details,
        "status": error.status,
        "request_id": error.request_id,
        "retry_after": error.retry_after,
        "doc_url": error.doc_url,
        "idempotency_key": error.idempotency_key,
    }
    told |= {name: value for name, value in more.items() if value is not None}
    return {"error": {**told, "advice": error.advice.value}}
