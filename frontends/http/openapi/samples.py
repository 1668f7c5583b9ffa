"""Sample calls of an operation: in a shell, with the Python client, in JavaScript, in PHP (docs/versioning.md "The
API").

All four send the same request: tests run them. Path parameters are variables of the same name.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

Json = Mapping[str, Any]

_CALLS = Path(__file__).parent / "client_calls.json"
_NAMED = re.compile(r"\{(\w+)\}")
_KEY, _SECRET = "CAMBIST_API_KEY", "CAMBIST_API_SECRET"
_INDENT = 4


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A call in one language."""

    language: str
    """Name of the tab."""
    id: str
    text: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a sample."""

    operation_id: str
    method: str
    url: str
    """Address with `{names}`."""
    is_keyed: bool
    creates: bool
    """Whether it takes an Idempotency-Key."""
    body: Any = None


def samples(call: Call) -> tuple[Sample, ...]:
    """Return the same call in every language; in Python only if the client has it."""
    found = [Sample(language="curl", id="curl", text=_curl(call))]
    python = _python(call)
    if python:
        found.append(Sample(language="Python", id="python", text=python))
    found.append(Sample(language="JavaScript", id="javascript", text=_javascript(call)))
    found.append(Sample(language="PHP", id="php", text=_php(call)))
    return tuple(found)


NEW_KEY = "$(python3 -c 'import uuid; print(uuid.uuid4())')"
"""Shell expression for a new idempotency key, on Linux and macOS alike."""


@cache
def _client_calls() -> Mapping[str, str]:
    """Return the Python client's calls, written by docs/generate.py."""
    found: Mapping[str, str] = msgspec.json.decode(_CALLS.read_bytes())
    return found


def pretty(value: Any) -> str:
    """Return JSON over several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _address(call: Call, before: str = "$", after: str = "") -> str:
    """Return the URL with its names as variables of the language."""
    return _NAMED.sub(lambda found: f"{before}{found[1]}{after}", call.url)


def _curl(call: Call) -> str:
    lines = [f'curl -X {call.method} "{_address(call)}"']
    if call.is_keyed:
        lines += [f'-H "X-Api-Key: ${_KEY}"', f'-H "X-Api-Secret: ${_SECRET}"']
    if call.creates:
        lines.append(f'-H "Idempotency-Key: {NEW_KEY}"')
    if call.body is not None:
        text = pretty(call.body).replace("'", r"'\''").replace("\n", "\n  ")
        lines += ['-H "Content-Type: application/json"', f"-d '{text}'"]
    return " \\\n  ".join(lines)


def _python(call: Call) -> str:
    written = _client_calls().get(call.operation_id)
    if written is None:
        return ""
    base_url = call.url.partition("/api/v1")[0]
    names = ["Client", *(["Payer"] if "Payer(" in written else [])]
    imports = ["import os", *(["from datetime import datetime"] if "datetime." in written else [])]
    body = written.replace("\n", "\n    ")
    return (
        "\n".join(imports)
        + f"\n\nfrom cambist.client import {', '.join(names)}\n\n"
        + f'with Client("{base_url}", os.environ["{_KEY}"], os.environ["{_SECRET}"]) as client:\n'
        + f"    answer = {body}\n"
    )


def _javascript(call: Call) -> str:
    address = _address(call, "${", "}")
    quote = "`" if _NAMED.search(call.url) else '"'
    headers = []
    if call.is_keyed:
        headers += [f'"X-Api-Key": process.env.{_KEY}', f'"X-Api-Secret": process.env.{_SECRET}']
    if call.creates:
        headers.append('"Idempotency-Key": crypto.randomUUID()')
    options = [f'  method: "{call.method}",']
    if call.body is not None:
        headers.append('"Content-Type": "application/json"')
    if headers:
        options += ["  headers: {", *(f"    {each}," for each in headers), "  },"]
    if call.body is not None:
        text = pretty(call.body).replace("\n", "\n  ")
        options.append(f"  body: JSON.stringify({text}),")
    lines = [f"const response = await fetch({quote}{address}{quote}, {{", *options, "});"]
    return "\n".join([*lines, "const answer = await response.json();"])


def _php(call: Call) -> str:
    headers = []
    if call.is_keyed:
        headers += [f'"X-Api-Key: " . getenv("{_KEY}")', f'"X-Api-Secret: " . getenv("{_SECRET}")']
    if call.creates:
        headers.append('"Idempotency-Key: " . $key')
    if call.body is not None:
        headers.append('"Content-Type: application/json"')
    lines = ["<?php"]
    if call.creates:
        lines.append("$key = vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4));")
    lines += [
        "$context = stream_context_create(['http' => [",
        f"    'method' => '{call.method}',",
        "    'ignore_errors' => true, // an error has a body, too",
    ]
    if headers:
        lines += ["    'header' => [", *(f"        {each}," for each in headers), "    ],"]
    if call.body is not None:
        lines.append(f"    'content' => json_encode({_php_value(call.body, _INDENT)}),")
    address = _address(call)
    lines += ["]]);", f'$answer = json_decode(file_get_contents("{address}", false, $context), true);']
    return "\n".join(lines)


def _php_value(value: Any, indent: int) -> str:
    """Return a value in PHP syntax; an object becomes an array with names."""
    inner = " " * (indent + _INDENT)
    if isinstance(value, dict):
        if not value:
            return "new stdClass()"
        rows = [f"{inner}{_php_text(name)} => {_php_value(each, indent + _INDENT)},\n" for name, each in value.items()]
        return f"[\n{''.join(rows)}{' ' * indent}]"
    if isinstance(value, list):
        return f"[{', '.join(_php_value(each, indent) for each in value)}]"
    return _php_text(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _php_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
