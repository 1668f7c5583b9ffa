"""The notes of adapters are encrypted in the storage, and adapters read them in clear text (docs/security.md)."""

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.encrypted_notes import EncryptedNotes
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.vault.memory import MemoryVault
from cambist.ports.faults import Unavailable
from cambist.ports.notes import ProviderNote
from cambist.ports.operation_log import NumberedOperations, OperationLog

PAYER = "Ivan Petrovich P."
Page = dict[str, str]


@pytest.fixture
def kept() -> MemoryStorage:
    return MemoryStorage(VirtualClock())


@pytest.fixture
def storage(kept: MemoryStorage) -> EncryptedNotes:
    return EncryptedNotes(kept, MemoryVault())


async def bodies(kept: MemoryStorage) -> list[bytes]:
    return [note.body async for batch in kept.scan(ProviderNote) for note in batch]


async def test_every_way_of_a_operation_log_leaves_no_page_in_clear(
    kept: MemoryStorage, storage: EncryptedNotes
) -> None:
    pages = OperationLog("desk", Page, storage, VirtualClock())
    await pages.start("a", {"payer": PAYER})
    await pages.put("a", {"payer": PAYER, "again": PAYER})
    await pages.change("a", lambda page: {**page, "more": PAYER})
    await pages.remember("b/1", {"payer": PAYER}, reference=PAYER)
    assert await pages.read("a") == {"payer": PAYER, "again": PAYER, "more": PAYER}
    assert await pages.below("b") == [{"payer": PAYER}]
    assert await pages.operation_of(PAYER) == "b/1"
    assert len(await pages.since(VirtualClock().now())) == 3
    found = await bodies(kept)
    assert len(found) == 3
    assert not any(PAYER.encode() in body for body in found)


async def test_numbers_of_operations_go_on(storage: EncryptedNotes) -> None:
    numbers = NumberedOperations("desk", "edges", storage, VirtualClock())
    assert [await numbers.number(each) for each in ("a", "b", "a")] == [0, 1, 0]
    assert await numbers.next_number() == 2


async def test_a_note_moved_to_another_id_does_not_decrypt(kept: MemoryStorage, storage: EncryptedNotes) -> None:
    pages = OperationLog("desk", Page, storage, VirtualClock())
    await pages.start("a", {"payer": PAYER})
    async with kept.unit() as unit:
        note = await unit[ProviderNote].get("desk:a")
        assert note is not None
        unit[ProviderNote].add(msgspec.structs.replace(note, id="desk:b"))
        await unit.commit()
    with pytest.raises(Unavailable, match="does not decrypt"):
        await pages.read("b")


async def test_a_note_of_the_core_is_read_as_it_is(kept: MemoryStorage, storage: EncryptedNotes) -> None:
    note = ProviderNote(id="x:health", provider="x", body=b"{}", created_at=VirtualClock().now())
    async with kept.unit() as unit:
        unit[ProviderNote].add(note)
        await unit.commit()
    assert await storage.get(ProviderNote, note.id) == note
