"""Automatic deletion of old test data (docs/sandbox.md "Forgetting"). A recurring job visits account after account, and
deletes some records of each, so that an account with much data delays only itself.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Below, OneOf, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.payments.payments import Payment
from ...domain.subscriptions.subscriptions import Subscription
from ..common.account_time import living_with
from .data import FORGOTTEN, Forget, Kind, forget_some

PORTION = 500
"""Records of one account that are deleted before the next account is visited."""
_ACCOUNTS = 20
"""Accounts of one run; small enough for the lease of the job."""
_AGAIN = timedelta(seconds=10)
_EVERY = timedelta(days=1)

log = logging.getLogger("cambist.sandbox")


class _Round(msgspec.Struct, frozen=True):
    """The position of the job, stored in its argument."""

    after: str = ""
    """The last account visited."""
    left: bool = False
    """Whether an account of this round has more data."""


async def expire(ports: Ports, job: Job) -> None:
    """Delete old test data of the next accounts. A round over all accounts is repeated after ten seconds while an
    account has more, otherwise after a day.
    """
    place = msgspec.json.decode(job.argument, type=_Round) if job.argument else _Round()
    async with ports.storage.unit() as unit:
        found = await unit[Account].find(id=AtLeast(f"{place.after}!"), order="id", limit=_ACCOUNTS, readable=True)
    left = place.left
    if ports.test_data_days:
        for account in found:
            left = await _expire(ports, account) or left
    now = ports.clock.now()
    if len(found) == _ACCOUNTS:
        argument, due = msgspec.json.encode(_Round(found[-1].id, left)).decode(), now
    else:
        argument, due = "", now + (_AGAIN if left else _EVERY)
    async with ports.storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(job, argument=argument, due=due, leased_until=None, attempts=0))
        await unit.commit()


async def _expire(ports: Ports, account: Account) -> bool:
    """Delete a portion of an account's old test data, and return whether there is more. A fault is logged, and skips
    only this account.
    """
    gone = 0
    try:
        async with living_with(ports, account.id, Mode.TEST):
            # Use the service's clock: an object created on a test clock that is ahead counts as younger than it is.
            before = ports.clock.real() - timedelta(days=ports.test_data_days)
            for kind in _EXPIRING:
                rows: dict[str, Any] = {**kind.rows(account.id, Mode.TEST), kind.order: Below(before)}
                gone += await forget_some(ports, kind, rows, PORTION - gone)
                if gone >= PORTION:
                    return True
    except Fault as fault:
        log.warning("old test data of %s stays for now: %s", account.id, fault)
    return False


def _but_recurring(forget: Forget) -> Forget:
    """Keep the payments of active subscriptions, because deleting a charge would free its period."""

    async def some(ports: Ports, unit: Unit, found: Any) -> int:
        named = tuple({each.subscription_id for each in found if each.subscription_id is not None})
        going = {
            each.id
            for each in (await unit[Subscription].find(id=OneOf(named), limit=len(named)) if named else [])
            if not each.is_final
        }
        gone = [each for each in found if each.subscription_id not in going]
        return await forget(ports, unit, gone) if gone else 0

    return some


def _but_going(forget: Forget) -> Forget:
    """Keep active subscriptions."""

    async def some(ports: Ports, unit: Unit, found: Any) -> int:
        gone = [each for each in found if each.is_final]
        return await forget(ports, unit, gone) if gone else 0

    return some


_STAYING: Mapping[type[Any], Callable[[Forget], Forget]] = {Payment: _but_recurring, Subscription: _but_going}


def _expiring(kind: Kind) -> Kind:
    staying = _STAYING.get(kind.record)
    return kind if staying is None else msgspec.structs.replace(kind, forget=staying(kind.forget))


_EXPIRING = tuple(_expiring(kind) for kind in FORGOTTEN if kind.order in ("created_at", "received_at", "started_at"))
"""Kinds that an index finds by age. The others are deleted with these, or have a cleanup of their own."""
