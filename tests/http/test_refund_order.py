"""In which order POST /refunds refuses (docs/concepts.md "What is refused first"; the table of the rules themselves is
`orders.RULES`).

The test starts from a request that breaks every rule at once; row after row heals one rule.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import msgspec

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.refunds.orders import RULES
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.usecases.accounts import terminals
from tests.invariants import everything
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app, told
from tests.tables import table

NOWHERE = "pay_00000000-0000-4000-8000-000000000000"


class Attempt:
    """A request that breaks every rule, made better one rule at a time."""

    def __init__(self, refunds: RefundApp) -> None:
        self.refunds = refunds
        self.headers = {**refunds.app.headers(), "X-Api-Secret": "0" * 64, "Content-Type": "text/plain"}
        self.body: dict[str, Any] = {"amount_rub": 1, "metadata": {"filler": "x" * 102_400}}
        self.paid = ""
        self.unpaid = ""

    async def prepare(self) -> None:
        ports, account_id = self.refunds.ports, self.refunds.app.account.account_id
        self.unpaid = (await self.refunds.app.created())["id"]
        self.paid = await self.refunds.paid()
        wish = TerminalWish(label="Any", credit_follows_receipt=True)
        await self.refunds.change(self.paid, method_id=(await terminals.create_terminal(ports, account_id, wish)).id)
        payment = await self.refunds.payment(self.paid)
        async with beneath(ports).unit() as unit:
            for number in range(10):
                unit[Refund].add(
                    Refund(
                        id=f"ref_{UUID(int=number)}",
                        account_id=account_id,
                        mode=payment.mode,
                        payment_id=payment.id,
                        shop_id=payment.shop_id,
                        status=RefundStatus.CANCELLED,
                        amount=payment.amount,
                        created_at=payment.created_at,
                    )
                )
            await unit.commit()
        await self.refunds.set(refunds="false")

    async def send(self) -> httpx.Response:
        return await self.refunds.app.http.post(
            "/api/v1/refunds", content=msgspec.json.encode(self.body), headers=self.headers
        )


Heal = Callable[[Attempt], Awaitable[None] | None]


class Row(msgspec.Struct, frozen=True):
    """A rule, what breaking it is answered with, and how it is healed."""

    rule: str
    status: int
    code: str
    heal: Heal


def put(**fields: Any) -> Heal:
    def heal(attempt: Attempt) -> None:
        attempt.body |= fields
        attempt.body = {name: value for name, value in attempt.body.items() if value is not None}

    return heal


def head(**headers: str) -> Heal:
    return lambda attempt: attempt.headers.update({name.replace("_", "-"): value for name, value in headers.items()})


async def one_less(attempt: Attempt) -> None:
    async with beneath(attempt.refunds.ports).unit() as unit:
        gone = await unit[Refund].get(f"ref_{UUID(int=0)}")
        assert gone is not None
        unit[Refund].remove(gone)
        await unit.commit()


ROWS = (
    Row("body size", 413, "PAYLOAD_TOO_LARGE", put(metadata=None)),
    Row("authorization", 401, "Unauthorized", lambda a: a.headers.update(a.refunds.app.headers())),
    Row("feature", 404, "NOT_FOUND", lambda a: a.refunds.set(refunds="true")),
    Row("key is given", 400, "MISSING_IDEMPOTENCY_KEY", head(Idempotency_Key="no-uuid")),
    Row("key is a uuid", 400, "VALIDATION_ERROR", head(Idempotency_Key=str(UUID(int=3)))),
    Row("content type", 400, "VALIDATION_ERROR", head(Content_Type="application/json")),
    Row("json", 400, "VALIDATION_ERROR", put(payment_id=NOWHERE, amount_rub="1e3")),
    Row("shape", 400, "VALIDATION_ERROR", put(amount_rub="-0.01")),
    Row("payment is found", 404, "PAYMENT_NOT_FOUND", lambda a: a.body.update(payment_id=a.unpaid)),
    Row("payment is refundable", 409, "INVALID_STATUS", lambda a: a.body.update(payment_id=a.paid)),
    Row("applications", 409, "LIMIT_PER_PAYMENT", one_less),
    Row("above zero", 400, "INVALID_AMOUNT", put(amount_rub="99.99")),
    Row("whole before settlement", 400, "PARTIAL_BEFORE_SETTLEMENT", put(amount_rub="100.01")),
    Row("within remainder", 400, "OVER_REMAINING", put(amount_rub="100.00")),
)


def test_every_rule_of_the_domain_has_its_row() -> None:
    assert [row.rule for row in ROWS][-len(RULES) :] == [rule.name for rule in RULES]


@table("number", range(len(ROWS)), ids=[row.rule for row in ROWS])
async def test_each_refusal_beats_those_below_it(number: int) -> None:
    async with open_refund_app(made_up=True) as refunds:
        attempt = Attempt(refunds)
        await attempt.prepare()
        for row in ROWS[:number]:
            healed = row.heal(attempt)
            if healed is not None:
                await healed
        assert told(await attempt.send()) == (ROWS[number].status, ROWS[number].code)
        assert [refund for refund in await everything(refunds.ports, Refund) if refund.key_id is not None] == []


async def test_order_that_breaks_no_rule_is_accepted() -> None:
    async with open_refund_app(made_up=True) as refunds:
        attempt = Attempt(refunds)
        await attempt.prepare()
        for row in ROWS:
            healed = row.heal(attempt)
            if healed is not None:
                await healed
        assert (await attempt.send()).status_code == 201
