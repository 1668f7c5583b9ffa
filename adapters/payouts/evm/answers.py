"""Answers of EVM nodes to a submitted transaction (docs/providers/chains.md "On Ethereum and BNB Smart Chain").

There are no error codes for it: each kind of node has its own texts.
"""

import re
from collections.abc import Sequence
from enum import Enum

from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ...nodes.rpc import Node, NodeRefused


class Taken(Enum):
    """Meaning of an answer."""

    YES = "yes"
    """The node has the transaction."""
    USED = "used"
    """A transaction with its number is in a block already, perhaps this one."""
    LATER = "later"
    """Not now: the fee is too low at present, other transactions must come first, or the wallet lacks coins for gas."""
    NO = "no"
    """Never."""


_YES = re.compile(
    r"(already exists: )?already known|known transaction(: (0x)?[0-9a-f]{2,64})?|transaction already imported"
    r"|transaction with the same hash was already imported\.?|existing txn? with same hash"
)
"""Answers that must match whole, because more words may reverse their meaning."""
_WORDS: Sequence[tuple[Taken, str]] = (
    (Taken.USED, "nonce too low|nonce is too low|old nonce|invalid nonce|mined"),
    (Taken.LATER, "insufficient funds|insufficient balance|exceeds (account )?balance|for sender balance"),
    (Taken.LATER, "underpriced|fee too low( to compete)?|could not replace existing tx|replaced by transaction"),
    (Taken.LATER, "gas price too low|gas price below|less than block base fee"),
    (
        Taken.LATER,
        "(tx)?pool is full|pool full|pool not enabled|nonce too high|nonce gap|too distant|nonce too far|syncing",
    ),
    (Taken.LATER, "in-flight transaction limit|account limit exceeded|already reserved|limit reached|lower nonce"),
    (Taken.NO, "invalid sender|invalid signature|failed to (resolve|recover) sender|chain ?id|rlp|invalid transaction"),
    (Taken.NO, "transaction type|not supported|sender is contract|sender not an eoa"),
    (Taken.NO, "intrinsic gas|exceeds block gas limit|gas limit (is )?too high|gas limit exceeded"),
    (Taken.NO, "exceeds the configured cap|fee cap exceeded|higher than max fee|exceeds max fee|oversized"),
)
"""Words that may stand anywhere in an answer. The first row that fits counts; any other text has an unknown meaning."""
_MEANINGS = tuple((taken, re.compile(rf"\b(?:{words})\b")) for taken, words in _WORDS)


def meaning(said: str) -> Taken | None:
    """Return the meaning of a node's text; None if it is unknown.

    Some clients write `NonceTooLow` or `NONCE_TOO_LOW`.
    """
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", said).replace("_", " ").strip().lower()
    if _YES.fullmatch(plain):
        return Taken.YES
    return next((taken for taken, words in _MEANINGS if words.search(plain)), None)


async def handed_over(nodes: Sequence[Node], raw: bytes) -> Taken:
    """Submit a transaction to the first node that takes it, trying one node after another, because another may take
    what one refuses.

    Raises: OutcomeUnknown if one of them may have taken it; Unavailable, with the first node's text, if all say
    `LATER` or none is reachable; NotConfigured.
    """
    said: list[Taken] = []
    faults: list[Fault] = []
    for node in nodes:
        try:
            await node.send("eth_sendRawTransaction", f"0x{raw.hex()}")
        except NodeRefused as fault:
            taken = meaning(fault.said)
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
