"""An attacker who may write the database, but has no key of the vault. The attacker reads rows, recomputes every link
and sum, and writes them by plain SQL beside the open app."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep, table_map_of
from cambist.adapters.vault.aes import AesVault
from cambist.core.domain.chains import FIRST_LINK, Chain, ChainHead
from cambist.core.domain.ledger import LEDGER, JournalEntry, LedgerAccount, balances_moved
from cambist.frontends.settings.settings import VaultKeys
from cambist.ports.bundle import Ports
from tests.contracts.migration_kit import done_on
from tests.invariants import everything

KEYS = VaultKeys(keys={1: bytes([5]) * 32}, current=1, pepper=bytes([6]) * 32)
OWN = AesVault({1: bytes([9]) * 32}, 1, bytes([9]) * 32)
"""The attacker's own keys, under the same id."""

_KEEPING = keep(CATALOGUE)


class Attacker:
    """At the database of one installation."""

    def __init__(self, url: str, ports: Ports) -> None:
        self._url = url
        self.ports = ports

    async def run(self, statement: str, *rows: Mapping[str, Any]) -> None:
        """One statement of SQL, once or for each row."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.text(statement), [dict(row) for row in rows] or None)

        await done_on(self._url, work)

    async def write(self, *records: Any) -> None:
        """Write these rows as they are, over those of their ids."""
        for record in records:
            kept = table_map_of(_KEEPING, type(record))
            values = dict(zip(kept.codec.names, kept.codec.encode(record), strict=True))
            await self.run(f"DELETE FROM {kept.name} WHERE id = :id", {"id": record.id})
            names = ", ".join(f'"{name}"' for name in values)
            marks = ", ".join(f":{name}" for name in values)
            await self.run(f"INSERT INTO {kept.name} ({names}) VALUES ({marks})", values)

    async def delete(self, *records: Any) -> None:
        """Delete these rows."""
        for record in records:
            await self.run(f"DELETE FROM {table_map_of(_KEEPING, type(record)).name} WHERE id = :id", {"id": record.id})

    async def rows(self, chain: Chain) -> list[Any]:
        """The sealed rows of a chain, in its order."""
        found = [row for row in await everything(self.ports, chain.rows) if row.number is not None]
        return sorted(found, key=lambda row: row.number)

    async def head(self, chain: Chain) -> ChainHead:
        """Where it ends."""
        found = await self.ports.storage.get(ChainHead, chain.head_id)
        assert found is not None
        return found

    async def forge(self, chain: Chain, rows: Sequence[Any], *, tags: AesVault | None = None) -> None:
        """Write these rows as the chain, with every link and the head recomputed. Tags are made by the attacker's keys
        or missing, as in a chain from before the tags."""
        for row in await self.rows(chain):
            await self.delete(row)
        last = FIRST_LINK
        for number, row in enumerate(rows, 1):
            last = chain.link(row, number, last)
            tag = b"" if tags is None else tags.tag(last, chain.row_aad(number))
            await self.write(msgspec.structs.replace(row, number=number, seal=last + tag))
        head = msgspec.structs.replace(await self.head(chain), number=len(rows), seal=last)
        tag_of_head = None if tags is None else tags.tag(last, chain.head_aad(len(rows)))
        await self.write(msgspec.structs.replace(head, tag=tag_of_head))
        if chain is LEDGER:
            await self.balance()

    async def balance(self) -> None:
        """Let every running balance be what the journal says."""
        kept = {row.id: row for row in await everything(self.ports, LedgerAccount)}
        sums = dict.fromkeys(kept, 0)
        for entry in await everything(self.ports, JournalEntry):
            for moved in balances_moved(entry):
                sums[moved.id] = sums.get(moved.id, 0) + moved.balance
                kept.setdefault(moved.id, moved)
        for row_id, balance in sums.items():
            await self.write(msgspec.structs.replace(kept[row_id], balance=balance))


def multiplied(entry: JournalEntry, by: int) -> JournalEntry:
    """The entry with so many times its amounts."""
    postings = tuple(msgspec.structs.replace(each, amount=each.amount * by) for each in entry.postings)
    return msgspec.structs.replace(entry, postings=postings)


def without(rows: Iterable[Any], row: Any) -> list[Any]:
    """All rows but one."""
    return [each for each in rows if each.id != row.id]
