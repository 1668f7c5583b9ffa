"""One box that finds anything: any id, an external id, a phone or its last digits, a transaction hash.

Ids and hashes are found by indexes. Phones are sealed: a whole one is found by its digest, in each account; of the last
digits the newest clients and payments are looked through, no more of them than one look may cost.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import Unit
from ...ports.vault import VaultError
from ..domain import ids
from ..domain.accounts import Account, ApiKey, Mode, Shop
from ..domain.clients import Client
from ..domain.events import Event
from ..domain.exchange_funds import ExchangeTransfer
from ..domain.exchanges import Exchange
from ..domain.gateways import Gateway
from ..domain.payments import Payment, Suspense
from ..domain.proofs import DeliveryProof
from ..domain.refunds import Refund
from ..domain.settlement import Settlement, SettlementBatch
from ..domain.subscriptions import Subscription
from ..domain.terminals import Terminal
from ..domain.withdrawals import Withdrawal
from .accounts import storable
from .kyc import find_client
from .seals import open_client_phone

MOST = 50
_ACCOUNTS = 1000
_NEWEST = 2000
"""Clients, and payments, that are looked through for the last digits of a phone."""
_TAIL = re.compile(r"\*{0,3}([0-9]{4})\Z")
_HASH = re.compile(r"(?:0x)?[0-9a-f]{64}\Z")

BY_PREFIX: dict[str, tuple[str, type[Any]]] = {
    ids.PAYMENT: ("payment", Payment),
    ids.REFUND: ("refund", Refund),
    ids.SUBSCRIPTION: ("subscription", Subscription),
    ids.SETTLEMENT: ("settlement", Settlement),
    ids.WITHDRAWAL: ("withdrawal", Withdrawal),
    ids.EXCHANGE: ("exchange", Exchange),
    ids.EVENT: ("event", Event),
    ids.ACCOUNT: ("account", Account),
    "sus_": ("suspense", Suspense),
    "svc_": ("key", ApiKey),
}
BARE: tuple[tuple[str, type[Any]], ...] = (
    ("client", Client),
    ("shop", Shop),
    ("terminal", Terminal),
    ("batch", SettlementBatch),
    ("gateway", Gateway),
)
"""Whose ids have no prefix."""


def kind_of_id(object_id: str) -> str:
    """The kind of object that an id names by its prefix; empty where it has none."""
    kind = next((kind for prefix, (kind, _) in BY_PREFIX.items() if object_id.startswith(prefix)), "")
    # A transfer that came for an exchange is named after it.
    return "suspense" if kind == "exchange" and ":" in object_id else kind


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Something found."""

    kind: str
    object_id: str
    text: str
    account_id: str | None = None
    mode: Mode | None = None


async def search(ports: Ports, text: str) -> list[Hit]:
    """What `text` may mean, at most MOST of it. Raises: Unavailable."""
    wanted = text.strip()
    if not wanted or not storable(wanted):
        return []
    hits: list[Hit] = []
    for look in (_by_id, _by_hash, _by_phone, _by_tail, _by_external_id):
        async with ports.storage.unit() as unit:
            hits += await look(ports, unit, wanted)
        if hits:
            break
    return hits[:MOST]


Look = Callable[[Ports, Unit, str], Awaitable[list[Hit]]]


def hit(kind: str, record: Any, why: str = "") -> Hit:
    """A record as it is shown among what was found."""
    told = [
        str(getattr(record, name)) for name in ("status", "amount", "name", "label", "type") if hasattr(record, name)
    ]
    return Hit(
        kind=kind,
        object_id=record.id,
        text=" · ".join([*told, *([why] if why else [])]),
        account_id=getattr(record, "account_id", None),
        mode=getattr(record, "mode", None),
    )


async def _by_id(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    for prefix, (kind, record_type) in BY_PREFIX.items():
        if wanted.startswith(prefix):
            if record_type is Exchange and ":" in wanted:
                # A transfer that came for an exchange is named after it.
                kind, record_type = "suspense", ExchangeTransfer
            found = await unit[record_type].get(wanted)
            return [] if found is None else [hit(kind, found)]
    hits = []
    for kind, record_type in BARE:
        found = await unit[record_type].get(wanted)
        if found is not None:
            hits.append(hit(kind, found))
    return hits


async def _by_hash(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    tx_hash = wanted.lower()
    if not _HASH.match(tx_hash):
        return []
    payouts = await unit[Withdrawal].find(tx_hash=tx_hash, limit=MOST)
    proofs = await unit[DeliveryProof].find(tx_hash=tx_hash, limit=MOST)
    return [
        *(hit("withdrawal", found, "sent by") for found in payouts),
        *(Hit(kind="payment", object_id=found.id, text=f"delivery proof {found.status}") for found in proofs),
    ]


async def _by_phone(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    phone = "+" + re.sub(r"[^0-9]", "", wanted)
    if not (wanted.startswith("+") and 11 <= len(phone) <= 16):
        return []
    found = []
    for account in await unit[Account].find(limit=_ACCOUNTS):
        for mode in Mode:
            client = await find_client(ports, unit, account.id, mode, phone)
            if client is not None:
                found.append(hit("client", client))
    return found


async def _by_tail(ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    match = _TAIL.match(wanted)
    if match is None:
        return []
    tail = match[1]
    clients = [
        hit("client", client, f"phone ***{tail}")
        for client in await unit[Client].find(order="-id", limit=_NEWEST)
        if _ends(ports, client, tail)
    ]
    payments = await unit[Payment].find(order="-id", limit=_NEWEST)
    return [
        *clients,
        *(hit("payment", each, f"phone ***{tail}") for each in payments if each.payer_contact == f"***{tail}"),
    ]


def _ends(ports: Ports, client: Client, tail: str) -> bool:
    try:
        return open_client_phone(ports.vault, client).endswith(tail)
    except VaultError:
        return False


async def _by_external_id(_ports: Ports, unit: Unit, wanted: str) -> list[Hit]:
    hits = [
        *(hit("subscription", each) for each in await unit[Subscription].find(external_id=wanted, limit=MOST)),
        *(hit("exchange", each) for each in await unit[Exchange].find(external_id=wanted, limit=MOST)),
    ]
    for account in await unit[Account].find(limit=_ACCOUNTS):
        for mode in Mode:
            found = await unit[Payment].find(
                account_id=account.id, mode=mode, external_id=wanted, order="-created_at", limit=MOST
            )
            hits += [hit("payment", each) for each in found]
            refunds = await unit[Refund].find(
                account_id=account.id, mode=mode, external_id=wanted, order="-created_at", limit=MOST
            )
            hits += [hit("refund", each) for each in refunds]
        if len(hits) >= MOST:
            break
    return hits
