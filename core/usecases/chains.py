"""The one room that puts rows into a hash chain, in batches, behind those who write them (domain/chains.py).

A chain goes on only from a head that the vault tagged. One that was begun before there were tags, or whose head is
gone or altered, is left as it is: whoever writes the database could call his own rows old, or not chained yet, and
would have them chained as true. Only an operator takes such a chain over (ledger/adoption.py).
"""

import logging
from typing import Any

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import AtLeast, Unit
from ...ports.vault import Vault, VaultError
from ..domain.accounts.accounts import Account
from ..domain.chains import FIRST_LINK, Chain, ChainHead, Head, told
from ..domain.errors import Refusal
from ..domain.ledger import LEDGER, JournalEntry
from ..domain.operators.audit import AUDIT
from .units import retrying

CHAINS = (LEDGER, AUDIT)

HEAD_RULE = "ledger_heads_id"
"""The unique rule whose Conflict means that another unit made a chain's head first: read again."""

NO_HEAD = "the chain has no head: it was deleted, or this is an upgrade"
UNTAGGED = "the head of the chain bears no tag of the vault: it was taken away, or this is an upgrade"
ALTERED = "the head of the chain is not what the vault tagged"

_AT_ONCE = 1000

log = logging.getLogger("cambist.ledger")


def head_fault(vault: Vault, chain: Chain, head: ChainHead | None) -> str | None:
    """What keeps a chain's head from standing for its history; None: nothing does."""
    if head is None:
        return NO_HEAD
    if head.tag is None:
        return UNTAGGED
    try:
        return None if vault.fits(head.tag, head.seal, chain.head_place(head.number)) else ALTERED
    except VaultError as error:
        return f"the head of the chain cannot be judged: {error}"


def tagged(vault: Vault, chain: Chain, head: ChainHead) -> ChainHead:
    """The head with a tag by the current key."""
    return msgspec.structs.replace(head, tag=vault.tag(head.seal, chain.head_place(head.number)))


async def begin_chains(ports: Ports, unit: Unit) -> None:
    """Write the heads of chains in a unit that opens the first account of an installation, or is an operator's act
    before there is any; nothing in any other. Commit raises Conflict HEAD_RULE when another unit was first."""
    if await unit[Account].find(limit=1) or await unit[JournalEntry].find(limit=1):
        return
    for chain in CHAINS:
        if await unit[ChainHead].get(chain.head_id) is None:
            unit[ChainHead].add(new_head(ports, chain))


def new_head(ports: Ports, chain: Chain) -> ChainHead:
    """The head of a chain that holds no row yet."""
    empty = ChainHead(id=chain.head_id, number=0, seal=FIRST_LINK, sealed_at=ports.clock.now())
    return tagged(ports.vault, chain, empty)


async def present_head(ports: Ports) -> str:
    """Where the chains end, as one line to keep elsewhere (domain/chains.py: told). Raises: Refusal INVALID_STATE where
    a head does not stand for its history."""
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


async def extend_chain(ports: Ports, chain: Chain) -> int:
    """Add to the chain what is committed by now and not chained yet; how many rows that were. None are where the head
    is at fault, which alarms tell (ledger/watch.py)."""
    behind = ""

    async def work(unit: Unit) -> tuple[int, str]:
        head = await unit[ChainHead].get(chain.head_id)
        fault = head_fault(ports.vault, chain, head)
        if head is None or fault is not None:
            log.error("no row is chained, %s of the %s; see `cambist ledger verify`", fault, chain.name)
            return 0, behind
        number, last = head.number, head.seal
        # Each look goes on where the one before ended: a database may walk over what was chained just now, and over a
        # million of such that takes longer than all the hashing.
        fresh: list[Any] = await unit[chain.rows].find(number=None, id=AtLeast(behind), order="id", limit=_AT_ONCE)
        for row in fresh:
            number += 1
            last = chain.link(row, number, last)
            seal = last + ports.vault.tag(last, chain.row_place(number))
            unit[chain.rows].change(row, number=number, seal=seal)
        if fresh:
            after = msgspec.structs.replace(head, number=number, seal=last, sealed_at=ports.clock.now())
            unit[ChainHead].save(tagged(ports.vault, chain, after))
        return len(fresh), f"{fresh[-1].id}!" if fresh else behind

    done = 0
    while True:
        count, behind = await retrying(ports.storage, work)
        done += count
        # What comes in meanwhile is left to the next run, or a busy service would never end this one.
        if count < _AT_ONCE:
            return done
