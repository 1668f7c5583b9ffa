"""How a subscription changes: pure functions from what happened to the record after it (docs/states.md "Subscription";
docs/subscriptions.md "Making one").

What a bank reports may come late, twice or out of order: where it changes nothing, the same record comes back. What a
merchant asks for in the wrong state is refused. `sequence` rises with each change that an event tells (`announces`), so
who saves a change compares it, and `previous_status` is the status before.
"""

from datetime import datetime
from typing import Any

import msgspec

from ..accounts.accounts import Scheme
from ..errors import Refusal
from ..money import Rub
from .charge_decisions import Attempts
from .periods import current_period
from .subscriptions import (
    SUBSCRIPTION_MOVES,
    Binding,
    Subscription,
    SubscriptionStatus,
    SubscriptionTrigger,
    announces,
    binding_ends_at,
    pause_ends_at,
)

_S = SubscriptionStatus
_T = SubscriptionTrigger


class Mandate(msgspec.Struct, frozen=True, kw_only=True):
    """What a confirmed binding gave. `reference` is the bank's of the binding, `token` is sealed."""

    bank: str
    reference: str
    token: bytes


def link_issued(subscription: Subscription, url: str, now: datetime) -> Subscription:
    """The binding link is ready. Once the subscription waits for no binding it is of no use."""
    waits = subscription.status is _S.PENDING_BINDING or subscription.rebind_required
    if not waits or not subscription.binding_url_pending:
        return subscription
    binding = subscription.binding
    if binding is not None:
        binding = msgspec.structs.replace(binding, link_issued_at=now)
    return changed(subscription, now, binding_url=url, binding_url_pending=False, binding=binding)


def binding_begun(subscription: Subscription, binding: Binding, now: datetime) -> Subscription:
    """Record the binding for which the bank is about to be asked, or what the bank answered about it."""
    return changed(subscription, now, binding=binding)


def binding_withdrawn(subscription: Subscription, now: datetime) -> Subscription:
    """Take back the present binding, because its page shows an amount that is no longer the subscription's. While the
    first binding is awaited in the calendar scheme, a new link is to come from the payment system."""
    if subscription.status is SubscriptionStatus.PENDING_BINDING and subscription.scheme is Scheme.CALENDAR:
        return changed(subscription, now, binding=None, binding_url=None, binding_url_pending=True)
    return changed(subscription, now, binding=None)


def first_paid(subscription: Subscription, payment_id: str, now: datetime) -> Subscription:
    """The binding's first charge was paid; the mandate may come before, after, or never. Only the first one counts."""
    if subscription.status is not _S.PENDING_BINDING or subscription.first_payment_id is not None:
        return subscription
    return changed(subscription, now, first_payment_id=payment_id)


def binding_closed(subscription: Subscription, now: datetime) -> Subscription:
    """The payment system gives no link, or ends the binding: a new subscription is cancelled; one that was to be
    bound anew stays paused, without a link."""
    if subscription.status is _S.PENDING_BINDING:
        return moved_to(subscription, _T.NO_LINK, now, binding_url_pending=False)
    if subscription.status is _S.PAUSED and subscription.binding_url_pending:
        return changed(subscription, now, binding_url_pending=False)
    return subscription


def binding_timed_out(subscription: Subscription, now: datetime) -> Subscription:
    """What the first binding's deadline leads to, once it is past: cancelled without a link, expired with one. A
    binding may be open at the bank still: it is to be ended there."""
    ends_at = binding_ends_at(subscription)
    if ends_at is None or now < ends_at:
        return subscription
    trigger = _T.NO_LINK if subscription.binding_url is None else _T.UNCONFIRMED
    revoke_pending = _is_known_to_a_bank(subscription)
    return moved_to(subscription, trigger, now, binding_url_pending=False, revoke_pending=revoke_pending)


def rebound(subscription: Subscription, url: str | None, binding: Binding | None, now: datetime) -> Subscription:
    """A new binding is asked for (docs/subscriptions.md "When the mandate is lost"); without `url` the link is still to
    come.

    It takes no money, whatever `binding_charge` says: that is about the first binding, and a period that is paid would
    be paid twice. Raises: Refusal INVALID_STATE unless the mandate was lost.
    """
    if subscription.status is not _S.PAUSED or not subscription.rebind_required:
        raise Refusal("INVALID_STATE", f"The subscription is {subscription.status}; it needs no new binding")
    return changed(subscription, now, binding_url=url, binding_url_pending=url is None, binding=binding)


def bound(
    subscription: Subscription, mandate: Mandate, *, shown: Rub, at: datetime, charge: str | None, now: datetime
) -> Subscription:
    """Return the subscription after the payer confirmed a binding at `at`, by the bank's time.

    `shown` is the amount of each charge that this binding's page showed. It becomes the consent, and lowers amount and
    cap that are above it by now. `charge` is the id of the binding payment where it took money.

    The first binding counts as the first payment and sets the anchor, also without a charge
    (docs/subscriptions.md "Periods and attempts"). A further binding moves the anchor only where it took money. A
    repeated report of the present mandate changes nothing: a lost mandate comes back by `mandate_restored`. A
    subscription that is over keeps the mandate so that it is revoked.
    """
    if (subscription.mandate_bank, subscription.mandate_reference) == (mandate.bank, mandate.reference):
        return subscription
    changes: dict[str, Any] = {
        "mandate_bank": mandate.bank,
        "mandate_reference": mandate.reference,
        "mandate_token": mandate.token,
    }
    if subscription.is_final:
        return changed(subscription, now, **changes, revoke_pending=True)
    if subscription.anchor is None or charge is not None:
        changes |= anchored(subscription, at)
    if charge is not None:
        period = current_period(subscription.terms, at)
        changes["attempts"] = Attempts(period=period, used=1, first_at=at, payment_id=charge, paid=True)
    changes |= {"binding_url_pending": False, "past_due": False, "consent": shown}
    changes |= {"amount": min(subscription.amount, shown), "cap_amount": min(subscription.cap_amount, shown)}
    if subscription.status is _S.ACTIVE:
        # The old mandate became valid again while the payer confirmed a new one: the payer's last word counts.
        return changed(subscription, now, **changes)
    return moved_to(subscription, _T.CONFIRMED, now, **changes, rebind_required=False, paused_at=None)


def mandate_lost(subscription: Subscription, now: datetime) -> Subscription:
    """The bank accepts the token no more: switched off, bank changed, consent revoked."""
    if subscription.status is not _S.ACTIVE:
        return subscription
    # `past_due` is a flag of active subscriptions; if the token comes back overdue, the bank says so again.
    return moved_to(subscription, _T.MANDATE_LOST, now, rebind_required=True, past_due=False, paused_at=now)


def mandate_restored(subscription: Subscription, now: datetime) -> Subscription:
    """The bank reports the token valid again. A link that was given for a new binding is of no use any more."""
    if subscription.status is not _S.PAUSED or subscription.mandate_token is None:
        return subscription
    return moved_to(
        subscription, _T.MANDATE_RESTORED, now, rebind_required=False, paused_at=None, binding_url_pending=False
    )


def past_due(subscription: Subscription, *, overdue: bool, now: datetime) -> Subscription:
    """The bank says that the mandate is overdue, or is not any more. The status stays."""
    if subscription.status is not _S.ACTIVE or subscription.past_due is overdue:
        return subscription
    return changed(subscription, now, past_due=overdue)


def consent_ended(subscription: Subscription, now: datetime) -> Subscription:
    """The bank says that the payer's consent came to its end. A paused one may still be bound anew, and waits."""
    if subscription.status is not _S.ACTIVE:
        return subscription
    return moved_to(subscription, _T.CONSENT_ENDED, now, past_due=False)


def pause_timed_out(subscription: Subscription, now: datetime) -> Subscription:
    """Paused for 90 days: expired. The mandate at the bank, which may become valid again, is to be ended."""
    ends_at = pause_ends_at(subscription)
    if ends_at is None or now < ends_at:
        return subscription
    return moved_to(
        subscription,
        _T.PAUSE_ENDED,
        now,
        rebind_required=False,
        binding_url_pending=False,
        revoke_pending=_is_known_to_a_bank(subscription),
    )


def cancelled(subscription: Subscription, now: datetime) -> Subscription:
    """The merchant cancels; the bank's side follows, however long that takes. Raises: Refusal INVALID_STATE."""
    if subscription.is_final:
        raise Refusal("INVALID_STATE", f"The subscription is {subscription.status}")
    return moved_to(
        subscription,
        _T.CANCELLED,
        now,
        past_due=False,
        rebind_required=False,
        binding_url_pending=False,
        revoke_pending=_is_known_to_a_bank(subscription),
    )


def revoked(subscription: Subscription, now: datetime) -> Subscription:
    """The bank's side is ended."""
    return changed(subscription, now, revoke_pending=False) if subscription.revoke_pending else subscription


def repriced(
    subscription: Subscription, *, amount: Rub, cap_amount: Rub, cap_window: Rub | None, now: datetime
) -> Subscription:
    """Return the subscription with the amounts that `judge_patch` accepted."""
    return changed(subscription, now, amount=amount, cap_amount=cap_amount, cap_window=cap_window)


def anchored(subscription: Subscription, at: datetime) -> dict[str, Any]:
    """The changes that a successful payment at `at` makes to the anchor; late news never move it back."""
    anchor = at if subscription.anchor is None else max(subscription.anchor, at)
    period = current_period(subscription.terms, anchor)
    return {"anchor": anchor, "current_period_start": period.opens_at, "current_period_end": period.closes_at}


def changed(subscription: Subscription, now: datetime, **changes: Any) -> Subscription:
    """The record with the changes, counted where an event tells of them."""
    after = msgspec.structs.replace(subscription, updated_at=now, **changes)
    return announced(after) if announces(subscription, after) else after


def moved_to(subscription: Subscription, trigger: SubscriptionTrigger, now: datetime, **changes: Any) -> Subscription:
    """The subscription after its trigger, with what else the move changes. Nobody else writes its status. Raises:
    IllegalMove."""
    return changed(subscription, now, status=SUBSCRIPTION_MOVES.move(subscription.status, trigger), **changes)


def announced(subscription: Subscription) -> Subscription:
    """The subscription with one more event about it."""
    return msgspec.structs.replace(subscription, sequence=subscription.sequence + 1)


def untold(before: Subscription, after: Subscription) -> Subscription:
    """The change without a number of its own, because an answer says it and no event does."""
    return msgspec.structs.replace(after, sequence=before.sequence)


def _is_known_to_a_bank(subscription: Subscription) -> bool:
    return subscription.mandate_token is not None or subscription.binding is not None
