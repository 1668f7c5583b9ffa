"""How a subscription changes: pure functions that return the record after an event (docs/states.md "Subscription";
docs/subscriptions.md "Making one").

A bank's report may come late, twice or out of order: if it changes nothing, the same record is returned. A merchant's
request in the wrong state is refused. `sequence` rises with each change that has an event (`announces`): the code that
saves a change compares the two records, and `previous_status` comes from the earlier one.
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
    """The mandate of a confirmed binding. `reference` is the bank's reference of the binding, `token` is encrypted."""

    bank: str
    reference: str
    token: bytes


def link_issued(subscription: Subscription, url: str, now: datetime) -> Subscription:
    """Record that the binding link is ready. A subscription that waits for no binding ignores it."""
    waits = subscription.status is _S.PENDING_BINDING or subscription.rebind_required
    if not waits or not subscription.binding_url_pending:
        return subscription
    binding = subscription.binding
    if binding is not None:
        binding = msgspec.structs.replace(binding, link_issued_at=now)
    return changed(subscription, now, binding_url=url, binding_url_pending=False, binding=binding)


def binding_begun(subscription: Subscription, binding: Binding, now: datetime) -> Subscription:
    """Record the binding before the request to the bank, or the bank's answer about it."""
    return changed(subscription, now, binding=binding)


def binding_withdrawn(subscription: Subscription, now: datetime) -> Subscription:
    """Withdraw the present binding, because its page shows an amount that is no longer the subscription's. In the
    calendar scheme, a first binding then waits for a new link from the payment system."""
    if subscription.status is SubscriptionStatus.PENDING_BINDING and subscription.scheme is Scheme.CALENDAR:
        return changed(subscription, now, binding=None, binding_url=None, binding_url_pending=True)
    return changed(subscription, now, binding=None)


def first_paid(subscription: Subscription, payment_id: str, now: datetime) -> Subscription:
    """Record that the binding's first charge was paid; the mandate may come before, after, or never. Only the first
    counts."""
    if subscription.status is not _S.PENDING_BINDING or subscription.first_payment_id is not None:
        return subscription
    return changed(subscription, now, first_payment_id=payment_id)


def binding_closed(subscription: Subscription, now: datetime) -> Subscription:
    """Record that the payment system issues no link, or ends the binding: a new subscription is cancelled; a paused one
    that waited for a new binding stays paused, without a link."""
    if subscription.status is _S.PENDING_BINDING:
        return moved_to(subscription, _T.NO_LINK, now, binding_url_pending=False)
    if subscription.status is _S.PAUSED and subscription.binding_url_pending:
        return changed(subscription, now, binding_url_pending=False)
    return subscription


def binding_timed_out(subscription: Subscription, now: datetime) -> Subscription:
    """Apply the first binding's deadline once it has passed: cancelled without a link, expired with one. A binding may
    still be open at the bank, and must be ended there."""
    ends_at = binding_ends_at(subscription)
    if ends_at is None or now < ends_at:
        return subscription
    trigger = _T.NO_LINK if subscription.binding_url is None else _T.UNCONFIRMED
    revoke_pending = _is_known_to_a_bank(subscription)
    return moved_to(subscription, trigger, now, binding_url_pending=False, revoke_pending=revoke_pending)


def rebound(subscription: Subscription, url: str | None, binding: Binding | None, now: datetime) -> Subscription:
    """Record the request for a new binding (docs/subscriptions.md "When the mandate is lost"); without `url` the link
    is still to come.

    It takes no money, whatever `binding_charge` says: that setting is for the first binding, and a paid period would be
    paid twice. Raises: Refusal INVALID_STATE unless the mandate was lost.
    """
    if subscription.status is not _S.PAUSED or not subscription.rebind_required:
        raise Refusal("INVALID_STATE", f"The subscription is {subscription.status}; it needs no new binding")
    return changed(subscription, now, binding_url=url, binding_url_pending=url is None, binding=binding)


def bound(
    subscription: Subscription, mandate: Mandate, *, shown: Rub, at: datetime, charge: str | None, now: datetime
) -> Subscription:
    """Return the subscription after the payer confirmed a binding at `at`, by the bank's time.

    `shown` is the amount of each charge that this binding's page showed. It becomes the consent, and lowers an amount
    or cap that is above it by now. `charge` is the id of the binding payment if it took money.

    The first binding counts as the first payment and sets the anchor, even without a charge
    (docs/subscriptions.md "Periods and attempts"). A further binding moves the anchor only if it took money. A repeated
    report of the present mandate changes nothing: a lost mandate is restored by `mandate_restored`. A subscription that
    is over records the mandate, so that it is revoked.
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
        # The old mandate became valid again while the payer confirmed a new one: the latest confirmation counts.
        return changed(subscription, now, **changes)
    return moved_to(subscription, _T.CONFIRMED, now, **changes, rebind_required=False, paused_at=None)


def mandate_lost(subscription: Subscription, now: datetime) -> Subscription:
    """Record that the bank no longer accepts the token: switched off, bank changed, consent revoked."""
    if subscription.status is not _S.ACTIVE:
        return subscription
    # Only active subscriptions have `past_due`; if the restored mandate is overdue, the bank reports it again.
    return moved_to(subscription, _T.MANDATE_LOST, now, rebind_required=True, past_due=False, paused_at=now)


def mandate_restored(subscription: Subscription, now: datetime) -> Subscription:
    """Record that the bank accepts the token again. A link for a new binding is no longer needed."""
    if subscription.status is not _S.PAUSED or subscription.mandate_token is None:
        return subscription
    return moved_to(
        subscription, _T.MANDATE_RESTORED, now, rebind_required=False, paused_at=None, binding_url_pending=False
    )


def past_due(subscription: Subscription, *, overdue: bool, now: datetime) -> Subscription:
    """Record that the bank reports the mandate as overdue, or no longer so. The status stays."""
    if subscription.status is not _S.ACTIVE or subscription.past_due is overdue:
        return subscription
    return changed(subscription, now, past_due=overdue)


def consent_ended(subscription: Subscription, now: datetime) -> Subscription:
    """Record that the payer's consent ended. A paused subscription may still get a new binding, and waits."""
    if subscription.status is not _S.ACTIVE:
        return subscription
    return moved_to(subscription, _T.CONSENT_ENDED, now, past_due=False)


def pause_timed_out(subscription: Subscription, now: datetime) -> Subscription:
    """Expire a subscription that was paused for 90 days. The mandate at the bank, which may become valid again, must be
    ended."""
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
    """Cancel for the merchant; the bank's side follows, however long that takes. Raises: Refusal INVALID_STATE."""
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
    """Record that the bank's side is ended."""
    return changed(subscription, now, revoke_pending=False) if subscription.revoke_pending else subscription


def repriced(
    subscription: Subscription, *, amount: Rub, cap_amount: Rub, cap_window: Rub | None, now: datetime
) -> Subscription:
    """Return the subscription with the amounts that `judge_patch` accepted."""
    return changed(subscription, now, amount=amount, cap_amount=cap_amount, cap_window=cap_window)


def anchored(subscription: Subscription, at: datetime) -> dict[str, Any]:
    """Return the changes that a successful payment at `at` makes to the anchor; a late report never moves it back."""
    anchor = at if subscription.anchor is None else max(subscription.anchor, at)
    period = current_period(subscription.terms, anchor)
    return {"anchor": anchor, "current_period_start": period.opens_at, "current_period_end": period.closes_at}


def changed(subscription: Subscription, now: datetime, **changes: Any) -> Subscription:
    """Return the record with the changes; its sequence rises if they have an event."""
    after = msgspec.structs.replace(subscription, updated_at=now, **changes)
    return announced(after) if announces(subscription, after) else after


def moved_to(subscription: Subscription, trigger: SubscriptionTrigger, now: datetime, **changes: Any) -> Subscription:
    """Return the subscription after the trigger, with the other changes of the move. Nothing else writes its status.
    Raises: IllegalMove."""
    return changed(subscription, now, status=SUBSCRIPTION_MOVES.move(subscription.status, trigger), **changes)


def announced(subscription: Subscription) -> Subscription:
    """Return the subscription with the sequence of one more event."""
    return msgspec.structs.replace(subscription, sequence=subscription.sequence + 1)


def untold(before: Subscription, after: Subscription) -> Subscription:
    """Return the change without a new sequence, because the response reports it and no event does."""
    return msgspec.structs.replace(after, sequence=before.sequence)


def _is_known_to_a_bank(subscription: Subscription) -> bool:
    return subscription.mandate_token is not None or subscription.binding is not None
