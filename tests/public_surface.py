"""Everything public of this version (docs/versioning.md), as text, so that a later version can be compared with it.

`python -m tests.public_surface FILE` writes it. A release records its own as `tests/recorded/VERSION.json`;
`tests/architecture/test_public.py` then holds every later version against it.
"""

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

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
            f"{table.name}.{column.name}" for table in metadata().sorted_tables for column in table.columns
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
        yield from (f"{name}.{field}" for field in schema.get("properties", ()))


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
        yield name
        for each in inspect.classify_class_attrs(found) if inspect.isclass(found) else ():
            if not each.name.startswith("_") and each.defining_class.__module__.startswith("cambist"):
                yield f"{name}.{each.name}"


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the names of the public modules, and their values."""
    for module in map(import_module, MODULES):
        for name in getattr(module, "__all__", dir(module)):
            found = getattr(module, name)
            if not name.startswith("_") and getattr(found, "__module__", "cambist").startswith("cambist"):
                yield f"{module.__name__}.{name}", found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(f"{json.dumps(surface(), indent=1)}\n", "utf-8")
