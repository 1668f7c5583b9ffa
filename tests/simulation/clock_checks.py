"""Final checks of test mode: the clocks stand still at the time requested, each event happened at its moment of test
time and was delivered in order, and live mode ran by real time (docs/reliability.md "What is checked")."""

from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.simulation.clocks import Sandbox, Subscribed, Tried
from tests.simulation.receivers import Told, given_up
from tests.simulation.told_moves import judge_moves
from tests.simulation.weather import FINE

if TYPE_CHECKING:
    from tests.simulation.merchants import Sale
    from tests.simulation.world import World

_LATE = timedelta(hours=3)
"""Longest delay that faults may cause for due work; longer than the longest fault."""
_PROMPT = timedelta(minutes=10)
"""Longest delay without faults: an idle worker polls at this interval."""
_TOGETHER = timedelta(seconds=5)
"""Within this distance, events of an advance may be sent in any order (docs/sandbox.md "The clock")."""
_SETTLES = time(9)
_TAKEN = ("paid", "settled", "refunded")


async def judge_sandbox(world: "World", sandbox: Sandbox) -> None:
    """Find all faults of a merchant's test mode, and report them to the world."""
    if sandbox.is_idle:
        return
    await _Case(world, sandbox).judge()


def judge_live_time(world: "World", sale: "Sale", told: list[Told]) -> None:
    """Check that live mode follows real time only: no event is from the future, and no payment expires too soon."""
    assert sale.created is not None
    off = timedelta(seconds=60 + world.plan.clocks_off)
    for each in told:
        at = datetime.fromisoformat(each.body["timestamp"])
        if at > each.at + off:
            world.fault(f"{sale.payment_id}: {each.body['status']} was told at {each.at}, as of {at}")
        if each.body["status"] == "expired" and at < datetime.fromisoformat(sale.created["expires_at"]) - off:
            world.fault(f"{sale.payment_id} expired at {at}, and was to at {sale.created['expires_at']}")


class _Case:
    """Check of one merchant."""

    def __init__(self, world: "World", sandbox: Sandbox) -> None:
        plan = world.plan
        self._world = world
        self._sandbox = sandbox
        self._is_fine = plan.weather == FINE and not plan.blows and not plan.skews
        self._late = (_PROMPT if self._is_fine else _LATE) + sandbox.slack
        self._now = world.now()
        """Current test time."""

    async def judge(self) -> None:
        """Check everything."""
        reading = await self._sandbox.read()
        self._now = reading.now
        if reading.is_advancing:
            self._wrong(f"its clock is still being moved, at {reading.now}")
        for to in self._sandbox.moments():
            if reading.now < to - self._sandbox.slack:
                self._wrong(f"its clock is at {reading.now}, and was to go to {to}")
        moves: list[Told] = []
        is_over = True
        for tried in self._sandbox.tried:
            told, status = await self._judge_payment(tried)
            moves += told
            is_over = is_over and status != "paid"
        for made in self._sandbox.subscribed:
            is_over = await self._judge_subscription(made) and is_over
        if self._is_fine:
            self._judge_arrival(moves)
        await self._judge_balance(is_over=is_over)

    async def _judge_payment(self, tried: Tried) -> tuple[list[Told], str | None]:
        """Check that it has ended as planned, each move at its moment."""
        payment_id = tried.payment_id
        found = await self._sandbox.ask(f"/api/v1/payments/{payment_id}")
        if found is None:
            return [], None
        status: str = found["status"]
        told = [each for each in self._told("payment_id", payment_id) if "refund_id" not in each.body]
        lost = await given_up(self._world.office, payment_id, {each.sequence for each in told})
        judge_moves(self._wrong, told, payment_id, status, lost)
        if status not in self._wanted(tried, found):
            self._wrong(f"{payment_id} of {tried.trial.outcome}, taken: {tried.simulated}, is {status}: {found}")
        self._judge_order(payment_id, told)
        for each in told:
            at = datetime.fromisoformat(each.body["timestamp"])
            if each.body["status"] == "expired":
                passed = self._sandbox.passed_over(tried.created_in)
                self._judge_moment(f"{payment_id} expired", at, tried.expires_at, passed or tried.expires_at)
        if found["settled_at"] is not None:
            at = datetime.fromisoformat(found["settled_at"])
            settles = self._settles(datetime.fromisoformat(found["paid_at"]))
            self._judge_moment(f"{payment_id} was settled", at, settles, self._settles_by(tried, found))
        return told, status

    def _judge_order(self, object_id: str, told: list[Told]) -> None:
        """Check that the timestamps of an object's events never decrease, also where the clock jumped during a call."""
        moments = [datetime.fromisoformat(each.body["timestamp"]) for each in told]
        for before, at, each in zip(moments, moments[1:], told[1:], strict=False):
            if at < before - self._sandbox.slack:
                self._wrong(f"{object_id}: {each.body} was told, after what was of {before}")

    def _wanted(self, tried: Tried, found: dict[str, Any]) -> set[str]:
        """Return the statuses that it may have by now."""
        if not tried.simulated:
            # A request that failed here may follow an earlier one that succeeded and whose answer was lost.
            return {"expired"} if tried.trial.outcome is None else {"expired", "failed", "settled", "refunded"}
        if tried.trial.outcome == "failed":
            return {"failed"}
        if found["paid_at"] is None:
            return {"paid"}
        is_due = self._settles_by(tried, found) < self._now - self._late
        settled = {"settled"} if is_due else {"settled", "paid"}
        return settled if tried.refund_id is None else {*settled, "refunded"}

    def _settles(self, paid: datetime) -> datetime:
        """At 09:00 UTC of the day after."""
        return datetime.combine(paid.date() + timedelta(days=1), _SETTLES, paid.tzinfo)

    def _settles_by(self, tried: Tried, found: dict[str, Any]) -> datetime:
        """Return the latest moment of settlement. If the clock moved during the payment, count from the clock's new
        time."""
        paid = datetime.fromisoformat(found["paid_at"])
        return self._settles(max(paid, self._sandbox.passed_over(tried.taken_in) or paid))

    def _judge_moment(self, what: str, at: datetime, due: datetime, by: datetime) -> None:
        if not due - self._sandbox.slack <= at <= max(due, by) + self._late:
            self._wrong(f"{what} at {at}, and was to at {due}")
        self._world.counts["passed over"] += at > due + self._late

    async def _judge_subscription(self, made: Subscribed) -> bool:
        """Check the reported status, and that no period was charged twice. Return whether nothing of it waits for its
        settlement."""
        found = await self._sandbox.ask(f"/api/v1/subscriptions/{made.subscription_id}")
        listed = await self._sandbox.ask(f"/api/v1/subscriptions/{made.subscription_id}/charges?per_page=100")
        if found is None or listed is None:
            return False
        told = self._told("subscription_id", made.subscription_id)
        self._judge_order(made.subscription_id, told)
        taken = {each.sequence for each in told}
        lost = await given_up(self._world.office, made.subscription_id, taken)
        if sorted(taken | lost) != list(range(1, len(taken | lost) + 1)):
            self._wrong(f"{made.subscription_id}: events {sorted(taken)} were told, {sorted(lost)} given up")
        moves = [each.body["status"] for each in told if "status" in each.body]
        if not lost and (moves or ["pending_binding"])[-1] != found["status"]:
            self._wrong(f"{made.subscription_id} is {found['status']}, and {moves} was told")
        charges = {each["id"]: each for each in listed["data"]}
        if not made.charges <= charges.keys():
            self._wrong(f"{made.subscription_id}: charges are gone: {sorted(made.charges - charges.keys())}")
        periods = [each["period_ref"] for each in charges.values() if each["status"] in _TAKEN]
        if len(set(periods)) < len(periods):
            self._wrong(f"{made.subscription_id}: a period was charged twice: {sorted(periods)}")
        return all(each["status"] != "paid" for each in charges.values())

    def _judge_arrival(self, moves: list[Told]) -> None:
        """Check that webhooks come in the order of test time, unless faults delay them."""
        before: Told | None = None
        for each in sorted(moves, key=lambda each: each.at):
            at = datetime.fromisoformat(each.body["timestamp"])
            if before is not None and at < datetime.fromisoformat(before.body["timestamp"]) - _TOGETHER:
                self._wrong(f"{each.body} arrived after {before.body}")
            before = each

    async def _judge_balance(self, *, is_over: bool) -> None:
        """Check that the balance's parts do not exceed the settled amounts, and that nothing waits once all is
        settled."""
        found = await self._sandbox.ask("/api/v1/balance")
        parts = sum(Decimal(found[name]) for name in ("available_usdt", "reserved_usdt", "total_withdrawn_usdt"))
        if parts > Decimal(found["total_settled_usdt"]):
            self._wrong(f"the parts of its balance are {parts}: {found}")
        if is_over and (Decimal(found["pending_rub"]) or Decimal(found["reserved_usdt"])):
            self._wrong(f"money still waits: {found}")

    def _told(self, name: str, object_id: str) -> list[Told]:
        return self._sandbox.merchant.receiver.of(name, object_id)

    def _wrong(self, what: str) -> None:
        self._world.fault(f"test mode of merchant {self._sandbox.merchant.number}: {what}")
