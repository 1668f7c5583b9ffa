"""What nodes of the EVM say to a transaction that is handed to them (docs/providers/chains.md "What a node answers").
There are no codes for it: each kind of node has its own words."""

import re
from collections.abc import Sequence
from enum import Enum

from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ...nodes.rpc import Node, NodeRefused


class Taken(Enum):
    """What an answer means."""

    YES = "yes"
    """The node has it."""
    USED = "used"
    """Something with its number is in a block already; perhaps this one."""
    LATER = "later"
    """Not now: it costs too little for the moment, waits for others, or the wallet lacks coins for gas."""
    NO = "no"
    """Never."""


WORDS: Sequence[tuple[str, Taken]] = (
    ("already known|already imported|known transaction|alreadyknown|already exists", Taken.YES),
    ("nonce too low|nonce is too low|oldnonce|invalid nonce", Taken.USED),
    ("insufficient funds|insufficient balance|exceeds balance", Taken.LATER),
    ("underpriced|fee too low|feetoolow|gas price too low|gas price below|less than block base fee", Taken.LATER),
    ("txpool is full|pool is full|queue|nonce too high|nonce gap|in-flight transaction limit|syncing", Taken.LATER),
    ("already reserved|limit reached", Taken.LATER),
    ("invalid sender|invalid signature|invalid chain|chain id|rlp|not supported|invalid transaction", Taken.NO),
    ("intrinsic gas|exceeds block gas limit|gas limit|exceeds the configured cap|oversized", Taken.NO),
)
"""The first that fits, in whatever case. Of any other words nobody knows."""


def meaning(said: str) -> Taken | None:
    """None: nobody knows."""
    return next((taken for words, taken in WORDS if re.search(words, said, re.IGNORECASE)), None)


async def handed_over(nodes: Sequence[Node], raw: bytes) -> Taken:
    """Hand a transaction to the first that takes it. What one says no to, another may take: they are asked in turn.

    Raises: OutcomeUnknown where one of them may have taken it; Unavailable, with the first one's words, where all say
    `LATER` or none is there; NotConfigured.
    """
    said: list[Taken] = []
    faults: list[Fault] = []
    for node in nodes:
        try:
            await node.send("eth_sendRawTransaction", f"0x{raw.hex()}")
        except NodeRefused as fault:
            taken = meaning(str(fault))
            if taken is Taken.YES:
                return taken
            if taken is None:
                faults.append(OutcomeUnknown(str(fault)))
            elif taken is Taken.LATER:
                faults.append(Unavailable(str(fault)))
            else:
                said.append(taken)
        except (OutcomeUnknown, Unavailable, NotConfigured) as fault:
            faults.append(fault)
        else:
            return Taken.YES
    unknown = next((fault for fault in faults if isinstance(fault, OutcomeUnknown)), None)
    if unknown is not None:
        raise unknown
    if Taken.USED in said:
        return Taken.USED
    if faults:
        raise faults[0]
    return Taken.NO
