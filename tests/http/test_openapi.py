"""GET /openapi.json (docs/versioning.md "The API"): complete, valid, and true."""

import asyncio
import re
import threading
from typing import Any
from uuid import uuid4

import httpx
import pytest
from openapi_spec_validator import validate

from cambist.core.domain.errors import CATALOGUE
from cambist.core.domain.payloads import EVENT_PAYLOADS
from cambist.core.domain.webhooks.events import EventType
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.http.edge.errors import ErrorDetails
from cambist.frontends.http.openapi import openapi
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.server.app import create_app
from tests.apps import TestApp
from tests.docs.test_blocks import ROOT
from tests.domain.test_payloads import EVENTS, FIELDS, full, names
from tests.framework_way import framework_of
from tests.http.documents import Document
from tests.tables import table

BASE = "https://pay.example"
FOREIGN = re.compile(r"\{\w+(?::\w+)?\}")
EXAMPLES_ARE_MADE = "add a stop to tests/openapi_tour.py where it has none, then python docs/generate.py"


@pytest.fixture(scope="module")
def document() -> Document:
    return Document(openapi_document(BASE))


def every_schema(value: Any) -> list[dict[str, Any]]:
    """Yield all schemas of objects with fields, wherever they are in the document."""
    found: list[dict[str, Any]] = []
    if isinstance(value, dict):
        found += [value] if value.get("type") == "object" and "properties" in value else []
        for each in value.values():
            found += every_schema(each)
    elif isinstance(value, list):
        for each in value:
            found += every_schema(each)
    return found


async def test_document_is_served_without_a_key_and_is_not_counted(app: TestApp) -> None:
    response = await app.http.get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert "x-ratelimit-limit" not in response.headers
    assert response.json() == openapi_document(app.ports.urls.base_url)


async def test_document_is_made_once_and_not_on_the_event_loop(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it takes some hundred milliseconds, in which no payment may wait."""
    made_in: list[int] = []
    make = openapi.openapi_bytes

    def watched(base_url: str) -> bytes:
        made_in.append(threading.get_ident())
        return make(base_url)

    monkeypatch.setattr(openapi, "openapi_bytes", watched)
    fresh: Any = create_app(app.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(fresh), base_url=BASE) as http:
        first, second = await asyncio.gather(http.get("/openapi.json"), http.get("/openapi.json"))
        third = await http.get("/openapi.json")
    assert first.content == second.content == third.content
    assert len(made_in) == 1
    assert made_in != [threading.get_ident()]


def test_document_is_valid_openapi_3_1(document: Document) -> None:
    assert document.document["openapi"].startswith("3.1.")
    validate(document.document)


def test_description_of_the_webhooks_has_version_1(document: Document) -> None:
    assert document.document["info"]["version"] == "1"
    assert document.document["x-webhooks-version"] == "1"


async def test_a_query_value_with_a_list_takes_these_and_no_other(app: TestApp, document: Document) -> None:
    """Every status that a list is filtered by is among them."""
    await set_settings(app.ports, app.account.account_id, {"refunds": "true", "exchange": "true"})
    tried, free = set(), []
    for path, operations in document.document["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            name, words = parameter["name"], parameter["schema"].get("enum")
            if name.endswith("status") and parameter["schema"] == {"type": "string"}:
                free.append((path, name))
            if parameter["in"] != "query" or words is None or "{" in path:
                continue
            await app.clock.advance(61)  # past the limit of a minute
            address = f"{path.removeprefix('/api/v1')}?{name}="
            for word in words:
                assert (await app.get(address + word)).status_code == 200, (path, word)
            bad = await app.get(f"{address}other")
            assert bad.status_code == 400, path
            assert f"{name}: must be one of: {', '.join(words)}" in bad.json()["error"]["message"], path
            tried.add(f"{path.rpartition('/')[2]}.{name}")
    assert free == []
    lists = ("payments", "refunds", "subscriptions", "exchanges")
    assert {*(f"{each}.status" for each in lists), "events.type", "events.delivery_status"} <= tried


OPEN = {"/health", "/api/v1/health", "/api/v1/report-heads"}
"""Paths that need no key."""
BY_LINK = {"/api/v1/export-files/{}"}
"""Paths whose last part is the permission."""
NOT_MERCHANTS = {("/api/v1/notices/{}/{}", "POST")}
"""Where providers post: no operation of the interface."""


async def test_document_has_every_route_and_no_other(app: TestApp, document: Document) -> None:
    routed = {
        (FOREIGN.sub("{}", route.path), method)
        for route in framework_of(app.ports).routes
        if route.path.startswith("/api/v1") or route.path == "/health"
        for method in getattr(route, "methods", ())
        if method != "OPTIONS"
    }
    described = {
        (FOREIGN.sub("{}", path), method.upper())
        for path, operations in document.document["paths"].items()
        for method in operations
    }
    assert routed == NOT_MERCHANTS, "a route under /api/v1 without its row: operations.py or the subject's"
    for path, method in sorted(described):
        answer = await app.http.request(method, path.replace("{}", "x"))
        expected = (200, 503) if path in OPEN else (404,) if path in BY_LINK else (401,)
        assert answer.status_code in expected, f"{method} {path} is described and not served"


def test_every_schema_is_closed(document: Document) -> None:
    schemas = every_schema(document.document)
    assert len(schemas) > 50
    assert [schema for schema in schemas if schema.get("additionalProperties") is not False] == []


def is_file(content: dict[str, Any]) -> bool:
    return "application/octet-stream" in content


def operations(document: Document) -> list[dict[str, Any]]:
    return [each for methods in document.document["paths"].values() for each in methods.values()]


def test_every_operation_has_examples_of_request_answers_and_refusals(document: Document) -> None:
    shown = document.document["components"]["examples"]
    for operation in operations(document):
        name = operation["operationId"]
        answers = operation["responses"].items()
        contents = [
            (status, each["content"]["application/json"]) for status, each in answers if not is_file(each["content"])
        ]
        examples = 0
        for status, content in contents:
            named = [shown[each["$ref"].rpartition("/")[2]]["value"] for each in content.get("examples", {}).values()]
            for example in named + ([content["example"]] if "example" in content else []):
                assert document.faults(content["schema"], example) == [], f"{name} {status}: {EXAMPLES_ARE_MADE}"
                examples += 1
            assert named or "example" in content or status in ("200", "503"), f"{name} {status}: {EXAMPLES_ARE_MADE}"
        assert examples, f"{name}: {EXAMPLES_ARE_MADE}"
        done = [content for status, content in contents if status in ("200", "201")]
        assert not done or any("example" in content for content in done), f"{name}: {EXAMPLES_ARE_MADE}"
        if "requestBody" in operation:
            body = operation["requestBody"]["content"]["application/json"]
            assert document.faults(body["schema"], body["example"]) == [], f"{name}: {EXAMPLES_ARE_MADE}"


def test_the_examples_of_webhooks_are_of_their_schemas(document: Document) -> None:
    for event, webhook in document.document["webhooks"].items():
        body = webhook["post"]["requestBody"]["content"]["application/json"]
        assert body["example"]["event"] == event
        assert document.faults(body["schema"], body["example"]) == []


def test_a_creation_shows_the_first_answer_and_the_repeat(document: Document) -> None:
    answers = document.document["paths"]["/api/v1/payments"]["post"]["responses"]
    assert answers["201"]["content"]["application/json"]["example"]["status"] == "pending"
    assert answers["200"]["content"]["application/json"]["example"]["status"] == "paid"


def test_every_field_and_parameter_says_what_it_means(document: Document) -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in document.document["components"]["schemas"].items()
        for field, each in schema.get("properties", {}).items()
        if not each.get("description")
    ]
    silent += [
        f"{operation['operationId']} {parameter['name']}"
        for operation in operations(document)
        for parameter in operation["parameters"]
        if not parameter.get("description")
    ]
    assert silent == [], "say what it means with the field: Annotated[..., Meta(description=...)]"


def test_optional_fields_of_bodies_have_no_default(document: Document) -> None:
    """openapi-typescript makes a field with a default required."""
    order = document.document["components"]["schemas"]["PaymentOrder"]
    assert order["required"] == ["amount_rub"]
    assert [name for name, each in order["properties"].items() if "default" in each] == []
    assert order["properties"]["external_id"]["anyOf"] == [{"maxLength": 256, "type": "string"}, {"type": "null"}]


def test_docstrings_of_the_code_do_not_go_out(document: Document) -> None:
    assert [name for name, each in document.document["components"]["schemas"].items() if "description" in each] == []


def test_with_live_keys_the_sandbox_is_not_there(document: Document) -> None:
    for path, methods in document.document["paths"].items():
        for operation in methods.values() if "/sandbox/" in path else ():
            codes = operation["responses"]["404"]["content"]["application/json"]["examples"]
            assert "NOT_FOUND" in codes, path


def refusals(document: Document) -> set[tuple[int, str]]:
    """Return status and code of every refusal that an operation lists."""
    found = set()
    for operations in document.document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                content = response["content"].get("application/json", {"schema": None})
                if content["schema"] == {"$ref": "#/components/schemas/ErrorEnvelope"}:
                    found |= {(int(status), code) for code in content["examples"]}
    return found


def test_every_refusal_is_in_the_catalogue_with_its_status(document: Document) -> None:
    found = refusals(document)
    for status, code in found:
        assert status in (CATALOGUE[code].status, *CATALOGUE[code].variants), code
    operators_only = {
        *("TERMINAL_NOT_FOUND", "ACCOUNT_NOT_FOUND", "SUSPENSE_NOT_FOUND", "CLIENT_NOT_FOUND"),
        *("ACTION_NOT_FOUND", "SECOND_OPERATOR_NEEDED", "KEY_NOT_FOUND"),
    }
    dashboard_only = {
        *("SIGN_IN_FAILED", "TOO_MANY_GUESSES", "PERSON_RIGHT_MISSING", "SECOND_FACTOR_NEEDED", "STEP_UP_NEEDED"),
        *("CURSOR_INVALID", "VIEW_NOT_FOUND", "NOTE_NOT_FOUND", "LINK_LIMIT"),
        *("FORM_REFUSED", "LIVE_MODE_DENIED", "NO_ACCOUNT", "USER_NOT_FOUND", "INVITATION_NOT_FOUND", "RESET_VOID"),
        *("SECOND_PERSON_NEEDED", "REQUEST_NOT_FOUND"),
        *("RESEND_NOT_FOUND", "RESEND_BUSY", "RESEND_TOO_LARGE"),
        *("LAST_OWNER", "NOTE_NOT_FOUND", "LINK_LIMIT"),
        "UNSUBSCRIBE_VOID",
    }
    # Outside /api/v1: an address of its own for each file.
    uploads_only = {"UPLOAD_FORBIDDEN", "UPLOAD_EXISTS"}
    before_any_operation = {"METHOD_NOT_ALLOWED", "HEADERS_TOO_LARGE"}
    assert set(CATALOGUE) - {code for _, code in found} == {
        *operators_only,
        *dashboard_only,
        *uploads_only,
        *before_any_operation,
    }


def test_the_schema_of_details_has_what_refusals_say_and_nothing_else() -> None:
    said = {
        name
        for path in (ROOT / "core").rglob("*.py")
        for details in re.findall(r"details=\{([^}]*)\}", path.read_text("utf-8"))
        for name in re.findall(r'"(\w+)":', details)
    }
    operators_only = {"open"}  # `cambist resume` names what nobody has attributed
    assert said - operators_only == set(ErrorDetails.__struct_fields__)


def test_answer_with_an_undocumented_code_is_found(document: Document) -> None:
    body = {"error": {"code": "CLIENT_BLOCKED", "message": "x"}}
    request = httpx.Request("GET", f"{BASE}/api/v1/payments")
    with pytest.raises(AssertionError):
        document.check(httpx.Response(400, json=body, request=request))


@table("event", EVENTS)
def test_webhooks_say_what_the_structs_say(document: Document, event: str) -> None:
    assert set(document.document["webhooks"]) == set(EventType)
    schema = document.document["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]["schema"]
    body = full(event)
    assert document.faults(schema, body) == []
    assert document.faults(schema, {**body, "extra": 1})
    assert document.faults(schema, {**body, "event": "payment.other"})
    required, _ = FIELDS[event]
    for name in names(required):
        assert document.faults(schema, {key: each for key, each in body.items() if key != name}), name
    component = document.document["components"]["schemas"][EVENT_PAYLOADS[EventType(event)].__name__]
    assert component["required"] == names(required)


def test_the_checks_of_this_file_can_fail(document: Document) -> None:
    schema = {"$ref": "#/components/schemas/GatewaySimulation"}
    assert document.faults(schema, {"status": "down"}) == []
    assert document.faults(schema, {"status": "gone"})
    assert document.faults(schema, {})


async def test_real_answers_are_as_promised(app: TestApp, document: Document) -> None:
    async def ask(method: str, path: str, mode: str = "test", key: str | None = None, body: Any = None) -> Any:
        headers = app.headers(mode, **({} if key is None else {"Idempotency_Key": key}))
        response = await app.http.request(method, f"/api/v1{path}", json=body, headers=headers)
        document.check(response)
        return response.json()

    key = str(uuid4())
    order = {"amount_rub": "150.00", "metadata": {"a": 1}, "client_phone": "+79990000000", "external_id": "order 7"}
    operation = document.operation("POST", "/api/v1/payments")
    assert operation is not None
    assert document.faults(operation["requestBody"]["content"]["application/json"]["schema"], order) == []
    payment = await ask("POST", "/payments", key=key, body=order)
    path = f"/payments/{payment['id']}"
    await ask("POST", "/payments", key=key, body=order)
    await ask("POST", "/payments", body=order)
    await ask("POST", "/payments", key=str(uuid4()), body={"amount_rub": "1"})
    await ask("POST", "/payments", key=str(uuid4()), body={**order, "client_phone": "7"})
    for each in (path, "/payments", "/payments?page=0", "/payments/pay_x", f"{path}/sbp-link"):
        await ask("GET", each)
    await ask("POST", f"/sandbox{path}/simulate", body={"outcome": "failed", "failure_reason": "declined_by_bank"})
    await ask("POST", f"/sandbox{path}/simulate", body={"outcome": "no"})
    await ask("POST", f"/sandbox{path}/simulate", mode="live", body={"outcome": "paid"})
    await ask("POST", f"/sandbox{path}/resolve", body={"outcome": "paid"})
    await app.work()
    await ask("GET", path)
    for each in ("", "/delivery-proof"):
        await ask("GET", f"{path}{each}")
    await ask("POST", f"{path}/delivery-proof", body={"network": "TRC20", "tx_hash": "a"})
    [event] = (await ask("GET", "/events"))["data"]
    whole = await ask("GET", f"/events/{event['id']}")
    assert whole["payload"]["failure_reason"] == "declined_by_bank"
    await ask("POST", f"/events/{event['id']}/resend")
    await ask("POST", "/events/evt_x/resend")
    await ask("POST", "/events/resend", body={"from": "2020-01-01T00:00:00Z", "to": "2040-01-01T00:00:00Z"})
    for each in ("/webhook-endpoint", "/gateways", "/payment-methods", "/payment-methods/x/exchange-rate"):
        await ask("GET", each)
    await ask("POST", "/webhook-endpoint/test")
    for each in (
        "/shops/turnover",
        "/shops/turnover?from=x",
        "/rates",
        "/rates?shop_id=x",
        "/balance",
        "/settlements",
        "/settlements?page=0",
        "/settlements/x",
        "/settlements/x/items",
        "/sandbox/letters",
        "/sandbox/letters?after=x",
        "/health",
    ):
        await ask("GET", each)
    await ask("POST", "/withdrawals")
    settlement = await ask("POST", "/sandbox/settlements")
    await ask("POST", "/sandbox/settlements", mode="live")
    for each in ("", "/items", "/items?format=xml"):
        await ask("GET", f"/settlements/{settlement['id']}{each}")
    await ask("POST", "/sandbox/gateways/simulator-test/simulate", body={"status": "degraded"})
    await ask("POST", "/sandbox/gateways/nobody/simulate", body={"status": "down"})
    document.check(await app.http.get("/health"))
    document.check(await app.http.get("/api/v1/payments"))
