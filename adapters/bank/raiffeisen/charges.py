"""Charges by subscriptions of Raiffeisenbank: our orders, paid without the payer."""

from datetime import datetime

from ....ports.bank import Transfer
from ....ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.mandates import (
    MANDATE_REVOKED,
    ChargeRequest,
    ChargeState,
    ChargeStatus,
    MandateStatus,
)
from .core import Page
from .errors import ALREADY_PAID, BankRefused
from .mandates import RaiffeisenMandates, token_of
from .merchants import NAME, Reference, charge_page
from .wire import (
    INFO_MOST,
    STATEMENT_MOST,
    ChargeInfo,
    charge_status,
    kopecks,
    mandate_status,
    number_of,
    read_moment,
    roubles,
    spelled,
)

_POLL = 10.0
"""Seconds until the next poll. The bank sends no notification of a declined charge."""


class RaiffeisenCharges(RaiffeisenMandates):
    """Charges part of the adapter."""

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Charge a mandate.

        Ask for the charge by our number before sending it, and again after a refusal. A repeat always belongs to the
        subscription that was charged first, even if it names another one.
        """
        self._need_subscriptions()
        order = await self._order_of(request)
        found = await self._charged(order)
        if found is not None:
            return await self._charge_state(order, found)
        mandate = Reference.read(request.reference)
        if request.amount_kopecks <= 0:
            raise Refused(f"{NAME}: a charge is of more than nothing", reason="amount")
        self._check_receipt(request.receipt, request.amount_kopecks)
        if mandate.kind != "sub" or request.token != token_of(mandate.first):
            raise Refused(f"{NAME}: no such mandate", reason="not_found")
        if order.first != mandate.first:
            raise Refused(f"{NAME}: the operation was sent to another mandate", reason="operation")
        if await self._is_revoked(mandate):
            return _revoked(order)
        await self._notes.start(charge_page(order.second), Page(request.operation, reference=order.text))
        body = {
            "order": order.second,
            "amount": roubles(request.amount_kopecks),
            "currency": "RUB",
            "additionalInfo": spelled(request.purpose, INFO_MOST),
            "paymentDetails": spelled(request.purpose, STATEMENT_MOST),
        }
        path = ("sbp", "v1", "subscriptions", mandate.first, "orders")
        try:
            return await self._charge_state(
                order, await self._api.send(self._whose(mandate), ChargeInfo, body, *path), after_write=True
            )
        except BankRefused as refusal:
            return await self._after_refused_charge(order, refusal)

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:  # noqa: ARG002 - by id
        self._need_subscriptions()
        order = await self._order_of(request)
        found = await self._charged(order)
        return None if found is None else await self._charge_state(order, found)

    async def find_charge(self, operation: str) -> ChargeState | None:
        raise NotSupported(f"{NAME}: {operation} is searched by its request")

    async def _order_of(self, request: ChargeRequest) -> Reference:
        number = number_of(request.operation)
        page = await self._notes.read(charge_page(number))
        if page is not None:
            return Reference.read(page.reference)
        mandate = Reference.read(request.reference)
        return Reference("order", mandate.owner, mandate.first, number)

    async def _charged(self, order: Reference) -> ChargeInfo | None:
        path = ("sbp", "v1", "subscriptions", order.first, "orders", order.second)
        return await self._api.ask(self._whose(order), ChargeInfo, *path)

    async def _charge_state(self, order: Reference, said: ChargeInfo, *, after_write: bool = False) -> ChargeState:
        """Build the charge's state, with the transfer if it is paid and the reason if it is declined.

        Raises: Unavailable if these details cannot be read. Directly after the write the charge counts as in processing
        instead.
        """
        status = charge_status(said.payment_status)
        try:
            transfer = await self._charge_transfer(order, said) if status is ChargeStatus.PAID else None
            failure = await self._why_declined(order) if status is ChargeStatus.FAILED else None
        except Unavailable:
            if not after_write:
                raise
            status, transfer, failure = ChargeStatus.PROCESSING, None, None
        return ChargeState(
            reference=order.text,
            status=status,
            failure=failure,
            transfer=transfer,
            check_after=_POLL if status is ChargeStatus.PROCESSING else None,
        )

    async def _charge_transfer(self, order: Reference, said: ChargeInfo) -> Transfer:
        """Build the charge's transfer. An order does not show when it was paid; its QR does, if the QR belongs to this
        order."""
        amount = kopecks(said.amount)
        if not amount or amount < 0 or said.currency not in (None, "RUB"):
            raise Unavailable(f"{NAME}: a charge is shown without its money")
        info = await self._payment(self._whose(order), said.qr_id) if said.qr_id else None
        at = read_moment(info.transaction_date) if info is not None and info.order == order.second else None
        return Transfer(id=order.second, amount_kopecks=amount, at=at or self._clock.now())

    async def _why_declined(self, order: Reference) -> str:
        subscription = await self._subscription(self._whose(order), order.first)
        is_over = subscription is None or mandate_status(subscription.status) is MandateStatus.ENDED
        return MANDATE_REVOKED if is_over else "declined_by_bank"

    async def _after_refused_charge(self, order: Reference, refusal: BankRefused) -> ChargeState:
        """Decide whether a refused charge was a repeat, the payer has unsubscribed, or there is no charge. Raises:
        OutcomeUnknown if the bank does not answer."""
        try:
            found = await self._charged(order)
            if found is not None:
                return await self._charge_state(order, found)
            subscription = await self._subscription(self._whose(order), order.first)
        except Unavailable:
            raise OutcomeUnknown(f"{NAME}: a charge was refused, and may be a repeat") from None
        if refusal.code == ALREADY_PAID:
            raise OutcomeUnknown(f"{NAME}: the order is paid, and not by this subscription") from None
        if subscription is None:
            raise Refused(str(refusal), reason="not_found")
        if mandate_status(subscription.status) is MandateStatus.ENDED:
            return _revoked(order)
        raise refusal


def _revoked(order: Reference) -> ChargeState:
    return ChargeState(reference=order.text, status=ChargeStatus.FAILED, failure=MANDATE_REVOKED)
