"""Subscriptions for merchants: create, read, change, cancel and rebind (docs/subscriptions.md "Making one", "Changing
and ending").
"""

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Scheme
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import PAYMENT_METHODS
from ...domain.errors import Refusal
from ...domain.ids import canonical_uuid
from ...domain.subscriptions.moves import cancelled, rebound, repriced
from ...domain.subscriptions.orders import SubscriptionCase, SubscriptionOrder, judge_subscription, new_subscription
from ...domain.subscriptions.patches import PatchCase, SubscriptionPatch, judge_patch
from ...domain.subscriptions.subscriptions import Subscription
from ..accounts.terminals import offered_terminal
from ..common.encrypted import tag_link
from ..common.idempotency import Lock, Made, once, yield_to_maker
from ..common.units import retrying, unit_of_work
from ..kyc.gate import pass_gate
from ..payments.recurring import no_subscription, own_subscription, save_subscription
from ..payments.route_refusals import no_route
from .binders import pick_binder
from .binding_withdrawal import withdraw_outdated
from .bindings import ask_for, begin, page_of
from .mandate_end import end_open_binding, plan_revoking
from .watch import first_subscription_watch

KIND = "subscription"
REBIND = "rebind"

ReadSubscriptionOrder = Callable[[], SubscriptionOrder]
ReadShop = Callable[[], str | None | UnsetType]
"""Reads the `shop_id` of a repeated body: None when absent, UNSET when the body is unreadable."""


async def create_subscription(
    ports: Ports, caller: Caller, key: str | None, read_order: ReadSubscriptionOrder, read_shop: ReadShop
) -> Made[Subscription]:
    """Create a subscription, once per key.

    `read_order` parses the body, and is called only for a new key; for a repeated key only the shop is compared. The
    window scheme calls no bank; the calendar scheme requests the link from one.

    Raises: Refusal, in the order of `subscription_orders.RULES`, then KYC_REQUIRED, KYC_PROCESSING or KYC_FAILED, then
    PAYMENT_ROUTE_UNAVAILABLE when no bank binds payers; IDEMPOTENCY_KEY_REUSED for another shop.
    """

    async def make(lock: Lock) -> Subscription:
        case = await _case(ports, caller, read_order())
        judge_subscription(case)
        await pass_gate(ports, caller, case.order.client_phone)
        subscription_id = ids.prefixed(ids.SUBSCRIPTION, ports.ids.uuid())
        key_record = lock(subscription_id)
        is_window = caller.account.settings.subscription_scheme is Scheme.WINDOW
        subscription = new_subscription(
            case,
            subscription_id=subscription_id,
            binding_url=page_of(ports, subscription_id) if is_window else None,
            key_id=key_record.id,
            now=ports.clock.now(),
        )
        async with ports.storage.unit() as unit:
            unit[IdempotencyKey].add(key_record)
            subscription = tag_link(ports.vault, await _begun(ports, unit, subscription))
            unit[Subscription].add(subscription)
            unit[Job].add(first_subscription_watch(subscription))
            await unit.commit()
        return await _asked(ports, subscription)

    async def recall(subscription_id: str) -> Subscription | None:
        found = await ports.storage.get(Subscription, subscription_id)
        if found is not None and not _is_of_shop(caller, found, read_shop()):
            raise Refusal("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key belongs to a subscription of another shop")
        return found

    return await once(ports, caller, key, KIND, make=make, recall=recall)


async def _case(ports: Ports, caller: Caller, order: SubscriptionOrder) -> SubscriptionCase:
    """Load the records that the rules need. Malformed ids are not looked up; the validation rule refuses them."""
    shop_id = canonical_uuid(order.shop_id or caller.account.default_shop_id)
    async with ports.storage.unit() as unit:
        shop = None if shop_id is None else await unit[Shop].get(shop_id)
        terminal = await offered_terminal(unit, caller, order.method_id, PAYMENT_METHODS[0])
    return SubscriptionCase(order=order, caller=caller, shop=shop, terminal=terminal)


async def _begun(ports: Ports, unit: Unit, subscription: Subscription) -> Subscription:
    """Record the binding, if this scheme requests it at once. Raises: Refusal PAYMENT_ROUTE_UNAVAILABLE."""
    picked = await pick_binder(ports, unit, subscription)
    if subscription.scheme is Scheme.WINDOW:
        return subscription
    if picked is None:
        raise no_route(away=True)
    return await begin(ports, unit, subscription, picked)


async def _asked(ports: Ports, subscription: Subscription) -> Subscription:
    """Request the link from the bank in the calendar scheme, and return the subscription; the answer includes a link
    that is ready.
    """
    if subscription.scheme is Scheme.WINDOW or subscription.binding is None:
        return subscription
    await ask_for(ports, subscription.binding.payment_id, announced=False)
    return await ports.storage.get(Subscription, subscription.id) or subscription


def _is_of_shop(caller: Caller, subscription: Subscription, named: str | None | UnsetType) -> bool:
    if named is UNSET:
        return True
    return (named or caller.account.default_shop_id).lower() == subscription.shop_id


async def get_subscription(ports: Ports, caller: Caller, subscription_id: str) -> Subscription:
    """Return a subscription of the caller's account and mode. Raises: Refusal SUBSCRIPTION_NOT_FOUND (never 403)."""
    async with ports.storage.unit() as unit:
        return await _own(unit, caller, subscription_id)


async def _own(unit: Unit, caller: Caller, subscription_id: str) -> Subscription:
    found = await own_subscription(unit, caller, subscription_id)
    if found is None:
        raise no_subscription()
    return found


async def patch_subscription(
    ports: Ports, caller: Caller, subscription_id: str, patch: SubscriptionPatch
) -> Subscription:
    """Change amounts, from the next charge on. A request that loses a race against a cancellation is refused.

    A QR or link that shows the payer another amount is withdrawn in the same unit. Our page then shows the new terms.
    In the calendar scheme a bank is asked for a new link, which is in the answer or comes by an event.

    Raises: Refusal, in the order of `subscription_patches.PATCH_RULES`; PAYMENT_ROUTE_UNAVAILABLE when no bank can
    issue the new link.
    """

    async def work(unit: Unit) -> Subscription:
        before = await own_subscription(unit, caller, subscription_id)
        case = PatchCase(patch=patch, subscription=before)
        prices = judge_patch(case)
        after = repriced(
            case.found,
            amount=prices.amount,
            cap_amount=prices.cap_amount,
            cap_window=prices.cap_window,
            now=ports.clock.now(),
        )
        after = await withdraw_outdated(ports, unit, after)
        if after.binding_url_pending and after.binding is None:
            after = await _begun(ports, unit, after)
        return await save_subscription(ports, unit, case.found, after)

    return await _asked(ports, await retrying(ports.storage, work))


@unit_of_work(again_on=("jobs_id",))
async def cancel_subscription(ports: Ports, unit: Unit, caller: Caller, subscription_id: str) -> Subscription:
    """Cancel the subscription for good.

    After the commit nothing is charged, and queued charges are not sent. A job ends the mandate at the bank, however
    long the bank is unavailable.

    Raises: Refusal SUBSCRIPTION_NOT_FOUND, INVALID_STATE.
    """
    before = await _own(unit, caller, subscription_id)
    after = cancelled(before, ports.clock.now())
    await end_open_binding(ports, unit, after)
    if after.revoke_pending:
        await plan_revoking(ports, unit, after)
    return await save_subscription(ports, unit, before, after)


async def rebind_subscription(
    ports: Ports, caller: Caller, subscription_id: str, key: str | None
) -> Made[Subscription]:
    """Give the payer of a lost mandate a link to bind anew, once per key. It takes no money.

    Raises: Refusal MISSING_IDEMPOTENCY_KEY, VALIDATION_ERROR, IDEMPOTENCY_KEY_REUSED, SUBSCRIPTION_NOT_FOUND;
    INVALID_STATE unless the mandate was lost; PAYMENT_ROUTE_UNAVAILABLE.
    """

    async def make(lock: Lock) -> Subscription:
        async def work(unit: Unit) -> Subscription:
            before = await _own(unit, caller, subscription_id)
            key_record = lock(before.id)
            is_window = before.scheme is Scheme.WINDOW
            url = page_of(ports, before.id) if is_window else None
            try:
                after = await _begun(ports, unit, rebound(before, url, None, ports.clock.now()))
            except Refusal:
                await yield_to_maker(unit, lock)
                raise
            unit[IdempotencyKey].add(key_record)
            # The link of our page is only in the answer, never in an event; it does not change.
            return await save_subscription(ports, unit, before, after)

        return await _asked(ports, await retrying(ports.storage, work))

    async def recall(bound_id: str) -> Subscription | None:
        if bound_id != subscription_id:
            raise Refusal("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key belongs to another subscription")
        return await get_subscription(ports, caller, bound_id)

    return await once(ports, caller, key, REBIND, make=make, recall=recall)
