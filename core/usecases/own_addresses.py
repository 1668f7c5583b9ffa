"""Keeps the service from paying to itself: what is sent to a deposit address counts for its exchange, and what is sent
to the wallet that pays out is a fee for nothing."""

from ...ports.bundle import Ports
from ...ports.chain import OwnsAddresses
from ..domain.errors import shape_error


async def refuse_own_address(ports: Ports, address: str, field: str) -> None:
    """Check that an address is none of the service's own, of either mode. Raises: Refusal VALIDATION_ERROR for the
    field; Unavailable."""
    for adapter in (*ports.senders.senders.values(), *ports.deposits.watchers.values()):
        if isinstance(adapter, OwnsAddresses) and await adapter.owns(address):
            raise shape_error(field, "must not be a wallet or a deposit address of this service")
