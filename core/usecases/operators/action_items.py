"""Action items: everything that waits for an operator now, over all accounts and both modes, oldest first.

Every search uses an index that matches little else, and has a limit. So a console may refresh every few seconds beside
a busy service.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, AtMost, Between, Unit
from ...domain.accounts.accounts import Mode
from ...domain.cells import AccountMove, Stage
from ...domain.days import LONG_AGO, iso
from ...domain.gateways.gateways import GatewayStatus
from ...domain.kyc.clients import Client, KycStatus
from ...domain.payments.proofs import STUCK, DeliveryProof, ProofStatus
from ...domain.receipts.receipts import FiscalReceipt, ReceiptStatus
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.endpoints import EndpointKey
from ...domain.webhooks.events import DeliveryStatus
from ..common.encrypted import action_fits
from ..common.quarantine import read_hold
from ..gateways.gateways import list_gateways
from ..kyc.results import FOLLOWED
from ..ledger.watch import ledger_faults
from .action_item import MOST, ActionItem, Finder, first, item
from .money_items import (
    exchange_suspense,
    exchanges,
    losses,
    mismatches,
    payouts,
    refunds,
    suspense,
    unanswered,
    unknown,
)
from .pending_actions import list_actions
from .reconciliation_items import differences, not_compared
from .settlement_items import unsettled
from .unreadable import list_unreadable

ALTERED = "not what the vault tagged: reject it"
LETTERS_FAILED_FOR = timedelta(days=30)
CHECK_LATE = timedelta(hours=1)
"""Time that a verifier has to begin a check before an item reports it."""
RECEIPT_LATE = timedelta(hours=1)
MOVE_LATE = timedelta(minutes=1)
"""Time for which a move holds its account, at most a tenth of it if all is well."""
REVOKED_FOR = timedelta(days=30)
"""How long to list a client whose verification the verifier revoked."""


class ActionItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items found. `complete`: no kind reached its limit."""

    found: list[ActionItem]
    complete: bool


async def read_action_items(ports: Ports) -> ActionItems:
    """Return all items that wait now. Raises: Unavailable."""
    found: list[ActionItem] = []
    complete = True
    for finder in FINDERS:
        some = await found_by(finder, ports)
        complete = complete and len(some) < MOST
        found += some
    return ActionItems(found=sorted(found, key=lambda item: item.since or LONG_AGO), complete=complete)


async def found_by(finder: Finder, ports: Ports) -> list[ActionItem]:
    """Return the items of one finder, at most MOST of each kind. Raises: Unavailable; Unreadable."""
    async with ports.storage.unit() as unit:
        return await finder(ports, unit)


async def _revoked(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return verified clients that the verifier refused later. They are blocked; an operator may unblock them."""
    since = AtLeast(ports.clock.now() - REVOKED_FOR)
    found = await first(unit, Client, "created_at", blocked=True, kyc=KycStatus.VERIFIED, level=0, updated_at=since)
    text = "verified, and refused by the verifier since: blocked"
    return [item("client", "client", row, text, row.updated_at, brief=text) for row in found]


async def _checks(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return verifiers that do not begin a requested check: one item for all waiting clients of a verifier, while the
    service still repeats the request."""
    now = ports.clock.now()
    late = Between(now - FOLLOWED, now - CHECK_LATE)
    waiting: dict[str, list[Client]] = {}
    for row in await first(unit, Client, "created_at", kyc=KycStatus.REGISTERING, updated_at=late):
        waiting.setdefault(row.verifier or ports.kyc.name, []).append(row)
    return [_of_verifier(name, rows) for name, rows in waiting.items()]


def _of_verifier(name: str, rows: list[Client]) -> ActionItem:
    many = "1 client waits" if len(rows) == 1 else f"{len(rows)}{'+' if len(rows) == MOST else ''} clients wait"
    text = f"{many} for {name} to begin their checks; see the log and `cambist doctor`"
    since = min(row.updated_at for row in rows)
    return ActionItem(kind="check", of="verifier", object_id=name, text=text, since=since, mode=Mode.LIVE)


async def _proofs(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return delivery proofs that have been in review longer than an automatic check needs."""
    found = await first(
        unit, DeliveryProof, "status_at", status=ProofStatus.IN_REVIEW, status_at=AtMost(ports.clock.now() - STUCK)
    )
    text = "delivery proof in review"
    return [ActionItem(kind="proof", of="payment", object_id=row.id, text=text, since=row.status_at) for row in found]


async def _receipts(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return for each mode one item for all failed receipts, and one for all receipts that are not written for an
    hour."""
    found = []
    late_from = AtMost(ports.clock.now() - RECEIPT_LATE)
    for mode in Mode:
        failed = await first(unit, FiscalReceipt, "failed_at", failed_at=AtLeast(LONG_AGO), mode=mode)
        late = await first(
            unit,
            FiscalReceipt,
            "created_at",
            status=ReceiptStatus.PENDING,
            created_at=late_from,
            due_at=AtLeast(LONG_AGO),
            mode=mode,
        )
        if failed:
            found.append(_of_receipts(failed, "failed", failed[0].failed_at))
        if late:
            found.append(_of_receipts(late, "not written", late[0].created_at))
    return found


def _of_receipts(rows: list[FiscalReceipt], what: str, since: datetime | None) -> ActionItem:
    many = f"{len(rows)}{'+' if len(rows) == MOST else ''} receipts " if len(rows) > 1 else ""
    due = min(row.due_at or row.created_at for row in rows)
    text = f"{many}{what}; the shift ends at {iso(due)}: `cambist receipt list`"
    return item("receipt", "receipt", rows[0], text, since)


async def _receivers(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return open breakers, and receivers with failed webhooks."""
    opened = await first(unit, Breaker, "next_probe_at", next_probe_at=AtLeast(LONG_AGO))
    found = [
        _of_receiver("breaker", row, f"does not answer: {row.last_answer or 'no answer'}", row.opened_at)
        for row in opened
    ]
    since = AtLeast(ports.clock.now() - LETTERS_FAILED_FOR)
    for row in await first(unit, Breaker, "-last_failure_at", last_failure_at=since):
        endpoint = EndpointKey.of(row.id)
        failed = await first(unit, endpoint.deliveries, "id", **endpoint.of_status(DeliveryStatus.FAILED, due=None))
        if failed:
            count = "1 webhook" if len(failed) == 1 else f"{len(failed)}{'+' if len(failed) == MOST else ''} webhooks"
            found.append(_of_receiver("delivery", row, f"{count} given up", failed[0].created_at))
    return found


def _of_receiver(kind: str, row: Breaker, text: str, since: datetime | None) -> ActionItem:
    return item(kind, "receiver", row, text, since)


async def _gateways(ports: Ports, _unit: Unit) -> list[ActionItem]:
    return [
        ActionItem(
            kind="gateway",
            of="gateway",
            object_id=shown.gateway_id,
            text=f"{shown.status}{'' if shown.reason is None else f': {shown.reason}'}",
            since=shown.since,
            mode=mode,
            urgent=shown.status is GatewayStatus.DOWN,
        )
        for mode in Mode
        for shown in await list_gateways(ports, mode)
        if shown.status is not GatewayStatus.OPERATIONAL
    ]


async def _ledger(ports: Ports, _unit: Unit) -> list[ActionItem]:
    faults = await ledger_faults(ports)
    return [ActionItem(kind="ledger", of="ledger", object_id="", text=fault, urgent=True) for fault in faults]


async def _unreadable(ports: Ports, _unit: Unit) -> list[ActionItem]:
    return [
        ActionItem(kind="unreadable", of="row", object_id=row.id, text=f"cannot be read: {row.why}", since=row.found_at)
        for row in await list_unreadable(ports, MOST)
    ]


async def _moves(ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return accounts that are held by a move which should have ended."""
    late = AtMost(ports.clock.now() - MOVE_LATE)
    return [
        ActionItem(
            kind="move",
            of="account",
            object_id=row.id,
            text=f"takes no changes: its move to {row.cell} is not finished; repeat `cambist account move`",
            since=row.held_at,
            account_id=row.id,
            urgent=True,
        )
        for row in await first(unit, AccountMove, "id", stage=Stage.LEAVING, held_at=late)
    ]


async def _actions(ports: Ports, _unit: Unit) -> list[ActionItem]:
    """Return actions that another operator requested and this one may confirm."""
    found = [(action, action_fits(ports.vault, action)) for action in await list_actions(ports, limit=MOST)]
    return [
        ActionItem(
            kind="confirm",
            of="action",
            object_id=action.id,
            text=f"{action.operator} asks for {action.action}" if fits else ALTERED,
            since=action.created_at,
            account_id=action.account_id,
            mode=action.mode,
            urgent=not fits,
            brief=f"{action.action} waits for a second operator" if fits else ALTERED,
        )
        for action, fits in found
    ]


async def _hold(ports: Ports, _unit: Unit) -> list[ActionItem]:
    installation = await read_hold(ports)
    if installation is None:
        return []
    text = f"no live money is sent or settled: {installation.told}; cambist resume"
    return [ActionItem(kind="hold", of="installation", object_id="", text=text, mode=Mode.LIVE, urgent=True)]


FINDERS: tuple[Finder, ...] = (
    _hold,
    _actions,
    _ledger,
    _moves,
    _unreadable,
    mismatches,
    unsettled,
    suspense,
    exchange_suspense,
    losses,
    unknown,
    refunds,
    unanswered,
    payouts,
    exchanges,
    differences,
    not_compared,
    _revoked,
    _checks,
    _proofs,
    _receipts,
    _receivers,
    _gateways,
)
