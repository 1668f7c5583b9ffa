"""Receipts of refunds at banks whose cash register gets its own request once the money has gone
(payments/receipt_sales.py).
"""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ..common.schedule import FollowUp, reschedule_at
from ..payments.receipt_sales import register_of, write

BACK = FollowUp("receipt.refund")


async def plan_back(ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> None:
    """Plan the receipt of a refund that this unit completes."""
    if register_of(ports, payment) is not None:
        now = ports.clock.now()
        await BACK.keep(unit, refund.id, now, now)


async def write_back(ports: Ports, job: Job) -> None:
    """Write the receipt of a refund (the job of `plan_back`)."""
    refund = await ports.storage.get(Refund, job.argument)
    payment = None if refund is None else await ports.storage.get(Payment, refund.payment_id)
    if refund is None or payment is None:
        await reschedule_at(ports, job, None)
        return
    await write(ports, job, payment, refund.id, refund.amount.kopecks, back=True)
