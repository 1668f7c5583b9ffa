"""A merchant's view for embedding programs: the most common calls, and access to all others."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from uuid import UUID

import msgspec

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.payments.orders import Payer, PaymentOrder
from ...core.domain.payments.payments import FailureReason, Payment, PaymentStatus
from ...core.domain.refunds.orders import RefundOrder
from ...core.domain.refunds.refunds import Refund
from ...core.usecases.accounts.accounts import find_account
from ...core.usecases.common.account_time import test_clock_of
from ...core.usecases.ledger.balance import Balance, read_balance
from ...core.usecases.payments.list import PaymentFilter, list_payments
from ...core.usecases.payments.payments import create_payment, get_payment
from ...core.usecases.refunds.refunds import create_refund, get_refund
from ...core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ...ports.bundle import Ports
from ..http.edge.bodies import read_body

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

    def __init__(self, ports: Ports, account_id: str, mode: Mode) -> None:
        self._ports = ports
        self.account_id = account_id
        self.mode = mode

    def __repr__(self) -> str:
        return f"Merchant({self.account_id!r}, {self.mode.value!r})"

    async def do(
        self, use_case: Callable[Concatenate[Ports, Caller, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a use case of the core that takes ports and a caller, as this merchant.

        Raises: Refusal, also ACCOUNT_NOT_FOUND.
        """
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
            "amount_rub": _text(amount_rub),
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
        return made.resource

    async def payment(self, payment_id: str) -> Payment:
        """Return the current state of a payment. Raises: Refusal PAYMENT_NOT_FOUND."""
        return await self.do(get_payment, payment_id)

    async def payments(
        self,
        *,
        status: PaymentStatus | None = None,
        external_id: str | None = None,
        shop_id: str | None = None,
    ) -> AsyncIterator[Payment]:
        """Yield the merchant's payments, newest first. Pages are read as the iteration proceeds.

        Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND.
        """
        asked = PaymentFilter(status=None if status is None else status.value, external_id=external_id, shop_id=shop_id)
        seen: set[str] = set()
        number = 1
        while True:
            page = await self.do(list_payments, asked, number, _PAGE)
            for payment in page.records:
                # A payment created meanwhile moves the others to the next page.
                if payment.id not in seen:
                    seen.add(payment.id)
                    yield payment
            if number * _PAGE >= page.total:
                return
            number += 1

    def payment_url(self, payment: Payment) -> str:
        """Return the page for the payer. It works while this service's HTTP application or `cambist serve` runs at that
        address."""
        if payment.subscription_id is not None:
            return self._ports.urls.subscription_page(payment.subscription_id)
        return self._ports.urls.payment_page(payment.id)

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
            "amount_rub": None if amount_rub is None else _text(amount_rub),
            "external_id": external_id,
            "reason": reason,
            "metadata": metadata,
        }
        made = await self.do(create_refund, self._key(idempotency_key), _reader(fields, RefundOrder))
        return made.resource

    async def refund_state(self, refund_id: str) -> Refund:
        """Return the current state of a refund. Raises: Refusal REFUND_NOT_FOUND."""
        return await self.do(get_refund, refund_id)

    async def balance(self) -> Balance:
        """Return the merchant's balance, including pending amounts."""
        return await self.do(read_balance)

    async def simulate(
        self,
        payment_id: str,
        outcome: Outcome,
        *,
        actual_amount_rub: Amount | None = None,
        failure_reason: FailureReason | None = None,
        payer_name: str | None = None,
    ) -> Payment:
        """Let the simulated bank report an outcome, in test mode. Raises: Refusal, NOT_FOUND in live mode."""
        if self.mode is not Mode.TEST:
            from ...core.domain.errors import Refusal

            raise Refusal("NOT_FOUND", "Only payments of test mode can be simulated")
        wanted = PaymentSimulation(
            outcome=outcome,
            actual_amount_rub=None if actual_amount_rub is None else _text(actual_amount_rub),
            failure_reason=failure_reason,
            payer_name=payer_name,
        )
        return await self.do(simulate, payment_id, wanted)

    def _key(self, given: UUID | str | None) -> str:
        return self._ports.ids.uuid() if given is None else str(given)


def _text(amount: Amount) -> str:
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise TypeError(f"an amount is a str, an int or a Decimal, not {type(amount).__name__}")
    # Plain digits: a Decimal may print itself with an exponent.
    return format(amount, "f") if isinstance(amount, Decimal) else str(amount)


def _reader(fields: Mapping[str, Any], shape: type[T]) -> Callable[[], T]:
    """Return a function that decodes the arguments like a request's body, so that the same errors are raised."""
    given = {name: value for name, value in fields.items() if value is not None}
    return lambda: read_body(msgspec.json.encode(given), "application/json", shape)
