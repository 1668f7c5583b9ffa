"""`cambist mcp` as a program, used by the protocol's own client library (docs/mcp.md)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import msgspec
import pytest

from cambist.core.usecases.accounts.accounts import KeyPair
from cambist.frontends.http.operations import OPERATIONS
from tests.stories.processes import PROGRAM, Installation

if TYPE_CHECKING:  # loading it takes a second, which each worker would spend on collecting these tests
    from mcp.client.client import Client
    from mcp.types import CallToolResult

OFFERED = {each.id: each for each in OPERATIONS if each.answer is not None or each.also_as is None}
"""Operations that do not answer with a file."""
READING = {name for name, each in OFFERED.items() if each.method == "get" and not each.is_sandbox}


@asynccontextmanager
async def connected(
    folder: Path, base_url: str, keys: KeyPair, mode: Literal["auto", "legacy"] = "auto"
) -> "AsyncIterator[Client]":
    """A client of `cambist mcp`, whose standard error goes to a file. `legacy`: with the handshake of protocols before
    2026."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    environ = {"CAMBIST_URL": base_url, "CAMBIST_API_KEY": keys.api_key, "CAMBIST_API_SECRET": keys.api_secret}
    server = StdioServerParameters(command=str(PROGRAM), args=["mcp"], env=environ, cwd=folder)
    with (folder / "mcp.err").open("a", encoding="utf-8") as err:
        async with Client(stdio_client(server, errlog=err), mode=mode) as client:
            yield client


def document(result: "CallToolResult") -> Any:
    """The JSON of an answer."""
    from mcp.types import TextContent

    [content] = result.content
    assert isinstance(content, TextContent)
    return msgspec.json.decode(content.text)


async def test_mcp_serves_tools_errors_of_the_api_and_guides(sqlite_location: Installation) -> None:
    place = sqlite_location
    _, base_url = place.serve()
    keys = (await place.account()).test
    async with connected(place.folder, base_url, keys) as client:
        await try_errors(client)
        await try_guides(client)
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert tools.keys() == OFFERED.keys()
        order = {"amount_rub": "490.00", "external_id": "order-1", "idempotency_key": str(uuid4())}
        made = document(await client.call_tool("create_payment", order))
        assert document(await client.call_tool("create_payment", order))["id"] == made["id"], "a repeat makes no second"
        paid = {"payment_id": made["id"], "outcome": "paid"}
        await client.call_tool("simulate_payment", paid)
        assert document(await client.call_tool("get_payment", {"payment_id": made["id"]}))["status"] == "paid"
        assert document(await client.call_tool("get_health", {}))["status"] == "ok"
        listed = await client.call_tool("list_payments", {"external_id": "order-1", "per_page": 5})
        assert listed.structured_content == document(listed)
        assert [each["id"] for each in document(listed)["data"]] == [made["id"]]


async def try_errors(client: "Client") -> None:
    """Errors are the envelope of the API."""
    from mcp.shared.exceptions import MCPError

    key = str(uuid4())
    refused = await client.call_tool("create_payment", {"amount_rub": "1.00", "idempotency_key": key})
    error = document(refused)["error"]
    assert refused.is_error
    assert (error["code"], error["status"], error["advice"]) == ("AMOUNT_BELOW_MINIMUM", 400, "never")
    assert error["idempotency_key"] == key
    for arguments, message in (
        ({}, "payment_id is required"),
        ({"payment_id": "pay_1", "cvc": "123"}, "get_payment has no argument cvc"),
        ({"payment_id": ".."}, "an id may not be empty or a dot segment"),
        ({"payment_id": ["pay_1"]}, "an argument of the path or the query is text or a number"),
    ):
        wrong = await client.call_tool("get_payment", arguments)
        assert document(wrong) == {"error": {"code": "VALIDATION_ERROR", "message": message}}
        assert wrong.is_error
    with pytest.raises(MCPError, match="No tool 'get_money'"):
        await client.call_tool("get_money", {})


async def test_mcp_offers_a_live_key_only_tools_that_read(sqlite_location: Installation) -> None:
    from mcp.shared.exceptions import MCPError

    place = sqlite_location
    _, base_url = place.serve()
    keys = (await place.account()).live
    async with connected(place.folder, base_url, keys, "legacy") as client:
        listed = (await client.list_tools()).tools
        assert {each.name for each in listed} == READING
        assert all(each.annotations is not None and each.annotations.read_only_hint for each in listed)
        assert document(await client.call_tool("list_payments", {}))["data"] == []
        with pytest.raises(MCPError, match="only tools that read"):
            await client.call_tool("create_payment", {"amount_rub": "490.00", "idempotency_key": str(uuid4())})
        assert document(await client.call_tool("list_payments", {}))["data"] == []


async def try_guides(client: "Client") -> None:
    """Resources are the guides, as Markdown."""
    from mcp.shared.exceptions import MCPError
    from mcp.types import TextResourceContents

    uris = [each.uri for each in (await client.list_resources()).resources]
    assert {"cambist://docs/quickstart.md", "cambist://docs/ru/webhooks.md"} <= set(uris)
    for uri in uris:
        [contents] = (await client.read_resource(uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.text.lstrip().startswith(("# ", "<!--"))
    with pytest.raises(MCPError, match="No resource"):
        await client.read_resource("cambist://docs/../openapi.json")


async def test_mcp_says_when_the_service_is_away_and_shows_no_secret(sqlite_location: Installation) -> None:
    from mcp.shared.exceptions import MCPError

    place = sqlite_location
    service, base_url = place.serve()
    account = await place.account()
    async with connected(place.folder, base_url, account.test) as client:
        service.kill()
        with pytest.raises(MCPError, match="No answer to Request"):
            await client.list_tools()
        _, _ = place.serve("--port", base_url.rpartition(":")[2])
        assert (await client.list_tools()).tools, "it goes on without a restart"
    wrong = KeyPair(api_key=account.test.api_key, api_secret="a-wrong-secret")
    async with connected(place.folder, base_url, wrong) as client:
        with pytest.raises(MCPError):
            await client.list_tools()
    shown = (place.folder / "mcp.err").read_text("utf-8")
    assert account.test.api_secret not in shown
    assert "a-wrong-secret" not in shown
