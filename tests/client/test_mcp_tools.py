"""Tools of `cambist mcp` beside the operations that they stand for (docs/mcp.md)."""

from typing import Any

import jsonschema
import msgspec

from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.http.operations import OPERATIONS
from cambist.frontends.mcp.guides import guide_resources
from cambist.frontends.mcp.tools import ApiTool, api_tools

DOCUMENT = openapi_document("https://pay.example")
TOOLS = api_tools(DOCUMENT, is_live=False, rights=None)
DESTRUCTIVE = {
    "advance_clock", "archive_payment_link", "cancel_exchange", "cancel_refund", "cancel_subscription",
    "delete_export", "delete_sandbox_data", "delete_webhook_endpoint", "resolve_payment",
    "rotate_webhook_endpoint_secret", "set_next_charge", "settle_payments", "update_subscription",
    "update_webhook_endpoint",
}  # fmt: skip
NOT_REPEATABLE = {
    "advance_clock", "begin_exchange", "create_upload_url", "create_withdrawal", "register_client", "resend_event",
    "resend_events", "retry_receipt", "rotate_webhook_endpoint_secret", "settle_payments", "submit_delivery_proof",
    "test_further_webhook_endpoint", "test_webhook_endpoint",
}  # fmt: skip


FILES = {"download_export", "download_export_by_link", "download_report", "download_report_document"}
"""Operations that answer with a file."""


def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        each["operationId"]: (method, path, each)
        for path, methods in DOCUMENT["paths"].items()
        for method, each in methods.items()
        if each["operationId"] not in FILES
    }


def arguments(tool: ApiTool, operation: dict[str, Any]) -> dict[str, Any]:
    """The documented example of a call: a value for each parameter that is required, and the body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    values = {name: f"the-{name}" for name in tool.schema["required"]}
    return {**values, **content.get("example", {})}


def test_tool_takes_the_documented_example_and_sends_it() -> None:
    for name, (method, path, operation) in operations().items():
        tool = TOOLS[name]
        given = arguments(tool, operation)
        jsonschema.Draft202012Validator.check_schema(tool.schema)
        jsonschema.Draft202012Validator(tool.schema).validate(given)
        request = tool.request("https://pay.example", given)
        expected = "https://pay.example" + path.format_map(given)
        assert (request.method, request.url("https://pay.example")) == (method.upper(), expected)
        example = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
        assert (None if request.body is None else msgspec.json.decode(request.body)) == example
        assert (request.key is not None) == tool.is_creating


def test_tool_arguments_have_names_of_their_own() -> None:
    components = DOCUMENT["components"]["schemas"]
    for name, (_, _, operation) in operations().items():
        names = [each["name"] for each in operation["parameters"]]
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            schema = content["schema"]
            names += components[schema["$ref"].rpartition("/")[2]]["properties"] if "$ref" in schema else []
        assert len(names) == len(set(names)), name


def test_tool_hints_follow_what_the_operation_does() -> None:
    writing = {each.id for each in OPERATIONS if each.method != "get"}
    assert {name for name, tool in TOOLS.items() if not tool.is_reading} == writing
    assert {name for name in writing if not TOOLS[name].is_additive} == DESTRUCTIVE
    assert {name for name, tool in TOOLS.items() if not tool.is_repeatable} == NOT_REPEATABLE


def test_tools_of_a_key_are_those_of_its_rights_and_mode() -> None:
    rights = {each.id: each.needs.value for each in OPERATIONS}
    of_payments = api_tools(DOCUMENT, is_live=False, rights=["payments"])
    open_to_all = {each.id for each in OPERATIONS if not each.keyed} - FILES
    assert of_payments.keys() == {name for name in rights if rights[name] == "payments"} | open_to_all
    live = api_tools(DOCUMENT, is_live=True, rights=None)
    reading = {each.id for each in OPERATIONS if each.method == "get" and not each.is_sandbox}
    assert live.keys() == reading - FILES


def test_guides_of_llms_txt_are_resources_by_their_place() -> None:
    text = "# x\n- [OpenAPI](https://a/openapi.json): all\n- [Start](https://a/x/docs/ru/start.md): One; Two\n"
    assert {uri: (each.path, each.title, each.about) for uri, each in guide_resources(text).items()} == {
        "cambist://docs/ru/start.md": ("/docs/ru/start.md", "Start", "One; Two")
    }
