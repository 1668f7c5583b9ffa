"""Sending events to merchants' receivers (SPEC "Events", 1-3). What comes next is decided in domain/delivery.py."""

import msgspec

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.notifier import Letter, Receipt
from ...ports.storage import Unit
from ..domain.accounts import Account, Mode
from ..domain.delivery import after_attempt
from ..domain.events import Delivery, DeliveryStatus, Event
from ..domain.signing import Signer, headers
from .seals import open_webhook_secret
from .units import retrying


async def deliver(ports: Ports, job: Job) -> None:
    """Make one attempt at the delivery that the job names, and set the next where there is one.

    The receipt is written after the attempt, so a crash in between means one more attempt: at least once.
    """
    async with ports.storage.unit() as unit:
        delivery = await unit[Delivery].get(job.argument)
        event = None if delivery is None else await unit[Event].get(delivery.id)
        account = None if delivery is None else await unit[Account].get(delivery.account_id)
    if delivery is None or event is None or account is None or delivery.status is not DeliveryStatus.PENDING:
        await _drop(ports, job)
        return
    if not account.receives:
        await _hold(ports, job, account.id)
        return
    receipt = await ports.notifier.post(_letter(ports, account, event, attempt=delivery.attempts + 1))
    await _enter(ports, job, receipt)


def _letter(ports: Ports, account: Account, event: Event, *, attempt: int) -> Letter:
    """The signed letter. Raises: VaultError."""
    now = ports.clock.now()
    secret, address = account.webhook_secret, account.settings.webhook_url
    if secret is None or address is None:
        raise ValueError("the account has no receiver")
    old, until = account.previous_secret, account.previous_secret_until
    rotating = old is not None and until is not None and now < until
    return Letter(
        url=address,
        headers=headers(
            Signer(open_webhook_secret(ports.vault, account, secret)),
            previous=Signer(open_webhook_secret(ports.vault, account, old)) if rotating and old else None,
            event_id=event.id,
            event=event.type.value,
            sequence=event.sequence,
            attempt=attempt,
            timestamp=int(now.timestamp()),
            body=event.body,
        ),
        body=event.body,
        open_network=event.mode is Mode.TEST,
    )


async def _enter(ports: Ports, job: Job, receipt: Receipt) -> None:
    async def work(unit: Unit) -> None:
        delivery = await unit[Delivery].get(job.argument)
        present = await unit[Job].get(job.id)
        if delivery is None:
            return
        after = after_attempt(
            delivery,
            answer=receipt.answer.value,
            status=receipt.status,
            note=receipt.note,
            now=ports.clock.now(),
        )
        unit[Delivery].save(after.delivery)
        if present is None:
            return
        if after.again_at is None:
            unit[Job].remove(present)
        else:
            unit[Job].save(msgspec.structs.replace(present, due=after.again_at, leased_until=None))

    await retrying(ports.storage, work)


async def _drop(ports: Ports, job: Job) -> None:
    async with ports.storage.unit() as unit:
        unit[Job].remove(job)
        await unit.commit()


async def _hold(ports: Ports, job: Job, account_id: str) -> None:
    """Address or secret were taken away meanwhile: the event waits until both are set again."""

    async def work(unit: Unit) -> None:
        delivery = await unit[Delivery].get(job.argument)
        account = await unit[Account].get(account_id)
        present = await unit[Job].get(job.id)
        if present is None or (account is not None and account.receives):
            # Set again just now; the job stays and its lease brings it back.
            return
        unit[Job].remove(present)
        if delivery is not None and delivery.status is DeliveryStatus.PENDING:
            unit[Delivery].save(msgspec.structs.replace(delivery, status=DeliveryStatus.HELD))

    await retrying(ports.storage, work)
