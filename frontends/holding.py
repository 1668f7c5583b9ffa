"""The layer around live providers that sends no money while the installation is held (core/domain/installation.py)."""

import logging
from collections.abc import Mapping
from typing import Any

from ..core.domain.accounts.accounts import Mode
from ..core.usecases.holding import read_hold, read_installation
from ..ports.bundle import Ports
from ..ports.faults import Fault, Held, Unavailable
from ..ports.storage import Storage
from ..ports.vault import Vault
from .wrapping import Call, with_providers, wrapped

SENDS: Mapping[str, frozenset[str]] = {
    "bank": frozenset({"refund", "charge", "remit"}),
    "payouts": frozenset({"sign", "broadcast"}),
    "deposits": frozenset({"address"}),
}
"""By port, what moves money out, or a payer's without the payer's doing. What comes in is taken: a payment that a payer
makes is new, whatever the copy does not know. Not so an address of a wallet that is counted up: the copy would give a
client one that another was told."""

log = logging.getLogger("cambist.hold")


def held_ports(ports: Ports, kept: Storage) -> Ports:
    """The ports, whose live providers send nothing while the row in `kept` says so. The row is read before each such
    call, so a hold, and its end, count for all processes at once. Test mode has no money to send twice."""
    live = {
        "bank": frozenset(ports.banks.order.get(Mode.LIVE.value, ())),
        "payouts": frozenset({ports.senders.modes.get(Mode.LIVE.value, "")}),
        "deposits": frozenset({ports.deposits.modes.get(Mode.LIVE.value, "")}),
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
    """Raises: Held; Unavailable when it cannot be told."""
    try:
        installation = await read_installation(kept, vault)
    except Unavailable:
        raise
    except Fault as fault:
        raise Unavailable(f"whether the installation is held cannot be told: {fault}") from fault
    if installation is not None and installation.is_held:
        raise Held(f"held: no {operation} in live mode until `cambist resume`")


async def tell_if_held(ports: Ports) -> None:
    """Say so in the log, once at the start of a process."""
    installation = await read_hold(ports)
    if installation is not None:
        log.warning(
            "held since %s: %s. Payments are taken; no live money is sent or settled. Compare with "
            "`cambist resume --dry-run`, then `cambist resume`",
            installation.held_since,
            installation.told,
        )
