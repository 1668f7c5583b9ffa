"""Events for tests of the deliveries, written as use cases write them, without what made them true."""

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import iso
from cambist.core.domain.payloads import PaymentPayload
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.webhooks.outbox import announce
from cambist.ports.bundle import Ports


async def happen(
    ports: Ports,
    account_id: str,
    count: int = 1,
    *,
    mode: Mode = Mode.TEST,
    object_id: str = "pay_1",
    receives: bool = True,
) -> list[str]:
    """So many money events in one unit; their ids, in the order of age. `receives`: the account has a receiver."""
    now = ports.clock.now()
    body = msgspec.json.encode(
        PaymentPayload(
            event="payment.status_changed",
            payment_id=object_id,
            external_id=None,
            status="paid",
            previous_status="pending",
            amount_rub="100.00",
            actual_amount_rub="100.00",
            amount_usdt=None,
            payment_method="sbp",
            refund_pending=False,
            timestamp=iso(now),
            metadata=None,
        )
    )
    made = []
    async with ports.storage.unit() as unit:
        for _ in range(count):
            event = Event(
                id=f"evt_{ports.ids.uuid()}",
                account_id=account_id,
                mode=mode,
                type=EventType.PAYMENT_STATUS_CHANGED,
                object_id=object_id,
                sequence=1,
                body=body,
                created_at=now,
            )
            announce(ports, unit, event, receives=receives)
            made.append(event.id)
        await unit.commit()
    return made
