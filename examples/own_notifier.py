"""A custom notifier: webhooks go to a queue of the company instead of the merchants' addresses.

`pyproject.toml`: `[project.entry-points."cambist.notifiers"]`, `company-queue = "examples.own_notifier:make"`;
`cambist.toml`: `notifier = "company-queue"`. To receive events inside the program, `on_event` is simpler
(embed_script.py).
"""

import asyncio

import cambist
from cambist.ports import Answer, DeliveryResult, WebhookRequest


class QueueNotifier:
    """Implement cambist.ports.Notifier. The `asyncio.Queue` stands for a broker's client."""

    def __init__(self, queue: "asyncio.Queue[tuple[str, bytes]]") -> None:
        self.queue = queue

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Put the webhook into the queue. Errors of the queue are never raised: the result reports them, and the
        webhook is retried."""
        try:
            self.queue.put_nowait((webhook.headers["X-Webhook-Id"], webhook.body))
        except asyncio.QueueFull:
            return DeliveryResult(answer=Answer.RESPONDED, status=503, note="the queue is full")
        return DeliveryResult(answer=Answer.RESPONDED, status=200)

    async def close(self) -> None:
        """Do nothing: the queue belongs to the caller."""


def make(tools: cambist.Tools) -> QueueNotifier:  # noqa: ARG001 - every factory gets them
    """Build the notifier. The entry point names this function."""
    return QueueNotifier(asyncio.Queue(maxsize=10_000))


async def main() -> list[bytes]:
    """Do the same without an entry point, by passing the object."""
    notifier = QueueNotifier(asyncio.Queue())
    async with cambist.open(adapters=cambist.Adapters(notifier=notifier)) as service:
        receiver = {"webhook_url": "https://merchant.example/hooks", "webhook_secret": "at-least-16-characters"}
        account = await service.create_account("My shop", **receiver)
        merchant = await service.merchant(account.account_id)
        payment = await merchant.create_payment(490)
        await merchant.simulate(payment.id, "paid")
        await service.run_due()
    return [body for _, body in (notifier.queue.get_nowait() for _ in range(notifier.queue.qsize()))]


if __name__ == "__main__":
    for body in asyncio.run(main()):
        print(body.decode())
