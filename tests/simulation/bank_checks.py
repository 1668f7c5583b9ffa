"""Final checks of the banks' own books (docs/reliability.md "What is checked")."""

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulation.plan import Problem

if TYPE_CHECKING:
    from datetime import datetime

    from tests.simulation.outside import Ask
    from tests.simulation.world import World

_ELSEWHERE = (
    *(Problem.BANK_AWAY, Problem.BANK_HANGS, Problem.RECEIVER_AWAY, Problem.RECEIVER_HANGS),
    *(Problem.EVENT_SPOILT, Problem.DELIVERY_SPOILT, Problem.APART),
)
"""Faults after which the process still records the result of a request to a bank."""
_WRITTEN = timedelta(minutes=5)
"""Within which that is done, after the bank was waited for."""


def judge_banks(world: "World") -> None:
    """Check that no bank sends back more than it received, or without a request, and that no bank is asked for an
    invoice that another one may have."""
    asked = {wish.refund_id for merchant in world.merchants for sale in merchant.sales for wish in sale.refunds}
    for bank in world.banks.values():
        for row in bank.invoices.values():
            came = sum(each.amount_kopecks for each in row.transfers if not each.taken_back)
            if bank.sent_back(row.operation) > came:
                world.fault(f"{bank.name}: more than {came} went back of {row.operation}")
        for operation in bank.refunds:
            if operation.startswith("ref_") and operation not in asked:
                world.fault(f"{bank.name} sent back {operation}, for which no merchant asked")
    _judge_asks(world)


def _judge_asks(world: "World") -> None:
    """Check that no second bank is asked for an invoice while the first one may have created it, because the payer
    could pay twice. A process that dies or loses the database meanwhile cannot record that the result is unknown."""
    weather = world.plan.weather
    if weather.storage_lost or weather.storage_unanswered or weather.storage_late:
        return
    asks: dict[str, list[tuple[Ask, str]]] = {}
    for bank in world.banks.values():
        for ask in bank.asks:
            asks.setdefault(ask.operation, []).append((ask, bank.name))
    for operation, made in asks.items():
        first, name = min(made, key=lambda each: (each[0].at, each[1]))
        if first.gave_up is None or _is_troubled(world, first.at):
            continue
        others = [(ask, bank) for ask, bank in made if bank != name]
        # A request made meanwhile comes from the watch, which assumes that the first process has died.
        if others and all(ask.at > first.gave_up for ask, _ in others):
            world.fault(f"{others[0][1]} was asked for an invoice of {operation}, which {name} may have")


def _is_troubled(world: "World", at: "datetime") -> bool:
    """Return whether a planned fault hits a process or the database at that time."""
    for blow in world.plan.blows:
        began = world.beginning + timedelta(seconds=blow.at)
        ended = began + timedelta(seconds=abs(blow.seconds))
        if blow.kind not in _ELSEWHERE and began - _WRITTEN <= at <= ended + _WRITTEN:
            return True
    return False
