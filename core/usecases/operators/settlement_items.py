"""Action items about paid payments that settlements did not settle (action_items.py; docs/settlement.md "When")."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.storage import Below, OneOf, Unit
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.unsettled import Unsettled
from ...domain.settlement.settlement import SettlementBatch, cutoff_of, last_run
from ..settlement.evidence import payment_faults
from ..settlement.run import is_held
from ..settlement.settlement import daily_id
from .action_item import ActionItem, first, item

CONTRADICTED = "not settled: the journal contradicts it"
_DAY = timedelta(days=1)
PASSED_OVER = "paid, and two settlements passed it over: see its shop's markup and the log"


async def unsettled(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Find due payments that the journal contradicts, and payments that two daily settlements passed over."""
    run = last_run(ports.clock.now())
    due = Below(cutoff_of(run))
    rows = await first(unit, Unsettled, "created_at", created_at=due, paid_at=due)
    if not rows:
        return []
    wanted = OneOf(tuple(row.payment_id for row in rows))
    found = await first(unit, Payment, "created_at", id=wanted, status=PaymentStatus.PAID)
    faults = await payment_faults(unit, found)
    over_twice = [mode for mode in Mode if await _ended(unit, mode, (run, run - _DAY))]
    items = []
    for payment in found:
        fault = faults.get(payment.id)
        since = payment.paid_at
        if fault is not None:
            text = f"{CONTRADICTED}: {fault}"
            items.append(item("unsettled", "payment", payment, text, since, urgent=True, brief=CONTRADICTED))
        elif payment.mode in over_twice and not is_held(payment) and since and since < cutoff_of(run - _DAY):
            items.append(item("unsettled", "payment", payment, PASSED_OVER, since, brief=PASSED_OVER))
    return items


async def _ended(unit: Unit, mode: Mode, runs: Sequence[datetime]) -> bool:
    """Return whether the daily settlements of these days are over."""
    batches = [await unit[SettlementBatch].get(daily_id(mode, run)) for run in runs]
    return all(batch is not None and batch.completed_at is not None for batch in batches)
