"""Fields that the catalogue declares fixed: databases never write them again, memory refuses who would change them."""

import msgspec
import pytest

from cambist.core.domain.payments import Payment
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import Place, payment, put


async def save_changed(storage: Storage) -> None:
    await put(storage, payment("pay_1", external_id="order 1"))
    async with storage.unit() as unit:
        known = await unit[Payment].get("pay_1")
        assert known is not None
        unit[Payment].save(msgspec.structs.replace(known, external_id="order 2", description="changed"))
        await unit.commit()


async def test_a_database_leaves_them_as_they_are(place: Place) -> None:
    if place.name == "memory":
        pytest.skip("memory refuses")
    storage = await place.open()
    await save_changed(storage)
    async with storage.unit() as unit:
        kept = await unit[Payment].get("pay_1")
    assert kept is not None
    assert (kept.external_id, kept.description) == ("order 1", "changed")


async def test_memory_refuses_to_change_them(place: Place) -> None:
    if place.name != "memory":
        pytest.skip("databases leave them")
    with pytest.raises(TypeError, match="external_id is declared fixed"):
        await save_changed(await place.open())
