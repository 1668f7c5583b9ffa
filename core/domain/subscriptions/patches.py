"""The body of PATCH /subscriptions/{id}, and the order of its refusals: PATCH_RULES
(docs/subscriptions.md "Changing and ending")."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .. import shared_fields as shared
from ..errors import Refusal
from ..money import Rub
from .orders import check_amount
from .subscriptions import Subscription, SubscriptionStatus


class SubscriptionPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH /subscriptions/{id}, field by field. Null counts as absent, except for `cap_window_rub`, which
    it removes."""

    amount_rub: Annotated[shared.RubText | None, shared.AMOUNT_RUB] = None
    cap_amount_rub: Annotated[
        shared.RubText | None, Meta(description="Largest single charge; equals `amount_rub` on new subscriptions")
    ] = None
    cap_window_rub: Annotated[
        shared.RubText | None | UnsetType,
        Meta(description="Largest sum of charges in a period; null removes the limit"),
    ] = UNSET


class PatchCase(msgspec.Struct, frozen=True, kw_only=True):
    """A patch and its subscription; None if the caller has no such subscription in this mode."""

    patch: SubscriptionPatch
    subscription: Subscription | None

    @property
    def found(self) -> Subscription:
        """The subscription; valid only after the rule that finds it."""
        if self.subscription is None:
            raise ValueError("the subscription was not found")
        return self.subscription


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts that result from a patch."""

    amount: Rub
    cap_amount: Rub
    cap_window: Rub | None


def _prices(case: PatchCase) -> Prices:
    patch, present = case.patch, case.found
    window = present.cap_window if patch.cap_window_rub is UNSET else patch.cap_window_rub
    amount = present.amount if patch.amount_rub is None else Rub.parse(patch.amount_rub)
    cap = present.cap_amount
    if patch.cap_amount_rub is not None:
        cap = Rub.parse(patch.cap_amount_rub)
    elif patch.amount_rub is not None and Rub(0) < amount < cap:
        cap = amount  # the cap follows a lower amount, and never rises
    return Prices(
        amount=amount,
        cap_amount=cap,
        cap_window=Rub.parse(window) if isinstance(window, str) else window,
    )


def _patch_shape(case: PatchCase) -> None:
    patch = case.patch
    if patch.amount_rub is None and patch.cap_amount_rub is None and patch.cap_window_rub is UNSET:
        raise Refusal("VALIDATION_ERROR", "Give at least one of: amount_rub, cap_amount_rub, cap_window_rub")
    check_amount("amount_rub", patch.amount_rub)
    check_amount("cap_amount_rub", patch.cap_amount_rub)
    if isinstance(patch.cap_window_rub, str):
        check_amount("cap_window_rub", patch.cap_window_rub)


def _patch_finds(case: PatchCase) -> None:
    if case.subscription is None:
        raise Refusal("SUBSCRIPTION_NOT_FOUND", "No subscription of this id")


_PATCHED = (SubscriptionStatus.PENDING_BINDING, SubscriptionStatus.ACTIVE)


def _patch_state(case: PatchCase) -> None:
    if case.found.status not in _PATCHED:
        raise Refusal("INVALID_STATE", f"The subscription is {case.found.status}; its amounts cannot be changed")


def _patch_window(case: PatchCase) -> None:
    if isinstance(case.patch.cap_window_rub, str) and case.found.cap_window is None:
        raise Refusal("VALIDATION_ERROR", "cap_window_rub: this subscription has none, and none can be set")


def _patch_above_zero(case: PatchCase) -> None:
    prices = _prices(case)
    for name, amount in (
        ("amount_rub", prices.amount),
        ("cap_amount_rub", prices.cap_amount),
        ("cap_window_rub", prices.cap_window),
    ):
        if amount is not None and amount <= Rub(0):
            raise Refusal("INVALID_AMOUNT", f"{name} must be above zero")


def _patch_within_cap(case: PatchCase) -> None:
    prices = _prices(case)
    if prices.amount > prices.cap_amount:
        raise Refusal("INVALID_AMOUNT", f"amount_rub {prices.amount} is above cap_amount_rub {prices.cap_amount}")


def _patch_within_consent(case: PatchCase) -> None:
    consent, prices = case.found.consent, _prices(case)
    if consent is not None and prices.cap_amount > consent:
        raise Refusal(
            "INVALID_AMOUNT",
            f"The payer agreed to {consent}: for more make a new subscription, which the payer confirms",
        )
    if consent is None and prices.cap_amount > prices.amount:
        raise Refusal(
            "INVALID_AMOUNT",
            f"cap_amount_rub {prices.cap_amount} is above amount_rub {prices.amount}; they are equal until the payer "
            "confirms",
        )


class PatchRule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    check: Callable[[PatchCase], None]


PATCH_RULES = (
    PatchRule("shape", _patch_shape),
    PatchRule("subscription is found", _patch_finds),
    PatchRule("state", _patch_state),
    PatchRule("window cap", _patch_window),
    PatchRule("above zero", _patch_above_zero),
    PatchRule("within cap", _patch_within_cap),
    PatchRule("within consent", _patch_within_consent),
)
"""Order of the refusals of PATCH: the object and its state before the amounts."""


def judge_patch(case: PatchCase) -> Prices:
    """Return the amounts after the patch. Raises: the Refusal of the first rule that it breaks."""
    for rule in PATCH_RULES:
        rule.check(case)
    return _prices(case)
