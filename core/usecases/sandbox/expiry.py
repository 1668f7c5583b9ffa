"""Test data is forgotten by itself once it is old (docs/sandbox.md "Forgetting"): a standing job goes from account to
account, some records of each, so that one account's amount of data costs only that account."""

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
from ..test_clock import living_with
from .data import FORGOTTEN, Forget, Kind, forget_some

PORTION = 500
"""Records of one account that are forgotten before the next account has its turn."""
_ACCOUNTS = 20
"""Accounts of one run: the lease of the job lasts longer."""
_AGAIN = timedelta(seconds=10)
_EVERY = timedelta(days=1)

log = logging.getLogger("cambist.sandbox")


class _Round(msgspec.Struct, frozen=True):
    """Where the job is; its argument."""

    after: str = ""
    """The last account that was looked at."""
    left: bool = False
    """An account of this round has more."""


async def expire(ports: Ports, job: Job) -> None:
    """Forget old test data of the next accounts. A round over all accounts is repeated while one of them has more, and
    after a day."""
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
    """Forget a portion of an account's old test data. Returns whether there is more. A fault is logged, and ends this
    account's turn alone."""
    gone = 0
    try:
        async with living_with(ports, account.id, Mode.TEST):
            # By the service's time: what was made at a test clock that is ahead counts as younger than it is.
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
    """Leave the payments of subscriptions that go on: the period of a charge must not become free again."""

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
    """Leave subscriptions that go on."""

    async def some(ports: Ports, unit: Unit, found: Any) -> int:
        gone = [each for each in found if each.is_final]
        return await forget(ports, unit, gone) if gone else 0

    return some


_STAYING: Mapping[type[Any], Callable[[Forget], Forget]] = {Payment: _but_recurring, Subscription: _but_going}


def _expiring(kind: Kind) -> Kind:
    staying = _STAYING.get(kind.record)
    return kind if staying is None else msgspec.structs.replace(kind, forget=staying(kind.forget))


_EXPIRING = tuple(_expiring(kind) for kind in FORGOTTEN if kind.order in ("created_at", "received_at", "started_at"))
"""Kinds that an index finds by their age. All others go with these, or have a tidying of their own."""
