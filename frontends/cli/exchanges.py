"""`cambist exchange …`: operator actions on exchanges."""

from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.exchanges.exchanges import Direction, Exchange
from ...core.domain.exchanges.funds import ExchangeTransfer
from ...core.domain.ledger import Currency
from ...core.domain.money import Rub, Usdt
from ...core.usecases.exchanges import creation
from ...core.usecases.exchanges import exchanges as usecases
from ...core.usecases.exchanges import returns as exchange_return
from .groups import group
from .output import Answer, fields, table
from .session import answering, run_in_app

_MODES = click.Choice([mode.value for mode in Mode])
_DIRECTIONS = click.Choice([direction.value for direction in Direction])


@group()
def exchange() -> None:
    """Manage exchanges of end clients."""


@exchange.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=_MODES, help="Only of this mode.")
@answering
def list_(account_id: str, mode: str | None) -> Answer:
    """List the exchanges of an account, newest first; at most 1000."""
    found = run_in_app(lambda ports: usecases.every_exchange(ports, account_id, None if mode is None else Mode(mode)))
    rows = [_document(each) for each in found]
    titles = ("created_at", "direction", "status", "amount_usdt", "amount_rub", "mode", "exchange_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@exchange.command("create-rub-usdt")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=_MODES, required=True)
@click.option("--amount-rub", required=True, help="Amount that the client pays, in RUB.")
@click.option("--client-phone", required=True, help="Phone of a registered client: + and 10 to 15 digits.")
@click.option("--address", required=True, help="The client's TRON address.")
@answering
def create_rub_usdt(account_id: str, mode: str, amount_rub: str, client_phone: str, address: str) -> Answer:
    """Create an exchange of RUB to USDT on a merchant's request. The client pays with the printed `invoice`."""
    return _answer(
        run_in_app(
            lambda ports: creation.create_rub_usdt(
                ports, account_id, Mode(mode), amount_rub=amount_rub, client_phone=client_phone, address=address
            )
        )
    )


@exchange.command("cancel")
@click.argument("exchange_id", metavar="ID")
@answering
def cancel(exchange_id: str) -> Answer:
    """Cancel an exchange before its client has sent anything."""
    return _answer(run_in_app(lambda ports: usecases.cancel_any_exchange(ports, exchange_id)))


@exchange.command("show")
@click.argument("exchange_id", metavar="ID")
@answering
def show(exchange_id: str) -> Answer:
    """Show an exchange and all transfers received for it."""
    found, came = run_in_app(lambda ports: exchange_return.exchange_money(ports, exchange_id))
    document = _document(found)
    rows = [_transfer(each) for each in came]
    text = fields(document) + ("\n\n" + _table(rows) if rows else "")
    return Answer(document={**document, "transfers": rows}, text=text)


@exchange.command("suspense")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@answering
def suspense(account_id: str | None) -> Answer:
    """List unapplied transfers of exchanges, oldest first; at most 1000."""
    found = run_in_app(lambda ports: exchange_return.list_suspended(ports, account_id))
    rows = [_transfer(each) for each in found]
    return Answer(document={"data": rows}, text=_table(rows))


@exchange.command("return")
@click.argument("object_id", metavar="ID")
@click.option("--address", help="The client's TRON address, for USDT. RUB are returned to their payer.")
@answering
def return_(object_id: str, address: str | None) -> Answer:
    """Return the unapplied money of a finished exchange, or one transfer; the service sends it."""
    found = run_in_app(lambda ports: exchange_return.return_money(ports, object_id, address))
    rows = [_transfer(each) for each in found]
    return Answer(document={"data": rows}, text=_table(rows))


@exchange.command("disable")
@click.argument("direction", type=_DIRECTIONS)
@answering
def disable(direction: str) -> Answer:
    """Refuse new exchanges of a direction for all merchants; exchanges under way continue."""
    return _switched(direction, is_on=False)


@exchange.command("enable")
@click.argument("direction", type=_DIRECTIONS)
@answering
def enable(direction: str) -> Answer:
    """Allow new exchanges of a direction again."""
    return _switched(direction, is_on=True)


def _switched(direction: str, *, is_on: bool) -> Answer:
    done = run_in_app(lambda ports: usecases.set_direction(ports, Direction(direction), is_on=is_on))
    document = {"direction": done.id, "enabled": done.is_on, "since": iso(done.since)}
    return Answer(document=document, text=fields(document))


def _answer(done: Exchange) -> Answer:
    document = _document(done)
    return Answer(document=document, text=fields(document))


def _document(done: Exchange) -> dict[str, Any]:
    return {
        "exchange_id": done.id,
        "account_id": done.account_id,
        "mode": done.mode.value,
        "direction": done.direction.value,
        "status": done.status.value,
        "amount_usdt": str(done.amount_usdt),
        "amount_rub": str(done.amount_rub),
        "rate": done.rate,
        "invoice": done.invoice_payload,
        "crypto_deposit_address": done.crypto_deposit_address,
        "tx_hash": done.tx_hash,
        "failure": done.failure,
        "created_at": iso(done.created_at),
        "expires_at": iso(done.expires_at),
        "completed_at": iso_or_none(done.completed_at),
    }


_TITLES = ("received_at", "amount", "suspended", "currency", "reason", "return_status", "account_id", "mode", "id")


def _table(rows: list[dict[str, Any]]) -> str:
    return table(_TITLES, [[row[title] for title in _TITLES] for row in rows])


def _transfer(row: ExchangeTransfer) -> dict[str, Any]:
    back = row.sent_back
    return {
        "id": row.id,
        "exchange_id": row.exchange_id,
        "account_id": row.account_id,
        "mode": row.mode.value,
        "currency": row.currency.value,
        "amount": _money(row, row.amount),
        "suspended": _money(row, row.suspended),
        "reason": row.reason,
        "received_at": iso(row.received_at),
        "resolved_at": iso_or_none(row.resolved_at),
        "return_status": None if back is None else back.status.value,
        "return_address": None if back is None else back.address,
        "return_tx_hash": None if back is None else back.tx_hash,
        "return_failure": None if back is None else back.failure,
    }


def _money(row: ExchangeTransfer, units: int) -> str:
    return str(Usdt(units) if row.currency is Currency.USDT else Rub(units))
