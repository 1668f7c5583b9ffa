"""Sandbox calls that simulate payer, bank and chain. Test keys only (docs/sandbox.md "The calls")."""

from datetime import datetime
from typing import Literal

import msgspec

from .events import EventType
from .exchanges import ClientStatus, Exchange, ExchangeClient
from .model import Record
from .money import Gateway, GatewayStatus
from .operations import Face, Group, operation
from .payments import FailureReason, Payment
from .refunds import Refund
from .requests import Amount, Request, amount_or_none, at, get, post
from .settlements import Settlement
from .subscriptions import Subscription
from .withdrawals import Withdrawal

PaymentOutcome = Literal["processing", "paid", "failed", "cancelled", "amount_mismatch", "expired"]
SubscriptionOutcome = Literal[
    "confirm",
    "refuse",
    "link_ready",
    "no_link",
    "mandate_lost",
    "mandate_restored",
    "past_due",
    "past_due_cleared",
    "consent_ended",
]
RefundOutcome = Literal["awaiting_approval", "processing", "completed", "rejected", "failed", "reversed"]
ExchangeOutcome = Literal[
    "usdt_received", "rub_received", "rub_taken_back", "completed", "failed", "cancelled", "returned"
]
WithdrawalOutcome = Literal["processing", "sent", "completed", "failed", "cancelled"]


class NextCharge(Record, frozen=True, kw_only=True):
    """Prepared answer of the bank to the next charge."""

    result: str


class Forgotten(Record, frozen=True, kw_only=True):
    """Number of removed records by kind. Call again unless `complete`."""

    removed: dict[str, int]
    complete: bool


class Letter(Record, frozen=True, kw_only=True):
    """An event as its webhook would be posted now: pass `headers` and `body` to `verify_webhook`."""

    cursor: str
    id: str
    type: EventType
    object_id: str
    sequence: int
    created_at: datetime
    resent: bool
    headers: dict[str, str]
    body: str


class Letters(Record, frozen=True, kw_only=True):
    """A part of the event feed. Continue after `cursor`, at once if there is `more`."""

    data: list[Letter]
    cursor: str
    more: bool
    signing_secret: str | None


class SandboxClock(Record, frozen=True, kw_only=True):
    """Clock of the test account. While it is `advancing` towards `to`, the counts increase."""

    now: datetime
    advancing: bool
    to: datetime | None
    jobs_run: int
    events_emitted: int


class SandboxCalls(Group[Face]):
    """`client.sandbox`"""

    @operation
    def simulate_payment(
        self,
        payment_id: str,
        outcome: PaymentOutcome,
        *,
        actual_amount_rub: Amount | None = None,
        failure_reason: FailureReason | str | None = None,
        payer_name: str | None = None,
    ) -> Request[Payment]:
        """Simulate a report of the bank about a payment."""
        body = {
            "outcome": outcome,
            "actual_amount_rub": amount_or_none(actual_amount_rub),
            "failure_reason": failure_reason,
            "payer_name": payer_name,
        }
        return post(at("sandbox", "payments", payment_id, "simulate"), Payment, body)

    @operation
    def resolve_payment(self, payment_id: str, outcome: Literal["paid", "failed"]) -> Request[Payment]:
        """Simulate the review of an amount mismatch."""
        return post(at("sandbox", "payments", payment_id, "resolve"), Payment, {"outcome": outcome})

    @operation
    def simulate_subscription(self, subscription_id: str, outcome: SubscriptionOutcome) -> Request[Subscription]:
        """Simulate an action of a subscription's payer or bank."""
        return post(at("sandbox", "subscriptions", subscription_id, "simulate"), Subscription, {"outcome": outcome})

    @operation
    def next_charge(self, subscription_id: str, result: FailureReason | str) -> Request[NextCharge]:
        """Set the bank's answer to the next charge: `paid`, `pending`, `unavailable`, or a failure reason."""
        path = at("sandbox", "subscriptions", subscription_id, "next-charge")
        return post(path, NextCharge, {"result": result}, repeatable=True)

    @operation
    def simulate_refund(self, refund_id: str, outcome: RefundOutcome) -> Request[Refund]:
        """Bring a refund to an outcome, as operator and bank would."""
        return post(at("sandbox", "refunds", refund_id, "simulate"), Refund, {"outcome": outcome})

    @operation
    def begin_exchange(
        self,
        client_phone: str,
        *,
        amount_rub: Amount | None = None,
        amount_usdt: Amount | None = None,
        address: str | None = None,
        client_bank_id: str | None = None,
        external_id: str | None = None,
        pending: bool | None = None,
    ) -> Request[Exchange]:
        """Start an exchange of RUB to USDT (`amount_rub`), as an operator would, or keep it `pending`."""
        body = {
            "client_phone": client_phone,
            "amount_rub": amount_or_none(amount_rub),
            "amount_usdt": amount_or_none(amount_usdt),
            "address": address,
            "client_bank_id": client_bank_id,
            "external_id": external_id,
            "pending": pending,
        }
        return post("/sandbox/exchanges", Exchange, body)

    @operation
    def simulate_exchange(
        self,
        exchange_id: str,
        outcome: ExchangeOutcome,
        *,
        amount_usdt: Amount | None = None,
        amount_rub: Amount | None = None,
        address: str | None = None,
    ) -> Request[Exchange]:
        """Bring an exchange to an outcome, as client, chain and bank would."""
        body = {
            "outcome": outcome,
            "amount_usdt": amount_or_none(amount_usdt),
            "amount_rub": amount_or_none(amount_rub),
            "address": address,
        }
        return post(at("sandbox", "exchanges", exchange_id, "simulate"), Exchange, body)

    @operation
    def simulate_withdrawal(self, withdrawal_id: str, outcome: WithdrawalOutcome) -> Request[Withdrawal]:
        """Bring a payout to an outcome, as the network would."""
        return post(at("sandbox", "withdrawals", withdrawal_id, "simulate"), Withdrawal, {"outcome": outcome})

    @operation
    def put_client(self, phone: str, kyc_status: ClientStatus | str) -> Request[ExchangeClient]:
        """Set the verification status of the client with this phone number."""
        body = {"phone": phone, "kyc_status": kyc_status}
        return post("/sandbox/exchange-clients", ExchangeClient, body, repeatable=True)

    @operation
    def simulate_gateway(self, gateway_id: str, status: GatewayStatus | str) -> Request[Gateway]:
        """Simulate the status of a gateway for this account only."""
        return post(at("sandbox", "gateways", gateway_id, "simulate"), Gateway, {"status": status}, repeatable=True)

    @operation
    def settle(self) -> Request[Settlement]:
        """Settle the account's test payments now."""
        return post("/sandbox/settlements", Settlement)

    @operation
    def letters(
        self, *, after: str | None = None, wait: int | None = None, types: str | None = None
    ) -> Request[Letters]:
        """Read the signed test events. `wait`: seconds, at most 30. `types`: separated by commas."""
        return get("/sandbox/letters", Letters, after=after, wait=wait, types=types)

    @operation
    def clock(self) -> Request[SandboxClock]:
        """Return the account's clock."""
        return get("/sandbox/clock", SandboxClock)

    @operation
    def advance_clock(self, *, seconds: int | None = None, to: datetime | None = None) -> Request[SandboxClock]:
        """Move the account's clock forward, and run everything that becomes due on the way."""
        return post("/sandbox/clock/advance", SandboxClock, {"seconds": seconds, "to": to})

    @operation
    def forget(self) -> Request[Forgotten]:
        """Delete the account's test objects."""
        return msgspec.structs.replace(get("/sandbox/data", Forgotten), method="DELETE")
