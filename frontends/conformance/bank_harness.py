"""Test harness for banks (harnesses.py has those of the other ports)."""

from datetime import datetime, timedelta

import msgspec

from ...ports.bank import Bank, Invoice, InvoiceRequest
from ...ports.notifications import InboundNotification
from .hidden import check_hidden as check_hidden
from .hidden import check_name as check_name
from .hidden import unplayed
from .problem import ProviderHarness
from .receipts import receipted
from .searching import searched


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the adapter asked for in one operation, read from the provider's records. Leave out what they do not keep:
    its checks are skipped. None means that the adapter sent nothing."""

    amount_kopecks: int
    order: str | msgspec.UnsetType = msgspec.UNSET
    """The id of the operation as it was sent: an order number, an idempotency key or metadata."""
    purpose: str | None | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | None | msgspec.UnsetType = msgspec.UNSET
    """Deadline of an invoice."""
    return_url: str | None | msgspec.UnsetType = msgspec.UNSET
    """Where the provider's page sends the payer of an invoice afterwards."""
    phone: str | None | msgspec.UnsetType = msgspec.UNSET
    """Receiver of a remittance, as in its request."""
    bank_id: str | None | msgspec.UnsetType = msgspec.UNSET
    """Receiving bank of a remittance, as in its request."""


class BankHarness(ProviderHarness):
    """Harness of a bank, with the actions of its payers. Fixture `bank_harness`."""

    LIFETIME = timedelta(minutes=15)
    phone = "+79990000001"
    """Phone number of a person who can receive a remittance through this bank."""
    bank_id = "bank1"
    """That person's bank."""
    page = 3
    """Page size of the provider's lists, for adapters that read them. The suites create more than two pages."""
    signs_notifications = True
    """The provider signs its notifications, so the adapter can detect forgeries."""
    pays_twice = pays_other_amounts = True
    """A payer can pay one invoice a second time, and an amount that differs from the invoice's. If false, no payer can
    do so at this provider, and `pay` is never called for it."""
    limits_calls = True
    """The adapter gives up a call without an answer by itself, by a timer of the event loop. If false, the service ends
    it after 20 seconds."""
    asks_to_revoke = True
    """Revoking a mandate calls the provider. If false, the adapter records the revocation itself."""

    binds_in_one_call = charges_in_one_call = remits_in_one_call = True
    """A binding, charge or remittance takes a single writing call. If false, a half-finished operation may or may not
    be found."""

    @property
    def bank(self) -> Bank:
        """The bank under test, wrapped as the service uses it: it searches with `search_…` if the bank has those
        (ports/searching.py), and adds receipts if the bank writes them."""
        return self._bank

    @bank.setter
    def bank(self, bank: Bank) -> None:
        self.unaided = bank
        self._bank = self._asked(bank)

    def beside(self) -> Bank:
        """Return the adapter of `another`, wrapped in the same way. It also searches for operations that the first one
        sent."""
        return self._asked(self.another())

    def _asked(self, bank: Bank) -> Bank:
        return receipted(searched(bank, lambda: self.clock.now(), self.__dict__.setdefault("_sent", {})))

    def request(self, operation: str, kopecks: int = 100_00) -> InvoiceRequest:
        """Return a request for an invoice."""
        return InvoiceRequest(
            operation=operation, amount_kopecks=kopecks, purpose="Order 1", expires_at=self.clock.now() + self.LIFETIME
        )

    async def asked(self, operation: str) -> Asked:
        """Return what the adapter asked for in this invoice, refund, binding (its first charge), charge or remittance.
        Call `super().asked` for the kinds that the provider's records cannot show."""
        unplayed("what the provider was asked for")

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        """Let a payer pay this amount for the invoice of this operation, at the harness's clock: also a second time and
        another amount than the invoice's (see `pays_twice` and `pays_other_amounts`)."""
        unplayed("a payer")

    async def decline(self, operation: str, invoice: Invoice) -> None:
        """Let the payer's bank decline the payment of this invoice for good, so that nobody can pay it any more."""
        unplayed("a payment that is declined")

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        """Let this invoice end unpaid, as it does at its deadline."""
        unplayed("an invoice that nobody pays")

    async def say_unknown_status(self, operation: str) -> None:
        """Let the provider show this invoice, refund, charge or remittance in a status that its documentation does not
        name."""
        unplayed("a status that nobody knows")

    async def take_back(self, operation: str, invoice: Invoice) -> None:
        """Let the payer's bank take back the money of this paid invoice (a chargeback)."""
        unplayed("money that is taken back")

    async def notification(self, operation: str) -> InboundNotification:
        """Return the notification that the provider posts about this operation, as it arrives."""
        unplayed("notifications")

    def another(self) -> Bank:
        """Return another adapter of the same name on the same storage, as a second process would have it."""
        unplayed("a second process")

    async def forget(self) -> None:
        """Delete the notes that the adapter stored with us, as restoring an older backup would. The provider forgets
        nothing."""
        unplayed("notes that are lost")

    async def pass_time(self, span: timedelta) -> None:
        """Let time pass at the provider, so that it forgets idempotency keys older than its limit."""
        unplayed("the provider's clock")

    async def hold_next_refund(self) -> None:
        """Keep the next refund in processing until `finish_refunds`."""
        unplayed("a refund that takes its time")

    async def finish_refunds(self) -> None:
        """Complete all refunds in processing."""

    async def reverse_refund(self, operation: str) -> None:
        """Let the payer's bank return the money of this completed refund."""
        unplayed("a refund that comes back")

    async def fail_next_refund(self) -> None:
        """Let the next refund fail for good, at the bank or the payer's bank, after it was accepted."""
        unplayed("a refund that fails")

    async def confirm(self, operation: str) -> None:
        """Let the payer confirm the binding of this operation and pay its first charge, if it has one."""
        unplayed("a payer who confirms a binding")

    async def refuse(self, operation: str) -> None:
        """Let the payer refuse the binding of this operation."""
        unplayed("a payer who refuses a binding")

    async def lose_mandate(self, operation: str) -> None:
        """Let the payer's bank reject the token of this binding operation from now on."""
        unplayed("a mandate that is lost")

    async def restore_mandate(self, operation: str) -> None:
        """Let the payer's bank accept the token again."""
        unplayed("a mandate that is valid again")

    async def hold_next_charge(self) -> None:
        """Keep the next charge in processing until `finish_charges`."""
        unplayed("a charge that takes its time")

    async def finish_charges(self) -> None:
        """Complete all charges in processing."""

    async def fail_next_charge(self) -> None:
        """Let the next charge of any mandate fail at the payer's bank for insufficient funds."""
        unplayed("a charge that fails")

    async def hold_next_remittance(self) -> None:
        """Keep the next remittance in processing until `finish_remittances`."""
        unplayed("a remittance that takes its time")

    async def fail_next_remittance(self) -> None:
        """Let the next remittance fail for good after it was accepted."""
        unplayed("a remittance that fails")

    async def finish_remittances(self) -> None:
        """Complete all remittances in processing."""

    async def remitted(self) -> int:
        """Return how many kopecks the bank has sent, or is about to send, to people."""
        unplayed("what people got")
