"""Collections of the API for Postman and Bruno (docs/versioning.md "The API"). `nox -s collections` runs them."""

import io
import re
import zipfile
from typing import Any

import jsonschema
import msgspec
import pytest

from cambist.frontends.http.openapi.collections import bruno, postman
from cambist.frontends.http.openapi.docs_model import reference
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.http.operations import OPERATIONS
from tests.apps import TestApp

REFERENCE = reference(openapi_document("https://pay.example"))
POSTMAN = postman(REFERENCE)
BRUNO = bruno(REFERENCE)
REQUESTS = {path: text for path, text in BRUNO.items() if "/" in path and "folder.bru" not in path}
REQUESTS.pop("environments/cambist.bru")

_TEXT = {"type": "string"}
_PAIRS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["key", "value"],
        "properties": {"key": _TEXT, "value": _TEXT, "description": _TEXT, "disabled": {"type": "boolean"}},
        "additionalProperties": False,
    },
}
_REQUEST = {
    "type": "object",
    "required": ["method", "header", "url", "description"],
    "properties": {
        "method": {"enum": ["GET", "POST", "PATCH", "PUT", "DELETE"]},
        "header": _PAIRS,
        "url": {
            "type": "object",
            "required": ["raw", "host", "path"],
            "properties": {
                "raw": _TEXT,
                "host": {"type": "array", "items": _TEXT},
                "path": {"type": "array", "items": _TEXT},
                "query": _PAIRS,
            },
            "additionalProperties": False,
        },
        "description": _TEXT,
        "body": {
            "type": "object",
            "required": ["mode", "raw"],
            "properties": {"mode": {"const": "raw"}, "raw": _TEXT, "options": {"type": "object"}},
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
_SCRIPT = {
    "type": "object",
    "required": ["type", "exec"],
    "properties": {"type": {"const": "text/javascript"}, "exec": {"type": "array", "items": _TEXT}},
}
_ITEM = {
    "type": "object",
    "required": ["name", "event", "request", "response"],
    "properties": {
        "name": _TEXT,
        "event": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["listen", "script"],
                "properties": {"listen": {"enum": ["test", "prerequest"]}, "script": _SCRIPT},
                "additionalProperties": False,
            },
        },
        "request": _REQUEST,
        "response": {"type": "array"},
    },
    "additionalProperties": False,
}
FORMAT: dict[str, Any] = {
    "type": "object",
    "required": ["info", "item", "variable"],
    "properties": {
        "info": {
            "type": "object",
            "required": ["name", "schema"],
            "properties": {
                "name": _TEXT,
                "description": _TEXT,
                "schema": {"const": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            },
        },
        "item": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "item"],
                "properties": {"name": _TEXT, "item": {"type": "array", "items": _ITEM}},
                "additionalProperties": False,
            },
        },
        "variable": _PAIRS,
    },
    "additionalProperties": False,
}
"""The part of Postman's format 2.1 that we use. Its own schema allows more."""


def items() -> list[dict[str, Any]]:
    return [each for group in POSTMAN["item"] for each in group["item"]]


def test_postman_collection_is_of_the_format_2_1() -> None:
    jsonschema.Draft202012Validator(FORMAT).validate(POSTMAN)
    spoiled = {**POSTMAN, "item": [{"name": "Payments", "item": [{"name": "no request"}]}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(FORMAT).validate(spoiled)


def test_both_collections_have_every_operation() -> None:
    paths = [(each.method.upper(), re.sub(r"{(.+?)}", r"{{\1}}", each.path)) for each in OPERATIONS]
    wanted = sorted(f"{method} {path}" for method, path in paths)
    sent = [each["request"] for each in items()]
    assert sorted(f"{each['method']} {each['url']['raw'].removeprefix('{{base_url}}')}" for each in sent) == wanted
    line = re.compile(r"^(get|post|put|patch|delete) {\n  url: {{base_url}}(\S+)$", re.MULTILINE)
    found = [line.search(text) for text in REQUESTS.values()]
    assert sorted(f"{each[1].upper()} {each[2]}" for each in found if each) == wanted


def test_requests_have_the_keys_and_creations_a_new_idempotency_key() -> None:
    operations = {(each.method.upper(), each.path): each for each in OPERATIONS}
    for each in items():
        request = each["request"]
        path = re.sub(r"{{(.+?)}}", r"{\1}", request["url"]["raw"].removeprefix("{{base_url}}"))
        operation = operations[request["method"], path]
        headers = {header["key"]: header["value"] for header in request["header"]}
        assert headers.pop("Content-Type", None) == ("application/json" if operation.body else None), each["name"]
        expected = {"X-Api-Key": "{{api_key}}", "X-Api-Secret": "{{api_secret}}"} if operation.keyed else {}
        assert headers == expected | ({"Idempotency-Key": "{{$guid}}"} if operation.creates else {})
        assert ("body" in request) == (operation.body is not None)


def test_every_variable_is_declared_and_every_id_is_filled() -> None:
    declared = {each["key"] for each in POSTMAN["variable"]}
    used = set(re.findall(r"{{(\w+)}}", msgspec.json.encode([each["request"] for each in items()]).decode()))
    assert used == declared
    scripts = "\n".join(line for each in items() for line in each["event"][0]["script"]["exec"])
    kept = set(re.findall(r'collectionVariables.set\("(\w+)"', scripts))
    assert kept == declared - {"base_url", "api_key", "api_secret", "link_id"}, "a link is in no answer as an id"
    environment = BRUNO["environments/cambist.bru"]
    assert set(re.findall(r"^  (\w+)[:,\n]", environment, re.MULTILINE)) == declared
    assert re.search(r"vars:secret \[\n  api_key,\n  api_secret\n\]", environment)


def test_bruno_bodies_are_the_examples_of_postman() -> None:
    bodies = [each["request"]["body"]["raw"] for each in items() if "body" in each["request"]]
    found = [re.search(r"^body:json {\n(.*?)^}$", text, re.MULTILINE | re.DOTALL) for text in REQUESTS.values()]
    assert [msgspec.json.decode(each[1]) for each in found if each] == [msgspec.json.decode(body) for body in bodies]


def test_bruno_files_have_names_for_every_system() -> None:
    assert all(re.fullmatch(r"[\w ,()'./-]+", path) and len(path) < 150 for path in BRUNO)
    assert len({path.lower() for path in BRUNO}) == len(BRUNO)


async def test_collections_are_served_with_the_address_of_the_service(app: TestApp) -> None:
    base = app.ports.urls.base_url
    answer = await app.http.get("/docs/cambist.postman_collection.json")
    assert answer.json() == postman(reference(openapi_document(base)))
    packed = await app.http.get("/docs/cambist-bruno.zip")
    assert packed.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        assert archive.testzip() is None
        names = {name.removeprefix("cambist-bruno/") for name in archive.namelist()}
        assert names == set(BRUNO)
        assert f"base_url: {base}" in archive.read("cambist-bruno/environments/cambist.bru").decode()
