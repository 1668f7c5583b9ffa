"""A merchant's shop with a webhook receiver: a Starlette application that uses the client.

pip install 'cambist[client]' starlette uvicorn
export CAMBIST_URL=… CAMBIST_API_KEY=… CAMBIST_API_SECRET=… WEBHOOK_SECRET=…
uvicorn --factory examples.shop:from_environment
"""

import os
from decimal import Decimal
from uuid import NAMESPACE_URL, uuid5

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from cambist.client import (
    AsyncClient,
    CambistError,
    NotVerified,
    PaymentStatus,
    PaymentStatusChanged,
    verify_webhook,
)

PRICES = {"tea": Decimal("490.00"), "coffee": Decimal("990.00")}


class Shop:
    """Orders and their states. A real shop stores both in its database, with the ids of the webhooks it has
    received."""

    def __init__(self, client: AsyncClient, webhook_secret: str) -> None:
        self.orders: dict[str, str] = {}
        self._client = client
        self._secret = webhook_secret
        self._seen: set[str] = set()

    async def buy(self, request: Request) -> Response:
        """Create the order's payment and redirect the buyer to it. The idempotency key is derived from the order, so a
        second click is safe."""
        order, price = request.path_params["order"], PRICES[request.path_params["goods"]]
        key = uuid5(NAMESPACE_URL, f"https://shop.example/orders/{order}")
        try:
            payment = await self._client.payments.create(amount_rub=price, external_id=order, idempotency_key=key)
        except CambistError as error:
            return JSONResponse({"sorry": error.meaning}, status_code=503)
        self.orders.setdefault(order, "unpaid")
        return RedirectResponse(payment.payment_url, status_code=303)

    async def hook(self, request: Request) -> Response:
        """Verify the raw body, recognise duplicates, answer at once."""
        try:
            webhook = verify_webhook(dict(request.headers), await request.body(), [self._secret])
        except NotVerified:
            return Response(status_code=400)
        if webhook.id not in self._seen:
            match webhook.event:
                case PaymentStatusChanged(external_id=str(order), status=PaymentStatus.PAID):
                    self.orders[order] = "paid"
            self._seen.add(webhook.id)
        return Response(status_code=200)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/buy/{goods}/{order}", self.buy, methods=["POST"]),
                Route("/webhooks", self.hook, methods=["POST"]),
            ]
        )


def from_environment() -> Starlette:
    env = os.environ
    client = AsyncClient(env["CAMBIST_URL"], env["CAMBIST_API_KEY"], env["CAMBIST_API_SECRET"])
    return Shop(client, env["WEBHOOK_SECRET"]).app()
