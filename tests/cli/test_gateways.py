"""`cambist gateway …` and `cambist openapi` (docs/cli.md "Commands")."""

from pathlib import Path
from typing import Any

import msgspec

from cambist.frontends.http.openapi.openapi import openapi_document
from tests.cli.conftest import Call


def gateway(call: Call, *arguments: str) -> Any:
    done = call("gateway", *arguments, "--json")
    assert (done.status, done.err) == (0, "")
    return done.document


def test_gateways_of_both_modes_are_listed(call: Call) -> None:
    rows = gateway(call, "list")["data"]
    assert [(row["gateway_id"], row["mode"], row["status"]) for row in rows] == [
        ("simulator-live", "live", "operational"),
        ("simulator-test", "test", "operational"),
    ]
    assert [row["gateway_id"] for row in gateway(call, "list", "--mode", "test")["data"]] == ["simulator-test"]
    assert "simulator-test" in call("gateway", "list").out


def test_a_gateway_is_set_and_stays_so(call: Call) -> None:
    made = gateway(call, "set", "simulator-test", "down", "--reason", "maintenance")
    assert (made["status"], made["reason"]) == ("down", "maintenance")
    assert made["since"] is not None
    assert gateway(call, "list", "--mode", "test")["data"] == [made]
    assert gateway(call, "set", "simulator-test", "degraded")["reason"] == "operator"
    back = gateway(call, "set", "simulator-test", "operational")
    assert (back["status"], back["reason"]) == ("operational", None)


def test_a_gateway_that_is_not_there_is_refused(call: Call) -> None:
    done = call("gateway", "set", "nobody", "down", "--json")
    assert done.status == 1
    assert done.document["error"]["code"] == "GATEWAY_NOT_FOUND"


def test_another_status_or_reason_is_wrong_usage(call: Call) -> None:
    assert call("gateway", "set", "simulator-test", "gone").status == 2
    assert call("gateway", "set", "simulator-test", "down", "--reason", "provider_errors").status == 2


def test_openapi_prints_the_document_with_the_services_address(call: Call) -> None:
    done = call("openapi", env={"CAMBIST_BASE_URL": "https://pay.example/api/"})
    assert (done.status, done.err) == (0, "")
    assert done.document == msgspec.json.decode(msgspec.json.encode(openapi_document("https://pay.example/api")))
    given = call("openapi", "--json", "--base-url", "https://other.example")
    assert given.document["servers"] == [{"url": "https://other.example"}]


def test_openapi_writes_collections_for_postman_and_bruno(call: Call, tmp_path: Path) -> None:
    collection = call("openapi", "--postman", "--base-url", "https://pay.example").document
    assert {"key": "base_url", "value": "https://pay.example"} in collection["variable"]
    folder = tmp_path / "bruno"
    done = call("openapi", "--bruno", str(folder), "--json")
    assert done.document == {"folder": str(folder), "files": sum(path.is_file() for path in folder.rglob("*"))}
    assert msgspec.json.decode((folder / "bruno.json").read_bytes())["type"] == "collection"
    again = call("openapi", "--bruno", str(folder))
    assert (again.status, again.err) == (1, f"error: {folder}: File exists\n")
    assert call("openapi", "--bruno", str(folder), "--postman").status == 2
