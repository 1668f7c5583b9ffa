"""YooKassa's lists of payments, refunds and payouts, for reconciliation."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ....ports.faults import NotConfigured, Unavailable
from ....ports.reporting import ReportedEntry, ReportedKind, ReportedPage, ReportedState
from .bodies import BINDING, operation_of
from .calls import between
from .core import FIRST, Core
from .invoices import PAYMENTS
from .payouts import PAYOUTS
from .refunds import REFUNDS
from .shops import Shop
from .wire import Amount, Payment, Payout, Priced, Refund, Seen, is_ours_to_mend, transfers_of

_LISTS = (PAYMENTS, REFUNDS, PAYOUTS)
"""Lists in reading order. Merchants' shops have no payouts."""
_AFTER = "|"
"""Separates the list from its cursor."""
_STATES: Mapping[str, ReportedState] = {"succeeded": ReportedState.DONE, "canceled": ReportedState.FAILED}


class Reporting(Core):
    """Implement the port ReportingBank."""

    def owners(self) -> Sequence[str]:
        """Return the installation, if it has a shop or a gateway, and the merchants with their own shops."""
        merchants = [shop.owner for shop in self._shops.all() if shop.owner is not None]
        return ("", *merchants) if self._lists_of("") else merchants

    def owner_of(self, reference: str) -> str:
        """Return the owner from a reference built by `Shop.reference`."""
        return reference.rpartition("/")[0]

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        """Return a page of one list by `created_at`, which has milliseconds."""
        lists = self._lists_of(owner)
        path, _, theirs = (cursor or "".join(lists[:1])).partition(_AFTER)
        whose = self._gateway if path == PAYOUTS else self._shops.of_owner(owner)
        if path not in lists or whose is None:
            raise NotConfigured(f"yookassa: the credentials are gone of {owner or 'the installation'}")
        found, after = await self._calls.page(whose, path, between(since, until), theirs or None)
        listed = [entry for seen, raw in found if (entry := _READ[path](whose, seen, raw)) is not None]
        entries = tuple(entry for entry in listed if since <= entry.moment < until)
        return ReportedPage(entries=entries, next_cursor=_next(lists, path, after))

    def _lists_of(self, owner: str) -> Sequence[str]:
        has_shop = self._shops.of_owner(owner) is not None
        has_gateway = owner == "" and self._gateway is not None
        return tuple(path for path in _LISTS if (has_gateway if path == PAYOUTS else has_shop))


def _next(lists: Sequence[str], path: str, after: str | None) -> str | None:
    if after is not None:
        return f"{path}{_AFTER}{after}"
    rest = lists[lists.index(path) + 1 :]
    return rest[0] if rest else None


def _payment(shop: Shop, seen: Seen, raw: msgspec.Raw) -> ReportedEntry | None:
    made = _read(seen, raw, Payment)
    if made is None:
        return None
    operation, fee = operation_of(seen), None
    for transfer in transfers_of(made):
        fee = transfer.fee_kopecks
    own = f"{FIRST}.{made.id}" if made.metadata.get("kind") == BINDING else made.id
    return _entry(
        ReportedKind.PAYMENT,
        seen,
        made.status,
        made.amount,
        fee_kopecks=fee,
        reference=None if operation is None else shop.reference(own),
    )


def _refund(_shop: Shop, seen: Seen, raw: msgspec.Raw) -> ReportedEntry | None:
    made = _read(seen, raw, Refund)
    return None if made is None else _entry(ReportedKind.REFUND, seen, made.status, made.amount)


def _payout(_shop: Shop, seen: Seen, raw: msgspec.Raw) -> ReportedEntry | None:
    """Build the entry of a payout. A payout that was cancelled because our balance was too small is left out, because
    its operation was sent again under the next key."""
    made = _read(seen, raw, Payout)
    if made is None or is_ours_to_mend(made):
        return None
    return _entry(ReportedKind.PAYOUT, seen, made.status, made.amount)


_READ: Mapping[str, Callable[[Shop, Seen, msgspec.Raw], ReportedEntry | None]] = {
    PAYMENTS: _payment,
    REFUNDS: _refund,
    PAYOUTS: _payout,
}


def _read(seen: Seen, raw: msgspec.Raw, shape: type[Any]) -> Any:
    """Decode the object. Return None for another currency, which cannot be ours. Raises: Unavailable."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        if operation_of(seen) is None and _is_foreign(raw):
            return None
        raise Unavailable("yookassa: an object of a list cannot be read") from None


def _is_foreign(raw: msgspec.Raw) -> bool:
    try:
        return msgspec.json.decode(raw, type=Priced).amount.currency != "RUB"
    except msgspec.ValidationError:
        return False


def _entry(kind: ReportedKind, seen: Seen, status: str, amount: Amount, **more: Any) -> ReportedEntry:
    if seen.created_at is None:
        raise Unavailable("yookassa: an object of a list says not when it was made")
    return ReportedEntry(
        id=seen.id,
        kind=kind,
        state=_STATES.get(status, ReportedState.OPEN),
        moment=seen.created_at,
        amount_kopecks=amount.kopecks,
        operation=operation_of(seen),
        **more,
    )
