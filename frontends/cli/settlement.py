"""`cambist settle`: runs the daily settlement by hand."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none, read_moment
from ...core.domain.errors import Refusal
from ...core.domain.settlement.settlement import SettlementBatch
from ...core.usecases.operators.settlement import Pace, settle_asked
from ...ports.bundle import Ports
from .output import Answer, table
from .session import answering, reasoned, run_in_app

_NOW = "now"


@click.command("settle")
@click.option(
    "--mode", type=click.Choice([mode.value for mode in Mode]), help="Only this mode. Default: live, then test."
)
@click.option(
    "--cutoff",
    metavar="MOMENT|now",
    help="Settle payments paid before this time (2026-11-21T09:00:00Z, or now) as a further batch.",
)
@answering
@reasoned
def settle(mode: str | None, cutoff: str | None) -> Answer:
    """Settle what is due, and show the result.

    The service does this automatically at 09:00 UTC. In live mode this command settles the batch of the last 09:00 UTC:
    payments that were paid before 00:00 UTC of that day. A batch is settled once; a second call shows its result. In
    test mode it settles everything paid until now.

    The command may be interrupted: the service continues the batch after a minute, or a second call finishes it first
    and says so. Progress goes to standard error. It is refused (1) without a rate, and while another process settles a
    batch of the mode or may still do so: for a minute after one was killed. In live mode it is refused (1) while the
    installation is held, until `cambist resume`.
    """
    modes = list(Mode) if mode is None else [Mode(mode)]

    async def work(ports: Ports) -> list[SettlementBatch]:
        done: list[SettlementBatch] = []
        refused: list[Refusal] = []
        for each in modes:
            try:
                wanted = _cutoff(ports, each, cutoff)
                done += await settle_asked(ports, each, wanted, _progress(each))
            except Refusal as refusal:
                # Settle the other mode anyway.
                refused.append(Refusal(refusal.code, f"{each}: {refusal.message}"))
        if refused:
            raise refused[0]
        return done

    rows = [_document(batch) for batch in run_in_app(work)]
    titles = ("mode", "payments", "amount_rub", "fee_usdt", "credit_usdt", "rate_market", "cutoff", "completed_at")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


def _cutoff(ports: Ports, mode: Mode, text: str | None) -> datetime | None:
    if text == _NOW or (text is None and mode is Mode.TEST):
        # Include payments made at this very moment.
        return ports.clock.now() + timedelta(microseconds=1)
    if text is None:
        return None
    moment = read_moment("--cutoff", text)
    if moment > ports.clock.now():
        # New payments would also be before it: on a busy service the batch would never end.
        raise Refusal("VALIDATION_ERROR", "--cutoff must not be in the future")
    return moment


def _progress(mode: Mode) -> Callable[[Pace], None]:
    told: tuple[str, int] | None = None

    def tell(pace: Pace) -> None:
        nonlocal told
        batch = pace.batch
        if pace.is_taken_up and (told is None or told[0] != batch.id):
            click.echo(f"{mode}: batch {batch.id} was left open: it is settled first", err=True)
        if told != (batch.id, batch.payments):
            told = (batch.id, batch.payments)
            click.echo(f"{mode}: settled {pace}", err=True)

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
