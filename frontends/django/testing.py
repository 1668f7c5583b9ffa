"""Tests of a shop, with a sandbox whose webhooks arrive in the test's own transaction (docs/django.md "Tests")."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.test import RequestFactory, TestCase, override_settings

from ..testing.sandbox import Sandbox, SandboxOptions
from ..testing.stage import Stage, open_stage
from .gateway import ClientGateway, gateway_replaced
from .views import hook


class CambistTestCase(TestCase):
    """A test case with `self.sandbox` (docs/testing.md). Call `deliver` after what changes a payment; `pay`, `decline`
    and `complete_refund` do so themselves."""

    sandbox: Sandbox
    _stage: ClassVar[Stage]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the thread in which the sandboxes run."""
        super().setUpClass()
        cls._stage = cls.enterClassContext(open_stage())

    def setUp(self) -> None:
        """Open a sandbox, and let the project call it instead of the service in its settings."""
        super().setUp()
        self.sandbox = self.enterContext(self._stage.open_sandbox(SandboxOptions()))
        setting = {
            "URL": self.sandbox.base_url,
            "API_KEY": self.sandbox.api_key,
            "API_SECRET": self.sandbox.api_secret,
            "WEBHOOK_SECRETS": [self.sandbox.webhook_secret],
        }
        self.enterContext(override_settings(CAMBIST=setting))
        self.enterContext(gateway_replaced(ClientGateway(self.sandbox.client)))

    def pay(self, order: Any, **how: Any) -> None:
        """Let the payer pay, and deliver the webhooks. `how`: as `Sandbox.pay`. The order is read again."""
        self.sandbox.pay(order.payment_id, **how)
        self.deliver()
        order.refresh_from_db()

    def decline(self, order: Any, reason: str | None = None) -> None:
        """Let the bank refuse the payment, and deliver the webhooks. The order is read again."""
        self.sandbox.fail(order.payment_id, reason)
        self.deliver()
        order.refresh_from_db()

    def complete_refund(self, refund_id: str) -> None:
        """Let the bank complete a refund, and deliver the webhooks."""
        self.sandbox.client.sandbox.simulate_refund(refund_id, "completed")
        self.deliver()

    def deliver(self) -> list[int]:
        """Post the webhooks that are new since the last call to the project, and return its answers."""
        return self.sandbox.deliver_now(self._post)

    def _post(self, headers: Mapping[str, str], body: bytes) -> int:
        named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        request = RequestFactory().post("/hook", data=body, content_type="application/json", **named)
        status: int = hook(request).status_code
        return status
