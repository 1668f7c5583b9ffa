"""Terminals, which only operators create and switch. Merchants list them and name one (docs/payments.md
"Terminals")."""

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller
from ...domain.accounts.terminals import PAYMENT_METHODS, Terminal, TerminalKind, TerminalWish, new_terminal
from ...domain.errors import Refusal
from ...domain.ids import canonical_uuid
from ...domain.payments.payments import Payment
from ..common.units import retrying, unit_of_work
from .accounts import find_account, storable

_MOST = 1000
"""More than any account has: a terminal is an agreement, not a row of traffic."""


async def create_terminal(ports: Ports, account_id: str, wish: TerminalWish) -> Terminal:
    """Create an enabled terminal. Raises: Refusal VALIDATION_ERROR, ACCOUNT_NOT_FOUND."""
    terminal = new_terminal(
        wish,
        terminal_id=ports.ids.uuid(),
        account_id=account_id,
        banks=tuple(ports.banks.banks),
        now=ports.clock.now(),
    )

    async def work(unit: Unit) -> Terminal:
        await find_account(unit, account_id)
        return unit[Terminal].add(terminal)

    return await retrying(ports.storage, work)


async def list_terminals(ports: Ports, account_id: str) -> list[Terminal]:
    """Return all terminals of an account, including disabled ones, oldest first. Raises: Refusal ACCOUNT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        await find_account(unit, account_id)
        return await _of_account(unit, account_id)


async def _of_account(unit: Unit, account_id: str) -> list[Terminal]:
    return await unit[Terminal].find(account_id=account_id, order="created_at", limit=_MOST)


async def disable_terminal(ports: Ports, terminal_id: str) -> Terminal:
    """Stop taking new payments by a terminal. Existing ones continue. Raises: Refusal TERMINAL_NOT_FOUND."""
    return await _switch(ports, terminal_id, enabled=False)


async def enable_terminal(ports: Ports, terminal_id: str) -> Terminal:
    """Take payments by a terminal again. Raises: Refusal TERMINAL_NOT_FOUND."""
    return await _switch(ports, terminal_id, enabled=True)


@unit_of_work()
async def _switch(_: Ports, unit: Unit, terminal_id: str, *, enabled: bool) -> Terminal:
    terminal = await unit[Terminal].get(terminal_id) if storable(terminal_id) else None
    if terminal is None:
        raise Refusal("TERMINAL_NOT_FOUND", "There is no terminal of this id")
    return unit[Terminal].save(msgspec.structs.replace(terminal, enabled=enabled))


async def list_methods(ports: Ports, caller: Caller) -> list[Terminal]:
    """Return the terminals that a merchant may choose from, oldest first. Raises: Refusal METHOD_SELECTION_DISABLED
    (403)."""
    if not caller.account.settings.terminals:
        raise Refusal("METHOD_SELECTION_DISABLED", "Choosing a terminal is off for this account", status=403)
    async with ports.storage.unit() as unit:
        return [terminal for terminal in await _of_account(unit, caller.account_id) if terminal.enabled]


async def offered_terminal(unit: Unit, caller: Caller, method_id: str | None, payment_method: str) -> Terminal | None:
    """Return the terminal of an order: the one it names, as stored, whatever its state.

    Without `method_id` this is the account's oldest enabled ordinary terminal of the payment method, so leaving out
    `method_id` does not avoid required fields. An exchange terminal must always be named. Return None when there is no
    such terminal, or terminals are off for the account.
    """
    if not caller.account.settings.terminals:
        return None
    if method_id is not None:
        terminal_id = canonical_uuid(method_id)
        return None if terminal_id is None else await unit[Terminal].get(terminal_id)
    if payment_method not in PAYMENT_METHODS:
        return None
    found = await unit[Terminal].find(
        account_id=caller.account_id,
        payment_method=payment_method,
        kind=TerminalKind.ORDINARY,
        enabled=True,
        order="created_at",
        limit=1,
    )
    return found[0] if found else None


async def terminal_of(unit: Unit, payment: Payment) -> Terminal | None:
    """Return the terminal of a payment, or None if it has none."""
    return None if payment.method_id is None else await unit[Terminal].get(payment.method_id)
