"""Final checks of delivery proofs against the books of the chains: a confirmed transfer was sent once, with its amount;
a rejected one was not; and the reminders (docs/reliability.md "What is checked")."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.simulation.explorer import NETWORKS, SentRow
from tests.simulation.proof_plans import Fate
from tests.simulation.proofs import LOCKED, Named, Proof, Till
from tests.simulation.receivers import Told

if TYPE_CHECKING:
    from tests.simulation.world import World

_LOOKED_FOR = 3 * 3600.0
"""Minimum of seconds for which the service polls for a transaction. With correct clocks it is over 6 hours
(docs/decisions.md "Delivery proofs"); a slow clock shortens each step of the schedule by its delay."""
_UNDER_WAY = 300.0
"""Seconds after which no earlier request can still be running."""
_REMINDER = "payment.delivery_proof_reminder"
_REMINDED_AFTER = timedelta(hours=24)
_CLOCKS_OFF = timedelta(minutes=30)


async def judge_proofs(world: "World", tills: list[Till]) -> None:
    """Find all faults of the merchants' delivery proofs, and report them to the world."""
    proved: Counter[Named] = Counter()
    named_by: dict[Named, set[int]] = defaultdict(set)
    for proof in (proof for till in tills for proof in till.proofs):
        for asked in proof.asked:
            named_by[asked.named].add(proof.handover.number)
    for till in tills:
        for proof in till.proofs:
            if proof.sale.payment_id is None:
                continue
            path = f"/api/v1/payments/{proof.sale.payment_id}"
            payment = (await till.merchant.insist("GET", path, None, None)).json
            found = await till.look(proof)
            proved[found["network"], found["tx_hash"]] += found["status"] in LOCKED
            told = till.merchant.receiver.of("payment_id", payment["id"])
            case = _Case(world, proof, found, payment, told)
            case.judge_standing(named_by)
            case.judge_reminders()
    for named, times in proved.items():
        if times > 1:
            world.fault(f"{named} proves {times} payments")


@dataclass
class _Case:
    """One payment at the end, its proof, and the events that its merchant got."""

    world: "World"
    proof: Proof
    found: dict[str, Any]
    payment: dict[str, Any]
    told: list[Told]

    @property
    def was_returned(self) -> bool:
        """All of it went back at some time: then no proof is taken, and there may be nothing to compare with."""
        return any(each.body.get("status") == "refunded" for each in self.told)

    def judge_standing(self, named_by: Mapping[Named, set[int]]) -> None:
        """Check that the proof's transaction was submitted, and that its status agrees with the chain."""
        asked, status = self.proof.asked, self.found["status"]
        taken = [each.named for each in asked if each.code is None]
        if not self.was_returned and any(each.code == "INVALID_STATUS" for each in asked):
            self._wrong("no proof was taken of it")
        if status == "waiting":
            if taken:
                self._wrong(f"{taken[-1]} was taken, and nothing stands there")
            return
        named = self.found["network"], self.found["tx_hash"]
        if named not in {each.named for each in asked}:
            self._wrong(f"nobody submitted {named}")
            return
        last = max(asked, key=lambda each: each.began)
        others = max((each.ended for each in asked if each.named != last.named), default=-_UNDER_WAY)
        if last.code is None and last.began > others + _UNDER_WAY and last.named != named:
            self._wrong(f"{last.named} was taken last, and {named} stands there")
        row = self.world.explorer.rows.get((NETWORKS[named[0]], named[1]))
        wanted = self._wanted(named, row)
        if len(named_by[named]) > 1:
            wanted.add(("rejected", "already_used"))
        if (status, self.found.get("reason")) not in wanted:
            self._wrong(f"{named} is {status}, {self.found.get('reason')}, and not {wanted}: {row}")

    def _wanted(self, named: Named, row: SentRow | None) -> set[tuple[str, str | None]]:
        """Return the statuses that the proof may have, given the transaction on the chain."""
        missing = ("rejected", "not_found_or_unconfirmed")
        if named[1].startswith("no-hash"):
            return {("rejected", "invalid")}
        if row is None or row.final_at is None:
            return {missing}
        wanted: set[tuple[str, str | None]]
        if row.fate is Fate.REVERTED or not row.moves:
            wanted = {("rejected", "invalid")}
        elif self.was_returned:
            wanted = {("confirmed", None), ("confirmed_amount_differs", None), ("in_review", None)}
        else:
            credit = int(Decimal(self.payment["amount_usdt"] or 0) * 10**8)
            fits = any(abs(units - credit) * 100 <= credit for units in row.moves)
            wanted = {("confirmed" if fits else "confirmed_amount_differs", None)}
        first = min(each.began for each in self.proof.asked if each.named == named)
        too_late = (row.final_at - self.world.beginning).total_seconds() > first + _LOOKED_FOR
        return wanted | {missing} if too_late else wanted

    def judge_reminders(self) -> None:
        """Check that there is one reminder, a day after the payment, unless a proof was confirmed by then."""
        paid_at, status = self.payment["paid_at"], self.found["status"]
        if paid_at is None or self.was_returned:
            return
        if datetime.fromisoformat(paid_at) + _REMINDED_AFTER > self.world.now() - _CLOCKS_OFF:
            return
        said = [(each.body["reminder"], each.body["status"]) for each in self.told if each.event == _REMINDER]
        wanted = [(1, status)] if status in ("waiting", "rejected") else []
        if said != wanted:
            self._wrong(f"the proof is {status}, and the reminders {said} were told")

    def _wrong(self, what: str) -> None:
        self.world.fault(f"the proof of {self.payment['id']}: {what}")
