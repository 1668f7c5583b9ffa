"""Payments: list, detail and actions."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ....core.domain.accounts.accounts import Mode
from ....core.domain.accounts.shops import Shop
from ....core.domain.accounts.terminals import PAYMENT_METHODS
from ....core.domain.errors import shape_error
from ....core.domain.ledger import BalanceType
from ....core.domain.money import Rub
from ....core.domain.operators.guarded import Guarded
from ....core.domain.payments.payments import USUAL_STATUSES, Opening, Payment, PaymentStatus
from ....core.domain.refunds.refunds import Refund
from ....core.usecases.accounts.accounts import storable
from ....core.usecases.browse.browse import account_names, browse
from ....core.usecases.browse.timeline import Moment
from ....core.usecases.common.encrypted import open_payer_name, private_aad
from ....core.usecases.operators.review import resolve_mismatch
from ....core.usecases.receipts.second import correct_receipt
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Entry, Filter, Kind, Offered, Told, Wish, by_id, story
from .stakes import left_in, of_record, whose
from .wishes import DATES, ORDER, by_status, wanted


async def _read(ports: Ports, wish: Wish, after: Payment | None, limit: int) -> list[Payment]:
    asked, shop_id = wanted(wish), wish.of("shop")
    named, walked = by_status(asked, PaymentStatus), _walked(wish)
    if asked.status in USUAL_STATUSES:
        walked, named = [{**each, **named} for each in walked or [{}]], {}
    if shop_id is not None:
        shop = await ports.storage.get(Shop, shop_id) if storable(shop_id) else None
        if shop is None or asked.account_id not in (None, shop.account_id):
            return []
        asked = msgspec.structs.replace(asked, account_id=shop.account_id)
        named = {**named, "shop_id": shop_id}
    return await browse(ports, Payment, asked, after, limit, walked=walked, is_dated=True, **named)


async def _shops(ports: Ports, wish: Wish) -> Offered:
    """Return the shops of the chosen merchant, or of all merchants, up to a limit."""
    of = wish.of("account")
    criteria: dict[str, Any] = {} if of is None else {"account_id": of}
    async with ports.storage.unit() as unit:
        found = await unit[Shop].find(limit=_SHOPS, readable=True, **criteria)
    owners = await account_names(ports, {each.account_id for each in found})
    return [(each.id, f"{each.name}  {owners.get(each.account_id, each.account_id)}") for each in found]


_SHOPS = 2000


def _walked(wish: Wish) -> list[dict[str, Any]]:
    """Return the criteria that no index supports. Raises: Refusal VALIDATION_ERROR."""
    method, text = wish.of("method"), wish.of("amount")
    asked: dict[str, Any] = {} if method is None else {"payment_method": method}
    if text is None:
        return [asked] if asked else []
    try:
        amount = Rub.parse(text.replace(",", ""))
    except ValueError as fault:
        raise shape_error("amount", str(fault)) from None
    return [{**asked, field: amount} for field in ("amount", "actual_amount")]


_get = by_id(Payment)


def _facts(payment: Payment) -> list[tuple[str, Any]]:
    return [
        ("status", payment.status),
        ("amount", f"{payment.amount} RUB"),
        ("came", None if payment.actual_amount is None else f"{payment.actual_amount} RUB"),
        ("credit", None if payment.amount_usdt is None else f"{payment.amount_usdt} USDT"),
        ("failure", payment.failure_reason),
        ("refund pending", payment.refund_pending),
        ("method", payment.payment_method),
        ("external id", payment.external_id),
        ("mode", payment.mode),
        ("account", payment.account_id),
        ("shop", payment.shop_id),
        ("subscription", payment.subscription_id),
        ("period", payment.period_ref),
        ("tried before", payment.retry_of),
        ("tried again", payment.retried_by),
        ("bank", payment.bank),
        ("bank's fee", None if payment.provider_fee is None else f"{payment.provider_fee} RUB"),
        ("payer's bank", payment.payer_bank),
        ("SBP operation", payment.sbp_operation_id),
        ("receipt", _receipt(payment)),
        ("invoice", None if payment.opening is Opening.OPEN else f"{payment.opening}: not known to be at the bank"),
        ("payer", payment.payer_contact),
        ("created", payment.created_at),
        ("expires", payment.expires_at),
        ("paid", payment.paid_at),
        ("settled", payment.settled_at),
        ("settlement", payment.settlement_id),
    ]


def _receipt(payment: Payment) -> str | None:
    terms = payment.receipt
    return None if terms is None else f"{terms.tax_system}, VAT {terms.vat}, {terms.subject}, {terms.mode}"


def _private(ports: Ports, payment: Payment) -> dict[str, str]:
    found = {}
    name = open_payer_name(ports.vault, payment)
    if name is not None:
        found["payer name"] = name
    if payment.private is not None:
        given = msgspec.json.decode(ports.vault.decrypt(payment.private, private_aad(payment.id)))
        found |= {str(key): str(value) for key, value in given.items() if value is not None}
    return found


async def _timeline(ports: Ports, payment: Payment) -> list[Moment]:
    """Return the payment's own events, its refunds, and links to its subscription and statement."""
    async with ports.storage.unit() as unit:
        refunds = await unit[Refund].find(payment_id=payment.id, order="id", limit=_REFUNDS)
    told = [
        Moment(
            at=refund.created_at,
            source="refund",
            text=f"{refund.amount} RUB: {refund.status}",
            detail=refund.id,
            of="refund",
            object_id=refund.id,
        )
        for refund in refunds
    ]
    return sorted([*await _own_story(ports, payment), *told], key=lambda moment: moment.at)


_REFUNDS = 100
"""More refunds than a payment may have."""
_own_story = story(
    lambda each: (each.created_at, "its subscription", "subscription", each.subscription_id),
    lambda each: (each.settled_at, "its statement", "settlement", each.settlement_id),
)


async def _accepting(ports: Ports, payment: Payment, given: Mapping[str, str]) -> Told:
    came = payment.actual_amount
    with suppress(ValueError):
        came = came or Rub.parse(given.get("amount", "").strip())
    adds = 0 if came is None else came.kopecks
    return [
        ("credited", f"{came} RUB of {payment.amount} RUB" if came else "the bank could not say what came"),
        *await _concerned(ports, payment),
        *await left_in(ports, payment.account_id, payment.mode, BalanceType.PENDING, adds),
    ]


async def _returning(ports: Ports, payment: Payment, _given: Mapping[str, str]) -> Told:
    came = payment.actual_amount
    return [
        ("goes back", f"{came} RUB of {payment.amount} RUB" if came else "the bank could not say what came"),
        *await _concerned(ports, payment),
        *await left_in(ports, payment.account_id, payment.mode, BalanceType.PENDING, 0),
    ]


async def _concerned(ports: Ports, payment: Payment) -> Told:
    return [*await whose(ports, payment.account_id, payment.mode), ("order", payment.external_id or "-")]


def _reviewed(payment: Payment) -> bool:
    return payment.status is PaymentStatus.AMOUNT_MISMATCH


def _may_be_corrected(payment: Payment) -> bool:
    return payment.mode is Mode.LIVE and payment.receipt is not None and payment.paid_at is not None


async def _correct(doing: Doing) -> str:
    order = doing.given.get("order") or None
    made = await correct_receipt(doing.ports, doing.record.id, doing.given["kind"], order=order)
    return f"{made.id}: the cash register gets it."


async def _accept(doing: Doing) -> str:
    text = doing.given.get("amount", "")
    came = Rub.parse(text) if text and doing.record.actual_amount is None else None
    done = await resolve_mismatch(doing.ports, doing.record.id, "paid", amount=came)
    return f"The payment is {done.status}; {done.actual_amount} RUB are credited."


async def _send_back(doing: Doing) -> str:
    done = await resolve_mismatch(doing.ports, doing.record.id, "failed")
    return f"The payment is {done.status}; what came is sent back."


PAYMENTS = Kind(
    name="payment",
    title="Payments",
    key="1",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=lambda each: each.status, width=15),
        Column(title="amount RUB", cell=lambda each: each.amount, width=12, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="external id", cell=lambda each: each.external_id, width=11, broad=16),
        merchant(9, 24),
        Column(title="method", cell=lambda each: each.payment_method, width=9, wide=True),
        Column(title="payment", cell=lambda each: each.id, width=40, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(
        MODE,
        Filter(name="status", choices=tuple(PaymentStatus), walked=USUAL_STATUSES),
        ACCOUNT,
        *DATES,
        ORDER,
        Filter(name="amount", hint="in RUB, asked for or come", is_walked=True),
        Filter(name="method", choices=PAYMENT_METHODS, is_walked=True),
        Filter(name="shop", offered=_shops),
    ),
    private=_private,
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="payment.resolve",
            title="Accept what came",
            key="a",
            allowed=_reviewed,
            entries=(
                Entry(
                    name="amount", label="What came, RUB", needed=True, wanted=lambda each: each.actual_amount is None
                ),
            ),
            changes=lambda each: [
                Change("status", each.status, PaymentStatus.PAID),
                Change("credited", "0.00", str(each.actual_amount or "what you enter")),
            ],
            follows=lambda each, given: [
                Change("status", each.status, PaymentStatus.PAID),
                Change("credited", "0.00", str(each.actual_amount or given["amount"] or "what you enter")),
            ],
            run=_accept,
            tells=_accepting,
            by_two=lambda *_: Guarded.SUSPENSE,
        ),
        ConsoleAction(
            name="receipt.correct",
            title="Write a correction of its receipt",
            key="c",
            allowed=_may_be_corrected,
            entries=(
                Entry(name="kind", label="sale_correction or refund_correction", needed=True),
                Entry(name="order", label="Number of the tax authority's order, if there is one"),
            ),
            changes=lambda each: [Change("receipts", f"of {each.amount} RUB", "and a correction of the same items")],
            run=_correct,
            tells=of_record,
        ),
        ConsoleAction(
            name="payment.resolve",
            title="Send it back",
            key="b",
            ends=True,
            allowed=_reviewed,
            changes=lambda each: [
                Change("status", each.status, PaymentStatus.FAILED),
                Change("money", "under review", "back to the payer"),
            ],
            run=_send_back,
            tells=_returning,
            by_two=lambda *_: Guarded.SUSPENSE,
        ),
    ),
)
