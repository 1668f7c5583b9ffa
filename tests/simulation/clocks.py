"""Test mode: a merchant tries payments and a subscription with its test keys and moves its test clock, while live mode
continues. The answers are recorded for clock_checks.py (docs/sandbox.md "The clock")."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cambist.core.domain.days import iso
from tests.simulation.clock_plans import Rehearsal, Trial
from tests.simulation.merchants import Merchant, rub
from tests.simulation.network import BEGINNING, HttpAnswer, key_of
from tests.simulation.plan import ENDS

if TYPE_CHECKING:
    from tests.simulation.world import World

_VERIFIED = "+70000000001"
"""A client who is always verified in test mode (docs/sandbox.md "The calls")."""
_ENDS_IN = 4 * 3600.0
"""Seconds in which an advance is at its end, whatever befalls it: more than any problem lasts."""


@dataclass
class Tried:
    """A payment of test mode, and the answers about it."""

    trial: Trial
    payment_id: str
    expires_at: datetime
    simulated: bool = False
    """Its outcome was taken."""
    refund_id: str | None = None
    created_in: tuple[float, float] = (0.0, 0.0)
    """The seconds of the world from its creation's first request to the answer."""
    taken_in: tuple[float, float] = (0.0, 0.0)
    """The same of its outcome."""


@dataclass
class Reading:
    """A reading of the test clock, with the seconds of the world at request and answer."""

    began: float
    ended: float
    now: datetime
    is_advancing: bool


@dataclass
class Asked:
    """A requested advance."""

    at: float
    to: datetime
    ended: float = ENDS
    """When its clock was seen to rest there."""


@dataclass
class Subscribed:
    """A subscription of test mode."""

    subscription_id: str
    charges: set[str] = field(default_factory=set)


class Sandbox:
    """A merchant's test mode."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self.merchant = merchant
        self._chance = world.chance.of(f"sandbox/{merchant.number}")
        self.tried: list[Tried] = []
        self.subscribed: list[Subscribed] = []
        self.leaps: list[Asked] = []
        self.last: Reading | None = None
        self._off = timedelta(seconds=60 + 2 * world.plan.clocks_off)

    @property
    def slack(self) -> timedelta:
        """Possible error of the clock's time, because each process has its own clock."""
        return self._off

    async def rehearse(self, rehearsal: Rehearsal) -> None:
        """Run the whole rehearsal: the payments proceed while the clock moves."""
        world = self._world
        world.counts["rehearsals"] += 1
        for number, trial in enumerate(rehearsal.trials):
            world.begin(self._try(rehearsal, number, trial))
        subscription = await self._subscribe(rehearsal) if rehearsal.subscribes else None
        for number, leap in enumerate(rehearsal.leaps):
            await world.network.sleep(leap.after)
            lengths = [leap.seconds] if leap.rival is None else [leap.seconds, leap.rival]
            await asyncio.gather(*(self._leap(seconds) for seconds in lengths))
            if subscription is not None:
                await self._charge(subscription, rehearsal, number)

    # --- the clock -------------------------------------------------------------------------------------------------

    async def read(self) -> Reading:
        """Read the clock. It never goes back, and never passes the time requested."""
        began = self._world.loop.time()
        answer = await self._insist("GET", "/api/v1/sandbox/clock", None)
        return self._note(began, answer)

    def _note(self, began: float, answer: HttpAnswer) -> Reading:
        found = answer.json
        now = datetime.fromisoformat(found["now"])
        reading = Reading(began, self._world.loop.time(), now, found["advancing"])
        before = self.last
        if before is not None and before.ended <= began:
            least = before.now + timedelta(seconds=began - before.ended) - self._off
            if now < least:
                self._wrong(f"its clock was at {before.now}, and is at {now} {began - before.ended:.0f} s later")
        asked = [(BEGINNING, 0.0), *((each.to, each.at) for each in self.leaps)]
        most = max(moment + timedelta(seconds=reading.ended - at) for moment, at in asked) + self._off
        if now > most:
            self._wrong(f"its clock is at {now}, and nobody asked for more than {most}")
        if before is None or before.ended <= began:
            self.last = reading
        return reading

    async def _leap(self, seconds: int) -> None:
        """Ask for a moment until the clock has come there: as often as one likes, since it names the moment."""
        to = (await self.read()).now + timedelta(seconds=seconds)
        asked = Asked(self._world.loop.time(), to)
        self.leaps.append(asked)
        self._world.counts["leaps"] += 1
        await self._insist_on(asked)
        asked.ended = self._world.loop.time()

    async def _insist_on(self, asked: Asked) -> None:
        to = asked.to
        while self._world.loop.time() < ENDS:
            began = self._world.loop.time()
            answer = await self._insist("POST", "/api/v1/sandbox/clock/advance", {"to": iso(to)})
            if answer.status == 200:
                self._note(began, answer)
            elif answer.code not in ("INVALID_STATE", "VALIDATION_ERROR"):
                self._wrong(f"an advance to {to} was answered {answer.status} {answer.body!r}")
                return
            reading = await self._rest()
            if reading.ended > asked.at + _ENDS_IN:
                self._wrong(f"its clock came to {to} {reading.ended - asked.at:.0f} s after it was asked for")
            if reading.now >= to - self._off:
                return
            if answer.code != "INVALID_STATE":
                self._wrong(f"its clock is at {reading.now}, after an advance to {to} was answered {answer.body!r}")
                return

    async def _rest(self) -> Reading:
        """Wait until nobody moves the clock."""
        reading = await self.read()
        while reading.is_advancing and self._world.loop.time() < ENDS:
            await self._world.network.sleep(self._chance.uniform(0.2, 20.0))
            reading = await self.read()
        return reading

    # --- what lives by it ------------------------------------------------------------------------------------------

    async def _try(self, rehearsal: Rehearsal, number: int, trial: Trial) -> None:
        """A payment, its outcome, and its refund."""
        await self._world.network.sleep(trial.after)
        name = f"trial-{rehearsal.number}-{number}"
        body = {"amount_rub": rub(trial.kopecks), "external_id": name, "client_phone": _VERIFIED}
        began = self._world.loop.time()
        answer = await self._insist("POST", "/api/v1/payments", body, name)
        if answer.status not in (200, 201):
            self._wrong(f"{name}: its creation was answered {answer.status} {answer.body!r}")
            return
        tried = Tried(trial, answer.json["id"], datetime.fromisoformat(answer.json["expires_at"]))
        tried.created_in = (began, self._world.loop.time())
        self.tried.append(tried)
        if trial.outcome is None:
            return
        path = f"/api/v1/sandbox/payments/{tried.payment_id}/simulate"
        began = self._world.loop.time()
        answer = await self._insist("POST", path, {"outcome": trial.outcome})
        while answer.status == 502:  # its creation is under way
            await self._world.network.sleep(5.0)
            answer = await self._insist("POST", path, {"outcome": trial.outcome})
        if answer.status not in (200, 409):
            self._wrong(f"{tried.payment_id}: {trial.outcome} was answered {answer.status} {answer.body!r}")
        tried.taken_in = (began, self._world.loop.time())
        tried.simulated = answer.status == 200 and answer.json["status"] != "expired"
        if trial.returned and tried.simulated:
            answer = await self._insist("POST", "/api/v1/refunds", {"payment_id": tried.payment_id}, f"{name}-refund")
            tried.refund_id = answer.json["refund_id"] if answer.status in (200, 201) else None

    async def _subscribe(self, rehearsal: Rehearsal) -> Subscribed | None:
        body = {"amount_rub": "490.00", "interval": "day", "description": "Trial", "client_phone": _VERIFIED}
        answer = await self._insist("POST", "/api/v1/subscriptions", body, f"trial-subscription-{rehearsal.number}")
        if answer.status not in (200, 201):
            self._wrong(f"a subscription was answered {answer.status} {answer.body!r}")
            return None
        made = Subscribed(answer.json["id"])
        self.subscribed.append(made)
        answer = await self._insist(
            "POST", f"/api/v1/sandbox/subscriptions/{made.subscription_id}/simulate", {"outcome": "confirm"}
        )
        if answer.status not in (200, 409):
            self._wrong(f"{made.subscription_id}: its binding was answered {answer.status} {answer.body!r}")
        return made

    async def _charge(self, made: Subscribed, rehearsal: Rehearsal, number: int) -> None:
        body = {"amount_rub": "490.00", "external_id": f"trial-charge-{rehearsal.number}-{number}"}
        path = f"/api/v1/subscriptions/{made.subscription_id}/charges"
        answer = await self._insist("POST", path, body, str(body["external_id"]))
        if answer.status in (200, 201):
            made.charges.add(answer.json["id"])
        elif answer.status not in (400, 409, 422, 502):
            self._wrong(f"{made.subscription_id}: a charge was answered {answer.status} {answer.body!r}")

    async def ask(self, path: str) -> Any:
        """Read with the test keys. A missing object is a fault."""
        answer = await self._insist("GET", path, None)
        if answer.status != 200:
            self._wrong(f"{path} was answered, and is {answer.status} now")
            return None
        return answer.json

    async def _insist(self, method: str, path: str, body: Any, name: str | None = None) -> HttpAnswer:
        key = None if name is None else key_of(self._world.plan.seed, name)
        return await self.merchant.insist(method, path, body, key, in_test=True)

    def _wrong(self, what: str) -> None:
        self._world.fault(f"test mode of merchant {self.merchant.number}: {what}")

    @property
    def is_idle(self) -> bool:
        """Whether nothing was tried."""
        return not self.tried and not self.subscribed and not self.leaps

    def passed_over(self, call: tuple[float, float]) -> datetime | None:
        """Return the latest time of the clock at the end of a call during which it moved, or None if it did not move.
        The results of the call may be due by then (docs/sandbox.md "The clock")."""
        began, ended = call
        moved = [each for each in self.leaps if each.at < ended and began < each.ended]
        return max((each.to + timedelta(seconds=ended - each.at) for each in moved), default=None)

    def moments(self) -> Sequence[datetime]:
        """Return the moments to which the clock was set."""
        return [each.to for each in self.leaps]
