"""Exchanges: a merchant or an operator creates one for a client, and the client sends USDT or RUB in parts, too little
or too late. The observations are recorded for exchange_checks.py."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation
from cambist.core.domain.exchanges.orders import RubExchangeOrder
from cambist.core.domain.kyc.kyc import RegisterOrder
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.exchanges.creation import begin_exchange
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange
from cambist.core.usecases.kyc.register import register_client
from cambist.ports.faults import Fault
from tests.simulation.merchants import Merchant
from tests.simulation.network import BEGINNING, key_of
from tests.simulation.plan import FAULTS_END
from tests.simulation.swap_plans import Sending, Swap

if TYPE_CHECKING:
    from tests.simulation.world import World

BANK = "bank100000000004"
"""Where clients have their account."""
FINAL = ("completed", "failed", "expired", "cancelled")
_PAID_IN = ("usdt_received", "rub_sending", "completed")
"""USDT to RUB: the client did his part."""
_STEP = 100
"""The smallest part of USDT that the network moves, in units of 0.00000001."""


@dataclass
class Deal:
    """An exchange, and what merchant and client saw of it."""

    swap: Swap
    ids: set[str] = field(default_factory=set)
    """Exchange ids in the answers; a correct service returns one."""
    expires_at: datetime | None = None
    address: str | None = None
    asked: int = 0
    """Amount that the client must send, in units of 0.00000001 USDT or in kopecks."""
    promised: int = 0
    """Amount that the client receives, in the other currency."""
    statuses: list[str] = field(default_factory=list)
    cancelled: bool = False

    @property
    def exchange_id(self) -> str | None:
        return next(iter(self.ids), None)

    @property
    def invoice(self) -> str:
        """The bank's operation, RUB to USDT."""
        return invoice_operation(self.exchange_id or "")

    @property
    def wallet(self) -> str:
        """Address at which the client wants USDT, bought or returned; another one for each deal."""
        return tron_address(sha256(f"client {self.swap.phone}".encode()).digest()[:20])


class Desk:
    """A merchant's exchanges."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self._merchant = merchant
        self._chance = world.chance.of(f"desk/{merchant.number}")
        self.deals: list[Deal] = []

    async def know(self, phone: str) -> None:
        """A client is verified before all else."""
        self._world.verifier.trusted.add(phone)
        account = await self._account()
        order = RegisterOrder(phone=phone, email="client@example.com", user_type="individual")
        await register_client(self._world.office, account, Mode.LIVE, order)

    async def exchange(self, swap: Swap) -> None:
        """An exchange, from its making to its end."""
        deal = Deal(swap)
        self.deals.append(deal)
        if swap.takes_usdt:
            await asyncio.gather(*(self._order(deal) for _ in range(2 if swap.doubled else 1)))
        else:
            await self._begin(deal)
        if deal.exchange_id is None:
            return
        self._world.counts["exchanges"] += 1
        for sending in swap.sendings:
            self._world.begin(self._send(deal, sending))
        if swap.cancels_after is not None:
            self._world.begin(self._cancel(deal, swap.cancels_after))
        while self._world.loop.time() < FAULTS_END and (await self.look(deal)) not in FINAL:
            await self._world.network.sleep(self._chance.uniform(5.0, 900.0))

    async def _order(self, deal: Deal) -> None:
        """The merchant makes it: one key until there is an answer."""
        swap, world, merchant = deal.swap, self._world, self._merchant
        body = {"amount_usdt": str(swap.amount), "client_phone": swap.phone, "client_bank_id": BANK}
        body["external_id"] = f"swap-{swap.number}"
        key = key_of(world.plan.seed, "swap", swap.number)
        answer = await merchant.insist("POST", "/api/v1/exchanges", body, key)
        while answer.status == 502:  # there is no rate for a while
            await world.network.sleep(60.0)
            answer = await merchant.insist("POST", "/api/v1/exchanges", body, key)
        found = answer.json
        if answer.code == "IDEMPOTENCY_TERMINAL":  # it was made, and is over, while nobody was answered
            listed = await merchant.insist("GET", f"/api/v1/exchanges?external_id={body['external_id']}", None, None)
            found = listed.json["data"][0]
        elif answer.status not in (200, 201):
            world.fault(f"exchange {swap.number}: its creation was answered {answer.status} {answer.body!r}")
            return
        deal.ids.add(found["id"])
        if found["amount_usdt"] != f"{swap.amount}.00000000":
            world.fault(f"exchange {swap.number}: another amount was answered")
        deal.address, deal.asked = found["crypto_deposit_address"], swap.amount * 10**8
        deal.promised = round(Decimal(found["amount_rub"]) * 100)
        deal.expires_at = datetime.fromisoformat(found["expires_at"])

    async def _begin(self, deal: Deal) -> None:
        """Let an operator create it, and wait for the invoice."""
        swap, office = deal.swap, self._world.office
        order = RubExchangeOrder(amount_rub=f"{swap.amount}.00", client_phone=swap.phone, client_wallet=deal.wallet)
        caller = Caller(account=await self._account(), mode=Mode.LIVE, key_id="")
        for _ in range(30):
            try:
                made = await begin_exchange(office, caller, order, opens=swap.opens)
            except (Refusal, Fault):
                await self._world.network.sleep(60.0)
                continue
            deal.ids.add(made.id)
            deal.expires_at, deal.asked = made.expires_at, swap.amount * 100
            deal.promised = made.amount_usdt.units
            return

    async def _account(self) -> Account:
        found = await self._world.read(Account, self._merchant.account.account_id)
        assert found is not None
        return found

    async def _send(self, deal: Deal, sending: Sending) -> None:
        """Let the client send a part, if the address is known."""
        world = self._world
        assert deal.expires_at is not None
        end = (deal.expires_at - BEGINNING).total_seconds()
        at = end + sending.after if sending.from_end else world.loop.time() + sending.after
        await world.network.sleep(max(0.0, at - world.loop.time()))
        if deal.swap.takes_usdt:
            if deal.address is not None:
                units = deal.asked * sending.percent // 100 // _STEP * _STEP
                world.trace.tell(f"{units} units for {deal.exchange_id}")
                world.deposits.send(deal.address, units)
            return
        made = await world.read(Exchange, deal.exchange_id or "")
        if made is None or made.bank is None or made.invoice_reference is None:
            return
        bank, operation = world.banks[made.bank], deal.invoice
        kopecks = deal.asked * sending.percent // 100
        world.trace.tell(f"{kopecks} for {operation} at {bank.name}: {bank.pay(operation, kopecks)}")
        if sending.taken_back_after is not None:
            await world.network.sleep(sending.taken_back_after)
            world.trace.tell(f"the payer's bank takes back of {operation}: {bank.take_back(operation)}")

    async def _cancel(self, deal: Deal, after: float) -> None:
        await self._world.network.sleep(after)
        if deal.swap.takes_usdt:
            came = self._in_blocks(deal)
            answer = await self._merchant.insist("POST", f"/api/v1/exchanges/{deal.exchange_id}/cancel", {}, None)
            deal.cancelled = answer.status == 200
            if deal.cancelled and came & self._in_blocks(deal):
                self._world.fault(f"{deal.exchange_id} was called off, and USDT were on their way to it")
            if answer.status not in (200, 409):
                self._world.fault(f"{deal.exchange_id}: its calling off was answered {answer.status} {answer.body!r}")
            return
        with suppress(Refusal, Fault):
            await cancel_any_exchange(self._world.office, deal.exchange_id or "")
            deal.cancelled = True

    def _in_blocks(self, deal: Deal) -> set[tuple[str, datetime]]:
        """Return the client's transactions visible on the chain now, each with the time since when."""
        rows = (row for row in self._world.deposits.rows if row.address == deal.address)
        return {(row.tx_hash, row.included_at) for row in rows if row.included_at is not None}

    async def look(self, deal: Deal) -> str:
        """Return the current status. A final status at the time of the request must not change."""
        before = deal.statuses[-1] if deal.statuses else None
        answer = await self._merchant.insist("GET", f"/api/v1/exchanges/{deal.exchange_id}", None, None)
        if answer.status != 200:
            self._world.fault(f"{deal.exchange_id} was answered, and is {answer.status} now")
            return "failed"
        found: dict[str, Any] = answer.json
        status: str = found["status"]
        if before in FINAL and status != before:
            self._world.fault(f"{deal.exchange_id}: seen {before}, and {status} later")
        if (status in FINAL) is (found["completed_at"] is None):
            self._world.fault(f"{deal.exchange_id} is {status}, completed at {found['completed_at']}")
        if deal.swap.takes_usdt and status in _PAID_IN:
            final = sum(row.units for row in self._world.deposits.final(deal.address or ""))
            if final < deal.asked:
                self._world.fault(f"{deal.exchange_id} is {status}, and {final} of {deal.asked} units are final")
        deal.statuses.append(status)
        return status
