"""Protection against payments to the service itself. USDT at a deposit address would count for its exchange, and USDT
at the payout wallet would cost a fee for nothing."""

from ....ports.bundle import Ports
from ....ports.chain import OwnsAddresses
from ...domain.errors import shape_error


async def refuse_own_address(ports: Ports, address: str, field: str) -> None:
    """Refuse an address of the service itself, in either mode. Raises: Refusal VALIDATION_ERROR for the field;
    Unavailable."""
    for adapter in (*ports.senders.senders.values(), *ports.deposits.watchers.values()):
        if isinstance(adapter, OwnsAddresses) and await adapter.owns(address):
            raise shape_error(field, "must not be a wallet or a deposit address of this service")
