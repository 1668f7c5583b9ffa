"""Delivery proofs: a merchant sells USDT through an exchange terminal, sends them to the client, and submits the
hashes. Answers and observations are recorded for proof_checks.py."""

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.terminals import create_terminal
from tests.simulation.explorer import NETWORKS
from tests.simulation.merchants import Merchant, Sale
from tests.simulation.plan import FAULTS_END, Order, Payer, Return
from tests.simulation.proof_plans import Handover, Sent, Submission, hash_of

if TYPE_CHECKING:
    from tests.simulation.world import World

OF_HANDOVERS = 2000
"""Orders by an exchange terminal are numbered from it."""
LOCKED = ("confirmed", "confirmed_amount_differs")
_REFUSALS = ("INVALID_STATUS", "DELIVERY_PROOF_LOCKED", "DELIVERY_PROOF_CONFLICT")

Named = tuple[str, str]
"""A network, as merchants name it, and a hash."""


@dataclass
class Asked:
    """A submission and its result."""

    named: Named
    began: float
    ended: float
    code: str | None
    """Error code of a refusal; None if the submission was accepted."""


@dataclass
class Proof:
    """The merchant's knowledge of a handover."""

    handover: Handover
    sale: Sale
    asked: list[Asked] = field(default_factory=list)
    seen: list[tuple[Named, str]] = field(default_factory=list)
    """Submitted transactions seen, each with its status."""


class Till:
    """A merchant's payments by an exchange terminal."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self.merchant = merchant
        self._chance = world.chance.of(f"till/{merchant.number}")
        self._method = ""
        self.proofs: list[Proof] = []

    async def open(self) -> None:
        """An operator agrees two terminals with the merchant; the older one takes what names none."""
        office, account_id = self._world.office, self.merchant.account.account_id
        await create_terminal(office, account_id, TerminalWish(label="shop"))
        exchange = await create_terminal(office, account_id, TerminalWish(label="exchange", kind="exchange"))
        await set_settings(office, account_id, {"terminals": "true"})
        self._method = exchange.id

    async def hand_over(self, handover: Handover) -> None:
        """Run a payment from its creation to the last poll of its proof."""
        world, merchant = self._world, self.merchant
        proof = Proof(handover, Sale(_order(handover)))
        self.proofs.append(proof)
        world.begin(merchant.follow(proof.sale, method_id=self._method))
        if not await self._paid(proof):
            return
        world.counts["handovers"] += 1
        worth = await self._worth(proof)
        for number, sent in enumerate(handover.sent):
            world.network.soon(sent.after, self._sending(handover, number, sent, worth))
        for submission in handover.submissions:
            world.begin(self._submit(proof, submission))
        while world.loop.time() < FAULTS_END:
            await world.network.sleep(self._chance.uniform(5.0, 6000.0))
            await self.look(proof)

    async def _paid(self, proof: Proof) -> bool:
        """Wait until the merchant sees that it is paid; False: it will not be."""
        wanted = ("settled",) if proof.handover.once_settled else ("paid", "settled")
        while self._world.loop.time() < FAULTS_END:
            await self._world.network.sleep(self._chance.uniform(1.0, 120.0))
            if proof.sale.payment_id is None:
                if proof.sale.ended:
                    return False
                continue
            status = await self.merchant.look(proof.sale)
            if status in wanted:
                return True
            if status in ("failed", "refunded"):
                return False
            await self._world.network.sleep(600.0 if status == "paid" else 0.0)
        return False

    async def _worth(self, proof: Proof) -> int:
        """Return the value in units of 0.00000001 USDT: by the settlement, or by the current rate before it."""
        path = f"/api/v1/payments/{proof.sale.payment_id}"
        credit = (await self.merchant.insist("GET", path, None, None)).json["amount_usdt"]
        if credit is not None:
            return int(Decimal(credit) * 10**8)
        rate = Decimal((await self.merchant.insist("GET", "/api/v1/rates", None, None)).json["rate_merchant"])
        return int(Decimal(proof.handover.kopecks) * 10**6 / rate)

    def _sending(self, handover: Handover, number: int, sent: Sent, worth: int) -> Any:
        tx_hash = hash_of(self._world.plan.seed, handover.number, number)
        moves = tuple(worth * each // 1000 for each in sent.moves)

        def send() -> None:
            self._world.trace.tell(f"{sent.network} {tx_hash} moves {moves}: {sent.fate.value}")
            self._world.explorer.send(NETWORKS[sent.network], tx_hash, moves, sent.fate)

        return send

    async def _submit(self, proof: Proof, submission: Submission) -> None:
        """The merchant submits a hash, or that of another."""
        await self._world.network.sleep(submission.after)
        sent = next((each.sent for each in self._world.plan.handovers if each.number == submission.handover), ())
        network = sent[submission.sent].network if 0 <= submission.sent < len(sent) else "TRC20"
        named = network, hash_of(self._world.plan.seed, submission.handover, submission.sent)
        await asyncio.gather(*(self._ask(proof, named) for _ in range(2 if submission.doubled else 1)))
        await self.look(proof)

    async def _ask(self, proof: Proof, named: Named) -> None:
        world, (network, tx_hash) = self._world, named
        path = f"/api/v1/payments/{proof.sale.payment_id}/delivery-proof"
        asked = Asked(named, world.loop.time(), world.loop.time(), "nobody answered")
        proof.asked.append(asked)
        answer = await self.merchant.insist("POST", path, {"network": network, "tx_hash": tx_hash}, None)
        asked.ended, asked.code = world.loop.time(), answer.code
        if answer.status == 200:
            self._note(proof, answer.json)
            if (answer.json["network"], answer.json["tx_hash"]) != named:
                world.fault(f"{path}: {named} was submitted, and {answer.body!r} answered")
        elif answer.code not in _REFUSALS:
            world.fault(f"{path}: a submission was answered {answer.status} {answer.body!r}")
        elif answer.code == "DELIVERY_PROOF_LOCKED" and (await self.look(proof))["status"] not in LOCKED:
            world.fault(f"{path}: a submission was refused as locked, and it is {proof.seen[-1:]}")

    async def look(self, proof: Proof) -> dict[str, Any]:
        """Return its state."""
        path = f"/api/v1/payments/{proof.sale.payment_id}/delivery-proof"
        answer = await self.merchant.insist("GET", path, None, None)
        if answer.status != 200:
            self._world.fault(f"{path} is answered {answer.status} {answer.body!r}")
            return {"network": None, "tx_hash": None, "status": "unknown"}
        found: dict[str, Any] = answer.json
        if found["status"] != "waiting":
            self._note(proof, found)
        return found

    def _note(self, proof: Proof, found: dict[str, Any]) -> None:
        """Check that a confirmed proof stays confirmed, and is final on its chain when confirmed."""
        world, named = self._world, (found["network"], found["tx_hash"])
        now = named, found["status"]
        for before in proof.seen[-1:]:
            if before[1] in LOCKED and before != now:
                world.fault(f"{proof.sale.payment_id}: its proof was {before}, and is {now} later")
        proof.seen.append(now)
        row = world.explorer.rows.get((NETWORKS[named[0]], named[1]))
        if found["status"] in LOCKED and (row is None or row.final_at is None):
            world.fault(f"{proof.sale.payment_id}: its proof is {now}, and not final: {row}")


def _order(handover: Handover) -> Order:
    """Return an order like the merchant's other ones."""
    returned = handover.returned_after
    return Order(
        number=OF_HANDOVERS + handover.number,
        at=handover.at,
        merchant=handover.merchant,
        kopecks=handover.kopecks,
        payer=Payer.PAYS,
        pays_after=handover.pays_after,
        returns=() if returned is None else (Return(returned, 100),),
    )
