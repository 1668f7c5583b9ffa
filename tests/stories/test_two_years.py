"""Two simulated years of one monthly and one 3-day subscription, with failures, lost answers, revocation and
rebinding, event by event, through the merchant's means alone: the API, the sandbox, webhooks (docs/subscriptions.md
"Periods and attempts"). The merchant asks for a charge every day at 11:00 Moscow time. The test computes the
expected events anew, from dates alone."""

from calendar import monthrange
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from tests.apps import TestApp, open_test_app

DAY = timedelta(days=1)
MOSCOW = timezone(timedelta(hours=3))
START = datetime(2026, 1, 31, 8, tzinfo=UTC)
"""11:00 in Moscow, on the last day of a long month."""
DAYS = 731
MONTHLY: dict[int, list[Any]] = {
    1: ["insufficient_funds"],
    4: ["declined_by_bank", "paid"],
    6: ["insufficient_funds"] * 4,
    9: ["unavailable"],
    12: ["pending", 3, "paid"],
    15: ["mandate_revoked"],
    18: ["pending", 2, "failed"],
}
EVERY_3_DAYS: dict[int, list[Any]] = {
    2: ["insufficient_funds"],
    7: ["declined_by_bank", "insufficient_funds", "paid"],
    11: ["insufficient_funds"] * 3,
    20: ["unavailable"],
    33: ["mandate_revoked"],
    50: ["pending", 7, "paid"],
    77: ["pending", 4, "failed"],
    90: ["insufficient_funds", "mandate_revoked"],
    120: ["unavailable"],
    150: ["declined_by_bank"],
}
"""The bank's behaviour at numbered rounds of a subscription; it pays all others. A number counts days."""
REBIND_AFTER = 8


class Payer:
    """A subscription as the merchant and the calendar know it."""

    def __init__(self, app: TestApp, interval: str, count: int, budget: int, plan: dict[int, list[Any]]) -> None:
        self.app = app
        self.interval, self.count, self.budget = interval, count, budget
        self.plan = plan
        self.id = ""
        self.anchor = date.min
        self.tried: date | None = None
        self.rounds = 0
        self.paused: date | None = None
        self.pending: tuple[str, date, str] | None = None
        self.expected: list[str] = []
        self.paid: list[str] = []

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return await self.app.http.request(method, f"/api/v1{path}", json=body, headers=self.app.headers(**headers))

    async def subscribe(self, day: date, charge: str) -> None:
        body = {
            "amount_rub": "300.00",
            "interval": self.interval,
            "interval_count": self.count,
            "description": "Tea club",
            "binding_charge": charge,
        }
        made = await self.call("POST", "/subscriptions", body, Idempotency_Key=str(uuid4()))
        assert (made.status_code, made.json()["status"]) == (201, "pending_binding"), made.text
        self.id = made.json()["id"]
        await self.simulate("confirm", "active")
        self.anchor = day
        self.expected += [f"paid {self.ref(0)}", "active"]
        if charge == "first":
            self.paid.append(self.ref(0))

    async def simulate(self, outcome: str, status: str) -> None:
        told = await self.call("POST", f"/sandbox/subscriptions/{self.id}/simulate", {"outcome": outcome})
        assert (told.status_code, told.json()["status"]) == (200, status), told.text

    def opening(self, number: int) -> date:
        """The day on which period `number` after the anchor's opens."""
        if self.interval == "day":
            return self.anchor + number * self.count * DAY
        years, month = divmod(self.anchor.month - 1 + number * self.count, 12)
        year = self.anchor.year + years
        return date(year, month + 1, min(self.anchor.day, monthrange(year, month + 1)[1]))

    def number(self, day: date) -> int:
        number = 0
        while self.opening(number + 1) <= day:
            number += 1
        return number

    def ref(self, number: int) -> str:
        return f"a{self.opening(number):%Y%m%d}-{self.interval}{self.count}"

    async def charge(self, key: str | None = None) -> Any:
        body = {"amount_rub": "300.00", "external_id": f"round-{self.rounds}"}
        return await self.call("POST", f"/subscriptions/{self.id}/charges", body, Idempotency_Key=key or str(uuid4()))

    async def refused(self, code: str, opens: date | None = None) -> None:
        """A request that is too early or too late is refused, with the time from which it is possible."""
        response = await self.charge()
        assert (response.status_code, response.json()["error"]["code"]) == (409, code), response.text
        window = (await self.call("GET", f"/subscriptions/{self.id}/charge-window")).json()
        assert (window["can_charge"], window["reason"]) == (False, code)
        if opens is not None:
            shown = response.json()["error"]["details"]["next_allowed_at"]
            assert shown == f"{opens}T00:00:00.000+03:00"
            assert datetime.fromisoformat(window["next_allowed_at"]) == datetime.fromisoformat(shown)

    async def live(self, day: date) -> None:
        """The merchant's call of one day, with what must come of it."""
        if self.paused is not None and day < self.paused + REBIND_AFTER * DAY:
            await self.refused("CHARGE_MANDATE_INACTIVE")
            return
        if self.paused is not None:
            await self.rebind(day)
        if self.pending is not None and not await self.ended(day):
            return
        number = self.number(day)
        if number == 0:
            await self.refused("CHARGE_BEFORE_WINDOW", self.opening(1))
        elif self.tried == self.opening(number):
            await self.refused("RECURRING_CHARGE_EXHAUSTED", self.opening(number + 1))
        else:
            self.tried = self.opening(number)
            self.rounds += 1
            await self.round(day, self.ref(number), self.plan.get(self.rounds, ["paid"]))

    async def round(self, day: date, ref: str, results: list[Any]) -> None:
        attempts = 0
        for result in results if results[0] != "pending" else ["pending"]:
            await self.call("POST", f"/sandbox/subscriptions/{self.id}/next-charge", {"result": result})
            key = str(uuid4())
            response = await self.charge(key)
            attempts += 1
            if result == "unavailable":
                assert response.status_code == 503
                response = await self.charge(key)
                assert response.status_code == 200
            elif result in ("paid", "pending"):
                assert response.status_code == 201, response.text
            else:
                assert response.status_code == 502, response.text
                self.expected.append(f"failed {ref} {result}")
                if attempts == self.budget:
                    self.expected.append("exhausted " + ref)
                if result == "mandate_revoked":
                    self.expected.append("paused rebind")
                    self.paused = day
                continue
            assert (response.json()["status"], response.json()["period_ref"]) == ("pending", ref)
            if result == "pending":
                self.pending = (response.json()["id"], day + results[1] * DAY, results[2])
                return
            self.succeed(day, ref)
        if not self.expected[-1].startswith(("paid", "exhausted")):
            # The event comes when the hours end, on the same day or in the night.
            self.expected.append("exhausted " + ref)

    def succeed(self, day: date, ref: str) -> None:
        self.expected.append(f"paid {ref}")
        self.paid.append(ref)
        self.anchor = day

    async def ended(self, day: date) -> bool:
        """The charge that is pending blocks until the bank ends it."""
        assert self.pending is not None
        payment_id, until, outcome = self.pending
        response = await self.charge()
        assert (response.status_code, response.json()["id"]) == (200, payment_id)
        if day < until:
            return False
        ref = response.json()["period_ref"]
        told = await self.call("POST", f"/sandbox/payments/{payment_id}/simulate", {"outcome": outcome})
        assert told.json()["status"] == outcome, told.text
        self.pending = None
        if outcome == "paid":
            self.succeed(day, ref)
        else:
            self.expected += [f"failed {ref} declined_by_bank", "exhausted " + ref]
        return True

    async def rebind(self, day: date) -> None:
        """The payer consents again; no money moves, and the anchor stays."""
        made = await self.call("POST", f"/subscriptions/{self.id}/rebind", Idempotency_Key=str(uuid4()))
        assert made.status_code == 201, made.text
        assert made.json()["binding_url"].endswith(f"/s/{self.id}")
        await self.simulate("confirm", "active")
        self.paused = None
        self.expected += [f"paid {self.ref(self.number(day))}", "active"]

    def heard(self) -> list[str]:
        """Return the webhooks about this subscription and its payments, in order."""
        return [told(body) for body in self.app.postman.bodies if body.get("subscription_id") == self.id]

    async def listed(self) -> list[dict[str, Any]]:
        """Return all its charges by the API, the oldest first."""
        found: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = (await self.call("GET", f"/subscriptions/{self.id}/charges?per_page=100&page={page}")).json()
            found += answer["data"]
            if page >= answer["pagination"]["total_pages"]:
                return found[::-1]
            page += 1


def told(body: dict[str, Any]) -> str:
    """An event as a line."""
    if body["event"] == "subscription.charge_exhausted":
        return f"exhausted {body['period_ref']}"
    if body["event"] == "payment.status_changed":
        reason = f" {body['failure_reason']}" if "failure_reason" in body else ""
        return f"{body['status']} {body['period_ref']}{reason}"
    return f"{body['status']}{' rebind' if body.get('rebind_required') else ''}"


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    async with open_test_app() as opened:
        await opened.work((START - opened.clock.now()).total_seconds())
        yield opened


async def test_two_years_event_by_event(app: TestApp) -> None:
    monthly = Payer(app, "month", 1, 4, MONTHLY)
    often = Payer(app, "day", 3, 3, EVERY_3_DAYS)
    day = START.date()
    await monthly.subscribe(day, "first")
    await often.subscribe(day, "none")
    for _ in range(DAYS):
        for payer in (monthly, often):
            await payer.live(day)
        await app.work(DAY.total_seconds())
        day += DAY
    for payer in (monthly, often):
        assert payer.heard() == payer.expected
        assert payer.rounds > max(payer.plan), "all that was planned happened"
        await check_list(payer)
        assert len(set(payer.paid)) == len(payer.paid), "no period was paid twice"
    balance = (await monthly.call("GET", "/balance")).json()
    assert balance["pending_rub"] == f"{300 * (len(monthly.paid) + len(often.paid))}.00"
    await check_the_end(often)


async def check_list(payer: Payer) -> None:
    """Check the list of charges against the events. Bindings have no external_id, and took money if requested."""
    listed = await payer.listed()
    paid = [each["period_ref"] for each in listed if each["actual_amount_rub"] == "300.00"]
    assert paid == payer.paid
    own = [each for each in listed if each["external_id"] is not None]
    ended = [f"{each['status']} {each['period_ref']}" for each in own if each["status"] == "failed"]
    assert ended == [line.rpartition(" ")[0] for line in payer.expected if line.startswith("failed")]
    assert {each["payment_method"] for each in listed} == {"recurring"}
    rebound = payer.expected.count("active") - 1
    assert len(listed) - len(own) == 1 + rebound


async def check_the_end(payer: Payer) -> None:
    """Check that nothing is charged after the cancellation."""
    shown = (await payer.call("GET", f"/subscriptions/{payer.id}")).json()
    opened, closes = (datetime.fromisoformat(shown[f"current_period_{edge}"]) for edge in ("start", "end"))
    assert opened.astimezone(MOSCOW).date() == payer.anchor
    assert closes.astimezone(MOSCOW).date() == payer.opening(1)
    ended = await payer.call("POST", f"/subscriptions/{payer.id}/cancel")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    await payer.refused("CHARGE_MANDATE_INACTIVE")
    await payer.app.work(60)
    assert payer.heard() == [*payer.expected, "cancelled"]
