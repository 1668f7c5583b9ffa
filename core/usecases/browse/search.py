"""One search over everything: any id, a provider's id of an operation, an external id, a phone or its last digits, a
transaction hash, a merchant's name. When no record has the external id, the search returns records whose external id
begins with it.

Ids and hashes are found by indexes. Phones are encrypted: a whole phone is found by its digest, in each account. For
last digits, the search reads the newest clients and payments, up to a fixed number of them.
"""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between, Unit
from ....ports.vault import VaultError
from ...domain import ids
from ...domain.accounts.accounts import Account, ApiKey, Mode
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import Terminal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.kyc.clients import Client, read_operation
from ...domain.ledger import Currency, JournalEntry
from ...domain.money import Rub, Usdt
from ...domain.movements import Movement
from ...domain.operators.audit import AuditEntry
from ...domain.operators.pending_actions import ACTION, PendingAction
from ...domain.payments.payments import Payment
from ...domain.payments.proofs import DeliveryProof
from ...domain.payments.suspense import Suspense
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.reconciliation.reconciliation import DIFFERENCE, Discrepancy
from ...domain.refunds.refunds import Refund
from ...domain.settlement.settlement import Settlement, SettlementBatch, SettlementItem
from ...domain.settlement.withdrawals import Withdrawal
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.endpoints import WebhookEndpoint
from ...domain.webhooks.events import Event
from ..accounts.accounts import storable
from ..common.encrypted import open_client_phone
from ..kyc.gate import find_client
from ..notifications import owner_of
from .browse import LOOKED_AT, browse_accounts
from .gateways import known_gateways
from .ledger import get_balance_type
from .payout_lines import get_payout_line

MOST = 50
_ACCOUNTS = 1000
_CLIENTS = 2000
"""Number of newest clients whose phones are decrypted to compare the last digits. Payments show these digits, so
LOOKED_AT payments are compared."""
_TAIL = re.compile(r"\*{0,3}([0-9]{4})\Z")
_NUMBER = re.compile(r"[0-9a-f]{8}\Z", re.IGNORECASE)
_WHOLE = re.compile(r"\+[0-9]{7,11}([0-9]{4})\Z")
_HASH = re.compile(r"(?:0x)?[0-9a-f]{64}\Z")

BY_PREFIX: dict[str, tuple[str, type[Any]]] = {
    ids.PAYMENT: ("payment", Payment),
    ids.REFUND: ("refund", Refund),
    ids.RECEIPT: ("receipt", FiscalReceipt),
    ids.SUBSCRIPTION: ("subscription", Subscription),
    ids.SETTLEMENT: ("settlement", Settlement),
    ids.WITHDRAWAL: ("withdrawal", Withdrawal),
    ids.EXCHANGE: ("exchange", Exchange),
    ids.EVENT: ("event", Event),
    ids.ACCOUNT: ("account", Account),
    ids.ENDPOINT: ("receiver", WebhookEndpoint),
    "sus_": ("suspense", Suspense),
    "svc_": ("key", ApiKey),
    "aud_": ("audit", AuditEntry),
    ACTION: ("action", PendingAction),
    DIFFERENCE: ("difference", Discrepancy),
}
NAMED_AFTER: dict[str, tuple[str, type[Any]]] = {
    "account": ("receiver", Breaker),
    "settlement": ("line", SettlementItem),
    "exchange": ("suspense", ExchangeTransfer),
}
"""Records whose id is the id of an object of this kind, followed by a colon and more."""
BARE: tuple[tuple[str, type[Any]], ...] = (
    ("client", Client),
    ("shop", Shop),
    ("terminal", Terminal),
    ("batch", SettlementBatch),
    ("entry", JournalEntry),
)
"""Kinds of records whose ids have no prefix."""
_NAMED_BY_MERCHANTS: tuple[tuple[str, type[Any]], ...] = (
    ("payment", Payment),
    ("refund", Refund),
    ("subscription", Subscription),
    ("exchange", Exchange),
)
"""Kinds of records that merchants give ids of their own."""
_LAST = "\U0010ffff"
"""Sorts after every other character."""
_WITH_OPERATIONS: dict[type[Any], str] = {
    Payment: "payment",
    Refund: "refund",
    Suspense: "suspense",
    Exchange: "exchange",
    ExchangeTransfer: "suspense",
}


def kind_of_id(object_id: str) -> str:
    """Return the kind of object that an id names by its prefix. Empty for an id without a prefix."""
    found = _prefixed(object_id)
    return "" if found is None else found[0]


def _prefixed(object_id: str) -> tuple[str, type[Any]] | None:
    found = next((each for prefix, each in BY_PREFIX.items() if object_id.startswith(prefix)), None)
    if found is not None and found[0] == "account" and object_id.count(":") > 1:
        return "movement", Movement
    return NAMED_AFTER.get(found[0], found) if found is not None and ":" in object_id else found


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a search found."""

    kind: str
    object_id: str
    text: str
    account_id: str | None = None
    mode: Mode | None = None
    external_id: str | None = None
    at: datetime | None = None
    """Moment when the record was created or the money arrived."""
    begins: bool = False
    """The search text is only the beginning of the record's external id."""


async def search(ports: Ports, text: str) -> list[Hit]:
    """Return the records that `text` may mean, at most MOST of them. Raises: Unavailable."""
    wanted = text.strip()
    if not wanted or not wanted.isprintable():
        return []
    hits: list[Hit] = []
    # An external id may hold characters that no id of ours contains.
    ours: tuple[Look, ...] = (
        (_by_id, _by_operation, _by_hash, _by_phone, _by_tail, _by_number) if storable(wanted) else ()
    )
    for look in (*ours, _by_external_id, _by_part):
        async with ports.storage.unit() as unit:
            hits += await look(ports, unit, wanted)
        if hits:
            break
    return hits[:MOST]


Look = Callable[[Ports, Unit, str], Awaitable[list[Hit]]]


def hit(kind: str, record: Any, why: str = "") -> Hit:
    """Return a record as a search result."""
    told = [
        _told(getattr(record, name)) for name in ("status", "amount", "name", "label", "type") if hasattr(record, name)
    ]
    made = (getattr(record, name, None) for name in ("created_at", "received_at", "at"))
    return Hit(
        kind=kind,
        object_id=record.id,
        text=" · ".join([*told, *([why] if why else [])]),
        account_id=getattr(record, "account_id", None),
        mode=getattr(record, "mode", None),
        external_id=getattr(record, "external_id", None),
        at=next((each for each in made if each is not None), None),
    )


def _told(value: object) -> str:
    return (
        f"{value} {Currency.RUB if isinstance(value, Rub) else Currency.USDT}"
        if isinstance(value, Rub | Usdt)
        else str(value)
    )


async def _by_id(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    named = _prefixed(wanted)
    hits = []
    for kind, record_type in BARE if named is None else (named,):
        found = await unit[record_type].get(wanted)
        if found is not None:
            hits.append(hit(kind, found))
    if named is None:
        # Include gateways without a record, which are not configured yet.
        hits += [hit("gateway", each) for each in await known_gateways(ports) if each.id == wanted]
    if not hits and ":" in wanted:
        balance_type, line = await get_balance_type(ports, wanted), await get_payout_line(ports, wanted)
        hits += [] if balance_type is None else [hit("ledger", balance_type)]
        hits += [] if line is None else [hit("payout line", line)]
    return hits


async def _by_operation(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    """Find the object of an operation id that a bank or verifier shows (docs/adapters.md "Operation ids")."""
    check = read_operation(wanted)
    if check is not None:
        client = await unit[Client].get(check[0])
        return [] if client is None else [hit("client", client, f"check {check[1]}")]
    found = await owner_of(unit, wanted)
    return [] if found is None else [hit(_WITH_OPERATIONS[type(found)], found, "its operation")]


async def _by_hash(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    tx_hash = wanted.lower()
    if not _HASH.match(tx_hash):
        return []
    payouts = await unit[Withdrawal].find(tx_hash=tx_hash, limit=MOST, readable=True)
    proofs = await unit[DeliveryProof].find(tx_hash=tx_hash, limit=MOST, readable=True)
    exchanges = await unit[Exchange].find(tx_hash=tx_hash, limit=MOST, readable=True)
    came = await unit[ExchangeTransfer].find(came_by=tx_hash, limit=MOST, readable=True)
    went = await unit[ExchangeTransfer].find(went_by=tx_hash, limit=MOST, readable=True)
    return [
        *(hit("withdrawal", found, "sent by") for found in payouts),
        *[await _proven(unit, proof) for proof in proofs],
        *(hit("exchange", found, "sent by") for found in exchanges),
        *(hit("suspense", found, "came by") for found in came),
        *(hit("suspense", found, "went back by") for found in went),
    ]


async def _proven(unit: Unit, proof: DeliveryProof) -> Hit:
    """Return the payment of a delivery proof. Both have the same id."""
    payment, told = await unit[Payment].get(proof.id), f"delivery proof {proof.status}"
    return Hit(kind="payment", object_id=proof.id, text=told) if payment is None else hit("payment", payment, told)


async def _by_phone(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    phone = "+" + re.sub(r"[^0-9]", "", wanted)
    if not (wanted.startswith("+") and 11 <= len(phone) <= 16):
        return []
    found = []
    for account in await unit[Account].find(limit=_ACCOUNTS, readable=True):
        for mode in Mode:
            client = await find_client(ports, unit, account.id, mode, phone)
            if client is not None:
                found.append(hit("client", client))
    return found


async def _by_tail(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    """Find clients and payments by the last four digits of a phone. A whole phone is cut to its last digits, because
    payments store only those unencrypted."""
    match = _TAIL.match(wanted) or _WHOLE.match(wanted)
    if match is None:
        return []
    tail = match[1]
    limit = 0 if wanted.startswith("+") else _CLIENTS
    clients = await unit[Client].find(order="-id", limit=limit, readable=True)
    payments = await _newest_payments(unit, payer_contact=f"***{tail}")
    return [
        *(hit("client", each, f"phone ***{tail}") for each in clients if _ends(ports, each, tail)),
        *(hit("payment", each, f"phone ***{tail}") for each in payments),
    ]


async def _newest_payments(unit: Unit, **criteria: Any) -> list[Payment]:
    oldest = await unit[Payment].find(order="-id", offset=LOOKED_AT - 1, limit=1, readable=True)
    newest = Between(oldest[0].id if oldest else None)
    return await unit[Payment].find(**criteria, id=newest, order="-id", limit=MOST, readable=True)


async def _by_number(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    """Find payments by the number that payers read out: the last eight characters of the id."""
    if not _NUMBER.match(wanted):
        return []
    return [hit("payment", each, "short number") for each in await _newest_payments(unit, number=wanted.lower())]


def _ends(ports: Ports, client: Client, tail: str) -> bool:
    try:
        return open_client_phone(ports.vault, client).endswith(tail)
    except VaultError:
        return False


async def _by_external_id(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    return [
        hit(kind, each)
        for kind, record_type in _NAMED_BY_MERCHANTS
        for each in await unit[record_type].find(external_id=wanted, order="-created_at", limit=MOST, readable=True)
    ]


async def _by_part(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    """Find merchants by any part of their name, shortest name first, and records by the beginning of their external
    id."""
    named = await browse_accounts(ports, wanted, None, MOST)
    hits = [hit("account", each) for each in sorted(named, key=lambda each: len(each.name))]
    span = Between(wanted, f"{wanted}{_LAST}")
    for kind, record_type in _NAMED_BY_MERCHANTS:
        found = await unit[record_type].find(external_id=span, order="external_id", limit=MOST, readable=True)
        hits += [msgspec.structs.replace(hit(kind, each), begins=True) for each in found]
    return hits
