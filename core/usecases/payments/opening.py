"""Opening a new payment at a bank: from the written row to an invoice, or to a final refusal.

If the bank lets us draw up its invoices, the row is written together with its invoice, and the bank is not called.
Otherwise the row is committed before the call, with the payment's id as the operation id. After any failure the watch
(progress.py) can therefore look the operation up at the bank, and finish or undo it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from ....ports.bank import Bank, DrawingBank, Invoice, InvoiceKind, InvoicePayer, InvoiceRequest
from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.searching import find_invoice
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.errors import Refusal
from ...domain.payments.payment_links import LinkAnswers
from ...domain.payments.payments import (
    ASKING,
    OPEN,
    WAITING,
    LinkKind,
    Opening,
    Payment,
    PaymentMove,
    PaymentStatus,
    lifetime,
)
from ..accounts.terminals import terminal_of
from ..common.encrypted import pay_tag
from ..common.schedule import FollowUp
from ..common.units import retrying, unit_of_work
from ..gateways.gateways import first_open
from ..gateways.outcomes import follow_outcome, save_unknown
from ..gateways.polling import Looked, is_backed_up, next_poll
from ..gateways.watch import at_bank, watched
from .receipts import contact_of, purpose_of, receipt_of, takes_without
from .retries import unlink_retry
from .route_refusals import no_route
from .tallies import remove_payment

WATCH = FollowUp("payment.watch")
"""The job that follows a payment through its life."""
FIRST_POLL = timedelta(seconds=10)
"""Delay until the watch takes over a creation that did not finish; a repeat of its key is answered then
(docs/decisions.md "Payments").

A request may wait for its bank for longer than that. The watch may then be refused, and try the next bank, while the
first bank still draws up an invoice. A delay of a request's full time would more than double the wait of a key after a
crash, and would not exclude this case: a process may pause, or a bank execute a request late, for minutes. The payer
never sees the extra invoice, so it is not paid.
"""


def draw(ports: Ports, payment: Payment) -> tuple[Payment, Job]:
    """Draw up the payment's invoice if its bank lets us. Return the payment, not yet written, and its watch, which runs
    soon if the bank must be called first.
    """
    bank = ports.banks.named(payment.bank or "")
    invoice = None
    if bank.capabilities.draws_invoices:
        invoice = cast("DrawingBank", bank).draw_invoice(_request(ports, payment, bank))
    if invoice is None:
        return payment, WATCH.first(payment.id, payment.created_at + FIRST_POLL, payment.created_at)
    drawn = msgspec.structs.replace(payment, **_of_invoice(ports.vault, payment, payment, invoice))
    return drawn, WATCH.first(drawn.id, _first_poll(ports, drawn, invoice), drawn.created_at)


def _first_poll(ports: Ports, payment: Payment, invoice: Invoice) -> datetime:
    """Return when to poll the bank first: at the deadline at the latest."""
    ends_at, poll = _end(payment, invoice), next_poll(ports, payment, Looked(check_after=invoice.check_after))
    return ends_at if poll is None else min(ends_at, poll)


async def plan_last_poll(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Plan a poll at the deadline for a payment that ended before it, if its bank sends notifications: a second
    transfer, or one after a failure, may come, and its notification be lost.

    When the watch itself is running, it plans this poll (progress.py: next_status_poll).
    """
    after = move.after
    has_ended = move.before.status in WAITING and after.status not in (*WAITING, PaymentStatus.EXPIRED)
    if not has_ended or after.subscription_id is not None or not is_backed_up(ports, after.bank):
        return
    if ports.clock.now() < after.expires_at:
        await WATCH.hurry(unit, after.id, after.expires_at)


def _end(payment: Payment, invoice: Invoice) -> datetime:
    """Return the payment's deadline: the bank's own, if it is earlier than ours."""
    return payment.expires_at if invoice.expires_at is None else min(payment.expires_at, invoice.expires_at)


def _request(ports: Ports, payment: Payment, bank: Bank) -> InvoiceRequest:
    return InvoiceRequest(
        operation=payment.id,
        amount_kopecks=payment.amount.kopecks,
        purpose=purpose_of(payment),
        expires_at=payment.expires_at,
        return_url=ports.urls.payment_page(payment.id),
        payer=_payer(ports, payment) if bank.capabilities.wants_payer else None,
        account=payment.account_id,
        shop=payment.shop_id,
        terminal=payment.method_id,
        receipt=receipt_of(ports, payment, bank),
    )


def _payer(ports: Ports, payment: Payment) -> InvoicePayer | None:
    """Return the payer's data from the merchant that providers may get; None without data."""
    contact = contact_of(ports, payment)
    payer = InvoicePayer(phone=contact.client_phone, email=contact.client_email, ip=contact.ip)
    return None if payer == InvoicePayer() else payer


async def open_at_bank(ports: Ports, payment: Payment) -> Payment:
    """Try the payment's routes in order, starting with its own bank. Return the payment as saved.

    After a refusal, or if a bank is unavailable, the next bank is tried. After an unknown outcome no other bank is
    tried, because the payer could pay twice.

    Raises: Refusal PROVIDER_ERROR (outcome unknown; the key keeps this answer), PAYMENT_ROUTE_UNAVAILABLE (400: every
    route refused for certain; 503: a bank was unavailable). The latter takes the payment and its key back.
    """
    away = False
    while True:
        try:
            bank = ports.banks.named(payment.bank or "")
            async with watched(ports, payment.mode, payment.bank, invoices=True):
                invoice = await bank.create_invoice(_request(ports, payment, bank))
        except OutcomeUnknown:
            return await _outcome_unknown(ports, payment)
        except (Unavailable, NotConfigured):
            # Refused credentials are the operator's to fix, so the merchant may repeat the request.
            away = True
        except (Refused, NotSupported):
            pass
        else:
            opened = await take_invoice(ports, payment, invoice)
            if opened.opening is Opening.UNKNOWN:
                raise outcome_unknown(opened)  # the same answer that repeats of this key got
            return opened
        left = await _take_next_route(ports, payment)
        if left is None:
            raise no_route(away=away or await _passed_one_over(ports, payment))
        if left.opening is Opening.UNKNOWN:
            raise outcome_unknown(left)
        if left.bank_reference is not None:
            return left
        payment = left


@unit_of_work()
async def _take_next_route(ports: Ports, unit: Unit, asked: Payment) -> Payment | None:
    """Record the next bank after a refusal, before that bank is called. With no bank left, take the payment back and
    return None.

    The request and the watch may both be trying banks. If the other has continued in the meantime, write nothing and
    return the payment as the other left it.
    """
    present = await unit[Payment].get(asked.id)
    if present is None or not _is_asking(present) or present.bank != asked.bank:
        return present
    bank = await _next_bank(ports, unit, present)
    if bank is None:
        await _remove(unit, present)
        return None
    # The deadline depends on the bank that takes the payment.
    expires_at = present.created_at + lifetime(present.ttl_minutes, own=bank.capabilities.own_lifetime)
    return unit[Payment].save(msgspec.structs.replace(present, bank=bank.name, expires_at=expires_at))


async def _next_bank(ports: Ports, unit: Unit, payment: Payment) -> Bank | None:
    """Return the next bank in the order of routes after the payment's own, or the first if its own is no longer among
    them. Banks that are down are skipped.
    """
    return await first_open(ports, await _later_routes(ports, unit, payment), payment.mode, payment.account_id)


async def _later_routes(ports: Ports, unit: Unit, payment: Payment) -> Sequence[Bank]:
    terminal = await terminal_of(unit, payment)
    routes = ports.banks.of_mode(payment.mode, () if terminal is None else terminal.routes)
    names = [bank.name for bank in routes]
    later = routes[names.index(payment.bank) + 1 :] if payment.bank in names else routes
    fitting = [bank for bank in later if bank.capabilities.takes(payment.amount.kopecks)]
    return [bank for bank in fitting if takes_without(bank, payment.receipt)]


async def _passed_one_over(ports: Ports, payment: Payment) -> bool:
    """Return whether a route was skipped that is only down for now."""
    async with ports.storage.unit() as unit:
        return bool(await _later_routes(ports, unit, payment))


def _is_asking(payment: Payment) -> bool:
    """Return whether no bank has the payment, and none may have it."""
    return payment.opening is ASKING and payment.bank_reference is None


async def take_invoice(ports: Ports, payment: Payment, invoice: Invoice) -> Payment:
    """Save the bank's references, and schedule the watch for its first poll.

    The first attempt uses the versions at hand and reads nothing, because usually no other process knows the payment
    yet.
    """
    look_at = _first_poll(ports, payment, invoice)
    if payment.opening is ASKING:
        async with ports.storage.unit() as unit:
            opened = unit[Payment].change(payment, **_of_invoice(ports.vault, payment, payment, invoice))
            first = WATCH.first(payment.id, payment.created_at + FIRST_POLL, payment.created_at)
            unit[Job].change(first, due=look_at)
            try:
                # Not durable: the bank knows the operation, so the watch recovers a lost commit from there.
                await unit.commit(durable=False)
            except Stale:
                pass
            else:
                return opened

    async def work(unit: Unit) -> Payment:
        present = await unit[Payment].get(payment.id) or payment
        if present.bank_reference is not None:
            return present
        await WATCH.hurry(unit, payment.id, look_at)
        opened = unit[Payment].change(present, **_of_invoice(ports.vault, present, payment, invoice))
        await follow_outcome(unit, present, opened)
        return opened

    return await retrying(ports.storage, work)


def _of_invoice(vault: Vault, present: Payment, asked: Payment, invoice: Invoice) -> dict[str, Any]:
    """Return the fields of the payment that its invoice sets.

    The reference is saved with the bank that gave it, whichever bank is being called now. An outcome that was answered
    as unknown stays unknown, because the key keeps that 502.
    """
    changes = {
        "opening": OPEN if present.opening is ASKING else present.opening,
        "bank": asked.bank,
        "expires_at": _end(asked, invoice),
        "bank_reference": invoice.reference,
        "qr_payload": invoice.payload,
        "bank_link": invoice.link,
        "link_kind": link_kind(invoice.kind),
    }
    return {**changes, "pay_tag": pay_tag(vault, msgspec.structs.replace(present, **changes))}


def link_kind(kind: InvoiceKind) -> LinkKind | None:
    """Convert the kind of a bank's invoice to the kind of a payment's link; None for an SBP link with a QR."""
    return None if kind is InvoiceKind.QR else LinkKind(kind.value)


async def _outcome_unknown(ports: Ports, payment: Payment) -> Payment:
    async def work(unit: Unit) -> Payment:
        present = await unit[Payment].get(payment.id) or payment
        if present.opening is ASKING:
            return await save_unknown(unit, present)
        return present

    present = await retrying(ports.storage, work)
    if present.opening is OPEN:
        # The bank's notification arrived before its answer.
        return present
    raise outcome_unknown(payment)


def outcome_unknown(payment: Payment) -> Refusal:
    """Return the answer that the key keeps for an unknown outcome (docs/concepts.md "Idempotency"). The payment exists,
    and its events report any progress.
    """
    return Refusal(
        "PROVIDER_ERROR",
        "The payment's creation ended without a definite result; use a new Idempotency-Key",
        details={"payment_id": payment.id},
    )


@unit_of_work()
async def take_back(_: Ports, unit: Unit, payment: Payment) -> None:
    """Remove the payment, its watch and its key, because no bank has an invoice. The key is free again."""
    present = await unit[Payment].get(payment.id)
    if present is not None and _is_asking(present):
        await _remove(unit, present)


async def _remove(unit: Unit, payment: Payment) -> None:
    remove_payment(unit, payment)
    answers = None if payment.link_id is None else await unit[LinkAnswers].get(payment.id)
    if answers is not None:
        unit[LinkAnswers].remove(answers)
    await unlink_retry(unit, payment)
    await WATCH.drop(unit, payment.id)
    key = None if payment.key_id is None else await unit[IdempotencyKey].get(payment.key_id)
    if key is not None:
        unit[IdempotencyKey].remove(key)


async def find_at_bank(ports: Ports, payment: Payment) -> Payment | None:
    """Save the invoice that our operation id made; return None when the bank never saw it.

    Raises: Unavailable, NotConfigured.
    """
    if payment.bank is None:
        return None
    async with at_bank(ports, payment, invoices=True) as bank:
        invoice = await find_invoice(bank, _request(ports, payment, bank), payment.created_at)
    return None if invoice is None else await take_invoice(ports, payment, invoice)
