"""The service inside a plain script: no server, no network, and only cambist to install.

python examples/embed_script.py                       # in memory
python examples/embed_script.py sqlite:///shop.db     # on disk; needs cambist[sql]
"""

import asyncio
import sys

import cambist


async def take_a_payment(database: str) -> list[str]:
    """Open the service, take a payment, receive its events, and close. Return a line for each event."""
    heard: list[str] = []

    async def on_event(event: cambist.Event) -> None:
        if isinstance(event.payload, cambist.PaymentStatusChanged):
            heard.append(f"{event.payload.external_id} is {event.payload.status}")

    async with cambist.open(database, on_event=on_event) as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id, cambist.Mode.TEST)
        payment = await merchant.create_payment("490.00", external_id="order-1")
        await merchant.simulate(payment.id, "paid")  # in live mode the payer does this
        await service.run_due()
        try:
            await merchant.create_payment("1.00")
        except cambist.Refusal as refusal:
            heard.append(f"{refusal.code}: {refusal.message}")
    return heard


if __name__ == "__main__":
    for line in asyncio.run(take_a_payment(sys.argv[1] if len(sys.argv) > 1 else "memory://")):
        print(line)
