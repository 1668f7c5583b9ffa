"""The payer's page of a payment link (docs/payment-links.md "The payer's page"). The id is the payer's only
permission. Reading the page changes nothing; its button makes a payment."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.storage import OneOf, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.accounts.shops import Shop, seller_name
from ...domain.errors import Refusal
from ...domain.ids import canonical_uuid
from ...domain.money import Rub
from ...domain.payer.brand import Brand, brand_of
from ...domain.payer.window import web_link
from ...domain.payments.orders import PaymentOrder
from ...domain.payments.payment_links import (
    TAKES_A_PLACE,
    FieldKind,
    FillFault,
    LinkAnswers,
    LinkField,
    LinkStatus,
    LinkTotals,
    PaymentLink,
    answers_of,
    read_amount,
    read_answer,
    status_of,
)
from ...domain.payments.payments import MINIMUM, WAITING, Payment
from ..accounts.rate_limits import admit_stranger
from ..common.account_time import in_test_time
from ..common.encrypted import encrypt_link_answers
from ..payments.payments import create_payment

AMOUNT = "amount"
"""Name of the form's field for the amount. The fields of the link are named by their numbers, `field_0` first."""
PRESSES = "links"
PRESSES_PER_MINUTE = 10
"""Payments that one address may make on pages of links in a minute."""
LINK_PRESSES_PER_MINUTE = 120
"""Payments that all addresses together may make on one link in a minute."""
_TRIES = 5


class LinkView(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page."""

    id: str
    status: LinkStatus
    shop_name: str
    brand: Brand
    description: str
    amount: Rub | None
    amount_min: Rub
    amount_max: Rub
    fields: tuple[LinkField, ...]
    is_single: bool
    return_url: str | None
    test_mode: bool
    attempt: str
    """Value of a hidden field: pressing the same form twice makes one payment."""


class Problem(StrEnum):
    """Why no payment was made."""

    BUSY = "busy"
    """Too many payments were made within the minute."""
    FULL = "full"
    """Other payments, which are open or under review, take the link's places."""
    AWAY = "away"
    """The shop or its banks cannot take the payment at present."""


class Pressed(msgspec.Struct, frozen=True, kw_only=True):
    """Result of pressing the button: a payment, wrong fields, or a problem."""

    payment_id: str | None = None
    faults: Mapping[str, FillFault] = {}
    problem: Problem | None = None


class _Closed(Exception):
    """The link can no longer be paid."""


@in_test_time(PaymentLink)
async def link_view(ports: Ports, link_id: str) -> LinkView | None:
    """Return the data of the page; None when there is no such link."""
    if not ids.is_prefixed(ids.PAYMENT_LINK, link_id):
        return None
    async with ports.storage.unit() as unit:
        link = await unit[PaymentLink].get(link_id)
        if link is None:
            return None
        shop, account = await unit[Shop].get(link.shop_id), await unit[Account].get(link.account_id)
        totals = await unit[LinkTotals].get(link.id)
    if shop is None or account is None:
        return None
    return LinkView(
        id=link.id,
        status=status_of(link, ports.clock.now(), 0 if totals is None else totals.payments),
        shop_name=seller_name(shop, account),
        brand=brand_of(account, shop),
        description=link.description,
        amount=link.amount,
        amount_min=link.amount_min or MINIMUM,
        amount_max=link.amount_max or account.settings.amount_rub_max,
        fields=link.fields,
        is_single=link.payments_max == 1,
        return_url=web_link(shop.return_url) or web_link(account.settings.return_url),
        test_mode=link.mode is Mode.TEST,
        attempt=ports.ids.uuid(),
    )


@in_test_time(PaymentLink)
async def press_link(
    ports: Ports, link_id: str, typed: Mapping[str, str], attempt: str, address: str
) -> Pressed | None:
    """Make a payment on a link, once for each `attempt`; None when there is no such link. `typed`: the fields of the
    form. `address`: the payer's, for the rate limit.

    A link for one payment has one open payment at a time: everybody who presses meanwhile gets this one.
    """
    link = await ports.storage.get(PaymentLink, link_id) if ids.is_prefixed(ids.PAYMENT_LINK, link_id) else None
    account = None if link is None else await ports.storage.get(Account, link.account_id)
    if link is None or account is None:
        return None
    amount = read_amount(link, typed.get(AMOUNT, ""), account.settings.amount_rub_max)
    answers = {at: read_answer(field, typed.get(f"field_{at}", "")) for at, field in enumerate(link.fields)}
    faults = {f"field_{at}": answer for at, answer in answers.items() if isinstance(answer, FillFault)}
    if isinstance(amount, FillFault):
        return Pressed(faults={AMOUNT: amount, **faults})
    if faults:
        return Pressed(faults=faults)
    if await _is_crowded(ports, link, address):
        return Pressed(problem=Problem.BUSY)
    filled = {at: answer for at, answer in answers.items() if isinstance(answer, str)}
    caller = Caller(account=account, mode=link.mode, key_id=link.id)
    for _ in range(_TRIES):
        try:
            return Pressed(payment_id=await _pay(ports, caller, link, amount, filled, attempt))
        except Stale:
            continue
        except _Closed:
            return Pressed(problem=Problem.FULL)
        except Refusal:
            return Pressed(problem=Problem.AWAY)
    return Pressed(problem=Problem.BUSY)


async def _is_crowded(ports: Ports, link: PaymentLink, address: str) -> bool:
    of_address = await admit_stranger(ports, f"{PRESSES}:ip", address, PRESSES_PER_MINUTE)
    if of_address.over:
        return True
    return (await admit_stranger(ports, PRESSES, link.id, LINK_PRESSES_PER_MINUTE)).over


async def _pay(
    ports: Ports, caller: Caller, link: PaymentLink, amount: Rub, filled: Mapping[int, str], attempt: str
) -> str:
    """Make the payment, and return its id. Raises: _Closed; Stale if another payment took a place; Refusal."""
    if link.payments_max == 1:
        open_id, attempt = await _single(ports, link)
        if open_id is not None:
            return open_id

    async def besides(unit: Unit, payment: Payment) -> Payment:
        present = await unit[PaymentLink].get(link.id)
        if present is None:
            raise _Closed
        # Read the link before its payments: a payment that is added later also changes the link.
        taken = 0 if present.payments_max is None else await _taken(unit, present)
        if status_of(present, ports.clock.now(), taken) is not LinkStatus.ACTIVE:
            raise _Closed
        if present.payments_max is not None:
            unit[PaymentLink].save(present)
        answers = answers_of(link, filled)
        if answers:
            body = encrypt_link_answers(ports.vault, payment.id, answers)
            unit[LinkAnswers].add(LinkAnswers(id=payment.id, body=body))
        return msgspec.structs.replace(payment, link_id=link.id)

    key = ids.derived("", link.id, canonical_uuid(attempt) or attempt[:64])
    made = await create_payment(ports, caller, key, lambda: _order(link, amount, filled), besides)
    return made.resource.id


async def _single(ports: Ports, link: PaymentLink) -> tuple[str | None, str]:
    """Return the open payment of a link for one payment, and the name of its next attempt. Payers who press at the same
    time share an attempt, and so a payment."""
    owner: dict[str, Any] = {"account_id": link.account_id, "mode": link.mode}
    async with ports.storage.unit() as unit:
        made = await unit[Payment].total(link_id=link.id, **owner)
        waiting = await unit[Payment].find(
            link_id=link.id, **owner, status=OneOf(WAITING), order="-created_at", limit=1
        )
    return (waiting[0].id if waiting else None), f"attempt {made}"


async def _taken(unit: Unit, link: PaymentLink) -> int:
    return await unit[Payment].total(
        link_id=link.id, account_id=link.account_id, mode=link.mode, status=OneOf(TAKES_A_PLACE)
    )


def _order(link: PaymentLink, amount: Rub, filled: Mapping[int, str]) -> PaymentOrder:
    of_kind = {field.of_kind: filled.get(at) for at, field in enumerate(link.fields)}
    return PaymentOrder(
        amount_rub=str(amount),
        external_id=link.external_id or link.id,
        description=link.description,
        metadata=link.metadata,
        shop_id=link.shop_id,
        client_email=of_kind.get(FieldKind.EMAIL),
        client_phone=of_kind.get(FieldKind.PHONE),
    )
