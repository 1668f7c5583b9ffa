"""`cambist demo`: a narrated tour over real HTTP, with its own merchant, payer and webhook receiver."""

import asyncio
import contextlib
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import click
import msgspec
from aiohttp import web

from ...core.domain.people.roles import Role
from ...core.domain.webhooks.signing import NotVerified, verify_signature
from ...core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from ...core.usecases.people.invitations import invite
from ...ports.bundle import Ports
from ..server.server import Running, listen, running
from ..settings.settings import Settings
from ..telemetry.logs import configure_logging
from ..worker.process import run_loop
from .output import printed

_TITLE = re.compile(r"<title>\s*(.*?)\s*</title>", re.DOTALL)
_OWNER = "owner@demo.example"
_PATIENCE = 20.0
"""Seconds that the tour waits for its webhook."""


class TourError(click.ClickException):
    """The tour got an unexpected result."""


def demo(settings: Settings, *, keep: bool) -> None:
    """Show a payment from its creation to the balance, in a temporary data folder. With `keep` the service stays up
    until Ctrl-C and prints how to use it."""
    configure_logging("error", settings.log_format)
    with tempfile.TemporaryDirectory(prefix="cambist-demo-") as folder:
        listener = _listen(settings)
        fresh = Settings(
            data_dir=Path(folder),
            host=settings.host,
            port=listener.getsockname()[1],
            app_url=f"http://localhost:{listener.getsockname()[1]}",
            allow_live_simulators=True,
            allow_loopback_webhooks=True,
        )
        run_loop(_demo(fresh, listener, keep=keep))


def _listen(settings: Settings) -> socket.socket:
    """Listen on the configured port, or on any free port if it is in use, so that the tour does not fail."""
    try:
        return listen(settings.host, settings.port)
    except OSError:
        return listen(settings.host, 0)


async def _demo(settings: Settings, listener: socket.socket, *, keep: bool) -> None:
    async with running(settings, listener) as service, _receiver() as receiver:
        ports = service.app.ports
        merchant = await create_account(ports, "Demo merchant")
        wish = {"webhook_url": receiver.url, "webhook_secret": receiver.secret(ports)}
        await set_settings(ports, merchant.account_id, wish)
        await _unless_stopped(service, _tour(service, merchant, receiver))
        if keep:
            # Everything of the demo is in test mode, so the sign-in begins there.
            invited = await invite(ports, merchant.account_id, _OWNER, Role.OWNER, live=False, language="en")
            _say_how_to_go_on(service, merchant, invited.link)
            receiver.aloud = True
            await asyncio.wait([service.stopped])


async def _unless_stopped(service: Running, tour: Coroutine[None, None, None]) -> None:
    """Run the tour. Ctrl-C ends it at once, and later errors are ignored. Raises: exceptions of the tour; Abort."""
    touring = asyncio.create_task(tour)
    await asyncio.wait([touring, service.stopped], return_when=asyncio.FIRST_COMPLETED)
    if service.stopping():
        touring.cancel()
        await asyncio.gather(touring, return_exceptions=True)
        raise click.Abort
    touring.result()


class _Receiver:
    """The merchant's webhook receiver: it verifies each webhook, answers 200 or 400, and queues it."""

    def __init__(self) -> None:
        self.url = ""
        self.aloud = False
        self.arrived: asyncio.Queue[tuple[Mapping[str, str], dict[str, Any]]] = asyncio.Queue()
        self._secret = ""

    def secret(self, ports: Ports) -> str:
        """Create and return the secret shared by both ends."""
        self._secret = ports.ids.secret(32)
        self._clock = ports.clock
        return self._secret

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            verify_signature(request.headers, body, [self._secret], self._clock.now().timestamp())
        except NotVerified as error:
            return web.Response(status=400, text=str(error))
        payload = msgspec.json.decode(body)
        if self.aloud:
            click.echo(f"webhook  {payload['event']}  {payload.get('payment_id')}  {payload.get('status')}  (verified)")
        else:
            self.arrived.put_nowait((dict(request.headers), payload))
        return web.Response()


@asynccontextmanager
async def _receiver() -> AsyncIterator[_Receiver]:
    receiver = _Receiver()
    receivers = web.Application()
    receivers.router.add_post("/webhooks", receiver.take)
    runner = web.AppRunner(receivers, access_log=None)
    await runner.setup()
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        receiver.url = f"http://127.0.0.1:{listener.getsockname()[1]}/webhooks"
        await web.SockSite(runner, listener).start()
        try:
            yield receiver
        finally:
            await runner.cleanup()


async def _tour(service: Running, merchant: NewAccount, receiver: _Receiver) -> None:
    base = service.app.settings.base_url
    ids = service.app.ports.ids
    pair = {"X-Api-Key": merchant.test.api_key, "X-Api-Secret": merchant.test.api_secret}
    _step("1", f"The service runs at {base}; it has one merchant, with live and test keys.")
    click.echo("   All banks, chains and rates here are simulators, in live mode too: no real money moves.")
    _show({"account_id": merchant.account_id, "test key": merchant.test.api_key})

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE)) as client:
        _step("2", "The merchant creates a payment of 1 490.00 RUB.")
        key = {"Idempotency-Key": ids.uuid()}
        order = {"amount_rub": "1490.00", "external_id": "order-1", "description": "Two concert tickets"}
        async with client.post(f"{base}/api/v1/payments", json=order, headers=pair | key) as answer:
            payment = await _expect(answer, 201)
        _show(payment)

        _step("3", "The payer opens the payment window.")
        async with client.get(payment["payment_url"], headers={"Accept-Language": "en"}) as answer:
            page = await answer.text()
            title = _TITLE.search(page)
            if answer.status != 200 or title is None:
                raise TourError(f"the window answered {answer.status}")
        _show({payment["payment_url"]: title[1]})

        _step("4", "The payer pays: in test mode the window has a panel for that.")
        form = {"action": "pay"}
        url = f"{payment['payment_url']}/simulate"
        async with client.post(url, data=form, headers={"Origin": base}, allow_redirects=False) as answer:
            if answer.status != 303:
                raise TourError(f"the panel answered {answer.status}: {await answer.text()}")
        _show({url: "303, back to the window"})

        _step("5", "The merchant's receiver gets the signed webhook and verifies it.")
        headers, event = await _arrival(receiver)
        _show({name: value for name, value in headers.items() if name.lower().startswith("x-webhook-")})
        _show(event)

        _step("6", "The payment as the API shows it now.")
        async with client.get(f"{base}/api/v1/payments/{payment['id']}", headers=pair) as answer:
            paid = await _expect(answer, 200)
        _show(paid)
        if (paid["status"], event["status"], event["payment_id"]) != ("paid", "paid", payment["id"]):
            raise TourError("the payment, its event and its status do not agree")

        _step("7", "The same request again, with the same Idempotency-Key, makes nothing new.")
        async with client.post(f"{base}/api/v1/payments", json=order, headers=pair | key) as answer:
            again = await _expect(answer, 200)
        _show({"status": "200, Idempotent-Replayed: true", "id": again["id"]})
        if again["id"] != payment["id"]:
            raise TourError("a repeat made another payment")
        await _settlement(client, base, pair, payment["id"])
    click.echo("\nThe tour is over: a payment was created, paid, announced, verified and settled.")


async def _settlement(client: aiohttp.ClientSession, base: str, pair: Mapping[str, str], payment_id: str) -> None:
    """Convert RUB to USDT, and check that the statement, its line and the balance agree."""
    api = f"{base}/api/v1"
    _step("8", "RUB become USDT every day at 09:00 UTC; in test mode also when asked for.")
    async with client.post(f"{api}/sandbox/settlements", headers=pair) as answer:
        settlement = await _expect(answer, 200)
    _show(settlement)
    async with client.get(f"{api}/settlements/{settlement['id']}/items", headers=pair) as answer:
        items = await _expect(answer, 200)
    [line] = items["data"]
    _show(line)

    _step("9", "The merchant's balance: nothing waits any more, and the credit is there to be paid out.")
    async with client.get(f"{api}/balance", headers=pair) as answer:
        balance = await _expect(answer, 200)
    _show(balance)
    credited = {settlement["credit_usdt"], line["credit_usdt"], balance["available_usdt"]}
    if len(credited) != 1 or (balance["pending_rub"], line["payment_id"]) != ("0.00", payment_id):
        raise TourError("the settlement, its line and the balance do not agree")


async def _arrival(receiver: _Receiver) -> tuple[Mapping[str, str], dict[str, Any]]:
    try:
        return await asyncio.wait_for(receiver.arrived.get(), _PATIENCE)
    except TimeoutError:
        raise TourError(f"no webhook arrived within {_PATIENCE:.0f} s") from None


async def _expect(answer: aiohttp.ClientResponse, status: int) -> dict[str, Any]:
    body: dict[str, Any] = await answer.json()
    if answer.status != status:
        raise TourError(f"{answer.method} {answer.url.path} answered {answer.status}: {body}")
    return body


def _say_how_to_go_on(service: Running, merchant: NewAccount, sign_in: str) -> None:
    base = service.app.settings.base_url
    click.echo(
        f"""
The service stays up until Ctrl-C. Webhooks that arrive are printed below.

API        {base}/api/v1
test key   {merchant.test.api_key}
secret     {merchant.test.api_secret}
dashboard  {sign_in}

The address of the dashboard works once: choose a password there. Then sign in as {_OWNER}.

Create a payment, and open the payment_url of the answer in a browser:

curl -s {base}/api/v1/payments \\
  -H 'X-Api-Key: {merchant.test.api_key}' \\
  -H 'X-Api-Secret: {merchant.test.api_secret}' \\
  -H "Idempotency-Key: $(python3 -c 'import uuid; print(uuid.uuid4())')" \\
  -H 'Content-Type: application/json' \\
  -d '{{"amount_rub": "490.00", "external_id": "order-2"}}'

List them:

curl -s {base}/api/v1/payments \\
  -H 'X-Api-Key: {merchant.test.api_key}' \\
  -H 'X-Api-Secret: {merchant.test.api_secret}'
"""
    )


def _step(number: str, text: str) -> None:
    click.echo(f"\n{click.style(number + '.', bold=True)} {click.style(text, bold=True)}")


def _show(value: Mapping[str, Any]) -> None:
    for line in printed(value).decode().splitlines():
        click.echo(f"   {line}")
