"""The merchant API and the payer window inside a Litestar application, with the worker in the same process.

pip install 'cambist[http]' uvicorn
uvicorn examples.mount_litestar:app
"""

from litestar import Litestar, asgi, post
from litestar.params import FromPath
from litestar.types import Receive, Scope, Send

import cambist

PLACE = "/pay"
pay = cambist.Mount("memory://", base_url=f"http://127.0.0.1:8000{PLACE}")


@post("/orders/{order:str}")
async def order(order: FromPath[str]) -> dict[str, str]:
    """Handle one of the application's own routes. It calls the service directly, without HTTP."""
    service = await pay.service()
    merchant = await service.merchant(await service.account("My shop", create=True))
    payment = await merchant.create_payment("490.00", external_id=order)
    return {"pay_at": payment.payment_url}


@asgi(PLACE, is_mount=True, copy_scope=True)
async def window(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass everything below PLACE to the service."""
    await pay(scope, receive, send)


# Without `logging_config=None` Litestar would log every library of the process at INFO.
app = Litestar([order, window], lifespan=[pay.lifespan], openapi_config=None, logging_config=None)
