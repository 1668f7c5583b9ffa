"""Choice of the bank that binds a payer (docs/subscriptions.md)."""

from typing import NamedTuple

from ....ports.bundle import Ports
from ....ports.faults import NotSupported
from ....ports.mandates import MandateBank
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.receipts import ReceiptTerms, receipts_lack
from ...domain.accounts.terminals import Terminal
from ...domain.payments.payments import BindingCharge
from ...domain.subscriptions.subscriptions import (
    Subscription,
    SubscriptionStatus,
)
from ..accounts.accounts import find_account
from ..gateways.gateways import first_open
from ..payments.receipt_records import has_register
from ..payments.receipts import receipt_terms, takes_without
from ..payments.route_refusals import outside_limits, routeless


def binder(ports: Ports, name: str | None) -> MandateBank:
    """Return the bank that a binding went to. Raises: NotConfigured, NotSupported."""
    bank = ports.banks.named(name or "")
    if not isinstance(bank, MandateBank):
        raise NotSupported(f"{bank.name} binds no payers")
    return bank


def binders(ports: Ports, mode: Mode, terminal: Terminal | None) -> tuple[MandateBank, ...]:
    """Return the banks of the mode, or of the terminal, that bind payers, in the order in which they are tried."""
    routes = ports.banks.of_mode(mode, () if terminal is None else terminal.routes)
    return tuple(bank for bank in routes if isinstance(bank, MandateBank) and bank.capabilities.mandates)


class Picked(NamedTuple):
    """The chosen bank, and the receipt terms of a first charge."""

    bank: MandateBank
    terms: ReceiptTerms | None


async def pick_binder(ports: Ports, unit: Unit, subscription: Subscription) -> Picked | None:
    """Choose the bank to bind with; None while every candidate is out of service.

    Skip banks that do not take the first charge's amount. Skip banks that require receipts when the account cannot have
    any, even for a binding that takes no money: such a subscription could never be charged.

    Raises: Refusal PAYMENT_ROUTE_UNAVAILABLE, INVALID_AMOUNT when no bank qualifies.
    """
    method_id = subscription.method_id
    terminal = None if method_id is None else await unit[Terminal].get(method_id)
    routes = binders(ports, subscription.mode, terminal)
    if not routes:
        raise routeless(ports, subscription.mode)
    if takes_first_charge(subscription):
        fitting = tuple(bank for bank in routes if bank.capabilities.takes(subscription.amount.kopecks))
        if not fitting:
            raise outside_limits(routes)
        routes = fitting
    settings = (await find_account(unit, subscription.account_id)).settings
    terms = receipt_terms(settings, routes, has_contact=False, has_register=has_register(ports, subscription.mode))
    able = [bank for bank in routes if takes_without(bank, terms)]
    if not able:
        raise receipts_lack(settings.receipt_lacks(has_contact=False))
    bank = await first_open(ports, able, subscription.mode, subscription.account_id)
    return None if bank is None else Picked(bank, terms)


def takes_first_charge(subscription: Subscription) -> bool:
    """Return whether the subscription's next binding takes the first charge."""
    return (
        subscription.status is SubscriptionStatus.PENDING_BINDING
        and subscription.binding_charge is BindingCharge.FIRST
        and subscription.first_payment_id is None
    )
