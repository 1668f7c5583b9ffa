"""Receipts as merchants and operators read and retry them (docs/receipts.md "State")."""

from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.ids import canonical_uuid
from ...domain.payments.payments import Payment
from ...domain.receipts.receipts import (
    FiscalReceipt,
    ReceiptKind,
    ReceiptStatus,
    ReceiptWriter,
    tried_again,
)
from ..common.account_time import in_test_time
from ..common.keyset import Cursor, Listed, listing_of, read_listing
from ..common.paging import MomentFilter, Page, newest
from ..common.units import retrying
from ..payments.receipt_records import RECEIPT


class ReceiptFilter(MomentFilter, frozen=True, kw_only=True):
    """Raw query values of GET /receipts; None when absent."""

    payment_id: str | None = None
    status: str | None = None
    shop_id: str | None = None


async def list_receipts(
    ports: Ports, caller: Caller, asked: ReceiptFilter, number: int, size: int
) -> Page[FiscalReceipt]:
    """Return a page of the caller's receipts, newest first, as of one moment. Raises: Refusal VALIDATION_ERROR,
    SHOP_NOT_FOUND."""
    criteria = _read(caller, asked)
    async with ports.storage.snapshot() as seen:
        return await newest(seen, FiscalReceipt, number, size, **criteria)


async def browse_receipts(
    ports: Ports, caller: Caller, asked: ReceiptFilter, cursor: Cursor | None, size: int
) -> Listed[FiscalReceipt]:
    """Return a page of the caller's receipts by cursor, newest first. Raises: as `list_receipts`."""
    return await read_listing(ports, listing_of(FiscalReceipt, _read(caller, asked), ("status",)), cursor, size)


def _read(caller: Caller, asked: ReceiptFilter) -> dict[str, Any]:
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode, "created_at": asked.made()}
    if asked.payment_id is not None:
        if not ids.is_prefixed(ids.PAYMENT, asked.payment_id):
            raise shape_error("payment_id", "must be the id of a payment")
        criteria["payment_id"] = asked.payment_id
    if asked.status is not None:
        criteria["status"] = read_choice("status", asked.status, ReceiptStatus)
    if asked.shop_id is not None:
        shop_id = canonical_uuid(asked.shop_id)
        if shop_id is None:
            raise shape_error("shop_id", "must be a UUID")
        criteria["shop_id"] = shop_id
    elif asked.payment_id is not None and caller.shops is not None:
        # The receipts of one payment are all of its shop.
        return {**criteria, "shop_id": OneOf(caller.shops)}
    caller.require_shop(criteria.get("shop_id"))
    return criteria


async def receipts_of(ports: Ports, payment: Payment) -> list[FiscalReceipt]:
    """Return all receipts of a payment and its refunds, oldest first."""
    async with ports.storage.unit() as unit:
        return await unit[FiscalReceipt].find(payment_id=payment.id, order="created_at")


async def get_receipt(ports: Ports, caller: Caller, receipt_id: str) -> FiscalReceipt:
    """Return a receipt of the caller's account and mode. Raises: Refusal RECEIPT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _own(unit, caller, receipt_id)


async def read_receipt(ports: Ports, receipt_id: str) -> FiscalReceipt:
    """Return a receipt of any account, for operators. Raises: Refusal RECEIPT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _any(unit, receipt_id)


async def _own(unit: Unit, caller: Caller, receipt_id: str) -> FiscalReceipt:
    receipt = await _any(unit, receipt_id)
    if (receipt.account_id, receipt.mode) != (caller.account_id, caller.mode) or not caller.sees_shop(receipt.shop_id):
        raise no_receipt_of_id()
    return receipt


async def _any(unit: Unit, receipt_id: str) -> FiscalReceipt:
    receipt = await unit[FiscalReceipt].get(receipt_id) if ids.is_prefixed(ids.RECEIPT, receipt_id) else None
    if receipt is None:
        raise no_receipt_of_id()
    return receipt


def no_receipt_of_id() -> Refusal:
    return Refusal("RECEIPT_NOT_FOUND", "No receipt of this id")


async def retry_receipt(ports: Ports, caller: Caller, receipt_id: str) -> FiscalReceipt:
    """Try a failed receipt again, with a new id at the provider. A pending one is asked for now.

    Raises: Refusal RECEIPT_NOT_FOUND; INVALID_STATE for a written one, and where nobody can write it again.
    """

    async def work(unit: Unit) -> FiscalReceipt:
        return await _retry(ports, unit, await _own(unit, caller, receipt_id))

    return await retrying(ports.storage, work)


@in_test_time(FiscalReceipt)
async def retry_receipt_for(ports: Ports, receipt_id: str) -> FiscalReceipt:
    """Do the same as an operator. Raises: as `retry_receipt`."""

    async def work(unit: Unit) -> FiscalReceipt:
        return await _retry(ports, unit, await _any(unit, receipt_id))

    return await retrying(ports.storage, work)


async def _retry(ports: Ports, unit: Unit, receipt: FiscalReceipt) -> FiscalReceipt:
    now = ports.clock.now()
    if receipt.status is not ReceiptStatus.PENDING:
        receipt = unit[FiscalReceipt].save(tried_again(receipt, now, *_writer(ports, receipt)))
    await RECEIPT.plan(unit, receipt.id, now, now, anew=True)
    return receipt


def _writer(ports: Ports, receipt: FiscalReceipt) -> tuple[ReceiptWriter, str]:
    """Return who writes the next attempt: the same provider if it can, else the register. Raises: Refusal
    INVALID_STATE."""
    bank = ports.banks.capabilities_of(receipt.provider)
    second = receipt.kind is ReceiptKind.SECOND
    if receipt.writer is not ReceiptWriter.REGISTER and bank is not None and (bank.rewrites_receipts or second):
        return receipt.writer, receipt.provider
    if ports.register is None or receipt.mode is not Mode.LIVE:
        raise Refusal("INVALID_STATE", f"{receipt.provider} cannot write it again: write it at the cash register")
    return ReceiptWriter.REGISTER, ports.register.name


@in_test_time(FiscalReceipt)
async def close_receipt(ports: Ports, receipt_id: str) -> FiscalReceipt:
    """Note that a failed receipt needs nobody any more: it was written by other means. Raises: Refusal
    RECEIPT_NOT_FOUND, INVALID_STATE."""

    async def work(unit: Unit) -> FiscalReceipt:
        receipt = await _any(unit, receipt_id)
        if receipt.failed_at is None:
            raise Refusal("INVALID_STATE", f"The receipt is {receipt.status}, and waits for nobody")
        return unit[FiscalReceipt].save(msgspec.structs.replace(receipt, failed_at=None))

    return await retrying(ports.storage, work)


async def list_receipts_for(
    ports: Ports, *, payment_id: str | None = None, status: ReceiptStatus | None = None
) -> list[FiscalReceipt]:
    """Return at most 1000 receipts of all accounts and both modes, newest first, for operators."""
    found: list[FiscalReceipt] = []
    async with ports.storage.unit() as unit:
        if payment_id is not None:
            found = await unit[FiscalReceipt].find(payment_id=payment_id, order="-created_at", limit=MOST_LISTED)
            return [each for each in found if status in (None, each.status)]
        for each in ReceiptStatus if status is None else (status,):
            found += await unit[FiscalReceipt].find(status=each, order="-created_at", limit=MOST_LISTED)
    return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)[:MOST_LISTED]


MOST_LISTED = 1000
