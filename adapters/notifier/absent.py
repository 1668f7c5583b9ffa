"""What stands for the HTTP notifier where its library is not installed: webhooks are not sent, and each says why."""

from ...ports.notifier import Answer, DeliveryResult, WebhookRequest


class AbsentNotifier:
    """Fills the port Notifier. Nothing is lost by it: events stay, deliveries come again and can be resent."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:  # noqa: ARG002 - the port's signature
        """Not sent."""
        return DeliveryResult(answer=Answer.CONNECTION, note=self._why)

    async def close(self) -> None:
        """Nothing is open."""
