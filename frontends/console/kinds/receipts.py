"""Receipts: list, detail and actions."""

from typing import Any

from ....core.domain.receipts.receipts import FiscalReceipt, ReceiptStatus
from ....core.usecases.browse.browse import browse
from ....core.usecases.receipts.receipts import close_receipt, retry_receipt_for
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Filter, Kind, Wish, by_id, story
from .stakes import of_record
from .wishes import DATES, by_status, wanted


async def _read(ports: Ports, wish: Wish, after: FiscalReceipt | None, limit: int) -> list[FiscalReceipt]:
    asked = wanted(wish)
    named = by_status(asked, ReceiptStatus)
    return await browse(ports, FiscalReceipt, asked, after, limit, statuses=ReceiptStatus, **named)


def _facts(each: FiscalReceipt) -> list[tuple[str, Any]]:
    return [
        ("status", each.status),
        ("failure", each.failure_reason),
        ("of", each.kind),
        ("amount", f"{each.amount} RUB"),
        ("payment", each.payment_id),
        ("refund", each.refund_id),
        ("written by", f"{each.provider} ({each.writer})"),
        ("attempt", each.attempt),
        ("shift ends", each.due_at),
        ("FN", each.storage_number),
        ("FD", each.document_number),
        ("FP", each.fiscal_sign),
        ("register", each.register_number),
        ("page", each.url),
        ("on the receipt", each.registered_at),
        ("mode", each.mode),
        ("account", each.account_id),
        ("shop", each.shop_id),
        ("created", each.created_at),
        ("changed", each.changed_at),
    ]


def _failed(each: FiscalReceipt) -> bool:
    return each.status is ReceiptStatus.FAILED


async def _retry(doing: Doing) -> str:
    await retry_receipt_for(doing.ports, doing.record.id)
    return "The bank or the register gets it again."


async def _close(doing: Doing) -> str:
    await close_receipt(doing.ports, doing.record.id)
    return "Noted: it needs nobody any more."


RECEIPTS = Kind(
    name="receipt",
    title="Receipts",
    key="K",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=10),
        Column(title="of", cell=lambda each: each.kind, width=17, wide=True),
        Column(title="amount RUB", cell=lambda each: each.amount, width=12, right=True),
        Column(title="attempt", cell=lambda each: each.attempt, width=7, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        merchant(14, 16),
        Column(title="receipt", cell=lambda each: each.id, width=41, wide=True),
    ),
    read=_read,
    get=by_id(FiscalReceipt),
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(ReceiptStatus)), ACCOUNT, *DATES),
    timeline=story(lambda each: (each.created_at, "its payment", "payment", each.payment_id)),
    actions=(
        ConsoleAction(
            name="receipt.retry",
            title="Try again",
            key="t",
            allowed=lambda each: each.status is not ReceiptStatus.SUCCEEDED,
            changes=lambda each: [Change("attempt", str(each.attempt), str(each.attempt + _failed(each)))],
            run=_retry,
            tells=of_record,
            reason_needed=False,
        ),
        ConsoleAction(
            name="receipt.close",
            title="Written by hand",
            key="h",
            allowed=lambda each: each.failed_at is not None,
            changes=lambda _: [Change("needs an operator", "yes", "no")],
            run=_close,
            tells=of_record,
        ),
    ),
)
