"""`cambist demo`, the first thing that anybody sees of the service (docs/cli.md "Serving")."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.stories.processes import Installation, Process, installation

STEPS = (
    "The service runs at http://",
    "creates a payment",
    "opens the payment window",
    "The payer pays",
    "gets the signed webhook and verifies it",
    "as the API shows it now",
    "makes nothing new",
    "RUB become USDT",
    "The merchant's balance",
)
_CURL = re.compile(r"^curl (?:.*\\\n)*.*\n", re.MULTILINE)
_READY_TO_PLAY = re.compile(r"List them:\n\ncurl (?:.*\\\n)*.*\n\n")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Installation]:
    """A folder to start the tour in, and another one for temporary files."""
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    with installation(tmp_path / "here") as made:
        made.environ["TMPDIR"] = str(tmp_path / "temporary")
        # Where a demo must not leave anything.
        made.environ["CAMBIST_DATA_DIR"] = str(tmp_path / "here" / "data")
        yield made


def leaves_nothing(place: Installation) -> bool:
    """Check that there is no data folder, neither among the temporary files nor at the service's default place."""
    return not list(Path(place.environ["TMPDIR"]).iterdir()) and not place.settings.data_dir.exists()


def test_demo_prints_a_payment_from_creation_to_webhook_and_balance(place: Installation) -> None:
    """A fresh data folder, a demo account, a narrated tour over real HTTP; it exits 0 (docs/cli.md "Serving")."""
    place.loaded_anew = True
    outcome = place.call("demo")
    assert outcome.status == 0, outcome.err
    assert "Traceback" not in outcome.err
    told = re.findall(r"^(\d+)\. (.*)$", outcome.out, re.MULTILINE)
    assert [int(number) for number, _ in told] == list(range(1, len(STEPS) + 1))
    for (_, sentence), step in zip(told, STEPS, strict=True):
        assert step in sentence
    for seen in ('"X-Webhook-Signature": "sha256=', '"status": "paid"', '"status": "200, Idempotent-Replayed: true"'):
        assert seen in outcome.out
    told_of = re.findall(r'"(credit_usdt|available_usdt)": "(\d+\.\d{8})"', outcome.out)
    assert [name for name, _ in told_of] == ["credit_usdt", "credit_usdt", "available_usdt"]
    assert len({value for _, value in told_of} - {"0.00000000"}) == 1
    assert '"pending_rub": "0.00"' in outcome.out
    assert leaves_nothing(place)


def test_two_demos_at_once_do_not_meet(place: Installation) -> None:
    """A port that is taken, by another demo for one, does not stop it."""
    del place.environ["CAMBIST_PORT"]
    tours = [place.start("demo") for _ in range(2)]
    assert [tour.wait() for tour in tours] == [0, 0], [tour.err for tour in tours]
    assert leaves_nothing(place)


@dataclass(frozen=True)
class Call:
    """A request that a line for a shell makes."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None


def read_curl(line: str, folder: Path) -> Call:
    """Let a shell read the line, with a curl that only says how it was called: the real one is not everywhere.

    Raises ValueError for an option that is not known here.
    """
    curl = folder / "curl"
    curl.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    curl.chmod(0o700)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", line], env={"PATH": path}, capture_output=True, check=True)
    words = iter(msgspec.json.decode(done.stdout, type=list[str]))
    url, headers, body = "", {}, None
    for word in words:
        match word:
            case "-s":
                pass
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                body = next(words).encode()
            case _ if word.startswith("http"):
                url = word
            case _:
                raise ValueError(f"what is {word}?")
    return Call("GET" if body is None else "POST", url, headers, body)


async def send(client: aiohttp.ClientSession, call: Call) -> tuple[int, Any]:
    """Return status and body of the answer."""
    async with client.request(call.method, call.url, data=call.body, headers=call.headers) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def test_keep_stays_up_with_keys_and_requests_that_work(place: Installation, tmp_path: Path) -> None:
    """Then it stays up with addresses and keys printed (docs/cli.md "Serving"); here until Ctrl-C."""
    demo = place.start("demo", "--keep")
    await asyncio.to_thread(demo.said, _READY_TO_PLAY)
    keys = dict(re.findall(r"^(API|test key|secret) +(\S+)$", demo.out, re.MULTILINE))
    assert set(keys) == {"API", "test key", "secret"}
    [sign_in] = re.findall(r"^dashboard +(\S+)$", demo.out, re.MULTILINE)
    async with aiohttp.ClientSession() as client, client.get(sign_in) as invitation:
        assert invitation.status == 200
        assert "Demo merchant" in await invitation.text()
    creation, listing = (read_curl(found, tmp_path) for found in _CURL.findall(demo.out))
    for call in (creation, listing):
        assert call.url == f"{keys['API']}/payments"
        assert (call.headers["X-Api-Key"], call.headers["X-Api-Secret"]) == (keys["test key"], keys["secret"])

    async with aiohttp.ClientSession() as client:
        status, payment = await send(client, creation)
        assert status == 201
        async with client.get(payment["payment_url"]) as window:
            assert window.status == 200
        status, page = await send(client, listing)
        assert status == 200
        assert payment["id"] in {each["id"] for each in page["data"]}
        panel = f"{payment['payment_url']}/simulate"
        async with client.post(panel, data={"action": "pay"}, allow_redirects=False) as paid:
            assert paid.status == 303
    # The demo prints arriving webhooks while it stays up.
    await asyncio.to_thread(demo.said, re.compile(rf"{payment['id']}  paid  \(verified\)\n"))
    await ends_well(place, demo, signal.SIGINT)


async def test_keep_ends_on_sigterm(place: Installation) -> None:
    demo = place.start("demo", "--keep")
    await asyncio.to_thread(demo.said, _READY_TO_PLAY)
    await ends_well(place, demo, signal.SIGTERM)


async def ends_well(place: Installation, demo: Process, number: signal.Signals) -> None:
    demo.signal(number)
    assert await asyncio.to_thread(demo.wait) in (0, 130)
    assert "Traceback" not in demo.err
    assert leaves_nothing(place)


async def test_ctrl_c_in_the_middle_of_the_tour_leaves_nothing(place: Installation) -> None:
    demo = place.start("demo")
    await asyncio.to_thread(demo.said, re.compile(r"^1\. ", re.MULTILINE))
    demo.signal(signal.SIGINT)
    await asyncio.to_thread(demo.wait)
    assert "Traceback" not in demo.err
    assert leaves_nothing(place)
