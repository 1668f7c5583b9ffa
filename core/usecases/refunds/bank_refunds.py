"""Money that a bank sends back to its payer: shared by refunds, returns from suspense and RUB of exchanges
(ports/bank.py: RefundRequest).
"""

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import Bank, RefundRequest, RefundState, RefundStatus
from ....ports.bundle import Ports
from ....ports.faults import NotSupported, Refused
from ....ports.searching import find_refund
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart
from ..common.forgotten import sent_at_earliest
from ..common.schedule import next_ask, next_late_status_poll
from ..gateways.watch import Banked, at_bank
from ..operations.operation import Followed, S
from ..operations.repeating import repeats_until
from ..payments.receipts import receipt_of

REVERSAL_POLLS = (timedelta(days=1), timedelta(days=3), timedelta(days=10))
"""Polls for a reversal, counted from the time when money was sent back; its notification may have been lost."""
NOT_SUPPORTED = "not_supported"
"""Failure reason: the bank sends no money back."""


class BankRefunds(Followed[S, RefundState, Bank]):
    """Money that goes back through the bank that received it. A final refusal is FAILED, with the bank's reason."""

    @abstractmethod
    def banked(self, subject: S, /) -> Banked:
        """Return the payment or exchange whose money is sent back."""

    @abstractmethod
    def request(self, subject: S, /) -> RefundRequest: ...

    @abstractmethod
    def since(self, subject: S, /) -> datetime: ...

    @abstractmethod
    def sent_at(self, subject: S, /) -> datetime | None:
        """Return the earliest moment at which the bank may have the operation, recorded before the call; None if it was
        never sent.
        """

    def repeats_until(self, ports: Ports, subject: S, /) -> datetime | None:
        return repeats_until(ports, self.banked(subject).bank, self.sent_at(subject))

    def operation(self, subject: S, /) -> str:
        return self.request(subject).operation

    def at_provider(self, ports: Ports, subject: S, /) -> AbstractAsyncContextManager[Bank]:
        return at_bank(ports, self.banked(subject))

    async def find(self, ports: Ports, provider: Bank, subject: S, /) -> RefundState | None:
        return await find_refund(provider, self.request(subject), await sent_at_earliest(ports, self.since(subject)))

    async def send(self, ports: Ports, provider: Bank, subject: S, /) -> RefundState:
        return await provider.refund(self._with_receipt(ports, provider, subject))

    def _with_receipt(self, ports: Ports, bank: Bank, subject: S) -> RefundRequest:
        request, came = self.request(subject), self.banked(subject)
        if not isinstance(came, Payment):
            return request  # Exchanges have no receipts.
        cart = self.returned(ports, subject)
        return msgspec.structs.replace(request, receipt=receipt_of(ports, came, bank, request.amount_kopecks, cart))

    def returned(self, _ports: Ports, _subject: S, /) -> Cart | None:
        """Return the receipt that the merchant sent for this money; None without one."""
        return None

    def refused(self, _subject: S, fault: Refused | NotSupported, /) -> RefundState:
        reason = fault.reason if isinstance(fault, Refused) else NOT_SUPPORTED
        return RefundState(status=RefundStatus.FAILED, failure=reason)


def next_status_poll(state: RefundState | None, asked: int, now: datetime) -> datetime:
    """Return the next moment to poll the bank, after `asked` polls. We poll without end, because the money is out until
    the bank says otherwise.
    """
    return next_ask(None if state is None else state.check_after, asked, now)


def next_reversal_poll(since: datetime, now: datetime, *, advanced: bool = False) -> datetime | None:
    """Return the next moment to poll for a reversal of money sent at `since`; None when only notifications matter from
    now on.
    """
    return next_late_status_poll(REVERSAL_POLLS, since, now, advanced=advanced)
