"""Whether something has happened in an account, for pages that are open (docs/dashboard.md "Live pages")."""

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.payments.payments import Payment
from ...domain.webhooks.events import Event


async def latest_change(ports: Ports, caller: Caller) -> tuple[str, ...]:
    """Return a value that changes with each new payment and each event of the account's mode."""
    account_id, mode, order = caller.account_id, caller.mode, "-created_at"
    async with ports.storage.snapshot() as seen:
        payments = await seen[Payment].find(order=order, limit=1, readable=True, account_id=account_id, mode=mode)
        events = await seen[Event].find(order=order, limit=1, readable=True, account_id=account_id, mode=mode)
    return (*(each.id for each in payments), *(each.id for each in events))
