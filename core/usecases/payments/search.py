"""Search of payments by what people know of one: order number, amount, last digits of the phone, e-mail address
(docs/dashboard.md "Payments").

One field takes all of them. A text can mean several: `1490` is an order number, an amount, or the end of a phone. The
search tries the meanings in order and takes the first with a payment. Each is read by cursor (keyset.py), so no search
reads more than a bounded number of rows.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between, Snapshot
from ....ports.vault import Vault
from ...domain import ids
from ...domain.accounts.accounts import Caller
from ...domain.ids import canonical_uuid
from ...domain.payments.orders import EXTERNAL_ID_LONGEST
from ...domain.payments.payer_contact import email_key
from ...domain.payments.payments import Payment
from ...domain.payments.tallies import Tally, ever_ids
from ..common.encrypted import payer_email_digest
from ..common.keyset import Count, Cursor, KeysetPage, Listing, count, keyset_page
from .list import PaymentFilter, PaymentSearch, Wanted, checked, count_days


class Reading(StrEnum):
    """Meaning of the text of a search."""

    ORDER = "order"
    NUMBER = "number"
    EMAIL = "email"
    PHONE = "phone"
    AMOUNT = "amount"


class FoundPayments(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a search or of the whole list."""

    asked: PaymentFilter | None
    """The filter that the search is, for an export of it; None if no payment can match the text."""
    page: KeysetPage[Payment]
    count: Count | None
    """None: not known."""
    reading: Reading | None = None
    """What the text was taken for; None without a text."""
    others: Sequence[Reading] = ()
    """What else it could mean."""


_UNSTORABLE = re.compile("[\\0\ud800-\udfff]")
_MONEY = re.compile(r"([0-9]{1,9})(?:[.,]([0-9]{1,2}))?\s*(₽|RUB|руб\.?|р\.?)?\Z", re.IGNORECASE)
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")
_TAIL = re.compile(r"(?:\*{3})?([0-9]{4})\Z", re.ASCII)
_PHONE = re.compile(r"\+?[0-9]{6,11}([0-9]{4})\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9a-f]{8}\Z", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[\s()\-]")


def payment_id_of(text: str) -> str | None:
    """Return the payment id that a text is, with or without its prefix; None for another text."""
    uuid = canonical_uuid(text.strip().lower().removeprefix(ids.PAYMENT))
    return None if uuid is None else ids.prefixed(ids.PAYMENT, uuid)


def whole_phone_tail(text: str) -> str | None:
    """Return the last four digits if the text is a whole phone number, so that the rest need not be kept anywhere."""
    found = _PHONE.match(_PUNCTUATION.sub("", text))
    return None if found is None else found[1]


def readings_of(text: str) -> list[Reading]:
    """Return what a text can mean, the likeliest first. Every text can be an order number, if it is not too long."""
    found = [] if len(text) > EXTERNAL_ID_LONGEST or _UNSTORABLE.search(text) else [Reading.ORDER]
    if email_key(text) is not None:
        return [Reading.EMAIL, *found]
    if _NUMBER.match(text):
        found.append(Reading.NUMBER)
    money, phone = _amount(text), _tail(text)
    if money is not None and (phone is None or not text.isdigit()):
        found.append(Reading.AMOUNT)
    if phone is not None:
        found.append(Reading.PHONE)
    if money is not None and Reading.AMOUNT not in found:
        found.append(Reading.AMOUNT)
    return found


def _amount(text: str) -> str | None:
    plain = re.sub(r"\s(?=[0-9])", "", text)
    found = _MONEY.match(plain.replace(",", "") if _GROUPED.match(plain) else plain)
    return None if found is None else f"{found[1]}.{(found[2] or '').ljust(2, '0')}"


def _tail(text: str) -> str | None:
    plain = _PUNCTUATION.sub("", text)
    found = _TAIL.match(plain) or _PHONE.match(plain)
    return None if found is None else found[1]


def read_as(vault: Vault, caller: Caller, asked: PaymentFilter, reading: Reading, text: str) -> PaymentSearch:
    """Return the filter with the text as one of its meanings. Call it only with a meaning of `readings_of`."""
    fields = {name: getattr(asked, name) for name in PaymentFilter.__struct_fields__}
    match reading:
        case Reading.ORDER:
            return PaymentSearch(**{**fields, "external_id": text})
        case Reading.NUMBER:
            return PaymentSearch(**fields, number=text.lower())
        case Reading.EMAIL:
            digest = payer_email_digest(vault, caller, text)
            return PaymentSearch(**fields, email_digest=None if digest is None else digest.hex())
        case Reading.PHONE:
            return PaymentSearch(**fields, phone_tail=_tail(text))
        case Reading.AMOUNT:
            return PaymentSearch(**fields, amount_rub=_amount(text))


async def search_payments(
    ports: Ports,
    caller: Caller,
    asked: PaymentFilter,
    text: str,
    named: str | None,
    cursor: Cursor | None,
    size: int,
) -> FoundPayments:
    """Return a page of the caller's payments that meet the filter and the text, newest first. An empty text finds all.
    `named`: what the text means, if the person chose it.

    Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    text = text.strip()
    if not text:
        return await _page(ports, caller, asked, cursor, size)
    possible = readings_of(text)
    tried: list[FoundPayments] = []
    for reading in [each for each in possible if each == named] or possible:
        wanted = read_as(ports.vault, caller, asked, reading, text)
        found = await _page(ports, caller, wanted, cursor, size)
        others = [each for each in possible if each is not reading]
        tried.append(msgspec.structs.replace(found, reading=reading, others=others))
        if found.page.records:
            return tried[-1]
    # A search that stopped at its bound may find more further on; otherwise the first meaning is shown.
    nothing = FoundPayments(asked=None, page=KeysetPage(records=[]), count=Count(0))
    return next((each for each in tried if each.page.searched_to is not None), tried[0] if tried else nothing)


async def _page(ports: Ports, caller: Caller, asked: PaymentFilter, cursor: Cursor | None, size: int) -> FoundPayments:
    wanted = await checked(ports, caller, asked)
    async with ports.storage.snapshot() as seen:
        criteria, rest = wanted.by_index(await _best_index(seen, wanted))
        listing = Listing(kind=Payment, criteria=criteria, also=rest, made=Between(wanted.low, wanted.high))
        page = await keyset_page(seen, listing, cursor, size)
        return FoundPayments(asked=asked, page=page, count=await _count(seen, wanted, listing, cursor, page))


_SELECTIVE = ("external_id", "payer_email_digest", "payer_contact", "subscription_id")


async def _best_index(seen: Snapshot, wanted: Wanted) -> Sequence[str]:
    """Return the filters by the number of payments that each leads to, the fewest first. Tallies know how many payments
    a status and a shop have."""
    both = [name for name in ("status", "shop_id") if name in wanted.kind]
    if len(both) < 2 or wanted.named:
        return (*_SELECTIVE, *both)
    numbers = {name: await _tallied(seen, wanted, {name: wanted.kind[name]}) for name in both}
    return (*_SELECTIVE, *sorted(both, key=lambda name: numbers[name]))


async def _tallied(seen: Snapshot, wanted: Wanted, kind: dict[str, object]) -> int:
    ever = Between(*ever_ids(wanted.caller.account_id, wanted.caller.mode))
    return sum((await seen[Tally].sums("count", by="status", id=ever, **kind)).values())


async def _count(
    seen: Snapshot, wanted: Wanted, listing: Listing[Payment], cursor: Cursor | None, page: KeysetPage[Payment]
) -> Count | None:
    """Return the number of payments found. Tallies know it for a list without dates; other counts are bounded."""
    undated = wanted.low is None and wanted.high is None
    if undated and not wanted.named and wanted.amount is None:
        return Count(await _tallied(seen, wanted, wanted.kind))
    if not undated and wanted.has_usual_status and not wanted.named and wanted.amount is None:
        return Count(sum((await count_days(seen, wanted)).values()))
    return await count(seen, listing, cursor, page)
