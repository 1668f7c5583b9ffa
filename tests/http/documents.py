"""Compares answers and webhooks with the service's own OpenAPI document."""

import re
from typing import Any

import httpx
import msgspec
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_ROOT = "urn:document"


class Document:
    """An OpenAPI document that answers can be checked by."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        resource: Resource[Any] = Resource.from_contents(document, default_specification=DRAFT202012)
        self._registry: Registry[Any] = Registry().with_resource(_ROOT, resource)
        self._paths = {re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + r"\Z"): path for path in document["paths"]}

    def faults(self, schema: dict[str, Any], value: Any) -> list[str]:
        """Return the faults of a value."""
        absolute = msgspec.json.decode(msgspec.json.encode(schema).replace(b'"#/', f'"{_ROOT}#/'.encode()))
        checker = Draft202012Validator(absolute, registry=self._registry)
        return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(value)]

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        """The operation of a request; a path without parameters goes before one with."""
        found = [template for pattern, template in self._paths.items() if pattern.match(path)]
        for template in sorted(found, key=lambda each: each.count("{")):
            operation: dict[str, Any] | None = self.document["paths"][template].get(method.lower())
            if operation is not None:
                return operation
        return None

    def check(self, response: httpx.Response) -> None:
        """Check that the document promises this answer."""
        request = response.request
        operation = self.operation(request.method, request.url.path)
        assert operation is not None, f"{request.method} {request.url.path} is not documented"
        said = f"{request.method} {request.url.path} -> {response.status_code}"
        assert str(response.status_code) in operation["responses"], said
        promised = operation["responses"][str(response.status_code)]
        content = promised["content"]["application/json"]
        assert not self.faults(content["schema"], response.json()), said
        if not response.is_success and "examples" in content:
            assert response.json()["error"]["code"] in content["examples"], said
        for header in promised.get("headers", ()):
            assert header in response.headers, f"{said}: {header}"
