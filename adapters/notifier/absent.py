"""Substitute for the HTTP notifier when its library is not installed: webhooks are not sent, and each
result says why.
"""

from ...ports.notifier import Answer, DeliveryResult, WebhookRequest


class AbsentNotifier:
    """Implementation of the port Notifier.

    Nothing is lost: events stay, and deliveries are retried and can be resent.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:  # noqa: ARG002 - the port's signature
        """Return that it was not sent."""
        return DeliveryResult(answer=Answer.CONNECTION, note=self._why)

    async def close(self) -> None:
        """Do nothing: no connection is open."""
