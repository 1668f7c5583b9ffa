"""The merchant API and the payer window inside a Starlette (or FastAPI) application, with the worker in the same
process.

pip install 'cambist[http]' starlette uvicorn
uvicorn examples.mount_starlette:app
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

import cambist

PLACE = "/pay"
pay = cambist.Mount("memory://", base_url=f"http://127.0.0.1:8000{PLACE}")


async def order(request: Request) -> Response:
    """Handle one of the application's own routes. It calls the service directly, without HTTP."""
    service = await pay.service()
    merchant = await service.merchant(await service.account("My shop", create=True))
    payment = await merchant.create_payment("490.00", external_id=request.path_params["order"])
    return JSONResponse({"pay_at": payment.payment_url})


app = Starlette(routes=[Route("/orders/{order}", order, methods=["POST"]), Mount(PLACE, pay)], lifespan=pay.lifespan)
