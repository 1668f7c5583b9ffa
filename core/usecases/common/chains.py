"""The only module that extends hash chains, by batches of rows that other units wrote before (domain/chains.py).

A chain is only extended from a head that the vault tagged. A chain with a missing or altered head stays as it is.
Otherwise an attacker with write access to the database could pass off forged rows as not yet chained, and have them
chained. Only an operator tags such a chain again, after the vault's keys were lost (operators/retagging.py).
"""

import logging
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Unit
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Account
from ...domain.chains import FIRST_LINK, Chain, ChainHead, Head, told
from ...domain.errors import Refusal
from ...domain.ledger import LEDGER, JournalEntry
from ...domain.operators.audit import AUDIT, AuditEntry
from .units import retrying

CHAINS = (LEDGER, AUDIT)

HEAD_RULE = "ledger_heads_id"
"""Unique rule whose Conflict means that another unit created a chain's head first, so the work reads again."""

NO_HEAD = "the chain has no head: it was deleted"
UNTAGGED = "the head of the chain has no tag of the vault: it was taken away"
ALTERED = "the head of the chain is not what the vault tagged"

_AT_ONCE = 1000

log = logging.getLogger("cambist.ledger")


def head_fault(vault: Vault, chain: Chain, head: ChainHead | None) -> str | None:
    """Return the reason why a chain's head does not prove its history, or None."""
    if head is None:
        return NO_HEAD
    if head.tag is None:
        return UNTAGGED
    try:
        return None if vault.fits(head.tag, head.seal, chain.head_aad(head.number)) else ALTERED
    except VaultError as error:
        return f"the head of the chain cannot be judged: {error}"


def tagged(vault: Vault, chain: Chain, head: ChainHead) -> ChainHead:
    """Return the head with a tag by the current key."""
    return msgspec.structs.replace(head, tag=vault.tag(head.seal, chain.head_aad(head.number)))


async def begin_chains(ports: Ports, unit: Unit) -> None:
    """Write the heads of chains, in a unit that opens the first account of an installation or is an operator's action
    before that. Do nothing otherwise. The commit raises Conflict HEAD_RULE when another unit was first."""
    if await unit[Account].find(limit=1) or await unit[JournalEntry].find(limit=1):
        return
    for chain in CHAINS:
        if await unit[ChainHead].get(chain.head_id) is None:
            unit[ChainHead].add(new_head(ports, chain))


def new_head(ports: Ports, chain: Chain) -> ChainHead:
    """Return the head of an empty chain."""
    empty = ChainHead(id=chain.head_id, number=0, seal=FIRST_LINK, sealed_at=ports.clock.now())
    return tagged(ports.vault, chain, empty)


async def present_head(ports: Ports) -> str:
    """Return the ends of the chains as one line, to be stored elsewhere (domain/chains.py: told). Raises: Refusal
    INVALID_STATE when a head does not prove its history."""
    heads, sealed_at = [], None
    async with ports.storage.snapshot() as seen:
        for chain in CHAINS:
            head = await seen[ChainHead].get(chain.head_id)
            fault = head_fault(ports.vault, chain, head)
            if head is None or fault is not None:
                raise Refusal("INVALID_STATE", f"{chain.name}: {fault}")
            heads.append(Head(chain=chain.name, number=head.number, link=head.seal))
            sealed_at = sealed_at or head.sealed_at
    return told(heads, sealed_at)


class Extension:
    """New rows of a chain, in the unit that adds them."""

    def __init__(self, ports: Ports, chain: Chain, head: ChainHead) -> None:
        self._ports = ports
        self._chain = chain
        self._head = head
        self._number = head.number
        self._link = head.seal

    def add(self, row: Any) -> dict[str, Any]:
        """Add the next row. Return the fields to set in it."""
        self._number += 1
        self._link = self._chain.link(row, self._number, self._link)
        tag = self._ports.vault.tag(self._link, self._chain.row_aad(self._number))
        return {"number": self._number, "seal": self._link + tag}

    def end(self, unit: Unit) -> None:
        """Save the head, if there are new rows."""
        if self._number > self._head.number:
            after = msgspec.structs.replace(
                self._head, number=self._number, seal=self._link, sealed_at=self._ports.clock.now()
            )
            unit[ChainHead].save(tagged(self._ports.vault, self._chain, after))


async def extension(ports: Ports, unit: Unit, chain: Chain) -> Extension | None:
    """Return an extension of the chain in this unit. Return None, and log it, if the head is faulty: then no row may be
    chained, and alarms report it (ledger/watch.py)."""
    head = await unit[ChainHead].get(chain.head_id)
    fault = head_fault(ports.vault, chain, head)
    if head is None or fault is not None:
        log.error("no row is chained, %s of the %s; see `cambist ledger verify`", fault, chain.name)
        return None
    return Extension(ports, chain, head)


async def extend_audit(ports: Ports) -> int:
    """Add committed rows of the audit log to their chain, and return their number. Listing chains the journal
    (ledger/listing.py)."""
    behind = ""

    async def work(unit: Unit) -> tuple[int, str]:
        added = await extension(ports, unit, AUDIT)
        if added is None:
            return 0, behind
        # Each search continues after the one before. A database may walk over the rows chained just now. For a million
        # such rows that takes longer than all the hashing.
        fresh = await unit[AuditEntry].find(number=None, id=AtLeast(behind), order="id", limit=_AT_ONCE)
        for row in fresh:
            unit[AuditEntry].change(row, **added.add(row))
        added.end(unit)
        return len(fresh), f"{fresh[-1].id}!" if fresh else behind

    done = 0
    while True:
        count, behind = await retrying(ports.storage, work)
        done += count
        # Leave rows that arrive meanwhile to the next run. Otherwise a busy service would never end this one.
        if count < _AT_ONCE:
            return done
