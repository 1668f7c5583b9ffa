"""Events for tests of the deliveries, written as use cases write them, without what made them true."""

import msgspec

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.days import iso
from cambist.core.domain.payloads import PaymentPayload
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.common.encrypted import encrypt_event_body
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
    payload = PaymentPayload(
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
    made = []
    async with ports.storage.unit() as unit:
        found = await unit[Account].get(account_id)
        account = found if found is None or found.receives is receives else _receiving(found, receives)
        for _ in range(count):
            event_id = f"evt_{ports.ids.uuid()}"
            event = Event(
                id=event_id,
                account_id=account_id,
                mode=mode,
                type=EventType.PAYMENT_STATUS_CHANGED,
                object_id=object_id,
                sequence=1,
                body=encrypt_event_body(ports.vault, event_id, payload),
                created_at=now,
            )
            announce(ports, unit, event, account)
            made.append(event.id)
        await unit.commit()
    return made


def _receiving(account: Account, receives: bool) -> Account:
    """The account as if it had an address and a secret, or none."""
    settings = msgspec.structs.replace(account.settings, webhook_url="https://m.example" if receives else None)
    return msgspec.structs.replace(account, settings=settings, webhook_secret=b"sealed" if receives else None)
