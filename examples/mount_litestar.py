"""The merchant API and the payer window inside a Litestar application, with the worker in the same process.

pip install 'cambist[http]' uvicorn
uvicorn examples.mount_litestar:app
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, asgi, post
from litestar.params import FromPath
from litestar.types import Receive, Scope, Send

import cambist

PLACE = "/pay"
BASE_URL = f"http://127.0.0.1:8000{PLACE}"


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncIterator[None]:
    """Run the service as long as the application."""
    async with cambist.open("memory://", base_url=BASE_URL) as service, service.working():
        account = await service.create_account("My shop")
        app.state.merchant = await service.merchant(account.account_id)
        app.state.pair = account.test
        app.state.face = service.asgi()
        yield


@post("/orders/{order:str}")
async def order(order: FromPath[str], request: Request[Any, Any, Any]) -> dict[str, str]:
    """Handle one of the application's own routes. It calls the service directly, without HTTP."""
    merchant: cambist.Merchant = request.app.state.merchant
    payment = await merchant.create_payment("490.00", external_id=order)
    return {"pay_at": merchant.payment_url(payment)}


@asgi(PLACE, is_mount=True, copy_scope=True)
async def face(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass everything below PLACE to the service."""
    await scope["litestar_app"].state.face(scope, receive, send)


app = Litestar([order, face], lifespan=[lifespan], openapi_config=None)
