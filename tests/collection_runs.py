"""Run the collections for Postman and Bruno by their own programs against a served cambist: `nox -s collections`."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cambist.core.usecases.accounts.accounts import KeyPair, create_account, set_settings
from tests.stories.processes import Installation, installation

OPTIONS: dict[str, str] = dict.fromkeys(("refunds", "terminals", "direct_links", "exchange", "recurring"), "true")
PAUSE = "1100"
"""Milliseconds between requests: a run has more of them than a key may send in a minute."""
DONE_AT_LEAST = 50
"""Requests of a run that succeed. All others get a documented refusal, such as a refund of an unpaid payment."""


async def keys(place: Installation) -> KeyPair:
    """The test keys of a new account with every option."""
    async with place.app() as ports:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, OPTIONS)
    return made.test


def variables(pair: KeyPair) -> list[str]:
    return ["--env-var", f"api_key={pair.api_key}", "--env-var", f"api_secret={pair.api_secret}"]


def newman(program: Path, collection: Path, pair: KeyPair) -> Mapping[str, int]:
    """Statuses of a run by request."""
    report = collection.with_suffix(".run.json")
    reporters = ["--reporters", "json", "--reporter-json-export", str(report), "--delay-request", PAUSE]
    subprocess.run([program, "run", collection, *variables(pair), *reporters], check=True)
    executions = msgspec.json.decode(report.read_bytes())["run"]["executions"]
    return {f"{number} {each['item']['name']}": each["response"]["code"] for number, each in enumerate(executions)}


def bru(program: Path, folder: Path, pair: KeyPair) -> Mapping[str, int]:
    """Statuses of a run by file."""
    report = folder.with_suffix(".run.json")
    options = ["-r", "--env", "cambist", *variables(pair), "--reporter-json", str(report), "--delay", PAUSE]
    subprocess.run([program, "run", *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [run] = msgspec.json.decode(report.read_bytes())
    return {each["test"]["filename"]: each["response"]["status"] for each in run["results"]}


def main(programs: Path) -> None:
    """Run both. Raises: CalledProcessError when a request got an undocumented answer; AssertionError."""
    with tempfile.TemporaryDirectory() as folder, installation(Path(folder)) as place:
        _, base_url = place.serve()
        collection, files = place.folder / "cambist.json", place.folder / "bruno"
        printed = place.call("openapi", "--postman", "--base-url", base_url)
        collection.write_text(printed.out, "utf-8")
        assert place.call("openapi", "--bruno", str(files), "--base-url", base_url).status == 0
        runs = {
            "Postman": newman(programs / "newman", collection, asyncio.run(keys(place))),
            "Bruno": bru(programs / "bru", files, asyncio.run(keys(place))),
        }
        for name, statuses in runs.items():
            done = sum(status < 300 for status in statuses.values())
            print(f"{name}: {len(statuses)} requests, {done} done, the rest refused as documented")
            print(*(f"  {status} {each}" for each, status in statuses.items() if status >= 300), sep="\n")
            assert done >= DONE_AT_LEAST, f"{name}: of {len(statuses)} requests {done} succeeded"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
