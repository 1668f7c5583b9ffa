"""`cambist payout …`: payouts of all merchants, and operator actions on them."""

from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ...core.usecases.ledger.conversions import Conversion, conversions_of
from ...core.usecases.settlement import withdrawals as usecases
from ...core.usecases.settlement.payout_items import PayoutItem, every_payout_item_of, payout_items_of
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, CsvText, csv_option, fields, table
from .session import answering, reasoned, run_in_app

MOST = 1000
"""Largest number of lines shown."""


@group()
def payout() -> None:
    """Manage payouts to merchants' wallets, which are created automatically after each settlement."""


def payout_document(each: Withdrawal) -> dict[str, Any]:
    """Return a payout as the command line shows it: including fields that merchants do not see, but never a signed
    transaction."""
    return {
        "withdrawal_id": each.id,
        "account_id": each.account_id,
        "mode": each.mode.value,
        "status": each.status.value,
        "amount_usdt": str(each.amount),
        "wallet_address": each.wallet,
        "network": each.network,
        "sender": each.sender,
        "settlement_id": each.settlement_id,
        "tx_hash": each.tx_hash,
        "failure": each.failure,
        "created_at": iso(each.created_at),
        "sent_at": iso_or_none(each.sent_at),
        "completed_at": iso_or_none(each.completed_at),
    }


def _answer(each: Withdrawal) -> Answer:
    document = payout_document(each)
    return Answer(document=document, text=fields(document))


@payout.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@click.option("--status", type=click.Choice([each.value for each in WithdrawalStatus]), help="Only in this status.")
@answering
def list_all(account_id: str | None, status: str | None) -> Answer:
    """List payouts, newest first; at most 1000."""
    wanted = None if status is None else WithdrawalStatus(status)
    found = run_in_app(lambda ports: usecases.every_withdrawal(ports, account_id=account_id, status=wanted))
    rows = [payout_document(each) for each in found]
    titles = ("created_at", "status", "amount_usdt", "wallet_address", "account_id", "mode", "withdrawal_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@payout.command("items")
@click.argument("withdrawal_id", metavar="ID")
@csv_option
@answering
def items(withdrawal_id: str, *, as_csv: bool) -> Answer:
    """List the lines of a payout in order of time; at most 1000, or all with --csv. The lines add up to its amount."""

    async def listed(ports: Ports) -> list[dict[str, Any]]:
        return await _item_documents(ports, await payout_items_of(ports, withdrawal_id, MOST))

    async def written(ports: Ports) -> CsvText:
        text = CsvText()
        async for batch in await every_payout_item_of(ports, withdrawal_id):
            text.add(await _item_documents(ports, batch))
        return text

    if as_csv:
        return run_in_app(written).answer()
    rows = run_in_app(listed)
    titles = ("created_at", "kind", "amount_usdt", "object_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


async def _item_documents(ports: Ports, items: Sequence[PayoutItem]) -> list[dict[str, Any]]:
    found = await conversions_of(ports, [item.movement for item in items if item.movement is not None])
    return [_item(each, None if each.movement is None else found.get(each.movement.number)) for each in items]


def _item(each: PayoutItem, conversion: Conversion | None) -> dict[str, Any]:
    movement = each.movement
    return {
        "kind": each.kind.value,
        "amount_usdt": str(each.amount),
        "object_type": None if movement is None else movement.object_type.value,
        "object_id": None if movement is None else movement.object_id,
        "converted_rub": None if conversion is None else str(conversion.amount),
        "rate": None if conversion is None else conversion.rate,
        "settlement_id": None if conversion is None else conversion.settlement_id,
        "number": None if movement is None else movement.number,
        "created_at": iso(each.at),
    }


@payout.command("cancel")
@click.argument("withdrawal_id", metavar="ID")
@click.option("--reason", required=True, help="Reason for operators; merchants do not see it.")
@answering
def cancel(withdrawal_id: str, reason: str) -> Answer:
    """Cancel a payout that is still pending. Its amount is available again, and the next settlement pays it out."""
    return _answer(run_in_app(lambda ports: usecases.cancel_withdrawal(ports, withdrawal_id, reason)))


@payout.command("accept")
@click.argument("withdrawal_id", metavar="ID")
@answering
@reasoned
def accept(withdrawal_id: str) -> Answer:
    """Accept the transfer that the wallet sent for a pending payout, although its amount or address differs.

    Use it after a restore: the log names such a payout, and nothing is signed for it. Amount and address become those
    of the transfer, and the remainder is available; if the wallet sent more than was available, the merchant owes it.
    """
    return _answer(run_in_app(lambda ports: usecases.accept_sent(ports, withdrawal_id)))


@payout.command("retry")
@click.argument("withdrawal_id", metavar="ID")
@answering
@reasoned
def retry(withdrawal_id: str) -> Answer:
    """Retry a payout under way now instead of at its next scheduled time. It is never signed twice.

    A finished payout is refused: the amount of a failed one is available again, for `cambist payout now`.
    """
    return _answer(run_in_app(lambda ports: usecases.hurry_withdrawal(ports, withdrawal_id)))


@payout.command("now")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([each.value for each in Mode]), required=True)
@answering
@reasoned
def now(account_id: str, mode: str) -> Answer:
    """Pay out an account's available balance without waiting for the next settlement. The service sends it."""

    async def work(ports: Ports) -> Withdrawal:
        return await usecases.pay_out_now(ports, account_id, Mode(mode))

    return _answer(run_in_app(work))
