"""Effects of operators' actions that an installation may guard by a second operator
(docs/operations.md "Two pairs of eyes").

Every effect that increases what can leave the service without a person is guarded. The effect is derived from the
records that an action writes, whichever use case writes them. The second operator sees the same lines, and the
confirmation compares them with the state at that time.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..accounts.accounts import Account, ApiKey, Mode, RefundApproval, Settings
from ..accounts.shops import DEFAULT_MARKUP, Shop
from ..exchanges.funds import ExchangeTransfer
from ..installation import Installation
from ..ledger import Currency
from ..money import Rub, Usdt
from ..payments.payments import Payment, PaymentStatus
from ..payments.suspense import RETURN_ENDED, Suspense
from ..refunds.refunds import Refund, RefundStatus
from ..settlement.withdrawals import Withdrawal, WithdrawalStatus
from .operators import Operator
from .pending_actions import Line

_OVER = frozenset((RefundStatus.REJECTED, RefundStatus.CANCELLED, RefundStatus.FAILED, RefundStatus.REVERSED))


class Guarded(StrEnum):
    """Kinds of effects that may need a second operator."""

    PAYOUT_WALLET = "payout_wallet"
    """A merchant's payout wallet changes."""
    REFUNDS = "refunds"
    """An operator sends a live refund above a configured sum."""
    SUSPENSE = "suspense"
    """Live money that could not be applied is returned or credited."""
    LIMITS = "limits"
    """An account may send, take or keep more: automatic refunds, an overdraft, larger payments, exchanges, a lower
    markup."""
    WEBHOOKS = "webhooks"
    """The first endpoint's address or secret changes: events contain personal data and tell the merchant to deliver
    goods."""
    KEYS = "keys"
    """A live key pair is created, or gets more rights, or may be used from more addresses."""
    OPERATIONS = "operations"
    """An operator enters the outcome of a live operation that the provider does not report, or accepts another amount
    or address of a payout."""
    OPERATORS = "operators"
    """An operator is created or ended, from the third one on."""
    HOLD = "hold"
    """A quarantined copy of a database may send money again."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One guarded effect of an action."""

    guarded: Guarded
    record_id: str
    account_id: str | None
    mode: Mode | None
    """Null: both modes."""
    lines: tuple[Line, ...]
    refund: Refund | None = None
    """The refund to be sent."""


def may_decide(after: Any) -> bool:
    """Return whether writing this record can be a decision. For most records nobody needs to read the previous
    state."""
    match after:
        case Account() | Shop() | Installation() | Operator():
            return True
        case ApiKey():
            return after.mode is Mode.LIVE
        case Refund():
            return after.mode is Mode.LIVE and after.status is RefundStatus.PENDING and after.approved_at is not None
        case Suspense():
            return after.mode is Mode.LIVE and after.resolved_at is None
        case Payment():
            return after.mode is Mode.LIVE and after.status in (PaymentStatus.PAID, PaymentStatus.FAILED)
        case ExchangeTransfer():
            return after.mode is Mode.LIVE and after.sent_back is not None
        case Withdrawal():
            return after.mode is Mode.LIVE and after.status is WithdrawalStatus.PROCESSING
    return False


def decisions(before: Any, after: Any) -> tuple[Decision, ...]:
    """Return the guarded effects of replacing `before` (None: no record) with `after`."""
    return tuple(_decisions(before, after))


def _decisions(before: Any, after: Any) -> Iterator[Decision]:
    match after:
        case Account():
            yield from _of_account(before, after)
        case Shop():
            yield from _of_shop(before, after)
        case ApiKey():
            yield from _of_key(before, after)
        case Installation():
            yield from _of_hold(before, after)
        case Operator():
            yield from _of_operator(before, after)
        case Withdrawal():
            yield from _of_payout(before, after)
        case Refund():
            yield from _of_refund(before, after)
        case Suspense():
            yield from _of_suspense(before, after)
        case Payment():
            yield from _of_review(before, after)
        case ExchangeTransfer():
            yield from _of_return(before, after)


def _of_account(before: Account | None, after: Account) -> Iterator[Decision]:
    was = Settings() if before is None else before.settings
    becomes = after.settings
    wallet = _changed("payout_wallet", was.payout_wallet, becomes.payout_wallet)
    limits = tuple(_widened(was, becomes))
    address = was.webhook_url if stays_in_process(becomes.webhook_url) else becomes.webhook_url
    webhooks = _changed("webhook_url", was.webhook_url, address)
    for guarded, lines in (
        (Guarded.PAYOUT_WALLET, wallet),
        (Guarded.LIMITS, limits),
        (Guarded.WEBHOOKS, webhooks),
    ):
        if lines:
            named = (Line("account", after.name, after.name), *lines)
            yield Decision(guarded=guarded, record_id=after.id, account_id=after.id, mode=None, lines=named)


def _widened(was: Settings, becomes: Settings) -> Iterator[Line]:
    """Yield the settings that allow the account more than before."""
    for name in ("refunds", "exchange", "direct_links"):
        if getattr(becomes, name) and not getattr(was, name):
            yield Line(name, "false", "true")
    for name in ("refund_reserve", "second_person"):
        if getattr(was, name) and not getattr(becomes, name):
            yield Line(name, "true", "false")
    if becomes.refund_approval is RefundApproval.AUTO and was.refund_approval is not RefundApproval.AUTO:
        yield Line("refund_approval", was.refund_approval or "-", becomes.refund_approval)
    if becomes.refund_overdraft_usdt > was.refund_overdraft_usdt:
        yield Line("refund_overdraft_usdt", f"{was.refund_overdraft_usdt}", f"{becomes.refund_overdraft_usdt}")
    if becomes.amount_rub_max > was.amount_rub_max:
        yield Line("amount_rub_max", f"{was.amount_rub_max}", f"{becomes.amount_rub_max}")


def _of_shop(before: Shop | None, after: Shop) -> Iterator[Decision]:
    """Yield a decision if the markup falls. A shop without a markup takes no payments, so its first markup is compared
    with the default."""
    was = DEFAULT_MARKUP if before is None or before.markup is None else before.markup
    if after.markup is not None and Decimal(after.markup) < Decimal(was):
        stood = "-" if before is None or before.markup is None else before.markup
        lines = (Line("shop", after.name, after.name), Line("markup", stood, after.markup))
        yield Decision(guarded=Guarded.LIMITS, record_id=after.id, account_id=after.account_id, mode=None, lines=lines)


def _of_key(before: ApiKey | None, after: ApiKey) -> Iterator[Decision]:
    if after.mode is not Mode.LIVE:
        return
    rights = (_words(after.rights) if before is None else _words(before.rights), _words(after.rights))
    addresses = (_words(after.addresses) if before is None else _words(before.addresses), _words(after.addresses))
    if before is not None and not (_more(before.rights, after.rights) or _more(before.addresses, after.addresses)):
        return
    lines = (
        Line("live key", "-" if before is None else before.id, "a new pair" if before is None else after.id),
        Line("rights", *rights),
        Line("addresses", *addresses),
    )
    yield Decision(guarded=Guarded.KEYS, record_id=after.id, account_id=after.account_id, mode=after.mode, lines=lines)


def _more(was: tuple[str, ...] | None, becomes: tuple[str, ...] | None) -> bool:
    """Return whether something is newly allowed; None allows everything."""
    return was is not None and (becomes is None or not set(becomes) <= set(was))


def _words(names: tuple[str, ...] | None) -> str:
    return "all" if names is None else ", ".join(names) or "none"


def _of_hold(before: Installation | None, after: Installation) -> Iterator[Decision]:
    if before is None or before.held_since is None or after.held_since is not None:
        return
    lines = (Line("hold", f"since {before.held_since.isoformat(timespec='seconds')}", "money is sent again"),)
    yield Decision(guarded=Guarded.HOLD, record_id=after.id, account_id=None, mode=Mode.LIVE, lines=lines)


def _of_operator(before: Operator | None, after: Operator) -> Iterator[Decision]:
    is_made, ends = before is None, before is not None and before.ended_at is None and after.ended_at is not None
    if is_made or ends:
        lines = (Line("operator", "-" if is_made else after.name, after.name if is_made else "ended"),)
        yield Decision(guarded=Guarded.OPERATORS, record_id=after.name, account_id=None, mode=None, lines=lines)


def _of_payout(before: Withdrawal | None, after: Withdrawal) -> Iterator[Decision]:
    """Yield a decision if a pending payout takes over the transfer that its wallet has already sent."""
    if before is None or after.mode is not Mode.LIVE or before.status is not WithdrawalStatus.PENDING:
        return
    if after.status is not WithdrawalStatus.PROCESSING:
        return
    lines = (
        Line("amount", f"{before.amount} USDT", f"{after.amount} USDT"),
        Line("goes to", before.wallet, after.wallet),
        Line("status", before.status, after.status),
    )
    yield Decision(
        guarded=Guarded.OPERATIONS, record_id=after.id, account_id=after.account_id, mode=after.mode, lines=lines
    )


def word_on_operation(record_id: str, account_id: str, mode: Mode, operation: str, outcome: str) -> Decision | None:
    """Return the decision of an operator who enters an operation's outcome. None in test mode.

    The records that it writes look as if the provider had reported the outcome, so the use case must declare it.
    """
    if mode is not Mode.LIVE:
        return None
    lines = (Line("operation", operation, operation), Line("outcome", "unknown", outcome))
    return Decision(guarded=Guarded.OPERATIONS, record_id=record_id, account_id=account_id, mode=mode, lines=lines)


def stays_in_process(webhook_url: str | None) -> bool:
    """Return whether events go only to a handler inside the program that embeds the service (docs/embedding.md): its
    address has a reserved host name that never resolves (RFC 2606)."""
    return webhook_url is not None and (urlsplit(webhook_url).hostname or "").endswith(".invalid")


def webhook_secret(account_id: str, *, clears: bool) -> Decision:
    """Return the decision of an operator who changes the secret of the first endpoint.

    The use case must declare it, because an encrypted secret also changes when it is merely encrypted again.
    """
    lines = (Line("webhook_secret", "as it is", "-" if clears else "another one"),)
    return Decision(guarded=Guarded.WEBHOOKS, record_id=account_id, account_id=account_id, mode=None, lines=lines)


def _changed(name: str, was: str | None, becomes: str | None) -> tuple[Line, ...]:
    return () if was == becomes else (Line(name, was or "-", becomes or "-"),)


def _of_refund(before: Refund | None, after: Refund) -> Iterator[Decision]:
    """Yield a decision if a refund is approved. A retry of an approved refund decides nothing."""
    if after.approved_at is None or (before is not None and before.approved_at is not None):
        return
    if after.mode is not Mode.LIVE:
        return
    amount = f"{after.amount} RUB"
    lines = (
        Line("payment", after.payment_id, after.payment_id),
        Line("refund", "-" if before is None else f"{before.amount} RUB", amount),
        Line("approved", "-" if before is None else f"no, {before.status}", "yes"),
    )
    yield Decision(
        guarded=Guarded.REFUNDS,
        record_id=after.id,
        account_id=after.account_id,
        mode=after.mode,
        lines=lines,
        refund=after,
    )


def _of_suspense(before: Suspense | None, after: Suspense) -> Iterator[Decision]:
    """Yield a decision if money is to be returned: the record is neither new nor resolved, and no attempt has just
    ended."""
    if before is None or before.resolved_at is not None or after.resolved_at is not None or after.mode is not Mode.LIVE:
        return
    if after.reason in RETURN_ENDED:
        return
    lines = (
        Line("payment", after.payment_id, after.payment_id),
        Line("suspended", f"{before.amount} RUB, {before.reason}", "back to who paid it"),
        Line("attempt", str(before.attempt), str(after.attempt)),
    )
    yield _money(after, lines)


def _of_review(before: Payment | None, after: Payment) -> Iterator[Decision]:
    if before is None or after.mode is not Mode.LIVE:
        return
    if before.status is not PaymentStatus.AMOUNT_MISMATCH or after.status is before.status:
        return
    came = "unknown" if before.actual_amount is None else f"{before.actual_amount} RUB"
    goes = "-" if after.actual_amount is None else f"{after.actual_amount} RUB"
    ends = "credited" if after.status is PaymentStatus.PAID else "back to who paid it"
    lines = (
        Line("amount asked", f"{before.amount} RUB", f"{after.amount} RUB"),
        Line("came", came, f"{goes} {ends}"),
        Line("status", before.status, after.status),
    )
    yield _money(after, lines)


def _of_return(before: ExchangeTransfer | None, after: ExchangeTransfer) -> Iterator[Decision]:
    back = after.sent_back
    if before is None or back is None or after.mode is not Mode.LIVE:
        return
    if before.sent_back is not None and before.sent_back.number == back.number:
        return
    amount = f"{Usdt(back.amount)} USDT" if after.currency is Currency.USDT else f"{Rub(back.amount)} RUB"
    lines = (
        Line("transfer", after.id, after.id),
        Line("suspended", f"{amount}, {before.reason}", "sent back"),
        Line("goes to", "-", back.address or "who paid it"),
        Line("attempt", str(back.number - 1), str(back.number)),
    )
    yield _money(after, lines)


def _money(record: Suspense | Payment | ExchangeTransfer, lines: tuple[Line, ...]) -> Decision:
    return Decision(
        guarded=Guarded.SUSPENSE, record_id=record.id, account_id=record.account_id, mode=record.mode, lines=lines
    )


def all_refunded(refund: Refund, others: list[Refund]) -> Rub:
    """Return the total that the payer gets with this refund: the refund, and all earlier approved ones that did not
    fail. So a large refund cannot be split into small ones."""
    approved = (each for each in others if each.approved_at is not None and each.status not in _OVER)
    return sum((each.amount for each in approved if each.id != refund.id), refund.amount)
