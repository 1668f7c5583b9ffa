"""Another attempt on the payer's page: a new payment of the same order, after one failed or expired
(docs/window.md "Another attempt")."""

from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller
from ...domain.errors import Refusal
from ...domain.payer.window import face, may_retry
from ...domain.payments.orders import RepeatedOrder
from ...domain.payments.payer_contact import repeated_order
from ...domain.payments.payments import RETRIES_MOST, Payment
from ..accounts.rate_limits import admit_stranger
from ..common.account_time import in_test_time
from ..common.encrypted import private_aad
from ..payments.payments import create_payment
from ..payments.retries import attempts_of, has_money
from .window import one_off

PRESSES = "retries"
PRESSES_PER_MINUTE = 10
"""Payments that one address may make by this button in a minute."""
_TRIES = 5


class Problem(StrEnum):
    """Why no payment was made."""

    BUSY = "busy"
    AWAY = "unavailable"


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """Result of pressing the button: the payment whose page comes next, or a problem."""

    payment_id: str | None = None
    problem: Problem | None = None


class _Over(Exception):
    """The payment cannot be tried again any more."""


@in_test_time(Payment)
async def press_retry(ports: Ports, payment_id: str, address: str) -> Retried | None:
    """Make a new payment of the same order, once for each payment; None when there is no such payment. `address`: the
    payer's, for the rate limit.

    An order has one open payment at a time: whoever presses again, also in another tab, gets the same new payment.
    A payment that cannot be tried again leads back to its own page, which says why.
    """
    payment, place = await _place(ports, payment_id)
    if payment is None:
        return None
    if place is not None:
        return Retried(payment_id=place)
    if (await admit_stranger(ports, f"{PRESSES}:ip", address, PRESSES_PER_MINUTE)).over:
        return Retried(problem=Problem.BUSY)
    account = await ports.storage.get(Account, payment.account_id)
    if account is None:
        return None
    caller = Caller(account=account, mode=payment.mode, key_id=payment.id)
    for _ in range(_TRIES):
        try:
            return Retried(payment_id=await _pay(ports, caller, payment))
        except Stale:
            continue
        except _Over:
            break
        except Refusal:
            # The bank's answer may be unknown: the payment exists, and its page follows it.
            _, place = await _place(ports, payment_id)
            return Retried(problem=Problem.AWAY) if place is None else Retried(payment_id=place)
    _, place = await _place(ports, payment_id)
    return Retried(payment_id=place or payment_id)


async def _place(ports: Ports, payment_id: str) -> tuple[Payment | None, str | None]:
    """Return the payment, and the id of the payment whose page the payer should see instead of a new one, if any."""
    async with ports.storage.unit() as unit:
        payment = await one_off(unit, payment_id)
        if payment is None:
            return None, None
        attempts = await attempts_of(unit, payment)
        account = await unit[Account].get(payment.account_id)
    if attempts[-1].id != payment.id:
        return payment, attempts[-1].id
    is_offered = account is not None and may_retry(account, payment, face(payment, ports.clock.now()))
    is_over = len(attempts) > RETRIES_MOST or any(has_money(each) for each in attempts)
    return payment, None if is_offered and not is_over else payment.id


async def _pay(ports: Ports, caller: Caller, payment: Payment) -> str:
    """Make the payment, and return its id. Raises: _Over; Stale if the first one changed meanwhile; Refusal."""

    async def besides(unit: Unit, made: Payment) -> Payment:
        present = await unit[Payment].get(payment.id)
        if present is None or present.retried_by is not None:
            raise _Over
        if not may_retry(caller.account, present, face(present, ports.clock.now())):
            raise _Over
        unit[Payment].save(msgspec.structs.replace(present, retried_by=made.id))
        return msgspec.structs.replace(made, retry_of=payment.id)

    made = await create_payment(
        ports, caller, ids.derived("", payment.id, PRESSES), lambda: _order(ports, payment), besides
    )
    return made.resource.id


def _order(ports: Ports, payment: Payment) -> RepeatedOrder:
    private = payment.private
    return repeated_order(payment, None if private is None else ports.vault.decrypt(private, private_aad(payment.id)))
