"""The merchant API and the payer window inside a Starlette (or FastAPI) application, with the worker in the same
process.

pip install 'cambist[http]' starlette uvicorn
uvicorn examples.mount_starlette:app
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

import cambist

PLACE = "/pay"
BASE_URL = f"http://127.0.0.1:8000{PLACE}"


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Run the service as long as the application."""
    async with cambist.open("memory://", base_url=BASE_URL) as service, service.working():
        account = await service.create_account("My shop")
        app.state.merchant = await service.merchant(account.account_id)
        app.state.pair = account.test
        app.state.face = service.asgi()
        yield


async def order(request: Request) -> Response:
    """Handle one of the application's own routes. It calls the service directly, without HTTP."""
    merchant: cambist.Merchant = request.app.state.merchant
    payment = await merchant.create_payment("490.00", external_id=request.path_params["order"])
    return JSONResponse({"pay_at": merchant.payment_url(payment)})


async def face(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass requests to the service. Its ASGI app exists only after startup, but the route is defined before."""
    await scope["app"].state.face(scope, receive, send)


app = Starlette(routes=[Route("/orders/{order}", order, methods=["POST"]), Mount(PLACE, face)], lifespan=lifespan)
