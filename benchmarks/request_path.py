"""Counts the files and functions that one request enters: `python -m benchmarks.request_path`.

The figure is what a newcomer feels who steps through `POST /payments` with a debugger. The app runs on SQLite with the
simulated bank; the server in front of it is left out.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, cast
from uuid import uuid4

import httpx

from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings

ROOT = Path(__file__).parents[1]
LAYERS = tuple(str(ROOT / layer) + "/" for layer in ("core", "ports", "adapters", "frontends"))

Entered = tuple[str, str]
"""File, and name of a function in it."""


class Profile:
    """Functions of the product that are entered while it is on, with their number of calls."""

    def __init__(self) -> None:
        self.calls: Counter[Entered] = Counter()
        self.order: list[str] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call; the interpreter calls this."""
        code = frame.f_code
        path = str(Path(code.co_filename).resolve())
        if event == "call" and path.startswith(LAYERS):
            short = path.removeprefix(f"{ROOT}/")
            self.calls[short, code.co_qualname] += 1
            self.order.append(short)


async def main() -> None:
    """Print the counts of a `POST /payments` and of the `GET` of its payment, both after a first of their kind."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database_url=f"sqlite:///{folder}/path.db", base_url="https://pay.example")
        await migrate(settings)
        async with open_app(settings) as app:
            pair = (await create_account(app.ports, "Shop")).test
            headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}
            transport = httpx.ASGITransport(cast("Any", create_app(app.ports)))
            async with httpx.AsyncClient(
                transport=transport, base_url="https://pay.example", headers=headers
            ) as client:
                created = [await _profiled(client, "POST", "/api/v1/payments") for _ in range(2)][-1]
                address = f"/api/v1/payments/{created[0].json()['id']}"
                shown = [await _profiled(client, "GET", address) for _ in range(2)][-1]
    for title, (_, profile) in (("POST /payments", created), ("GET /payments/{id}", shown)):
        files = {path for path, _ in profile.calls}
        changes = sum(1 for left, right in zip(profile.order, profile.order[1:], strict=False) if left != right)
        total = profile.calls.total()
        print(f"{title}: {len(files)} files, {len(profile.calls)} functions, {total} calls, {changes} changes of file")
        if "-v" in sys.argv:
            for path in dict.fromkeys(profile.order):
                print("  ", path, *sorted(name for file, name in profile.calls if file == path))


async def _profiled(client: httpx.AsyncClient, method: str, path: str) -> tuple[httpx.Response, Profile]:
    profile = Profile()
    order = {"amount_rub": "490.00", "external_id": str(uuid4())} if method == "POST" else None
    headers = {"Idempotency-Key": str(uuid4())} if order else {}
    sys.setprofile(profile)
    try:
        answer = await client.request(method, path, json=order, headers=headers)
    finally:
        sys.setprofile(None)
    answer.raise_for_status()
    return answer, profile


if __name__ == "__main__":
    asyncio.run(main())
