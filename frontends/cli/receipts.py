"""`cambist receipt …`: operators' work on receipts."""

from typing import Any

import click

from ...core.domain.days import iso, iso_or_none
from ...core.domain.receipts.receipts import CORRECTIONS, FiscalReceipt, ReceiptStatus
from ...core.usecases.receipts import receipts as usecases
from ...core.usecases.receipts.second import correct_receipt
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def receipt() -> None:
    """Look at receipts by 54-FZ, and write them again."""


@receipt.command("list")
@click.option("--payment", "payment_id", metavar="PAYMENT_ID", help="Only of this payment and its refunds.")
@click.option("--status", type=click.Choice([status.value for status in ReceiptStatus], case_sensitive=False))
@answering
def list_(payment_id: str | None, status: str | None) -> Answer:
    """List receipts of all accounts and both modes, newest first; at most 1000."""
    wanted = None if status is None else ReceiptStatus(status)
    found = run_in_app(lambda ports: usecases.list_receipts_for(ports, payment_id=payment_id, status=wanted))
    rows = [_document(each) for each in found]
    titles = (
        "created_at",
        "kind",
        "status",
        "amount_rub",
        "due_at",
        "failure_reason",
        "payment_id",
        "mode",
        "receipt_id",
    )
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@receipt.command("show")
@click.argument("receipt_id", metavar="ID")
@answering
def show(receipt_id: str) -> Answer:
    """Show a receipt with its fiscal numbers."""
    return _answer(run_in_app(lambda ports: usecases.read_receipt(ports, receipt_id)))


@receipt.command("retry")
@click.argument("receipt_id", metavar="ID")
@answering
@reasoned
def retry(receipt_id: str) -> Answer:
    """Try a failed receipt again; ask for a pending one now."""
    return _answer(run_in_app(lambda ports: usecases.retry_receipt_for(ports, receipt_id)))


@receipt.command("close")
@click.argument("receipt_id", metavar="ID")
@click.option("--reason", required=True, help="How it was written; stored in the audit log.")
@answering
def close(receipt_id: str, reason: str) -> Answer:  # noqa: ARG001 - the audit log reads the reason
    """Note that a failed receipt was written by hand. It needs nobody any more."""
    return _answer(run_in_app(lambda ports: usecases.close_receipt(ports, receipt_id)))


@receipt.command("correct")
@click.argument("payment_id", metavar="PAYMENT_ID")
@click.option("--kind", type=click.Choice([kind.value for kind in CORRECTIONS]), required=True)
@click.option("--order", help="Number of the tax authority's order. Default: on your own.")
@answering
@reasoned
def correct(payment_id: str, kind: str, order: str | None) -> Answer:
    """Write a correction with the items of a payment at the connected cash register."""
    return _answer(run_in_app(lambda ports: correct_receipt(ports, payment_id, kind, order=order)))


def _answer(done: FiscalReceipt) -> Answer:
    document = _document(done)
    return Answer(document=document, text=fields(document))


def _document(done: FiscalReceipt) -> dict[str, Any]:
    return {
        "receipt_id": done.id,
        "payment_id": done.payment_id,
        "refund_id": done.refund_id,
        "account_id": done.account_id,
        "mode": done.mode.value,
        "kind": done.kind.value,
        "status": done.status.value,
        "failure_reason": done.failure_reason,
        "amount_rub": str(done.amount),
        "provider": done.provider,
        "attempt": done.attempt,
        "due_at": iso_or_none(done.due_at),
        "storage_number": done.storage_number,
        "document_number": done.document_number,
        "fiscal_sign": done.fiscal_sign,
        "register_number": done.register_number,
        "url": done.url,
        "created_at": iso(done.created_at),
    }
