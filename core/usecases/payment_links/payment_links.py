"""Payment links for merchants: create, list, read, archive (docs/payment-links.md "Making one")."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Snapshot, Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal, shape_error
from ...domain.ids import canonical_uuid
from ...domain.payments.orders import EXTERNAL_ID_LONGEST, kept_metadata
from ...domain.payments.payment_links import (
    LinkAnswer,
    LinkAnswers,
    LinkStatus,
    LinkTotals,
    PaymentLink,
    PaymentLinkOrder,
    read_terms,
    status_of,
)
from ...domain.payments.payments import Payment
from ..accounts.access import RECENT
from ..common.encrypted import open_link_answers
from ..common.idempotency import Lock, Made, once
from ..common.keyset import Cursor, KeysetPage, Listed, listing_of, read_listing
from ..common.long_lists import LongList, long_page
from ..common.paging import ListFilter, Page, newest
from ..common.units import unit_of_work

KIND = "payment_link"
_INDEXED = ("external_id",)


class LinkFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /payment-links; None when absent."""

    shop_id: str | None = None


class ShownLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link with its state and the sums of its paid payments."""

    link: PaymentLink
    status: LinkStatus
    totals: LinkTotals


class LinkPayment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment of a link, and what its payer filled in."""

    payment: Payment
    answers: Sequence[LinkAnswer]


async def create_link(
    ports: Ports, caller: Caller, key: str | None, read_order: Callable[[], PaymentLinkOrder]
) -> Made[ShownLink]:
    """Create a link, once per key. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND, SHOP_DISABLED."""

    async def make(lock: Lock) -> ShownLink:
        order = read_order()
        now = ports.clock.now()
        terms = read_terms(order, caller.account, now)
        shop_id = caller.account.default_shop_id if order.shop_id is None else order.shop_id.lower()
        shop = await ports.storage.recent(Shop, shop_id, within=RECENT)
        if shop is None or shop.account_id != caller.account_id or not caller.sees_shop(shop.id):
            raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")
        if not shop.enabled:
            raise Refusal("SHOP_DISABLED", "The shop is disabled")
        link = PaymentLink(
            id=ids.prefixed(ids.PAYMENT_LINK, ports.ids.uuid()),
            account_id=caller.account_id,
            mode=caller.mode,
            shop_id=shop.id,
            description=order.description.strip(),
            created_at=now,
            **msgspec.structs.asdict(terms),
            fields=tuple(order.fields or ()),
            success_text=order.success_text,
        )
        link = msgspec.structs.replace(
            link, external_id=order.external_id, metadata=kept_metadata(order.metadata), key_id=lock.record_id
        )
        async with ports.storage.unit() as unit:
            unit[IdempotencyKey].add(lock(link.id))
            unit[PaymentLink].add(link)
            await unit.commit()
        return _shown(ports, link, None)

    async def recall(link_id: str) -> ShownLink | None:
        async with ports.storage.snapshot() as seen:
            link = await seen[PaymentLink].get(link_id)
            return None if link is None else _shown(ports, link, await seen[LinkTotals].get(link_id))

    return await once(ports, caller, key, KIND, make=make, recall=recall)


async def get_link(ports: Ports, caller: Caller, link_id: str) -> ShownLink:
    """Return a link of the caller's account and mode. Raises: Refusal PAYMENT_LINK_NOT_FOUND."""
    async with ports.storage.snapshot() as seen:
        link = await _own(seen, caller, link_id)
        return _shown(ports, link, await seen[LinkTotals].get(link.id))


async def list_links(ports: Ports, caller: Caller, asked: LinkFilter, number: int, size: int) -> Page[ShownLink]:
    """Return a page of the caller's links, newest first, as of one moment. Raises: Refusal VALIDATION_ERROR,
    SHOP_NOT_FOUND."""
    criteria = _read(caller, asked)
    if criteria.keys() == {"account_id", "mode", "created_at"}:
        long = LongList(kind=PaymentLink, caller=caller, name="payment_links", made=criteria["created_at"])
        page = await long_page(ports, long, number, size)
    else:
        async with ports.storage.snapshot() as seen:
            page = await newest(seen, PaymentLink, number, size, **criteria)
    return Page(await _all_shown(ports, page.records), page.number, page.size, page.total)


async def browse_links(
    ports: Ports, caller: Caller, asked: LinkFilter, cursor: Cursor | None, size: int
) -> Listed[ShownLink]:
    """Return a page of the caller's links by cursor, newest first. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND."""
    found = await read_listing(ports, listing_of(PaymentLink, _read(caller, asked), _INDEXED), cursor, size)
    page = found.page
    shown = KeysetPage(
        records=await _all_shown(ports, page.records),
        newer=page.newer,
        older=page.older,
        searched_to=page.searched_to,
    )
    return Listed(page=shown, count=found.count)


async def list_link_payments(ports: Ports, caller: Caller, link_id: str, number: int, size: int) -> Page[LinkPayment]:
    """Return a page of a link's payments, newest first. Raises: Refusal PAYMENT_LINK_NOT_FOUND."""
    async with ports.storage.snapshot() as seen:
        link = await _own(seen, caller, link_id)
        owner: dict[str, Any] = {"account_id": link.account_id, "mode": link.mode}
        page = await newest(seen, Payment, number, size, link_id=link.id, **owner)
        filled = await _answers(seen, page.records)
    records = [
        LinkPayment(
            payment=payment,
            answers=open_link_answers(ports.vault, filled[payment.id]) if payment.id in filled else (),
        )
        for payment in page.records
    ]
    return Page(records, page.number, page.size, page.total)


async def read_answers(ports: Ports, payment: Payment) -> Sequence[LinkAnswer]:
    """Return what the payer of a payment filled in on its link."""
    found = None if payment.link_id is None else await ports.storage.get(LinkAnswers, payment.id)
    return () if found is None else open_link_answers(ports.vault, found)


@unit_of_work()
async def archive_link(ports: Ports, unit: Unit, caller: Caller, link_id: str) -> ShownLink:
    """Archive a link, so that nobody can pay by it any more. Its open payments stay open. An archived link stays as it
    is. Raises: Refusal PAYMENT_LINK_NOT_FOUND."""
    link = await _own(unit, caller, link_id)
    if link.archived_at is None:
        link = unit[PaymentLink].save(msgspec.structs.replace(link, archived_at=ports.clock.now()))
    return _shown(ports, link, await unit[LinkTotals].get(link.id))


async def _own(seen: Snapshot | Unit, caller: Caller, link_id: str) -> PaymentLink:
    link = await seen[PaymentLink].get(link_id) if ids.is_prefixed(ids.PAYMENT_LINK, link_id) else None
    if (
        link is None
        or (link.account_id, link.mode) != (caller.account_id, caller.mode)
        or not caller.sees_shop(link.shop_id)
    ):
        raise Refusal("PAYMENT_LINK_NOT_FOUND", "No payment link of this id")
    return link


async def _answers(seen: Snapshot, payments: Sequence[Payment]) -> Mapping[str, LinkAnswers]:
    wanted = tuple(payment.id for payment in payments)
    found = await seen[LinkAnswers].find(id=OneOf(wanted), limit=len(wanted)) if wanted else []
    return {each.id: each for each in found}


async def _all_shown(ports: Ports, links: Sequence[PaymentLink]) -> list[ShownLink]:
    if not links:
        return []
    wanted = tuple(link.id for link in links)
    async with ports.storage.unit() as unit:
        totals = {each.id: each for each in await unit[LinkTotals].find(id=OneOf(wanted), limit=len(wanted))}
    return [_shown(ports, link, totals.get(link.id)) for link in links]


def _shown(ports: Ports, link: PaymentLink, totals: LinkTotals | None) -> ShownLink:
    totals = totals or LinkTotals(id=link.id, account_id=link.account_id, mode=link.mode)
    return ShownLink(link=link, status=status_of(link, ports.clock.now(), totals.payments), totals=totals)


def _read(caller: Caller, asked: LinkFilter) -> dict[str, Any]:
    """Validate the filter. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND."""
    criteria = {"account_id": caller.account_id, "mode": caller.mode, **asked.criteria(EXTERNAL_ID_LONGEST)}
    if asked.shop_id is not None:
        shop_id = canonical_uuid(asked.shop_id)
        if shop_id is None:
            raise shape_error("shop_id", "must be a UUID")
        criteria["shop_id"] = shop_id
    caller.require_shop(criteria.get("shop_id"))
    return criteria
