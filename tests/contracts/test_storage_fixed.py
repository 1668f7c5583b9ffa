"""Fields that the catalogue declares fixed: databases never write them again, memory refuses who would change them, so
that a slip of ours shows in every test."""

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.payments.payments import Payment
from tests.contracts.storage_kit import payment, put


async def test_memory_refuses_to_change_them() -> None:
    storage = MemoryStorage(VirtualClock())
    await put(storage, payment("pay_1", external_id="order 1"))
    async with storage.unit() as unit:
        unit[Payment].save(payment("pay_1", external_id="order 2"))
        with pytest.raises(TypeError, match="external_id is declared fixed"):
            await unit.commit()
