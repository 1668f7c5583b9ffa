"""Everything public of this version (docs/versioning.md), as text, so that a later version can be compared with it.

`python -m tests.public_surface` (`nox -s record`) writes it to `tests/recorded/VERSION.json`;
`tests/architecture/test_public.py` compares every later state with it. The record of a version that is not released yet
may be written anew when something is removed; afterwards it stays as it is.
"""

import inspect
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

import cambist
from cambist.adapters.storage.sql.schema import metadata
from cambist.core.domain.errors import CATALOGUE
from cambist.frontends.cli.main import cli
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.settings.settings import OPTIONS

RECORDED = Path(__file__).parent / "recorded"

MODULES = ("cambist", "cambist.client", "cambist.ports", "cambist.testing", "cambist.conformance")

Surface = Mapping[str, list[str]]
"""Names by part."""


def surface() -> Surface:
    """Return everything public of this version."""
    document = json.loads(msgspec.json.encode(openapi_document("https://pay.example")))
    return {
        "operations": sorted(_operations(document)),
        "fields": sorted(_fields(document["components"]["schemas"])),
        "webhooks": sorted(document["webhooks"]),
        "errors": sorted(str(each) for each in CATALOGUE),
        "commands": sorted(_commands(cli, "cambist")),
        "settings": sorted(OPTIONS),
        "names": sorted(_names()),
        "schema": sorted(
            f"{each.table.name}.{each.name}: {each.type}"
            for table in metadata().sorted_tables
            for each in table.columns
        ),
    }


def lost(before: Surface, now: Surface) -> list[str]:
    """Return the names that a later version lacks."""
    return [f"{part}: {name}" for part, names in before.items() for name in sorted({*names} - {*now.get(part, ())})]


def _operations(document: Any) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "operationId" in operation:
                yield f"{method.upper()} {path} {operation['operationId']}"


def _fields(schemas: Any) -> Iterator[str]:
    for name, schema in schemas.items():
        for field, described in schema.get("properties", {}).items():
            yield f"{name}.{field}: {_form(described)}"
            yield from (f"{name}.{field} = {value}" for value in described.get("enum", ()))


def _form(described: Any) -> str:
    """Return the type of a field, without what may be widened: bounds, enumerated values and texts."""
    if "anyOf" in described:
        return " | ".join(_form(each) for each in described["anyOf"])
    if described.get("type") == "array":
        return f"[{_form(described.get('items', {}))}]"
    named: str = described.get("$ref", "").rpartition("/")[2] or str(described.get("type", "any"))
    return named


def _commands(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for each in command.params:
        yield from (f"{path} {name}" for name in (*each.opts, *each.secondary_opts) if isinstance(each, click.Option))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _commands(found, f"{path} {name}")


def _names() -> Iterator[str]:
    """Names of the public modules, with the public members that our classes define."""
    for name, found in public_objects():
        yield from _with_parameters(name, found)
        for each in inspect.classify_class_attrs(found) if inspect.isclass(found) else ():
            if not each.name.startswith("_") and each.defining_class.__module__.startswith("cambist"):
                yield from _with_parameters(f"{name}.{each.name}", getattr(found, each.name, None))


def _with_parameters(name: str, found: Any) -> Iterator[str]:
    yield name
    if inspect.isfunction(found):
        yield from (f"{name}({each})" for each in inspect.signature(found).parameters if each != "self")


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the names of the public modules, and their values."""
    for module in map(import_module, MODULES):
        for name in getattr(module, "__all__", dir(module)):
            found = getattr(module, name)
            if not name.startswith("_") and getattr(found, "__module__", "cambist").startswith("cambist"):
                yield f"{module.__name__}.{name}", found


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{cambist.__version__}.json").write_text(f"{json.dumps(surface(), indent=1)}\n", "utf-8")
