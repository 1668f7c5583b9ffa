"""Decisions in an operator's unit of work, and whether the installation requires two operators for them
(docs/operations.md "Two pairs of eyes")."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.errors import Refusal
from ...domain.money import Rub
from ...domain.operators.guarded import Decision, Guarded, all_refunded, decisions, may_decide
from ...domain.operators.operators import Operator
from ...domain.operators.pending_actions import Line, PendingAction
from ...domain.refunds.refunds import Refund

Written = Sequence[tuple[type[Any], Any]]
"""Records that a unit adds and saves, with their kinds."""

CODE = "SECOND_OPERATOR_NEEDED"


class Waits(Refusal):
    """The action was not done: it waits until another operator confirms it."""

    def __init__(self, action: PendingAction) -> None:
        super().__init__(CODE, f"It waits for a second operator: cambist action confirm {action.id}")
        self.action = action


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of one unit."""

    decisions: tuple[Decision, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lines that the second operator sees."""
        return tuple(line for each in self.decisions for line in each.lines)


async def read_decisions(unit: Unit, written: Written, declared: Sequence[Decision] = ()) -> Decided:
    """Return the decisions of these records against the stored ones, plus the declared ones.

    If the writer had read other versions of the stored records, its commit goes stale. Creating keys in an account that
    the same unit opens is not a decision, because the account holds nothing of value yet.
    """
    found: list[Decision] = [*declared]
    opened: set[str] = set()
    for kind, after in sorted(written, key=lambda each: str(each[1].id)):
        if may_decide(after):
            before = await unit[kind].get(after.id)
            found += decisions(before, after)
            if before is None and kind is Account:
                opened.add(after.id)
    return Decided(
        decisions=tuple(each for each in found if each.guarded is not Guarded.KEYS or each.account_id not in opened)
    )


async def needs_second(ports: Ports, unit: Unit, found: Decided) -> bool:
    """Return whether the installation requires two operators for any of the decisions."""
    for each in found.decisions:
        if each.guarded not in ports.four_eyes.actions:
            continue
        if each.guarded is Guarded.OPERATORS and len(await unit[Operator].find(ended_at=None, limit=2)) < 2:
            continue
        if each.guarded is not Guarded.REFUNDS or each.refund is None:
            return True
        others = await unit[Refund].find(payment_id=each.refund.payment_id)
        if all_refunded(each.refund, others) > Rub(ports.four_eyes.refund_above):
            return True
    return False


class Undeclared:
    """Gate for actions of an operator while the installation requires two operators for some. It refuses a guarded
    decision that no use case declared (four_eyes.py: `gated`), because that cannot wait."""

    once = False

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def __call__(self, unit: Unit, written: Written) -> None:
        """Let the unit commit. Raises: Refusal SECOND_OPERATOR_NEEDED."""
        if await needs_second(self._ports, unit, await read_decisions(unit, written)):
            raise Refusal(
                CODE, "This needs a second operator, and the present interface cannot record a waiting action"
            )
