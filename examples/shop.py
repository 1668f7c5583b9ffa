"""A shop in FastAPI: it creates a payment, verifies the webhook, and ships each order once.

pip install 'cambist[client]' fastapi uvicorn
. ./cambist.env    # made by: cambist account create "My company" --env > cambist.env
cambist account set $ACCOUNT_ID webhook_url=http://127.0.0.1:3000/hooks --generate-secret
export WEBHOOK_SECRET=…    # which the last command printed
uvicorn --app-dir examples shop:app --port 3000

Then open http://127.0.0.1:3000, buy, and pay on the test page.
"""

import os
import sqlite3
from uuid import UUID, uuid4

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from cambist.client import AsyncClient, CambistError, NotVerified, PaymentStatusChanged, verify_webhook

URL, KEY, SECRET, WEBHOOK_SECRET = (
    os.environ.get(name) or exit(f"set {name}")
    for name in ("CAMBIST_URL", "CAMBIST_API_KEY", "CAMBIST_API_SECRET", "WEBHOOK_SECRET")
)
client = AsyncClient(URL, KEY, SECRET)
orders = sqlite3.connect(os.environ.get("ORDERS", "orders.db"), isolation_level=None)
orders.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)")
app = FastAPI()


@app.get("/")
async def page() -> HTMLResponse:
    # The page holds the id of the order, so a second click buys nothing twice.
    return HTMLResponse(f'<form method="post" action="/orders/{uuid4()}"><button>Tea, 490 RUB</button></form>')


@app.post("/orders/{order}")
async def buy(order: UUID) -> Response:
    """Create the payment and send the buyer to it. The order's id is the idempotency key."""
    orders.execute("INSERT OR IGNORE INTO orders VALUES (?, 'unpaid')", [str(order)])
    try:
        payment = await client.payments.create(amount_rub=490, external_id=str(order), idempotency_key=order)
    except CambistError as error:
        return PlainTextResponse(f"Sorry: {error.meaning}", 503)
    return RedirectResponse(payment.payment_url, 303)


@app.get("/orders/{order}")
async def show(order: UUID) -> PlainTextResponse:
    [state] = orders.execute("SELECT state FROM orders WHERE id = ?", [str(order)]).fetchone() or ["unknown"]
    return PlainTextResponse(state)


@app.post("/hooks")
async def hook(request: Request) -> Response:
    try:
        event = verify_webhook(dict(request.headers), await request.body(), [WEBHOOK_SECRET]).event
    except NotVerified:
        return Response(status_code=400)
    if isinstance(event, PaymentStatusChanged) and event.status == "paid":
        # Webhooks may come twice; only the first changes a row.
        paid = "UPDATE orders SET state = 'shipped' WHERE id = ? AND state = 'unpaid'"
        if orders.execute(paid, [event.external_id]).rowcount:
            print("shipped", event.external_id, flush=True)
    return Response()
