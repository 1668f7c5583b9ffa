"""Progress of a receipt at its bank or register, by the engine of operations (docs/receipts.md "State"). Neither the
payment nor the refund waits for it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, Refused
from ....ports.receipts import Correction, ReceiptBank, ReceiptFinder, ReceiptRequest, ReceiptState
from ....ports.receipts import Receipt as Content
from ....ports.receipts import ReceiptKind as Kind
from ....ports.receipts import ReceiptStatus as AtProvider
from ....ports.storage import Unit
from ...domain.days import MOSCOW
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart
from ...domain.receipts.receipts import (
    ASKED_FOR,
    CORRECTIONS,
    FiscalReceipt,
    ReceiptKind,
    ReceiptStatus,
    ReceiptTrigger,
    ReceiptWriter,
    attempt_of,
    moved_to,
    plain_reason,
)
from ...domain.refunds.refunds import Refund
from ..common.encrypted import receipt_aad
from ..common.schedule import pause_after
from ..common.units import unit_of_work
from ..operations.operation import Followed, Looked, Want
from ..operations.repeating import repeats_until
from ..payments.receipt_records import RECEIPT
from ..payments.receipts import receipt_content, sent_receipt
from ..refunds.receipts import returned_items

_KINDS = {
    ReceiptKind.SALE: Kind.SALE,
    ReceiptKind.REFUND: Kind.REFUND,
    ReceiptKind.SECOND: Kind.SALE,
    ReceiptKind.SALE_CORRECTION: Kind.SALE_CORRECTION,
    ReceiptKind.REFUND_CORRECTION: Kind.REFUND_CORRECTION,
}
log = logging.getLogger("cambist.receipts")


class Writing(NamedTuple):
    """A receipt, with its payment, and its refund if it has one."""

    receipt: FiscalReceipt
    payment: Payment
    refund: Refund | None


class Receipts(Followed[Writing, ReceiptState, ReceiptFinder]):
    """Receipts. The provider is only asked for a receipt that went with its money. The others are looked up, and sent
    if the provider never saw them."""

    follow_up = RECEIPT
    record = FiscalReceipt

    def owns(self, operation: str, /) -> bool:
        return attempt_of(operation) is not None

    async def owner(self, unit: Unit, operation: str, /) -> FiscalReceipt | None:
        found = attempt_of(operation)
        return None if found is None else await unit[FiscalReceipt].get(found[0])

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Writing | None:
        receipt = await unit[FiscalReceipt].get(object_id)
        payment = None if receipt is None else await unit[Payment].get(receipt.payment_id)
        if receipt is None or payment is None:
            return None
        return Writing(
            receipt, payment, None if receipt.refund_id is None else await unit[Refund].get(receipt.refund_id)
        )

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> Writing | None:
        """Return None also for an attempt that another one has followed: it failed for good."""
        found = attempt_of(operation)
        subject = None if found is None else await self.load(ports, unit, found[0])
        return subject if subject is not None and subject.receipt.operation == operation else None

    def operation(self, subject: Writing, /) -> str:
        return subject.receipt.operation

    def wants(self, subject: Writing, /) -> Want:
        if subject.receipt.status is not ReceiptStatus.PENDING:
            return Want.NOTHING
        return Want.POLL if subject.receipt.is_with_money else Want.SEND

    @asynccontextmanager
    async def at_provider(self, ports: Ports, subject: Writing, /) -> AsyncIterator[ReceiptFinder]:
        """Open the bank without observing it: a cash register that is away says nothing about payments."""
        yield provider_of(ports, subject.receipt)

    async def find(self, ports: Ports, provider: ReceiptFinder, subject: Writing, /) -> ReceiptState | None:
        return await provider.find_receipt(request_of(ports, subject))

    async def send(self, ports: Ports, provider: ReceiptFinder, subject: Writing, /) -> ReceiptState:
        if not isinstance(provider, ReceiptBank):
            raise NotSupported(f"{subject.receipt.provider} writes no receipt apart from its money")
        return await provider.write_receipt(request_of(ports, subject))

    def refused(self, subject: Writing, fault: Refused | NotSupported, /) -> ReceiptState:
        """Keep the receipt pending if the provider has another document under its id: another attempt would write a
        second one. It becomes an action item."""
        if isinstance(fault, Refused) and fault.reason == "operation":
            log.error("%s: the provider has another document of this id; see there", subject.receipt.operation)
            return ReceiptState(status=AtProvider.PROCESSING)
        return ReceiptState(status=AtProvider.FAILED, failure=str(fault))

    def repeats_until(self, ports: Ports, subject: Writing, /) -> datetime | None:
        if subject.receipt.writer is ReceiptWriter.REGISTER:
            return None
        return repeats_until(ports, subject.receipt.provider, subject.receipt.attempt_at)

    def given_up(self, ports: Ports, subject: Writing, /) -> ReceiptState | None:
        until = self.repeats_until(ports, subject)
        if until is None or ports.clock.now() < until:
            return None
        return ReceiptState(status=AtProvider.FAILED, failure="the bank has not got it")

    async def apply(self, ports: Ports, unit: Unit, subject: Writing, word: ReceiptState, /) -> Writing:
        receipt, now = subject.receipt, ports.clock.now()
        if receipt.status is not ReceiptStatus.PENDING or word.status is AtProvider.PROCESSING:
            return subject
        if word.status is AtProvider.FAILED:
            reason = plain_reason(word.failure or "")
            after = moved_to(receipt, ReceiptTrigger.REJECTED, now, failure_reason=reason, failed_at=now)
        else:
            after = moved_to(
                receipt,
                ReceiptTrigger.WRITTEN,
                now,
                storage_number=word.fiscal.storage,
                document_number=word.fiscal.document,
                fiscal_sign=word.fiscal.sign,
                register_number=word.fiscal.register,
                url=word.fiscal.url,
                registered_at=word.fiscal.registered_at,
            )
        return subject._replace(receipt=unit[FiscalReceipt].save(after))

    def next_status_poll(
        self, ports: Ports, subject: Writing, looked: Looked[Writing, ReceiptState], /
    ) -> datetime | None:
        now = ports.clock.now()
        if subject.receipt.status is not ReceiptStatus.PENDING or now >= subject.receipt.attempt_at + ASKED_FOR:
            return None
        return now + pause_after(looked.asked)


RECEIPTS = Receipts()


def provider_of(ports: Ports, receipt: FiscalReceipt) -> ReceiptFinder:
    """Return the bank or register of a receipt. Raises: NotConfigured, NotSupported."""
    if receipt.writer is ReceiptWriter.REGISTER:
        if ports.register is None or ports.register.name != receipt.provider:
            raise NotConfigured(f"no register named {receipt.provider} is connected")
        return ports.register
    bank = ports.banks.named(receipt.provider)
    if not isinstance(bank, ReceiptFinder):
        raise NotSupported(f"{receipt.provider} tells no states of receipts")
    return bank


def request_of(ports: Ports, subject: Writing) -> ReceiptRequest:
    """Return the request of the present attempt. Raises: NotSupported if the payment has no terms of receipts."""
    receipt, payment, _ = subject
    content = _content(ports, subject)
    corrected = (payment.paid_at or receipt.created_at).astimezone(MOSCOW).date()
    return ReceiptRequest(
        operation=receipt.operation,
        of=receipt.refund_id or payment.id,
        amount_kopecks=receipt.amount.kopecks,
        reference=payment.bank_reference or "",
        receipt=content,
        kind=_KINDS[receipt.kind],
        prepaid_kopecks=content.total_kopecks if receipt.kind is ReceiptKind.SECOND else 0,
        is_with_money=receipt.is_with_money,
        correction=Correction(day=corrected, order=receipt.correction_order) if receipt.kind in CORRECTIONS else None,
        requested_at=receipt.attempt_at,
        account=payment.account_id,
        shop=payment.shop_id,
        terminal=payment.method_id,
    )


def _content(ports: Ports, subject: Writing) -> Content:
    receipt, payment, refund = subject
    if receipt.private is not None:
        plain = ports.vault.decrypt(receipt.private, receipt_aad(receipt.id))
        return sent_receipt(msgspec.json.decode(plain, type=Cart))
    if payment.receipt is None:
        raise NotSupported("the payment has no terms of receipts")
    cart = None if refund is None else returned_items(ports, refund)
    return receipt_content(ports, payment, payment.receipt, receipt.amount.kopecks, cart)


@unit_of_work()
async def hurry_receipts(ports: Ports, unit: Unit, payment: Payment) -> None:
    """Ask for the pending receipts of a payment now, because its bank has sent a notification."""
    for receipt in await unit[FiscalReceipt].find(payment_id=payment.id, order="created_at"):
        if receipt.status is ReceiptStatus.PENDING:
            await RECEIPT.hurry(unit, receipt.id, ports.clock.now())
