"""Contract of a bank's provider notifications (ports/notifications.py)."""

import pytest

from ..bank_harness import BankHarness
from ..hearing import NotificationRules, Told, told
from .kit import OPERATION, OTHER


class TestNotifications(NotificationRules):
    """A genuine notification from the bank's provider is accepted, but only as a hint to poll."""

    @pytest.fixture
    async def noticed(self, bank_harness: BankHarness) -> Told:
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        return await told(bank_harness.bank, bank_harness, OPERATION, OTHER)
