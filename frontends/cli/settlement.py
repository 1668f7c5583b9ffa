"""`cambist settle`: the daily settlement, by an operator's hand."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from ...core.domain.accounts import Mode
from ...core.domain.days import iso, iso_or_none, read_moment
from ...core.domain.settlement import SettlementBatch
from ...core.usecases.settlement import settle_now
from ...ports.bundle import Ports
from .output import Answer, table
from .session import answering, in_house

_NOW = "now"


@click.command("settle")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), help="One mode only.")
@click.option("--cutoff", metavar="MOMENT|now", help="Settle what was paid before it, as a further batch.")
@answering
def settle(mode: str | None, cutoff: str | None) -> Answer:
    """Settle what is due, and say what it brought. May be interrupted; the service goes on with it, or a second call.

    Live mode takes the batch of the last 09:00 UTC: payments of days before. Test mode takes all that is paid.
    """
    modes = list(Mode) if mode is None else [Mode(mode)]

    async def work(ports: Ports) -> list[SettlementBatch]:
        return [
            await settle_now(ports, each, cutoff=_cutoff(ports, each, cutoff), progress=_progress(each))
            for each in modes
        ]

    rows = [_document(batch) for batch in in_house(work)]
    titles = ("mode", "payments", "amount_rub", "fee_usdt", "credit_usdt", "rate_market", "cutoff", "completed_at")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


def _cutoff(ports: Ports, mode: Mode, text: str | None) -> datetime | None:
    if text == _NOW or (text is None and mode is Mode.TEST):
        # What was paid at this very moment was paid before it ends.
        return ports.clock.now() + timedelta(microseconds=1)
    return None if text is None else read_moment("--cutoff", text)


def _progress(mode: Mode) -> Callable[[SettlementBatch], None]:
    def tell(batch: SettlementBatch) -> None:
        click.echo(f"{mode}: {batch.payments} payments settled", err=True)

    return tell


def _document(batch: SettlementBatch) -> dict[str, Any]:
    return {
        "batch_id": batch.id,
        "mode": batch.mode.value,
        "cutoff": iso(batch.cutoff),
        "started_at": iso(batch.started_at),
        "completed_at": iso_or_none(batch.completed_at),
        "rate_market": batch.rate_market,
        "payments": batch.payments,
        "amount_rub": str(batch.amount),
        "fee_usdt": str(batch.fee),
        "credit_usdt": str(batch.credit),
    }
