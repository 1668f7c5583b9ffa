"""`cambist payment …`: payments of merchants, and operator actions on them."""

from typing import Any

import click

from ...core.domain import ids
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import Refusal, shape_error
from ...core.domain.money import Rub
from ...core.domain.payments.payments import Payment, PaymentStatus
from ...core.domain.payments.suspense import Suspense
from ...core.usecases.accounts.accounts import get_account
from ...core.usecases.common.paging import Page
from ...core.usecases.operators import review as usecases
from ...core.usecases.payments.list import PaymentFilter, list_payments
from ...core.usecases.refunds.suspense_return import return_suspense
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def payment() -> None:
    """List payments, and decide on those that need an operator."""


@payment.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([each.value for each in Mode]), default=Mode.LIVE.value, show_default=True)
@click.option("--status", type=click.Choice([each.value for each in PaymentStatus]), help="Only in this status.")
@click.option("--shop", "shop_id", metavar="SHOP", help="Only of this shop.")
@click.option("--order", "external_id", metavar="ORDER", help="Only with this external_id.")
@click.option("--from", "since", metavar="TIME", help="Only created at or after this moment.")
@click.option("--to", "until", metavar="TIME", help="Only created before this moment.")
@click.option("--page", type=click.IntRange(1, 100_000), default=1, show_default=True)
@click.option("--per-page", type=click.IntRange(1, 1000), default=50, show_default=True)
@answering
def list_all(
    account_id: str,
    *,
    mode: str,
    status: str | None,
    shop_id: str | None,
    external_id: str | None,
    since: str | None,
    until: str | None,
    page: int,
    per_page: int,
) -> Answer:
    """List an account's payments, newest first."""
    wanted = PaymentFilter(
        shop_id=shop_id, status=status, external_id=external_id, created_from=since, created_to=until
    )

    async def read(ports: Ports) -> Page[Payment]:
        account = (await get_account(ports, account_id)).account
        caller = Caller(account=account, mode=Mode(mode), key_id="")
        return await list_payments(ports, caller, wanted, page, per_page)

    found = run_in_app(read)
    documents = [_whole(each) for each in found.records]
    titles = ("created_at", "id", "external_id", "status", "amount_rub")
    rows = [[each[title] for title in titles] for each in documents]
    document = {"data": documents, "page": found.number, "per_page": found.size, "total": found.total}
    return Answer(document=document, text=table(titles, rows))


@payment.command("show")
@click.argument("payment_id", metavar="ID")
@answering
def show(payment_id: str) -> Answer:
    """Show a payment, without the payer's data."""

    async def read(ports: Ports) -> Payment:
        found = await ports.storage.get(Payment, payment_id) if ids.is_prefixed(ids.PAYMENT, payment_id) else None
        if found is None:
            raise Refusal("PAYMENT_NOT_FOUND", "There is no payment of this id")
        return found

    document = _whole(run_in_app(read))
    return Answer(document=document, text=fields(document))


@payment.command("resolve")
@click.argument("payment_id", metavar="ID")
@click.argument("outcome", type=click.Choice(usecases.OUTCOMES))
@click.option("--amount", help="Amount received in RUB, if the bank could not report it.")
@answering
@reasoned
def resolve(payment_id: str, outcome: str, amount: str | None) -> Answer:
    """End the review of an amount_mismatch: credit the received amount (paid), or return it (failed)."""
    came = None if amount is None else _rub(amount)
    done = run_in_app(lambda ports: usecases.resolve_mismatch(ports, payment_id, outcome, amount=came))
    document = _document(done)
    return Answer(document=document, text=fields(document))


@payment.command("suspense")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@answering
def suspense(account_id: str | None) -> Answer:
    """List transfers that could not be applied to a payment, oldest first."""
    rows = [_suspense(row) for row in run_in_app(lambda ports: usecases.list_suspense(ports, account_id))]
    titles = ("received_at", "amount_rub", "reason", "payment_id", "account_id", "mode", "id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@payment.command("return")
@click.argument("suspense_id", metavar="SUSPENSE_ID")
@answering
@reasoned
def return_(suspense_id: str) -> Answer:
    """Return an unapplied transfer to its payer; the service sends it."""
    document = _suspense(run_in_app(lambda ports: return_suspense(ports, suspense_id)))
    return Answer(document=document, text=fields(document))


def _rub(text: str) -> Rub:
    try:
        return Rub.parse(text)
    except ValueError as error:
        raise shape_error("--amount", str(error)) from None


def _document(done: Payment) -> dict[str, Any]:
    return {
        "payment_id": done.id,
        "status": done.status.value,
        "amount_rub": str(done.amount),
        "actual_amount_rub": None if done.actual_amount is None else str(done.actual_amount),
    }


def _whole(found: Payment) -> dict[str, Any]:
    return {
        "id": found.id,
        "account_id": found.account_id,
        "mode": found.mode.value,
        "shop_id": found.shop_id,
        "external_id": found.external_id,
        "status": found.status.value,
        "amount_rub": str(found.amount),
        "actual_amount_rub": None if found.actual_amount is None else str(found.actual_amount),
        "amount_usdt": None if found.amount_usdt is None else str(found.amount_usdt),
        "payment_method": found.payment_method,
        "subscription_id": found.subscription_id,
        "failure_reason": None if found.failure_reason is None else found.failure_reason.value,
        "bank": found.bank,
        "created_at": iso(found.created_at),
        "paid_at": iso_or_none(found.paid_at),
        "settled_at": iso_or_none(found.settled_at),
        "settlement_id": found.settlement_id,
    }


def _suspense(row: Suspense) -> dict[str, Any]:
    return {
        "id": row.id,
        "account_id": row.account_id,
        "mode": row.mode.value,
        "payment_id": row.payment_id,
        "amount_rub": str(row.amount),
        "reason": row.reason,
        "received_at": iso(row.received_at),
    }
