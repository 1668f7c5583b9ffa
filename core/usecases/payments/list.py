"""Lists of payments whose cost does not grow with the number of payments (docs/payments.md "Finding payments").

Totals come from tallies. A page far from the top, or by a filter without an index, is found by days: tallies hold the
number of matching payments per day, so whole days are skipped unread, and only the days of the page are walked, from
the nearer end. The rate limit bounds a day to 172 800 payments per key.
"""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between, Snapshot
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import PAYMENT_METHODS
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.ids import canonical_uuid
from ...domain.money import Rub
from ...domain.payments.orders import EXTERNAL_ID_LONGEST
from ...domain.payments.payer_contact import masked_contact
from ...domain.payments.payments import RECURRING, USUAL_STATUSES, Payment, PaymentStatus
from ...domain.payments.tallies import Tally, day_end, day_ids, day_of, day_start, ever_ids, stretch
from ..common.paging import ListFilter, Page, Position, newest, walk_newest

_NEWEST_FIRST = "-created_at"
_NEAR = 1000
"""Largest offset that is walked rather than skipped by days."""
_INDEXED = ("external_id", "payer_email_digest", "payer_contact", "subscription_id", "shop_id", "status")
"""Filters with an index of their own, the most selective first; a status only if it is not among USUAL_STATUSES."""
_TAIL = re.compile(r"[0-9]{4}\Z", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{32}\Z", re.ASCII)
_NOT_INDEXED = "payment_method"
"""The only filter of the tallies without any index. No index covers two filters."""
_RECENT = (timedelta(days=8), timedelta(days=64))
"""Spans of newest days in which a page is looked for first."""


class PaymentFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /payments; None when absent."""

    shop_id: str | None = None
    status: str | None = None
    payment_method: str | None = None
    subscription_id: str | None = None


class PaymentSearch(PaymentFilter, frozen=True, kw_only=True):
    """A filter of people: also by what they know of a payment. Only searches and exports take it."""

    amount_rub: str | None = None
    number: str | None = None
    """The last eight characters of the id."""
    phone_tail: str | None = None
    """The last four digits of the payer's phone."""
    email_digest: str | None = None
    """Digest of the payer's e-mail address, in hex: whoever stores the filter stores no address."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A validated filter."""

    caller: Caller
    kind: dict[str, Any]
    """Filters that tallies count by: shop_id, status, payment_method."""
    named: dict[str, Any]
    """Filters with an index of their own that match few payments: external_id, subscription_id, and those of a search
    by the payer's contact."""
    low: datetime | None
    high: datetime | None
    amount: Rub | None = None

    @property
    def owner(self) -> dict[str, Any]:
        return {"account_id": self.caller.account_id, "mode": self.caller.mode}

    @property
    def has_usual_status(self) -> bool:
        """Whether it selects a status that no index has."""
        return self.kind.get("status") in USUAL_STATUSES

    @property
    def has_index(self) -> bool:
        """Whether one index leads to exactly the payments that the tallies count by these filters."""
        return not self.kind or (len(self.kind) == 1 and _NOT_INDEXED not in self.kind and not self.has_usual_status)

    def by_index(self, first: Sequence[str] = _INDEXED) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the criteria of one index, which leads to the payments, and the other criteria: no index covers two
        filters. `first`: names of the filters whose index is preferred, in this order."""
        rest = {**self.named, **self.kind, **({} if self.amount is None else {"amount": self.amount})}
        name = next((name for name in first if name in rest and (name != "status" or not self.has_usual_status)), None)
        return {**self.owner, **({} if name is None else {name: rest.pop(name)})}, rest

    def criteria(self, low: datetime | None, high: datetime | None) -> dict[str, Any]:
        """Return the query criteria of the filter, from `low` (inclusive) to `high` (exclusive)."""
        return {**self.owner, **self.kind, **self.named, "created_at": Between(low, high)}


async def list_payments(ports: Ports, caller: Caller, asked: PaymentFilter, number: int, size: int) -> Page[Payment]:
    """Return a page of the caller's payments as of one moment, newest first; payments of the same moment by descending
    id.

    Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    wanted = await checked(ports, caller, asked)
    offset = (number - 1) * size
    look = _by_index if wanted.named else _by_tallies
    async with ports.storage.snapshot() as seen:
        total, payments = await look(seen, wanted, offset, size, ports.clock.now())
    return Page(payments, number, size, total)


async def walk_payments(
    ports: Ports, caller: Caller, asked: PaymentFilter, after: Position | None = None
) -> AsyncIterator[tuple[list[Payment], Position]]:
    """Return all payments of the filter in batches, newest first, each with the position behind it; `after`: only the
    payments behind this position. The filter is checked before the first batch.

    Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    wanted = await checked(ports, caller, asked)
    criteria, rest = wanted.by_index()

    def fits(payment: Payment) -> bool:
        return all(getattr(payment, name) == value for name, value in rest.items())

    return walk_newest(ports, Payment, Between(wanted.low, wanted.high), after, fits, **criteria)


async def checked(ports: Ports, caller: Caller, asked: PaymentFilter) -> Wanted:
    """Return the validated filter. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND."""
    wanted = _read(caller, asked)
    caller.require_shop(wanted.kind.get("shop_id"))
    if "shop_id" in wanted.kind:
        shop = await ports.storage.get(Shop, wanted.kind["shop_id"])
        if shop is None or shop.account_id != caller.account_id:
            raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")
    return wanted


async def _by_index(
    seen: Snapshot, wanted: Wanted, offset: int, size: int, _now: datetime
) -> tuple[int, list[Payment]]:
    criteria = wanted.criteria(wanted.low, wanted.high)
    page = await newest(seen, Payment, offset // size + 1, size, **criteria)
    return page.total, page.records


async def _by_tallies(
    seen: Snapshot, wanted: Wanted, offset: int, size: int, now: datetime
) -> tuple[int, list[Payment]]:
    if wanted.low is None and wanted.high is None:
        # Without a date range the total comes from tallies, and the first pages from an index if there is one.
        ever = Between(*ever_ids(wanted.caller.account_id, wanted.caller.mode))
        total = sum((await seen[Tally].sums("count", by="status", id=ever, **wanted.kind)).values())
        if offset >= total:
            return total, []
        if offset < _NEAR and wanted.has_index:
            criteria = wanted.criteria(None, None)
            return total, await seen[Payment].page(
                offset // size + 1, size, order=_NEWEST_FIRST, readable=True, **criteria
            )
        # Most pages lie within the last days. Read older tallies only when the page needs them.
        for back in _RECENT:
            days = await _tallied_days(seen, wanted, day_of(now - back), None)
            if sum(days.values()) >= min(offset + size, total):
                return total, await _by_days(seen, wanted, days, offset, size)
    days = await count_days(seen, wanted)
    return sum(days.values()), await _by_days(seen, wanted, days, offset, size)


async def count_days(seen: Snapshot, wanted: Wanted) -> dict[str, int]:
    """Return the number of matching payments per day. Only days that the range cuts are counted payment by payment."""
    # Sum the tallies by day, then recount the days that the range cuts.
    edges = {day_of(moment) for moment in (wanted.low, wanted.high) if moment is not None}
    first = None if wanted.low is None else day_of(wanted.low)
    last = None if wanted.high is None else day_of(wanted.high)
    days = await _tallied_days(seen, wanted, first, last)
    for day in edges:
        start, end = day_start(day), day_end(day)
        low, high = max(start, wanted.low or start), min(end, wanted.high or end)
        if (low, high) != (start, end):
            days[day] = 0 if low >= high else await seen[Payment].total(**wanted.criteria(low, high))
    return days


async def _tallied_days(seen: Snapshot, wanted: Wanted, first: str | None, last: str | None) -> dict[str, int]:
    range_ = Between(*day_ids(wanted.caller.account_id, wanted.caller.mode, first, last))
    return await seen[Tally].sums("count", by="period", id=range_, **wanted.kind)


async def _by_days(seen: Snapshot, wanted: Wanted, days: dict[str, int], offset: int, size: int) -> list[Payment]:
    place = stretch(days, offset, size)
    if place is None:
        return []
    start, end = day_start(place.first), day_end(place.last)
    criteria = wanted.criteria(max(start, wanted.low or start), min(end, wanted.high or end))
    repository = seen[Payment]
    # Walk from the nearer end: skip either the newer payments of these days, or the older ones.
    if place.skipped <= place.left:
        return await repository.page(1, place.taken, order=_NEWEST_FIRST, skip=place.skipped, readable=True, **criteria)
    oldest_first = _NEWEST_FIRST.removeprefix("-")
    found = await repository.page(1, place.taken, order=oldest_first, skip=place.left, readable=True, **criteria)
    return found[::-1]


def _read(caller: Caller, asked: PaymentFilter) -> Wanted:
    """Validate the filter. Raises: Refusal VALIDATION_ERROR for a value that no payment can have."""
    kind = {
        "shop_id": None if asked.shop_id is None else _shop_id(asked.shop_id),
        "status": None if asked.status is None else read_choice("status", asked.status, PaymentStatus),
        "payment_method": None if asked.payment_method is None else _method(asked.payment_method),
    }
    named = asked.criteria(EXTERNAL_ID_LONGEST)
    made: Between = named.pop("created_at")
    if asked.subscription_id is not None:
        named["subscription_id"] = _subscription_id(asked.subscription_id)
    amount = None
    if isinstance(asked, PaymentSearch):
        amount = None if asked.amount_rub is None else _amount(asked.amount_rub)
        named |= _contact(asked)
    return Wanted(
        caller=caller,
        kind={name: value for name, value in kind.items() if value is not None},
        named=named,
        low=made.low,
        high=made.high,
        amount=amount,
    )


def _amount(text: str) -> Rub:
    try:
        return Rub.parse(text)
    except ValueError as error:
        raise shape_error("amount_rub", str(error)) from None


def _contact(asked: PaymentSearch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if asked.number is not None:
        found["number"] = asked.number
    if asked.phone_tail is not None:
        if not _TAIL.match(asked.phone_tail):
            raise shape_error("phone_tail", "has four digits")
        found["payer_contact"] = masked_contact(asked.phone_tail)
    if asked.email_digest is not None:
        if not _DIGEST.match(asked.email_digest):
            raise shape_error("email_digest", "is a digest of a search")
        found["payer_email_digest"] = bytes.fromhex(asked.email_digest)
    return found


def _shop_id(text: str) -> str:
    shop_id = canonical_uuid(text)
    if shop_id is None:
        raise shape_error("shop_id", "must be a UUID")
    return shop_id


def _method(text: str) -> str:
    known = (*PAYMENT_METHODS, RECURRING)
    if text not in known:
        raise shape_error("payment_method", f"must be one of: {', '.join(known)}")
    return text


def _subscription_id(text: str) -> str:
    if not ids.is_prefixed(ids.SUBSCRIPTION, text):
        raise shape_error("subscription_id", "must be the id of a subscription")
    return text
