"""Subscriptions: a merchant creates one, the payer binds, the merchant charges once a day; and their final checks."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cambist.core.domain.days import MOSCOW
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.payments.recurring import bound_by
from cambist.ports.mandates import ChargeStatus, MandateStatus
from tests.simulation.merchants import Merchant, rub
from tests.simulation.network import NoAnswer, key_of
from tests.simulation.plan import Membership
from tests.simulation.receivers import given_up

if TYPE_CHECKING:
    from tests.simulation.world import World

_TAKEN = ("paid", "settled", "refunded")
_OVER = (*_TAKEN, "failed", "expired", "cancelled")
_SEEN = re.compile(rb'name="amount" value="([0-9.]+)"')
_CLOCKS_OFF = timedelta(minutes=30)


@dataclass
class Member:
    """A membership, and what its merchant saw of it."""

    plan: Membership
    ids: set[str] = field(default_factory=set)
    charges: set[str] = field(default_factory=set)
    asked: list[tuple[str, Any, str, str]] = field(default_factory=list)
    """Path, body and key of each requested charge, with its answer."""
    cancelled: bool = False
    too_early: list[tuple[datetime, datetime]] = field(default_factory=list)
    """Moments of charges that were refused because their day was paid, and that day."""
    over: set[str] = field(default_factory=set)
    """Charges that were seen to have ended."""
    confirmed: dict[str, str | None] = field(default_factory=dict)
    """Bindings that the payer confirmed, and the amount that the page showed; None where the link was the bank's."""


class Club:
    """A merchant's subscriptions."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self._merchant = merchant
        self._chance = world.chance.of(f"club/{merchant.number}")
        self.members: list[Member] = []
        self.known: set[str] = set()
        """Charges that the API lists."""

    async def enrol(self, plan: Membership) -> None:
        """A membership, from its creation to its last charge."""
        member, world = Member(plan), self._world
        self.members.append(member)
        body = {"amount_rub": rub(plan.kopecks), "interval": "day", "description": "Club"}
        body["binding_charge"] = "first" if plan.takes_first else "none"
        if self._merchant.payer_phone is not None:
            body["client_phone"] = self._merchant.payer_phone
        key = key_of(world.plan.seed, "member", plan.number)
        answer = await self._merchant.make("/api/v1/subscriptions", body, key)
        if answer.status not in (200, 201):
            if answer.code != "PAYMENT_ROUTE_UNAVAILABLE":
                world.fault(f"member {plan.number}: {answer.status} {answer.body!r}")
            return
        subscription_id = answer.json["id"]
        member.ids.add(subscription_id)
        world.counts["subscriptions"] += 1
        if plan.reprices_after is not None:
            world.begin(self._reprice(subscription_id, max(0.0, plan.reprices_after), rub(plan.reprices_to)))
        await world.network.sleep(plan.confirms_after)
        world.begin(self._bind(member, subscription_id))
        if plan.loses_at is not None:
            world.begin(self._lose(member, subscription_id, plan.loses_at))
        for number, at in enumerate(plan.charges):
            world.network.soon(max(0.0, at - world.loop.time()), self._charging(member, subscription_id, number))
        if plan.cancels_at is not None:
            await world.network.sleep(max(0.0, plan.cancels_at - world.loop.time()))
            answer = await self._merchant.insist("POST", f"/api/v1/subscriptions/{subscription_id}/cancel", {}, None)
            member.cancelled = answer.status == 200 or answer.code == "INVALID_STATE"

    def _charging(self, member: Member, subscription_id: str, number: int) -> Any:
        return lambda: self._world.begin(self._charge(member, subscription_id, number))

    async def _bind(self, member: Member, subscription_id: str) -> None:
        """The payer reads the page and presses its button until a QR is shown, and confirms."""
        world, seen = self._world, None
        for _ in range(6):
            with suppress(NoAnswer):  # of the form too: the payer has seen the page then, and the form may have arrived
                page = await world.request("GET", f"/s/{subscription_id}", (), b"")
                if shown := _SEEN.search(page.body):
                    seen = shown[1].decode()
                    form = ((b"content-type", b"application/x-www-form-urlencoded"),)
                    await world.request("POST", f"/s/{subscription_id}/open", form, b"amount=" + shown[1])
            await world.network.sleep(self._chance.uniform(1.0, 120.0))
            record = await world.read(Subscription, subscription_id)
            binding = None if record is None else record.binding
            if binding is None or binding.qr_payload is None or binding.bank is None:
                continue
            if binding.operation not in member.confirmed:
                member.confirmed[binding.operation] = seen
                done = world.banks[binding.bank].confirm(binding.operation)
                world.trace.tell(f"{subscription_id} is confirmed at {binding.bank}: {done}")
                return

    async def _reprice(self, subscription_id: str, after: float, amount: str) -> None:
        """The merchant changes the amount; once the payer has confirmed less it is refused."""
        await self._world.network.sleep(after)
        path = f"/api/v1/subscriptions/{subscription_id}"
        answer = await self._merchant.insist("PATCH", path, {"amount_rub": amount, "cap_amount_rub": amount}, None)
        refused = answer.code in ("INVALID_AMOUNT", "INVALID_STATE", "PAYMENT_ROUTE_UNAVAILABLE")
        if answer.status != 200 and not refused:
            self._world.fault(f"{subscription_id}: to its amount of {amount} was answered {answer.status}")

    async def _lose(self, member: Member, subscription_id: str, at: float) -> None:
        """The payer's bank no longer accepts the mandate. It does so again later, or the payer binds once more."""
        world, plan = self._world, member.plan
        await world.network.sleep(max(0.0, at - world.loop.time()))
        record = await world.read(Subscription, subscription_id)
        if record is None or record.mandate_bank is None or record.mandate_reference is None:
            return
        bank, reference = world.banks[record.mandate_bank], record.mandate_reference
        world.trace.tell(f"{bank.name} loses the mandate of {subscription_id}: {bank.lose(reference)}")
        if plan.rebinds:
            world.begin(self._rebind(member, subscription_id))
        if plan.regains_after is not None:
            await world.network.sleep(plan.regains_after)
            world.trace.tell(f"{bank.name} regains the mandate of {subscription_id}: {bank.regain(reference)}")

    async def _rebind(self, member: Member, subscription_id: str) -> None:
        """The merchant has the payer bind again, once it learned that it has to be."""
        for _ in range(20):
            await self._world.network.sleep(self._chance.uniform(10.0, 3000.0))
            seen = await self._merchant.insist("GET", f"/api/v1/subscriptions/{subscription_id}", None, None)
            if seen.json.get("status") != "paused":
                continue
            path = f"/api/v1/subscriptions/{subscription_id}/rebind"
            key = key_of(self._world.plan.seed, "rebind", member.plan.number)
            answer = await self._merchant.make(path, {}, key)
            if answer.status in (200, 201):
                await self._bind(member, subscription_id)
                return

    async def _charge(self, member: Member, subscription_id: str, number: int) -> None:
        plan = member.plan
        present = await self._merchant.insist("GET", f"/api/v1/subscriptions/{subscription_id}", None, None)
        amount = present.json["amount_rub"] if present.status == 200 else rub(plan.kopecks)
        body = {"amount_rub": amount, "external_id": f"member-{plan.number}-{number}"}
        for attempt in range(3):
            key = key_of(self._world.plan.seed, "charge", plan.number, number, attempt)
            path = f"/api/v1/subscriptions/{subscription_id}/charges"
            asked, over = self._world.now(), set(member.over)
            answer = await self._merchant.make(path, body, key)
            if answer.code == "CHARGE_BEFORE_WINDOW":
                member.too_early.append((asked, self._world.now()))
            if answer.status not in (200, 201):
                return
            charge_id = answer.json["id"]
            if charge_id in over:
                self._world.fault(f"member {plan.number} asked for a charge, and was answered {charge_id}, long over")
            member.charges.add(charge_id)
            if answer.status == 201:  # 200: perhaps another key's, that is not sent yet
                member.asked.append((path, body, key, charge_id))
            self._world.counts["charges"] += 1
            status = answer.json["status"]
            while status not in _OVER:
                await self._world.network.sleep(self._chance.uniform(5.0, 300.0))
                seen = await self._merchant.insist("GET", f"/api/v1/payments/{charge_id}", None, None)
                if seen.status != 200:
                    self._world.fault(f"charge {charge_id} was answered, and is {seen.status} now")
                    return
                status = seen.json["status"]
            member.over.add(charge_id)
            if status != "failed":
                return
            await self._world.network.sleep(self._chance.uniform(0.0, 600.0))

    async def judge(self) -> None:
        """Check that no period is charged twice, and that the merchant sees every debit of the bank."""
        for member in self.members:
            for path, body, key, charge_id in member.asked:
                again = await self._merchant.insist("POST", path, body, key)
                if again.status not in (200, 201) or again.json["id"] != charge_id:
                    self._world.fault(f"{charge_id} was answered, and to its key {again.status} {again.body!r} now")
            for subscription_id in sorted(member.ids):
                await self._judge(member, subscription_id)

    async def _judge(self, member: Member, subscription_id: str) -> None:
        world, merchant = self._world, self._merchant
        answer = await merchant.insist("GET", f"/api/v1/subscriptions/{subscription_id}", None, None)
        if answer.status != 200:
            world.fault(f"{subscription_id} was answered, and is {answer.status} now")
            return
        status = answer.json["status"]
        if member.cancelled and status not in ("cancelled", "expired"):
            world.fault(f"{subscription_id} was cancelled, and is {status}")
        told = merchant.receiver.of("subscription_id", subscription_id)
        lost = await given_up(world.office, subscription_id, {each.sequence for each in told})
        moves = [each.body["status"] for each in told if "status" in each.body]
        if not lost and (moves or ["pending_binding"])[-1] != status:
            world.fault(f"{subscription_id} is {status}, and {moves} was told")
        if sorted({each.sequence for each in told} | lost) != list(range(1, len(told) + len(lost) + 1)):
            world.fault(f"{subscription_id}: events {[each.sequence for each in told]} were told")
        listed = await merchant.insist(
            "GET", f"/api/v1/subscriptions/{subscription_id}/charges?per_page=100", None, None
        )
        charges = {each["id"]: each for each in listed.json["data"]}
        if not member.charges <= charges.keys():
            world.fault(
                f"{subscription_id}: charges that were answered are gone: {sorted(member.charges - charges.keys())}"
            )
        await self._judge_mandate(member, subscription_id, answer.json)
        # Binding anew is a payment that took nothing.
        taken = [each for each in charges.values() if each["status"] in _TAKEN and each["actual_amount_rub"] != "0.00"]
        periods = [each["period_ref"] for each in taken]
        if len(set(periods)) < len(periods):
            world.fault(f"{subscription_id}: a period was charged twice: {sorted(periods)}")
        self._judge_days(member, {each["period_ref"] for each in charges.values() if each["status"] in _TAKEN})
        exhausted = [each.body["period_ref"] for each in told if each.event == "subscription.charge_exhausted"]
        if len(set(exhausted)) < len(exhausted):
            world.fault(f"{subscription_id}: the end of the attempts was sent again: {exhausted}")
        self.known.update(charges)
        self._judge_charges(charges)

    async def _judge_mandate(self, member: Member, subscription_id: str, seen: dict[str, Any]) -> None:
        """Check that the mandate is chargeable if its bank says so, and for the amount that the payer confirmed."""
        status = seen["status"]
        record = await self._world.read(Subscription, subscription_id)
        if record is None or record.mandate_bank is None:
            return
        operation = (record.mandate_reference or "").partition(":")[2]
        agreed = member.confirmed.get(operation)
        if agreed is not None and Rub.parse(seen["cap_amount_rub"]) > Rub.parse(agreed):
            self._world.fault(f"{subscription_id} may take {seen['cap_amount_rub']}, and the payer saw {agreed}")
        row = self._world.banks[record.mandate_bank].mandates[operation]
        wanted = {"active": MandateStatus.ACTIVE, "paused": MandateStatus.LOST, "cancelled": MandateStatus.ENDED}
        if row.status is not wanted.get(status, row.status):
            self._world.fault(f"{subscription_id} is {status}, and its mandate {row.status} at {record.mandate_bank}")

    def _judge_days(self, member: Member, paid: set[str]) -> None:
        """Check that a charge refused because its day was paid had a payment on that day, by a clock that may be
        minutes off."""
        for asked, answered in member.too_early:
            moments = (asked - _CLOCKS_OFF, asked, answered, answered + _CLOCKS_OFF)
            if not paid & {f"a{moment.astimezone(MOSCOW):%Y%m%d}-day1" for moment in moments}:
                self._world.fault(f"member {member.plan.number} was refused at {asked}, and paid for {sorted(paid)}")

    def _judge_charges(self, charges: dict[str, Any]) -> None:
        at_banks = {row.operation: row for bank in self._world.banks.values() for row in bank.charges.values()}
        for charge_id, charge in charges.items():
            row = at_banks.get(charge_id)
            if charge["status"] not in _OVER:
                self._world.fault(f"charge {charge_id} has not ended: {charge['status']}")
            if row is not None and (row.status is ChargeStatus.PAID) is not (charge["status"] in _TAKEN):
                self._world.fault(f"charge {charge_id} is {charge['status']}, and {row.status} at the bank")


async def judge_mandates(world: "World") -> None:
    """Check that the banks hold no debit without a subscription, and no mandate of an ended one."""
    known = {charge_id for club in world.clubs for charge_id in club.known}
    for bank in world.banks.values():
        for row in bank.charges.values():
            if row.status is ChargeStatus.PAID and row.operation not in known:
                world.fault(f"{bank.name} took {row.operation}, of which no subscription knows")
        for mandate in bank.mandates.values():
            payment = await world.read(Payment, bound_by(mandate.operation) or "")
            known_by = None if payment is None else payment.subscription_id
            subscription = await world.read(Subscription, known_by or "")
            is_over = subscription is None or subscription.is_final
            if is_over and mandate.status is MandateStatus.ACTIVE:
                world.fault(f"{bank.name} still has the mandate {mandate.operation} of {known_by}, which is over")
