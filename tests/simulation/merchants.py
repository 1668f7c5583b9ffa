"""Merchants and their payers: their requests, the answers, and the webhooks that their receivers get. Everything
observed is recorded for the checkers, which know nothing else (checkers.py)."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from cambist.core.usecases.accounts.accounts import KeyPair, NewAccount
from tests.simulation.movements import Statement
from tests.simulation.network import BEGINNING, HttpAnswer, NoAnswer, key_of
from tests.simulation.plan import ENDS, EVENING, FAULTS_END, HOUR, MIDNIGHT, MORNING, TIGHT, Order, Payer, Return
from tests.simulation.receivers import Receiver

if TYPE_CHECKING:
    from tests.simulation.world import World

_BALANCE = ("available_usdt", "reserved_usdt", "pending_rub", "total_settled_usdt", "total_withdrawn_usdt")

OVERDRAFT = Decimal(10_000_000)
"""USDT that refunds may take below zero, of all merchants but TIGHT."""

_DOCUMENTED = {"KYC_PERSIST_FAILED"}
"""500 codes whose documentation says what merchants should do."""

KNOWN_IN = 5.0
"""Seconds after which every process follows an operator's change of a key, by a correct clock."""

GIVES_UP = 30.0
"""Seconds after which a merchant's client stops waiting for an answer."""

NEXT = {
    "pending": {"processing", "paid", "amount_mismatch", "failed", "cancelled", "expired"},
    "processing": {"paid", "amount_mismatch", "failed", "cancelled", "expired"},
    "expired": {"paid", "amount_mismatch"},
    "amount_mismatch": {"paid", "failed"},
    "paid": {"settled", "refunded"},
    "settled": {"refunded"},
    "refunded": {"paid", "settled"},
    "failed": set(),
    "cancelled": set(),
}
"""Status transitions of a payment, as docs/states.md documents them."""


def leads_to(before: str, after: str) -> bool:
    """Whether a payment can become so, in any number of moves."""
    seen, todo = {before}, [before]
    while todo:
        for each in sorted(NEXT[todo.pop()] - seen):
            seen.add(each)
            todo.append(each)
    return after in seen


@dataclass
class RefundWish:
    """A requested refund."""

    refund_id: str
    kopecks: int
    key: str
    body: dict[str, Any]
    """Body of the request."""
    cancelled: bool = False
    seen: list[str] = field(default_factory=list)


@dataclass
class Sale:
    """An order, and all that its merchant saw of it."""

    order: Order
    ids: set[str] = field(default_factory=set)
    """Payment ids in answers of status 200 and 201; a correct service returns one."""
    ended: int = 0
    """The last status of the creation."""
    statuses: list[str] = field(default_factory=list)
    refunds: list[RefundWish] = field(default_factory=list)
    created: dict[str, Any] | None = None

    @property
    def payment_id(self) -> str | None:
        return next(iter(self.ids), None)


class Merchant:
    """One merchant's client, written as documented: one key per intended object, and repeats until there is a definite
    answer."""

    def __init__(self, world: "World", number: int, account: NewAccount, receiver: Receiver, wallet: str) -> None:
        self._world = world
        self.number = number
        self.account = account
        self.receiver = receiver
        self.wallet = wallet
        self.overdraft = OVERDRAFT if number != TIGHT else Decimal(world.plan.overdraft)
        self.payer_phone: str | None = None
        """Phone of a verified client, where payments require one."""
        self.sales: list[Sale] = []
        self.waited: list[tuple[str, float]] = []
        """Requests with the seconds that each answer took."""
        self._chance = world.chance.of(f"merchant/{number}")
        self._haste = world.chance.of(f"haste/{number}")
        self.statement = Statement(world, self)
        self._settled = Decimal(0)
        self.pair = account.live
        self.rotated_at = 0.0

    def use(self, pair: KeyPair) -> None:
        """Ask with this pair from now on."""
        self.pair, self.rotated_at = pair, self._world.loop.time()

    async def sell(self, order: Order) -> None:
        """An order, from the first request to its last refund."""
        await self.follow(Sale(order))

    async def follow(self, sale: Sale, **more: str) -> None:
        """The same of a sale that somebody else follows, too. `more`: fields of the payment's creation."""
        order = sale.order
        self.sales.append(sale)
        body = {"amount_rub": rub(order.kopecks), "external_id": f"order-{order.number}", **more}
        if self.payer_phone is not None:
            body["client_phone"] = self.payer_phone
        asks = [self._create(sale, body) for _ in range(2 if order.doubled else 1)]
        await asyncio.gather(*asks)
        if sale.payment_id is None or sale.created is None:
            return
        self._world.counts["payments"] += 1
        payer = self._world.begin(self._pay(sale))
        for wish in order.returns:
            self._world.begin(self._return(sale, wish))
        while self._world.loop.time() < FAULTS_END:
            await self._sleep(self._until_next_poll())
            await self.look(sale)
            await self.poll_balance()
            if self._chance.random() < 0.1:
                await self.statement.look()
        await payer

    def _until_next_poll(self) -> float:
        """Often while much happens, seldom at night."""
        now = self._world.loop.time()
        dawn = MORNING[0] - now + self._chance.uniform(0.0, 600.0)
        is_night = EVENING[1] + HOUR < now < MORNING[0]
        return min(self._chance.uniform(5.0, 15_000.0), dawn) if is_night else self._chance.uniform(5.0, 2000.0)

    async def _create(self, sale: Sale, body: dict[str, Any]) -> None:
        key = key_of(self._world.plan.seed, "order", sale.order.number)
        answer = await self.insist("POST", "/api/v1/payments", body, key)
        sale.ended = answer.status
        if answer.status in (200, 201):
            sale.ids.add(answer.json["id"])
            sale.created = answer.json
            if answer.json["amount_rub"] != body["amount_rub"]:
                self._world.fault(f"order {sale.order.number}: another amount was answered")
        elif answer.status != 502 and (answer.status, answer.code) != (400, "PAYMENT_ROUTE_UNAVAILABLE"):
            self._world.fault(f"order {sale.order.number}: its creation was answered {answer.status} {answer.body!r}")

    async def _pay(self, sale: Sale) -> None:
        order, created = sale.order, sale.created
        assert created is not None
        ends = (datetime.fromisoformat(created["expires_at"]) - BEGINNING).total_seconds()
        match order.payer:
            case Payer.NEVER:
                return
            case Payer.AT_THE_END:
                wait = ends - self._world.loop.time() + self._chance.uniform(-1.0, 1.0)
            case Payer.LATE:
                wait = ends - self._world.loop.time() + self._chance.uniform(1.0, 15_000.0)
            case Payer.TOO_LATE:
                wait = ends - self._world.loop.time() + 22_000.0
            case Payer.AT_MIDNIGHT:
                wait = MIDNIGHT - self._world.loop.time()
            case _:
                wait = order.pays_after
        await self._sleep(max(0.0, wait))
        kopecks = order.kopecks - 1 if order.payer is Payer.OTHER else order.kopecks
        pause: float | None = 0.0
        for _ in range(2 if order.payer is Payer.TWICE else 1):
            await self._world.pay(created["id"], kopecks, when_asked=pause is None)
            pause = self._chance.choice((0.0, None, 300.0))
            await self._sleep(pause or 0.0)

    async def _return(self, sale: Sale, wish: Return) -> None:
        pause = 300.0
        while (await self.look(sale)) not in ("paid", "settled"):
            await self._sleep(self._chance.uniform(1.0, pause))
            pause = min(pause * 1.5, 4000.0)  # a sale that is not paid soon is rarely paid at all
            if self._world.loop.time() > FAULTS_END or (sale.statuses and sale.statuses[-1] in ("failed", "refunded")):
                return
        await self._sleep(wish.after if wish.at is None else max(0.0, wish.at - self._world.loop.time()))
        kopecks = sale.order.kopecks * wish.percent // 100
        body: dict[str, Any] = {"payment_id": sale.payment_id}
        if wish.percent != 100:
            body["amount_rub"] = rub(kopecks)
        key = key_of(self._world.plan.seed, "refund", sale.order.number, sale.order.returns.index(wish))
        answer = await self.make("/api/v1/refunds", body, key)
        if answer.status not in (200, 201):
            return
        self._world.counts["refunds"] += 1
        made = RefundWish(answer.json["refund_id"], round(Decimal(answer.json["amount_rub"]) * 100), key, body)
        sale.refunds.append(made)
        if wish.cancels_late:
            await self._hear_of(made)
        if wish.cancels_late or wish.cancels_after is not None:
            await self._sleep(wish.cancels_after or 0.0)
            cancelled = await self.insist("POST", f"/api/v1/refunds/{made.refund_id}/cancel", {}, None)
            made.cancelled = cancelled.status == 200

    async def _hear_of(self, wish: RefundWish) -> None:
        """Wait until the webhook of a refund's move arrives."""
        while not self.receiver.of("refund_id", wish.refund_id)[1:] and self._world.loop.time() < FAULTS_END:
            await self._sleep(self._chance.uniform(5.0, 20.0))

    async def look(self, sale: Sale) -> str | None:
        """Read the payment's status, and check that it follows from the status seen when the request began: requests
        run concurrently, and an answer may be late."""
        before = sale.statuses[-1] if sale.statuses else "pending"
        answer = await self.insist("GET", f"/api/v1/payments/{sale.payment_id}", None, None)
        if answer.status != 200:
            self._world.fault(f"{sale.payment_id} was answered, and is {answer.status} now")
            return None
        status = str(answer.json["status"])
        if answer.json["amount_rub"] != rub(sale.order.kopecks):
            self._world.fault(f"{sale.payment_id}: its amount changed")
        settled, paid = answer.json["settled_at"], answer.json["paid_at"]
        if settled is not None and paid[:10] >= settled[:10]:
            self._world.fault(f"{sale.payment_id}: paid at {paid}, and settled on the same day, at {settled}")
        if not leads_to(before, status):
            self._world.fault(f"{sale.payment_id}: seen {before}, and {status} later")
        if not sale.statuses or leads_to(sale.statuses[-1], status):
            sale.statuses.append(status)
        return status

    async def poll_balance(self) -> dict[str, Decimal]:
        """Read the balance. Check that its parts always agree and that the settled total never falls."""
        before = self._settled
        answer = await self.insist("GET", "/api/v1/balance", None, None)
        found = {name: Decimal(value) for name, value in answer.json.items() if name in _BALANCE}
        parts = found["available_usdt"] + found["reserved_usdt"] + found["total_withdrawn_usdt"]
        if max(parts, before) > found["total_settled_usdt"]:
            self._world.fault(f"merchant {self.number}: {before} were settled, and {parts} are there: {found}")
        self._settled = found["total_settled_usdt"]
        if found["available_usdt"] < -self.overdraft:
            self._world.fault(f"merchant {self.number}: its balance is below its overdraft: {found}")
        return found

    async def make(self, path: str, body: Any, key: str) -> HttpAnswer:
        """Ask for a new thing until there is a definite answer; hasty clients do so twice at once. One key is one
        thing, which one of the two has made."""
        asks = 2 if self._haste.random() < self._world.plan.haste else 1
        answers = await asyncio.gather(*(self.insist("POST", path, body, key) for _ in range(asks)))
        made = [answer for answer in answers if answer.status in (200, 201)]
        if len({answer.json["id"] for answer in made}) > 1 or [answer.status for answer in made] == [201, 201]:
            self._world.fault(f"{path}: of one key at once {[answer.body for answer in made]!r}")
        self._world.counts["twice at once"] += asks - 1
        return (made or answers)[0]

    async def insist(self, method: str, path: str, body: Any, key: str | None, *, in_test: bool = False) -> HttpAnswer:
        """Repeat the request until there is a definite answer; 429, 503 and timeouts are temporary. `in_test` uses the
        keys of test mode, which are never rotated."""
        pause = 1.0
        while True:
            pair = self.account.test if in_test else self.pair
            try:
                answer = await self.ask(method, path, body, key, pair)
            except NoAnswer:
                answer = HttpAnswer(0, b"")
            if answer.status == 401 and not in_test and pair is not self.pair:
                continue  # another one is in force meanwhile
            if answer.status == 401 and not in_test and self.rotated_at + KNOWN_IN > self._world.loop.time():
                answer = HttpAnswer(0, b"")  # not every process knows it yet
            if answer.status == 500 and self._world.database.damage.befalls(self.account.account_id):
                answer = HttpAnswer(0, b"")  # a row of his cannot be read
            if answer.status not in (0, 429, 502, 503) and answer.status >= 500 and answer.code not in _DOCUMENTED:
                self._world.fault(f"{method} {path}: {answer.status} {answer.body!r}")
            if answer.status not in (0, 429, 503):
                return answer
            if self._world.loop.time() > ENDS + 3600:
                self._world.fault(f"{method} {path}: nobody answers")
                return answer
            await self._sleep(pause * self._chance.uniform(0.5, 1.5))
            pause = min(pause * 2, 30.0)

    async def ask(self, method: str, path: str, body: Any, key: str | None, pair: KeyPair | None = None) -> HttpAnswer:
        """Ask once. `pair`: with this one. Raises: NoAnswer."""
        network = self._world.network
        headers = _headers(pair or self.pair, key)
        content = b"" if body is None else msgspec.json.encode(body)
        network.trace.tell(f"merchant {self.number} asks {method} {path} {content.decode()} {key}")
        await self._sleep(network.pause())
        if network.strikes("request_lost"):
            await self._sleep(GIVES_UP)
            raise NoAnswer
        began = self._world.loop.time()
        try:
            async with asyncio.timeout(GIVES_UP):
                answer = await self._world.request(method, path, headers, content)
        except TimeoutError:
            raise NoAnswer from None
        finally:
            self.waited.append((path, self._world.loop.time() - began))
        await self._sleep(network.pause())
        if network.strikes("answer_lost"):
            raise NoAnswer
        network.trace.tell(f"merchant {self.number} hears {answer.status} {answer.body.decode()}")
        return answer

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _headers(pair: KeyPair, key: str | None) -> tuple[tuple[bytes, bytes], ...]:
    given = (
        (b"x-api-key", pair.api_key.encode()),
        (b"x-api-secret", pair.api_secret.encode()),
        (b"content-type", b"application/json"),
    )
    return (*given, (b"idempotency-key", key.encode())) if key else given


def rub(kopecks: int) -> str:
    """As the interface writes it."""
    return f"{kopecks // 100}.{kopecks % 100:02d}"
