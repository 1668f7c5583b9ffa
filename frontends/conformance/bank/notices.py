"""Contract of a bank's provider notifications (ports/notices.py)."""

import pytest

from ..bank_bench import BankBench
from ..hearing import NoticeRules, Told, told
from .kit import OPERATION, OTHER


class TestNotices(NoticeRules):
    """A genuine notification from the bank's provider is accepted, but only as a hint to poll."""

    @pytest.fixture
    async def noticed(self, bank_bench: BankBench) -> Told:
        await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        return await told(bank_bench.bank, bank_bench, OPERATION, OTHER)
