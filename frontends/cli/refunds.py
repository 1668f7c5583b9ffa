"""`cambist refund …`: operator actions on refunds."""

from typing import Any

import click

from ...core.domain.days import iso, iso_or_none
from ...core.domain.refunds.refunds import Refund, RefundStatus
from ...core.usecases.refunds import refunds as usecases
from ...core.usecases.refunds.contradictions import contradicted_refunds, settle_contradiction
from ...core.usecases.refunds.list import list_all_refunds
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def refund() -> None:
    """Decide on refunds."""


@refund.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@click.option("--status", type=click.Choice([status.value for status in RefundStatus], case_sensitive=False))
@click.option(
    "--contradicted", "is_contradicted", is_flag=True, help="Only refunds whose outcome at the bank differs from ours."
)
@answering
def list_(account_id: str | None, status: str | None, *, is_contradicted: bool) -> Answer:
    """List refunds of both modes, newest first; at most 1000.

    With --contradicted, list only refunds that wait for an operator because the bank now reports another outcome. If a
    failed refund was sent after all, both merchant and payer have the money. If a completed refund failed after all,
    neither has it. Ask the bank to correct it, or agree with the merchant; then run `cambist refund settled`.
    """
    wanted = None if status is None else RefundStatus(status)
    if is_contradicted:
        found = [
            each
            for each in reversed(run_in_app(contradicted_refunds))
            if account_id in (None, each.account_id) and wanted in (None, each.status)
        ]
    else:
        found = run_in_app(lambda ports: list_all_refunds(ports, account_id=account_id, status=wanted))
    rows = [_document(each) for each in found]
    titles = ("created_at", "amount_rub", "status", "pending_reason", "payment_id", "account_id", "mode", "refund_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@refund.command("approve")
@click.argument("refund_id", metavar="ID")
@answering
@reasoned
def approve(refund_id: str) -> Answer:
    """Send a pending refund to the bank; retry a refund that waits for money."""
    return _answer(run_in_app(lambda ports: usecases.approve_refund(ports, refund_id)))


@refund.command("reject")
@click.argument("refund_id", metavar="ID")
@click.option("--reason", required=True, help="Reason; the merchant sees it.")
@answering
def reject(refund_id: str, reason: str) -> Answer:
    """Reject a pending refund. No money moves."""
    return _answer(run_in_app(lambda ports: usecases.reject_refund(ports, refund_id, reason)))


@refund.command("settled")
@click.argument("refund_id", metavar="ID")
@click.option("--reason", required=True, help="How it was settled; stored in the audit log.")
@answering
def settled(refund_id: str, reason: str) -> Answer:  # noqa: ARG001 - the audit log reads the reason
    """Mark a contradicted refund as settled with bank and merchant. It moves no money."""
    return _answer(run_in_app(lambda ports: settle_contradiction(ports, refund_id)))


@refund.command("create")
@click.argument("payment_id", metavar="PAYMENT_ID")
@click.option("--amount", help="Amount in RUB. Default: the whole remainder.")
@click.option("--reason", help="Reason; stored with the refund.")
@answering
def create(payment_id: str, amount: str | None, reason: str | None) -> Answer:
    """Create a refund on behalf of the merchant."""
    return _answer(
        run_in_app(lambda ports: usecases.create_refund_for(ports, payment_id, amount_rub=amount, reason=reason))
    )


def _answer(done: Refund) -> Answer:
    document = _document(done)
    return Answer(document=document, text=fields(document))


def _document(done: Refund) -> dict[str, Any]:
    return {
        "refund_id": done.id,
        "payment_id": done.payment_id,
        "account_id": done.account_id,
        "mode": done.mode.value,
        "amount_rub": str(done.amount),
        "status": done.status.value,
        "pending_reason": None if done.pending_reason is None else done.pending_reason.value,
        "external_id": done.external_id,
        "reason": done.reason,
        "failure_reason": done.failure_reason,
        "created_at": iso(done.created_at),
        "completed_at": iso_or_none(done.completed_at),
        "contradicted_at": iso_or_none(done.contradicted_at),
    }
