"""Schemathesis against a running service: `nox -s schemathesis`, or `python -m tests.fuzzing [its options]`.

The service is whole but for one part: its counters never refuses, because the interface's limits are 60 and 120
requests a minute. The merchant has everything switched on, and an object of each kind. Both modes are asked.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import uvicorn

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.accounts import NewAccount
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.frontends.app.compose import App, open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.server.server import listen
from cambist.frontends.settings.settings import Settings
from cambist.frontends.worker.process import at_work
from cambist.ports.counters import Counter

CONFIG = Path(__file__).with_name("schemathesis.toml")
ON = ("refunds", "exchange", "direct_links", "recurring", "terminals")
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


class PatientMeter:
    """Counts nothing, so nothing is ever over its limit."""

    async def count(self, window: int, limits: Sequence[Counter]) -> list[int]:
        return [1 for _ in limits]

    async def works(self) -> bool:
        return True

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, NewAccount]]:
    """The service's address, and a merchant."""
    with TemporaryDirectory() as folder:
        listener = listen("127.0.0.1", 0)
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = Settings(database_url="memory://", data_dir=Path(folder), base_url=base_url)
        async with open_app(settings) as opened:
            app = App(settings=settings, ports=msgspec.structs.replace(opened.ports, counters=PatientMeter()))
            account = await accounts.create_account(app.ports, "Merchant")
            wish = {**dict.fromkeys(ON, "true"), "kyc": "required", "payout_wallet": WALLET}
            await accounts.set_settings(app.ports, account.account_id, wish)
            await create_terminal(app.ports, account.account_id, TerminalWish(label="SBP"))
            server = uvicorn.Server(uvicorn.Config(create_app(app.ports), log_level="error", lifespan="off"))
            async with at_work(app, lambda: None):
                serving = asyncio.create_task(server.serve(sockets=[listener]))
                try:
                    yield base_url, account
                finally:
                    server.should_exit = True
                    await serving


async def objects(api: httpx.AsyncClient) -> dict[str, str]:
    """An object of each kind in test mode, by the name that paths give it."""

    async def post(path: str, **body: Any) -> str:
        answer = await api.post(path, json=body, headers={"Idempotency-Key": str(uuid4())})
        assert answer.is_success, answer.text
        return str(answer.json().get("id"))

    async def first(path: str, name: str = "id") -> str:
        for _ in range(100):
            found = (await api.get(path)).json()
            if data := found if isinstance(found, list) else found["data"]:
                return str(data[0][name])
            await asyncio.sleep(0.1)
        raise LookupError(path)

    payment = await post("/payments", amount_rub="1000.00", client_phone="+70000000001")
    await post(f"/sandbox/payments/{payment}/simulate", outcome="paid")
    refund = await post("/refunds", payment_id=payment, amount_rub="100.00")
    subscription = await post("/subscriptions", amount_rub="490.00", interval="week", description="Club")
    await post(f"/sandbox/subscriptions/{subscription}/simulate", outcome="confirm")
    client = {"amount_usdt": "100", "client_phone": "+70000000001", "client_bank_id": "bank100000000004"}
    exchange = await post("/exchanges", **client)
    settlement = await post("/sandbox/settlements")
    return {
        "payment_id": payment,
        "refund_id": refund,
        "subscription_id": subscription,
        "exchange_id": exchange,
        "settlement_id": settlement,
        "event_id": await first("/events"),
        "endpoint_id": await post("/webhook-endpoints", url=f"{api.base_url}hooks"),
        "withdrawal_id": await first("/withdrawals"),
        "gateway_id": await first("/gateways", "gateway_id"),
        "method_id": await first("/payment-methods", "method_id"),
    }


async def fuzzed(base_url: str, account: NewAccount, mode: Mode, folder: Path, options: list[str]) -> int:
    """The exit status of Schemathesis in one mode."""
    pair = account.test if mode is Mode.TEST else account.live
    keys = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}
    config = CONFIG.read_text("utf-8")
    async with httpx.AsyncClient(base_url=f"{base_url}/api/v1", headers=keys, timeout=60) as api:
        if mode is Mode.TEST:
            known = "\n".join(f'"path.{name}" = "{value}"' for name, value in (await objects(api)).items())
            config += f"\n[parameters]\n{known}\n"
        path = folder / f"{mode}.toml"
        path.write_text(config, "utf-8")
        headers = [word for name, value in keys.items() for word in ("--header", f"{name}:{value}")]
        process = await asyncio.create_subprocess_exec(
            *("schemathesis", "--config-file", str(path), "run", f"{base_url}/openapi.json", *headers, *options)
        )
        status = await process.wait()
        if mode is Mode.TEST:
            assert (await api.delete("/sandbox/data")).is_success
    return status


async def main(options: list[str]) -> int:
    """The worst exit status of the modes."""
    async with served() as (base_url, account):
        with TemporaryDirectory() as folder:
            return max([await fuzzed(base_url, account, mode, Path(folder), options) for mode in Mode])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
