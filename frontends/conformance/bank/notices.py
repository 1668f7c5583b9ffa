"""What a bank's provider posts (ports/notices.py)."""

import pytest

from ..bank_bench import BankBench
from ..hearing import NoticeRules, Told, told
from .kit import OPERATION, OTHER


class TestNotices(NoticeRules):
    """What the bank's provider posts is believed where it is genuine, and then as a hint."""

    @pytest.fixture
    async def noticed(self, bank_bench: BankBench) -> Told:
        await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        return await told(bank_bench.bank, bank_bench, OPERATION, OTHER)
