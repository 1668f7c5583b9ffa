"""Subscriptions of Raiffeisenbank as the port MandateBank: a payer subscribes by QR, with or without a payment."""

from contextlib import suppress
from datetime import datetime

import msgspec

from ....ports.bank import Transfer
from ....ports.faults import NotSupported, Refused, Unavailable
from ....ports.mandates import (
    Binding,
    BindingRequest,
    MandateState,
    MandateStatus,
)
from ....ports.operations import short_operation, tiny_operation
from .core import Page
from .errors import BankRefused
from .merchants import NAME, Pair, Reference, first_order, mandate_page
from .receipts import RaiffeisenReceipts
from .wire import (
    INFO_MOST,
    STATEMENT_MOST,
    PaymentInfo,
    Qr,
    Subscription,
    mandate_status,
    roubles,
    spelled,
    wire_moment,
)


class RaiffeisenMandates(RaiffeisenReceipts):
    """Bindings part of the adapter."""

    async def bind(self, request: BindingRequest) -> Binding:
        """Register a subscription under a number of ours. With a first charge, register a QR that pays it as well."""
        self._need_subscriptions()
        if request.first_charge_kopecks is not None and request.first_charge_kopecks <= 0:
            raise Refused(f"{NAME}: a first charge is of more than nothing", reason="amount")
        if request.first_charge_kopecks is not None:
            self._check_receipt(request.receipt, request.first_charge_kopecks)
        owner, pair = self._pair_of(request.account, request.shop, request.terminal)
        number = short_operation(request.operation)
        page, is_new = await self._notes.start(mandate_page(number), Page(request.operation))
        if page.qr_id is None:
            found = None if is_new else await self._found(pair, number)
            page = await self._noted(number, found or await self._subscribed(pair, number, request))
        return _binding(owner, number, page, request)

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:  # noqa: ARG002 - by id
        self._need_subscriptions()
        owner, pair = self._pair_of(request.account, request.shop, request.terminal)
        number = short_operation(request.operation)
        page = await self._notes.read(mandate_page(number))
        if page is None or page.qr_id is None:
            page = await self._found(pair, number)
        return None if page is None else _binding(owner, number, page, request)

    async def find_binding(self, operation: str) -> Binding | None:
        raise NotSupported(f"{NAME}: {operation} is searched by its request")

    async def mandate_state(self, reference: str) -> MandateState:
        """Read the mandate's state, and the payment of its first charge if there is one."""
        mandate, subscription = await self._asked(reference)
        revoked = await self._is_revoked(mandate)
        info = await self._payment(self._whose(mandate), mandate.second) if mandate.second else None
        transfers = (self._transfer(info),) if info is not None and info.payment_status == "SUCCESS" else ()
        status = self._status(subscription, info, transfers, revoked=revoked)
        return MandateState(
            reference=reference,
            status=status,
            link=subscription.qr.payload,
            payload=subscription.qr.payload,
            token=token_of(mandate.first) if status is MandateStatus.ACTIVE else None,
            transfers=transfers,
            failure="declined_by_bank" if status is MandateStatus.REFUSED else None,
        )

    async def revoke(self, reference: str) -> None:
        """Mark the mandate as ended in our note, because the bank has no call for it. Close a QR whose first charge is
        still unpaid."""
        mandate, subscription = await self._asked(reference)
        note = mandate_page(mandate.first)
        await self._notes.start(note, Page("", revoked=True))
        await self._notes.change(note, lambda page: msgspec.structs.replace(page, revoked=True))
        if mandate.second and mandate_status(subscription.status) is MandateStatus.OPEN:
            with suppress(BankRefused):  # it is paid or already closed
                await self._api.delete(self._whose(mandate), "sbp", "v2", "qrs", mandate.second)

    async def _is_revoked(self, mandate: Reference) -> bool:
        page = await self._notes.read(mandate_page(mandate.first))
        return page is not None and page.revoked

    def _need_subscriptions(self) -> None:
        if not self._subscriptions:
            raise NotSupported(f"{NAME}: subscriptions are not switched on")

    async def _asked(self, reference: str) -> tuple[Reference, Subscription]:
        """Read a subscription by its reference. Raises: Refused when it does not exist."""
        self._need_subscriptions()
        mandate = Reference.read(reference)
        found = None
        if mandate.kind in ("sub", ""):
            found = await self._subscription(self._whose(mandate), mandate.first)
        if found is None:
            raise Refused(f"{NAME}: no such subscription", reason="not_found")
        return mandate, found

    async def _subscription(self, who: Pair, number: str) -> Subscription | None:
        return await self._api.ask(who, Subscription, "sbp", "v1", "subscriptions", number)

    async def _found(self, pair: Pair, number: str) -> Page | None:
        found = await self._subscription(pair, number)
        return None if found is None else Page("", found.qr.id, found.qr.payload)

    async def _subscribed(self, pair: Pair, number: str, request: BindingRequest) -> Page:
        """Register the subscription. If the bank refuses, check whether an earlier call registered it."""
        purpose = spelled(request.purpose, STATEMENT_MOST) or number
        try:
            if request.first_charge_kopecks is None:
                body = {"id": number, "subscriptionPurpose": purpose, "sbpMerchantId": pair.merchant_id}
                made = await self._api.send(pair, Subscription, body, "sbp", "v1", "subscriptions")
                return Page(request.operation, made.qr.id, made.qr.payload)
            paying = {
                "qrType": "QRDynamic",
                "sbpMerchantId": pair.merchant_id,
                "order": first_order(number),
                "amount": roubles(request.first_charge_kopecks),
                "currency": "RUB",
                "qrExpirationDate": wire_moment(request.expires_at),
                "additionalInfo": spelled(request.purpose, INFO_MOST),
                "paymentDetails": purpose,
                "subscription": {"id": number, "subscriptionPurpose": purpose[:INFO_MOST]},
            }
            qr = await self._api.send(pair, Qr, paying, "sbp", "v2", "qrs")
        except BankRefused:
            found = await self._found(pair, number)
            if found is None:
                raise
            return found
        return Page(request.operation, qr.qr_id, qr.payload)

    async def _noted(self, number: str, made: Page) -> Page:
        """Note the subscription's QR unless one was noted before, and return the noted one. No other QR is handed
        out."""

        def keep_first(page: Page) -> Page:
            if page.qr_id is not None:
                return page
            return msgspec.structs.replace(page, qr_id=made.qr_id, payload=made.payload)

        with suppress(Unavailable):  # the QR can also be found at the bank, by our number
            return await self._notes.change(mandate_page(number), keep_first) or made
        return made

    def _status(
        self, said: Subscription, first: PaymentInfo | None, transfers: tuple[Transfer, ...], *, revoked: bool
    ) -> MandateStatus:
        """Derive the mandate's status. If a binding's QR has expired, the payment decides: paid without a binding is
        REFUSED, unpaid is CLOSED."""
        status = mandate_status(said.status)
        if status is not MandateStatus.OPEN:
            return MandateStatus.ENDED if revoked else status
        if revoked and not transfers:
            return MandateStatus.CLOSED
        if first is None or first.payment_status == "IN_PROGRESS" or not self._is_over(first):
            return status
        return MandateStatus.REFUSED if transfers else MandateStatus.CLOSED


def _binding(owner: str, number: str, page: Page, request: BindingRequest) -> Binding:
    paying = page.qr_id or "" if request.first_charge_kopecks is not None else ""
    reference = Reference("sub", owner, number, paying)
    return Binding(reference=reference.text, link=page.payload, payload=page.payload)


def token_of(number: str) -> str:
    """Derive a mandate's token from the subscription's number.

    The port charges by a token, but the bank needs only our secret key. The token proves that the caller knows the
    mandate became active.
    """
    return tiny_operation(f"mandate {number}")
