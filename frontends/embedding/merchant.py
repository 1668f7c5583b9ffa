"""A merchant's view for embedding programs: the most common calls, and access to all others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from uuid import UUID

import msgspec

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso_or_none
from ...core.domain.payments.orders import PaymentOrder
from ...core.domain.refunds.orders import RefundOrder
from ...core.usecases.accounts.accounts import find_account
from ...core.usecases.common.account_time import test_clock_of
from ...core.usecases.common.encrypted import open_event_body
from ...core.usecases.common.keyset import Cursor, Listed
from ...core.usecases.common.paging import MomentFilter
from ...core.usecases.ledger.balance import read_balance
from ...core.usecases.ledger.movements import browse_movements
from ...core.usecases.payments.list import PaymentFilter, walk_payments
from ...core.usecases.payments.payments import create_payment, get_payment
from ...core.usecases.refunds.list import RefundFilter, walk_refunds
from ...core.usecases.refunds.refunds import create_refund, get_refund
from ...core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ...core.usecases.settlement.statements import browse_settlements
from ...core.usecases.webhooks.events import EventQuery, browse_events
from ...ports.bundle import Ports
from ..client.events import EventType
from ..client.money import Balance
from ..client.movements import Movement
from ..client.payments import FailureReason, Payer, Payment, PaymentStatus
from ..client.refunds import Refund, RefundStatus
from ..client.settlements import Settlement
from ..client.webhooks import read_event
from ..http.edge.bodies import read_body
from .event_handler import Event
from .mounted import require_loop
from .records import balance_record, movement_records, payment_record, refund_record, settlement_record

P = ParamSpec("P")
T = TypeVar("T")

Amount = str | int | Decimal
"""Roubles: "490.00", 490 or Decimal("490.00"). A float raises TypeError, because it cannot represent money exactly."""

Outcome = Literal["processing", "paid", "failed", "cancelled", "amount_mismatch", "expired"]

_PAGE = 100


class Merchant:
    """One account in one mode. Created by `Service.merchant`; it has no state, so any number may exist.

    Every call raises Refusal for an error that a merchant would get: `code`, `status` and `message` are those of the
    API.
    """

    def __init__(self, ports: Ports, account_id: str, mode: Mode, loop: asyncio.AbstractEventLoop) -> None:
        self._ports = ports
        self._loop = loop
        self.account_id = account_id
        self.mode = mode

    def __repr__(self) -> str:
        return f"Merchant({self.account_id!r}, {self.mode.value!r})"

    async def do(
        self, use_case: Callable[Concatenate[Ports, Caller, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a use case of the core that takes ports and a caller, as this merchant.

        Raises: Refusal, also ACCOUNT_NOT_FOUND.
        """
        require_loop(self._loop)
        async with self._ports.storage.unit() as unit:
            account = await find_account(unit, self.account_id)
        caller = Caller(account=account, mode=self.mode, key_id="")
        with self._ports.clock.entered(test_clock_of(account, self.mode)):
            return await use_case(self._ports, caller, *args, **kwargs)

    async def create_payment(
        self,
        amount_rub: Amount,
        *,
        idempotency_key: UUID | str | None = None,
        external_id: str | None = None,
        description: str | None = None,
        shop_id: str | None = None,
        method_id: str | None = None,
        client_phone: str | None = None,
        client_email: str | None = None,
        payer: Payer | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl_minutes: int | None = None,
    ) -> Payment:
        """Create a payment. A repeat with the same key returns the same payment, whatever its other arguments; without
        a key every call creates one.

        Raises: Refusal, as POST /payments does. After PROVIDER_ERROR the key stays bound to that answer.
        """
        fields = {
            "amount_rub": amount_text(amount_rub),
            "external_id": external_id,
            "description": description,
            "shop_id": shop_id,
            "method_id": method_id,
            "client_phone": client_phone,
            "client_email": client_email,
            "payer": payer,
            "metadata": metadata,
            "ttl_minutes": ttl_minutes,
        }
        made = await self.do(create_payment, self._key(idempotency_key), _reader(fields, PaymentOrder))
        return payment_record(self._ports, made.resource)

    async def payment(self, payment_id: str) -> Payment:
        """Return the current state of a payment. Raises: Refusal PAYMENT_NOT_FOUND."""
        return payment_record(self._ports, await self.do(get_payment, payment_id))

    async def payments(
        self,
        *,
        status: PaymentStatus | str | None = None,
        external_id: str | None = None,
        shop_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> AsyncIterator[Payment]:
        """Yield the merchant's payments, newest first, in batches of constant memory.

        Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND.
        """
        asked = PaymentFilter(
            status=None if status is None else str(status),
            external_id=external_id,
            shop_id=shop_id,
            created_from=_moment(created_from),
            created_to=_moment(created_to),
        )
        async for batch, _ in await self.do(walk_payments, asked):
            for payment in batch:
                yield payment_record(self._ports, payment)

    async def refund(
        self,
        payment_id: str,
        amount_rub: Amount | None = None,
        *,
        idempotency_key: UUID | str | None = None,
        external_id: str | None = None,
        reason: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Refund:
        """Refund the remaining amount, or a given one. The account's setting `refunds` must be on.

        Raises: Refusal, as POST /refunds does.
        """
        fields = {
            "payment_id": payment_id,
            "amount_rub": None if amount_rub is None else amount_text(amount_rub),
            "external_id": external_id,
            "reason": reason,
            "metadata": metadata,
        }
        made = await self.do(create_refund, self._key(idempotency_key), _reader(fields, RefundOrder))
        return refund_record(made.resource)

    async def refund_state(self, refund_id: str) -> Refund:
        """Return the current state of a refund. Raises: Refusal REFUND_NOT_FOUND."""
        return refund_record(await self.do(get_refund, refund_id))

    async def refunds(
        self,
        *,
        status: RefundStatus | str | None = None,
        payment_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> AsyncIterator[Refund]:
        """Yield the merchant's refunds, newest first. Raises: Refusal VALIDATION_ERROR, NOT_FOUND."""
        asked = RefundFilter(
            status=None if status is None else str(status),
            payment_id=payment_id,
            created_from=_moment(created_from),
            created_to=_moment(created_to),
        )
        async for batch, _ in await self.do(walk_refunds, asked):
            for refund in batch:
                yield refund_record(refund)

    async def settlements(
        self, *, created_from: datetime | None = None, created_to: datetime | None = None
    ) -> AsyncIterator[Settlement]:
        """Yield the merchant's settlements by start time, newest first, including unfinished ones."""
        asked = MomentFilter(created_from=_moment(created_from), created_to=_moment(created_to))
        async for page in self._listed(browse_settlements, asked):
            for settlement in page:
                yield settlement_record(settlement)

    async def movements(
        self, *, created_from: datetime | None = None, created_to: datetime | None = None
    ) -> AsyncIterator[Movement]:
        """Yield the movements of the merchant's balances, newest first. Raises: Refusal PROVIDER_UNAVAILABLE while
        older entries are still being listed."""
        asked = MomentFilter(created_from=_moment(created_from), created_to=_moment(created_to))
        async for page in self._listed(browse_movements, asked):
            for movement in await movement_records(self._ports, page):
                yield movement

    async def events(
        self,
        *,
        type: EventType | str | None = None,  # noqa: A002 - the name of the field
        object_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> AsyncIterator[Event]:
        """Yield the merchant's events, newest first, for example to find those that a program missed. `attempt` is the
        number of attempts so far. Raises: Refusal VALIDATION_ERROR; VaultError."""
        asked = EventQuery(
            type=None if type is None else str(type),
            object_id=object_id,
            created_from=_moment(created_from),
            created_to=_moment(created_to),
        )
        async for page in self._listed(browse_events, asked):
            for told in page:
                yield Event(
                    id=told.event.id,
                    type=EventType(told.event.type),
                    account_id=self.account_id,
                    mode=self.mode,
                    sequence=told.event.sequence,
                    attempt=told.delivery.attempts,
                    payload=read_event(open_event_body(self._ports.vault, told.event)),
                )

    async def balance(self) -> Balance:
        """Return the merchant's balance, including pending amounts."""
        return balance_record(await self.do(read_balance))

    async def simulate(
        self,
        payment_id: str,
        outcome: Outcome,
        *,
        actual_amount_rub: Amount | None = None,
        failure_reason: FailureReason | str | None = None,
        payer_name: str | None = None,
    ) -> Payment:
        """Let the simulated bank report an outcome, in test mode. Raises: Refusal, NOT_FOUND in live mode."""
        if self.mode is not Mode.TEST:
            from ...core.domain.errors import Refusal

            raise Refusal("NOT_FOUND", "Only payments of test mode can be simulated")
        wanted = PaymentSimulation(
            outcome=outcome,
            actual_amount_rub=None if actual_amount_rub is None else amount_text(actual_amount_rub),
            failure_reason=None if failure_reason is None else str(failure_reason),
            payer_name=payer_name,
        )
        return payment_record(self._ports, await self.do(simulate, payment_id, wanted))

    async def _listed(
        self, browse: Callable[[Ports, Caller, Any, Cursor | None, int], Awaitable[Listed[T]]], asked: Any
    ) -> AsyncIterator[Sequence[T]]:
        cursor: Cursor | None = None
        while True:
            page = (await self.do(browse, asked, cursor, _PAGE)).page
            yield page.records
            if page.older is None:
                return
            cursor = Cursor(page.older)

    def _key(self, given: UUID | str | None) -> str:
        return self._ports.ids.uuid() if given is None else str(given)


def _moment(given: datetime | None) -> str | None:
    if given is not None and given.tzinfo is None:
        raise TypeError("a moment needs a time zone")
    return iso_or_none(given)


def amount_text(amount: Amount) -> str:
    """Return an amount as the API reads it. Raises: TypeError."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise TypeError(f"an amount is a str, an int or a Decimal, not {type(amount).__name__}")
    # Plain digits: a Decimal may print itself with an exponent.
    return format(amount, "f") if isinstance(amount, Decimal) else str(amount)


def _reader(fields: Mapping[str, Any], shape: type[T]) -> Callable[[], T]:
    """Return a function that decodes the arguments like a request's body, so that the same errors are raised."""
    given = {name: value for name, value in fields.items() if value is not None}
    return lambda: read_body(msgspec.json.encode(given), "application/json", shape)
