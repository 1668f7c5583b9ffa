"""The banks of a payment system, as a provider lists them: where a person may be sent money."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec


class MemberBank(msgspec.Struct, frozen=True, kw_only=True):
    """One bank."""

    id: str
    """`bank<digits>`, as `RemittanceRequest.bank_id` names it: `bank` and the payment system's number of the bank."""
    name: str
    """As people know it."""
    bic: str | None = None


@runtime_checkable
class BankListing(Protocol):
    """A bank that knows to which banks it can send money to people (ports/remittances.py)."""

    async def banks(self) -> Sequence[MemberBank]:
        """All of them. A read, asked about once a day. Raises: Unavailable; NotConfigured."""
        ...
