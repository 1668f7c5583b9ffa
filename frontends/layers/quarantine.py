"""Layer around live providers that sends no money while the installation is held (core/domain/installation.py)."""

import logging
from collections.abc import Mapping
from typing import Any

from ...core.domain.accounts.accounts import Mode
from ...core.domain.installation import Because
from ...core.usecases.common.quarantine import read_hold, read_present
from ...ports.bundle import Ports
from ...ports.faults import Fault, Held, Unavailable
from ...ports.storage import Storage
from ...ports.vault import Vault
from .wrapping import Call, with_providers, wrapped

SENDS: Mapping[str, frozenset[str]] = {
    "bank": frozenset({"refund", "charge", "remit"}),
    "payouts": frozenset({"sign", "broadcast"}),
    "deposits": frozenset({"address"}),
    "receipts": frozenset({"write_receipt"}),
}
"""By port: operations that send money out, or take a payer's money without the payer's action. Incoming money is
accepted: a payment by a payer is new, whatever the copy lacks. Addresses from a counted wallet are refused, because the
copy could give a client an address that another client already has. A cash register of the merchant's own writes no
receipts, because the copy does not know which attempts were made."""

log = logging.getLogger("cambist.hold")


def held_ports(ports: Ports, kept: Storage) -> Ports:
    """Return the ports, with live providers that send nothing while the installation is held. The row in `kept` is read
    before each such call, so a hold and its end take effect in all processes at once. Test mode has no money to send
    twice."""
    live = {
        "bank": frozenset(ports.banks.order.get(Mode.LIVE.value, ())),
        "payouts": frozenset({ports.senders.modes.get(Mode.LIVE.value, "")}),
        "deposits": frozenset({ports.deposits.modes.get(Mode.LIVE.value, "")}),
        "receipts": frozenset({getattr(ports.register, "name", "")}),
    }

    def around(name: str, call: Call) -> Call:
        async def ask(*given: Any, **named: Any) -> Any:
            await _require_no_hold(kept, ports.vault, name)
            return await call(*given, **named)

        return ask

    def wrap(port: str, adapter: Any) -> Any:
        is_live = getattr(adapter, "name", None) in live.get(port, ())
        return wrapped(adapter, SENDS[port], around) if is_live else adapter

    return with_providers(ports, wrap)


async def _require_no_hold(kept: Storage, vault: Vault, operation: str) -> None:
    """Refuse the operation while the installation is held. Raises: Held; Unavailable when the row cannot be read, and
    for the seconds in which a promoted server is examined."""
    try:
        installation = await read_present(kept, vault)
    except Unavailable:
        raise
    except Fault as fault:
        raise Unavailable(f"whether the installation is held cannot be told: {fault}") from fault
    if installation is not None and installation.held_because is Because.PROMOTED:
        raise Unavailable(f"no {operation} yet: {installation.told}")
    if installation is not None and installation.is_held:
        raise Held(f"held: no {operation} in live mode until `cambist resume`")


async def tell_if_held(ports: Ports) -> None:
    """Log a hold once, at the start of a process."""
    installation = await read_hold(ports)
    if installation is not None:
        log.warning(
            "held since %s: %s. Payments are taken; no live money is sent or settled. Compare with "
            "`cambist resume --dry-run`, then `cambist resume`",
            installation.held_since,
            installation.told,
        )
