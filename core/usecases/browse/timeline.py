"""Timeline of an object, in the order of time: its own moments, the recorded calls to providers, events and webhooks,
ledger entries, and operators' actions. It holds no personal data."""

from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Snapshot
from ....ports.vault import Vault, VaultError
from ...domain.ledger import Currency, EntryKind, JournalEntry, currency_of, entry_id
from ...domain.money import Rub, Usdt
from ...domain.operators.audit import AuditEntry
from ...domain.payments.payments import Payment
from ...domain.webhooks.events import Delivery, Event
from ..common.encrypted import open_event_body
from ..webhooks.receivers import all_attempts, further_deliveries

_MOST = 500
_REVISIONS = 11
"""Maximum number of entries of one kind for one object. Suspended money that is sent back in ten
attempts may come back ten times."""

STAMPS = {
    "created_at": "created",
    "submitted_at": "hash submitted",
    "approved_at": "approved",
    "executing_since": "sent to the bank",
    "paid_at": "paid",
    "settled_at": "settled",
    "sent_at": "sent to the network",
    "verified_at": "verified",
    "received_at": "money came",
    "found_at": "found",
    "resolved_at": "resolved",
    "started_at": "started",
    "completed_at": "completed",
    "contradicted_at": "the bank says otherwise",
    "closed_at": "closed",
    "expires_at": "deadline",
    "ends_at": "ends",
}
"""Fields of records that hold moments, with their descriptions."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a timeline."""

    at: datetime
    source: str
    """`object`, `provider`, `event`, `webhook`, `ledger` or `operator`."""
    text: str
    detail: str = ""
    of: str = ""
    """Kind of another object that the line mentions, as search names kinds. Empty when it mentions none."""
    object_id: str = ""


async def read_timeline(ports: Ports, record: Any) -> list[Moment]:
    """Return all moments of a record that has an id, oldest first. Raises: Unavailable."""
    async with ports.storage.snapshot() as seen:
        found = [
            *_own(record),
            *await _told(seen, ports.vault, record.id),
            *await _booked(seen, record.id),
            *await read_actions(seen, record.id),
        ]
    return sorted(found, key=lambda moment: moment.at)


def _own(record: Any) -> list[Moment]:
    found = [
        Moment(at=at, source="object", text=_ended(record) if name == "completed_at" else words)
        for name, words in STAMPS.items()
        if isinstance(at := getattr(record, name, None), datetime)
    ]
    if isinstance(record, Payment) and record.bank is not None:
        text = f"asked {record.bank}: {record.opening}"
        found.append(Moment(at=record.created_at, source="provider", text=text, detail=record.bank_reference or ""))
        if record.paid_at is not None and record.transfer_id is not None:
            text = f"{record.bank} told of a transfer"
            found.append(Moment(at=record.paid_at, source="provider", text=text, detail=record.transfer_id))
    tx_hash, sent_at = getattr(record, "tx_hash", None), getattr(record, "sent_at", None)
    if tx_hash is not None and sent_at is not None:
        found.append(Moment(at=sent_at, source="provider", text="the network took it", detail=tx_hash))
    return found


def _ended(record: Any) -> str:
    """Return the text for `completed_at`, which some records set for every outcome."""
    status = getattr(record, "status", "completed")
    return "completed" if status == "completed" else f"ended: {status}"


async def _told(seen: Snapshot, vault: Vault, object_id: str) -> list[Moment]:
    events = await seen[Event].find(object_id=object_id, order="id", limit=_MOST, readable=True)
    return [moment for event in events for moment in await event_moments(seen, vault, event)]


async def event_moments(seen: Snapshot, vault: Vault, event: Event) -> list[Moment]:
    """List an event and every webhook that carried it."""
    own = await seen[Delivery].find(id=event.id, limit=1, readable=True)
    webhooks = await all_attempts(seen, event.id, (*own, *await further_deliveries(seen, [event])), _MOST)
    found = [
        Moment(
            at=webhook.sent_at,
            source="webhook",
            text=f"{'probe' if webhook.probe else f'attempt {webhook.number}'}: {webhook.status or webhook.answer}",
            detail=" ".join(filter(None, (f"{webhook.took_ms} ms", webhook.note, webhook.endpoint_id))),
        )
        for webhook in webhooks
    ]
    told = Moment(
        at=event.created_at, source="event", text=_event(vault, event), detail=event.id, of="event", object_id=event.id
    )
    return [told, *found]


async def read_actions(seen: Snapshot, object_id: str) -> list[Moment]:
    """Return the operator actions on an object."""
    entries = await seen[AuditEntry].find(object_id=object_id, order="id", limit=_MOST, readable=True)
    return [
        Moment(at=entry.at, source="operator", text=f"{entry.operator}: {entry.action}", detail=_action(entry))
        for entry in entries
    ]


def _event(vault: Vault, event: Event) -> str:
    """Describe an event by the statuses in its body alone, because the body may name a payer."""
    try:
        body = msgspec.json.decode(open_event_body(vault, event), type=_Moved)
    except VaultError:
        return f"{event.type}: its body does not decrypt"
    if body.status is None:
        return event.type
    what = event.type.removesuffix(".status_changed")
    return f"{what}: {'' if body.previous_status is None else f'{body.previous_status} → '}{body.status}"


class _Moved(msgspec.Struct, frozen=True):
    status: str | None = None
    previous_status: str | None = None


async def _booked(seen: Snapshot, object_id: str) -> list[Moment]:
    """Return the ledger entries of an object, found by their ids, which consist of kind, object and revision."""
    wanted = tuple(entry_id(kind, object_id, number) for kind in EntryKind for number in range(1, _REVISIONS + 1))
    entries = await seen[JournalEntry].find(id=OneOf(wanted), limit=len(wanted), readable=True)
    return [Moment(at=entry.at, source="ledger", text=entry.kind.value, detail=postings(entry)) for entry in entries]


def postings(entry: JournalEntry) -> str:
    """Return the postings of an entry as text: `bank -100.00 RUB, pending 100.00 RUB`."""
    return ", ".join(
        f"{posting.balance_type} {amount(posting.amount, currency_of(posting.balance_type))}"
        for posting in entry.postings
    )


def amount(units: int, currency: Currency) -> str:
    """Return an amount in smallest units as text for people."""
    return f"{Rub(units) if currency is Currency.RUB else Usdt(units)} {currency}"


def _action(entry: AuditEntry) -> str:
    change = f"{entry.before} → {entry.after}" if entry.before else entry.after
    return " · ".join(part for part in (change, entry.reason) if part)
