"""The samples of `/docs` send the example of their operation, in every language (docs/versioning.md "The API")."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import pytest

from cambist.client import Client
from cambist.frontends.client.requests import Request
from cambist.frontends.http.openapi.docs_model import Shown, reference
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.http.openapi.samples import NEW_KEY

KEYS = {"CAMBIST_API_KEY": "svc_test_k", "CAMBIST_API_SECRET": "s"}
NOT_IN_THE_CLIENT = {
    "get_api_health",
    "get_health",
    "create_withdrawal",
    "get_payment_method_rate",
    "download_export_by_link",
}


class Sent(msgspec.Struct, frozen=True):
    """Request that a sample sent. Keys differ in each call, so only the presence of a key is stored."""

    method: str
    path: str
    body: Any
    is_keyed: bool
    creates: bool


def sent(method: str, address: str, headers: Mapping[str, str], body: bytes | str | None) -> Sent:
    given = {name.lower(): value for name, value in headers.items()}
    key = given.get("idempotency-key")
    if key is not None and key != NEW_KEY:
        UUID(key)
    if body:
        assert given["content-type"] == "application/json"
    pair = (given.get("x-api-key"), given.get("x-api-secret"))
    assert pair in {(None, None), tuple(KEYS.values())}
    read = json.loads(body) if body else None
    return Sent(method, urlsplit(address).path, read, pair[0] is not None, key is not None)


class Recorder(BaseHTTPRequestHandler):
    """A service that accepts everything, and records the requests."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(sent(self.command, self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's word
        pass


@pytest.fixture(scope="module")
def service() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@cache
def shown(base_url: str) -> dict[str, Shown]:
    """The operations of the page, by their ids."""
    groups = reference(openapi_document(base_url)).groups
    return {each.id: each for group in groups for each in group.shown if each.calls}


def in_language(base_url: str, language: str) -> dict[str, str]:
    """The samples of one language, by operation."""
    found = {name: [call.text for call in each.calls if call.id == language] for name, each in shown(base_url).items()}
    return {name: texts[0] for name, texts in found.items() if texts}


@cache
def expected(base_url: str) -> dict[str, Sent]:
    """Return the documented request of each operation, with the names of path parameters filled in as values."""
    return {
        name: Sent(
            each.method,
            re.sub(r"[{}]", "", each.path),
            json.loads(each.request) if each.request else None,
            each.is_keyed,
            each.creates,
        )
        for name, each in shown(base_url).items()
    }


def names(text: str) -> set[str]:
    """The variables of paths in a sample."""
    return set(re.findall(r"\b\w+_id\b|\bphone\b", text))


def run(program: str, script: str) -> None:
    """A program on a script of many samples."""
    if shutil.which(program) is None:
        assert not os.environ.get("CI"), f"CI is to have {program}"
        pytest.skip(f"there is no {program} here")
    environ = {**os.environ, **KEYS}
    done = subprocess.run(
        [program], input=script, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr or done.stdout


def test_curl_sends_the_example() -> None:
    for name, text in in_language("https://pay.example", "curl").items():
        written = re.sub(r"\$(\w+)", lambda found: KEYS.get(found[1], found[1]), text)
        program, *arguments = shlex.split(written)
        assert program == "curl"
        address = next(each for each in arguments if each.startswith("https://"))
        pairs = list(itertools.pairwise(arguments))
        headers = dict(value.split(": ", 1) for flag, value in pairs if flag == "-H")
        method = next(value for flag, value in pairs if flag == "-X")
        body = next((value for flag, value in pairs if flag == "-d"), None)
        assert sent(method, address, headers, body) == expected("https://pay.example")[name]


def test_the_python_client_sends_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request[Any]] = []
    monkeypatch.setattr(Client, "send", lambda _, request: asked.append(request))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    samples = in_language("https://pay.example", "python")
    assert shown("https://pay.example").keys() - samples.keys() == NOT_IN_THE_CLIENT
    for name, text in samples.items():
        exec(compile(text, name, "exec"), {each: each for each in names(text)})
        request = asked.pop()
        headers = {**request.headers, "X-Api-Key": "svc_test_k", "X-Api-Secret": "s"}
        # The client sends its keys with every request, also where none is needed.
        wanted = msgspec.structs.replace(expected("https://pay.example")[name], is_keyed=True)
        assert sent(request.method, request.target, headers, request.body) == wanted


def test_javascript_sends_the_example(service: ThreadingHTTPServer) -> None:
    base_url = f"http://127.0.0.1:{service.server_address[1]}"
    samples = in_language(base_url, "javascript")
    blocks = [f"{{ {declared(text, 'const {0} = {0!r};')}\n{text} }}" for text in samples.values()]
    asked = service.asked  # type: ignore[attr-defined]
    asked.clear()
    run("node", "(async () => {\n" + "\n".join(blocks) + "\n})();")
    assert asked == list(expected(base_url).values())


def test_php_sends_the_example(service: ThreadingHTTPServer) -> None:
    base_url = f"http://127.0.0.1:{service.server_address[1]}"
    samples = in_language(base_url, "php")
    blocks = [declared(text, "${0} = {0!r};") + text.removeprefix("<?php") for text in samples.values()]
    asked = service.asked  # type: ignore[attr-defined]
    asked.clear()
    run("php", "<?php\n" + "\n".join(blocks))
    assert asked == list(expected(base_url).values())


def declared(text: str, line: str) -> str:
    """The variables of a path, each of which is its own name."""
    return " ".join(line.format(each) for each in sorted(names(text)) if f"${each}" in text or f"${{{each}}}" in text)
