"""The bench of banks (benches.py has those of the other ports)."""

from datetime import timedelta

from ...ports.bank import Bank, Invoice, InvoiceRequest
from ...ports.notices import InboundNotice
from .hidden import check_hidden as check_hidden
from .hidden import check_name as check_name
from .hidden import unplayed
from .receipts import receipted
from .searching import searched
from .trouble import ProviderBench


class BankBench(ProviderBench):
    """A bank that is tried, with what payers do to it. Fixture `bank_bench`."""

    LIFETIME = timedelta(minutes=15)
    phone = "+79990000001"
    """Of a person who may be sent money at this bank."""
    bank_id = "bank1"
    """That person's bank."""
    page = 3
    """How many the provider lists at once, where the adapter has to list: the suites make more than two pages."""
    signs_notices = True
    """What its provider posts is signed, so that the adapter itself tells forged ones."""
    asks_to_revoke = True
    """The provider ends a mandate when it is told to; else the adapter remembers it."""

    binds_in_one_call = charges_in_one_call = remits_in_one_call = True
    """One writing call of the provider is a whole binding, charge, remittance; else what was done halfway may be found,
    or not."""

    @property
    def bank(self) -> Bank:
        """What is tried, asked as the house asks it: by `search_…` where it has that (ports/searching.py), and with
        receipts where it writes any."""
        return self._bank

    @bank.setter
    def bank(self, bank: Bank) -> None:
        self.unaided = bank
        self._bank = self._asked(bank)

    def beside(self) -> Bank:
        """What `another` gives, asked as the house asks it: it searches for what the first one sent, too."""
        return self._asked(self.another())

    def _asked(self, bank: Bank) -> Bank:
        return receipted(searched(bank, lambda: self.clock.now(), self.__dict__.setdefault("_sent", {})))

    def request(self, operation: str, kopecks: int = 100_00) -> InvoiceRequest:
        """An order of an invoice."""
        return InvoiceRequest(
            operation=operation, amount_kopecks=kopecks, purpose="Order 1", expires_at=self.clock.now() + self.LIFETIME
        )

    async def asked(self, operation: str) -> int:
        """Return the kopecks that the invoice of this operation asks for, by the provider's own books."""
        unplayed("what the provider was asked for")

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        """A payer pays so much for the invoice of this operation."""
        unplayed("a payer")

    async def notice(self, operation: str) -> InboundNotice:
        """What the provider posts when something happened to this operation, as it arrives."""
        unplayed("notices")

    def another(self) -> Bank:
        """Another adapter of the same name, over the same storage, as the next process has it."""
        unplayed("a second process")

    async def forget(self) -> None:
        """What the adapter has noted in our storage is lost, as where a database was restored from an older backup; the
        provider forgets nothing."""
        unplayed("notes that are lost")

    async def pass_time(self, span: timedelta) -> None:
        """So much time passes at the provider: keys that it does not keep for ever are forgotten there."""
        unplayed("the provider's clock")

    async def hold_next_refund(self) -> None:
        """The next refund stays in processing until `finish_refunds`."""
        unplayed("a refund that takes its time")

    async def finish_refunds(self) -> None:
        """Whatever refund is in processing comes to a good end."""

    async def fail_next_refund(self) -> None:
        """The next refund fails at the bank, or at the payer's, for good, after it was taken."""
        unplayed("a refund that fails")

    async def confirm(self, operation: str) -> None:
        """The payer confirms the binding of this operation, and its first charge comes, where it has one."""
        unplayed("a payer who confirms a binding")

    async def refuse(self, operation: str) -> None:
        """The payer refuses the binding of this operation."""
        unplayed("a payer who refuses a binding")

    async def lose_mandate(self, operation: str) -> None:
        """The payer's bank no longer accepts the token of this binding operation."""
        unplayed("a mandate that is lost")

    async def restore_mandate(self, operation: str) -> None:
        """It accepts the token again."""
        unplayed("a mandate that is valid again")

    async def finish_charges(self) -> None:
        """Whatever charge is in processing is paid."""

    async def fail_next_charge(self) -> None:
        """The next charge of any mandate fails at the payer's bank for want of money."""
        unplayed("a charge that fails")

    async def finish_remittances(self) -> None:
        """Whatever remittance is in processing is done."""

    async def remitted(self) -> int:
        """How many kopecks the bank has sent, or is about to send, to people."""
        unplayed("what people got")
