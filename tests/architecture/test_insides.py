"""Private names of uvicorn and aiohttp: the installed versions have them, two modules alone import them, and a service
on an unknown version runs on the public interface (docs/operations.md "Versions of uvicorn and aiohttp")."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from cambist.adapters.aiohttp_insides import INSIDES as AIOHTTP
from cambist.frontends.process.insides import judge_insides, judged
from cambist.frontends.process.uvicorn_insides import INSIDES as UVICORN
from cambist.ports.insides import Insides, examine
from tests.tables import table

ROOT = Path(__file__).parents[2]
OWN = {"adapters/aiohttp_insides.py", "frontends/process/uvicorn_insides.py"}
PUBLIC = {"aiohttp", "aiohttp.abc", "aiohttp.hdrs", "aiohttp.web", "uvicorn"}
"""Modules that the libraries document."""


@table("insides", [UVICORN, AIOHTTP], ids=lambda insides: insides.package)
def test_installed_version_is_tested_and_has_every_name(insides: Insides) -> None:
    assert insides.missing == ()
    assert insides.is_known, f"run the suite with {insides.package} {insides.version}, then widen the range"


@table("insides", [UVICORN, AIOHTTP], ids=lambda insides: insides.package)
def test_lowest_required_version_is_the_first_tested_one(insides: Insides) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    required = [Requirement(each) for extra in extras.values() for each in extra]
    bounds = {str(each.specifier) for each in required if each.name == insides.package}
    assert bounds == {f">={'.'.join(map(str, insides.first))}"}


def test_only_two_modules_import_private_modules() -> None:
    found = {
        (str(path.relative_to(ROOT)), module)
        for folder in ("adapters", "frontends", "core", "ports")
        for path in (ROOT / folder).rglob("*.py")
        for module in _imported(path)
        if module.partition(".")[0] in ("aiohttp", "uvicorn") and module not in PUBLIC
    }
    assert {path for path, _ in found} == OWN


def _imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}


class TestJudgement:
    @table(
        ("version", "is_known"),
        [
            ("0.52.9", False),
            ("0.53", True),
            ("0.53.0", True),
            ("0.54.99", True),
            ("0.54.0rc1", True),
            ("0.55.0", False),
            ("1.0", False),
            ("0.x", False),
            ("", False),
        ],
    )
    def test_only_versions_of_the_range_are_known(self, version: str, is_known: bool) -> None:
        insides = Insides(package="uvicorn", version=version, first=(0, 53), before=(0, 55))
        assert insides.is_known is is_known

    def test_absent_name_is_found_whatever_part_is_absent(self) -> None:
        there = ["uvicorn.server:Server.startup", "uvicorn.server:Server#should_exit"]
        absent = ["uvicorn.none:Server", "uvicorn.server:None.startup", "uvicorn.server:Server.none"]
        insides = examine("uvicorn", (0, 1), (9, 0), [*there, *absent, "uvicorn.server:Server#none"])
        assert list(insides.missing) == [*absent, "uvicorn.server:Server#none"]
        assert not insides.is_known

    def test_finding_names_what_is_lost_and_the_command(self) -> None:
        assert judge_insides().remedy is None
        unknown = Insides(package="uvicorn", version="9.0", first=(0, 50), before=(0, 55), missing=["a:B.c"])
        finding = judged([AIOHTTP, unknown])
        assert finding.message.startswith("uvicorn 9.0 is not one of the tested versions and lacks a:B.c, so heads")
        assert finding.remedy == "pip install 'uvicorn>=0.50,<0.55'"


_SERVICE = """
import asyncio, json, logging, sys
from importlib import metadata
from pathlib import Path
{spoil}
import aiohttp
from cambist.core.usecases.accounts import accounts
from cambist.frontends.process.insides import judge_insides, tell_of_insides
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings

async def receive(reader, writer):
    received.append(await reader.readuntil(b"\\r\\n\\r\\n"))
    writer.write(b"HTTP/1.1 429 Wait\\r\\nRetry-After: 7\\r\\nContent-Length: 0\\r\\n\\r\\n")
    await writer.drain()
    arrived.set()

async def main():
    receiver = await asyncio.start_server(receive, "127.0.0.1", 0)
    settings = Settings(database_url="memory://", port=0, allow_loopback_webhooks=True)
    async with running(settings) as service:
        ports = service.app.ports
        account = await accounts.create_account(ports, "Merchant")
        url = "http://127.0.0.1:%d/" % receiver.sockets[0].getsockname()[1]
        await accounts.set_settings(ports, account.account_id, {{"webhook_url": url, "webhook_secret": "s" * 32}})
        keys = {{"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}}
        base = service.app.settings.base_url
        async with aiohttp.ClientSession(base, headers=keys) as http:
            body = {{"amount_rub": "100.00", "description": "order", "shop_id": account.default_shop_id}}
            answer = await http.post("/api/v1/payments", json=body, headers={{"Idempotency-Key": made_up}})
            made = await answer.json()
            assert answer.status == 201, made
            path = "/api/v1/sandbox/payments/%s/simulate" % made["id"]
            paid = await http.post(path, json={{"outcome": "paid"}})
            live = await http.get("/livez")
        await arrived.wait()
    receiver.close()
    return [answer.status, paid.status, live.status, b"cambist" in received[0].lower()]

made_up = "6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11"
received, arrived = [], asyncio.Event()
logging.basicConfig(stream=sys.stderr)
tell_of_insides()
print(json.dumps([*asyncio.run(asyncio.wait_for(main(), 60)), judge_insides().message]))
"""

_UNKNOWN_VERSIONS = """
real = metadata.version
metadata.version = lambda name: "99.0.0" if name in ("uvicorn", "aiohttp") else real(name)
"""
_MISSING_NAMES = """
import aiohttp.client_proto, uvicorn.protocols.http.httptools_impl
del aiohttp.client_proto.ResponseHandler, uvicorn.protocols.http.flow_control.FlowControl
"""


@table("spoil", [_UNKNOWN_VERSIONS, _MISSING_NAMES], ids=["unknown versions", "missing names"])
def test_service_runs_on_the_public_interface_and_says_so(spoil: str) -> None:
    """A payment is made and its webhook delivered, and the server stops, with neither library's private names."""
    ran = subprocess.run(
        [sys.executable, "-c", _SERVICE.format(spoil=spoil)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    *statuses, message = json.loads(ran.stdout)
    assert statuses == [201, 200, 200, True]
    for library in ("uvicorn", "aiohttp"):
        assert f"{library} " in message
        assert "is not one of the tested versions" in message
    assert message in ran.stderr
