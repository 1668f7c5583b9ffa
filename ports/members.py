"""The banks of a payment system, as a provider lists them: possible destinations of money to a person."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec


class MemberBank(msgspec.Struct, frozen=True, kw_only=True):
    """One bank."""

    id: str
    """`bank<digits>`, the form of `RemittanceRequest.bank_id`: `bank` and the bank's number at the payment system."""
    name: str
    """Name known to the public."""
    bic: str | None = None


@runtime_checkable
class BankListing(Protocol):
    """A bank that can list the banks to which it sends money to people (ports/remittances.py)."""

    async def banks(self) -> Sequence[MemberBank]:
        """Return all of them. A read, made about once a day. Raises: Unavailable; NotConfigured."""
        ...
