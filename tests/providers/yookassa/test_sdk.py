"""YooKassa's own SDK passes against the fake: so the fake speaks the real protocol, and not one of ours.

The SDK blocks, so it is called in a thread.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from ipaddress import ip_network
from typing import Any

import pytest

from cambist.adapters.bank.yookassa.notifications import NETWORKS
from cambist.adapters.clock import VirtualClock

from .fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake

# The SDK has no types, so mypy would learn nothing from it.
yookassa: Any = import_module("yookassa")
exceptions: Any = import_module("yookassa.domain.exceptions")
notification: Any = import_module("yookassa.domain.notification")
security: Any = import_module("yookassa.domain.common")

PAYMENT = {
    "amount": {"value": "490.00", "currency": "RUB"},
    "capture": True,
    "payment_method_data": {"type": "sbp"},
    "confirmation": {"type": "qr", "return_url": "https://shop.example/"},
    "description": "Заказ №72",
    "metadata": {"order_id": "72"},
}


class Sdk:
    """The SDK, which has one configuration for a process, as one shop or another."""

    def __init__(self, fake: YooKassaFake) -> None:
        self.fake = fake
        self.action_as(SHOP, KEY)

    def action_as(self, account: str, key: str) -> None:
        yookassa.Configuration.configure(account, key, api_url=self.fake.api)

    async def __call__(self, call: Callable[..., Any], *told: Any) -> Any:
        return await asyncio.to_thread(call, *told)


@pytest.fixture
async def sdk(fake: YooKassaFake) -> AsyncIterator[Sdk]:
    yield Sdk(fake)
    yookassa.Configuration.account_id = yookassa.Configuration.secret_key = None


async def test_a_payment_is_made_repeated_paid_read_and_listed(sdk: Sdk, fake: YooKassaFake) -> None:
    made = await sdk(yookassa.Payment.create, PAYMENT, "key-1")
    assert (made.status, str(made.amount.value), made.metadata["order_id"]) == ("pending", "490.00", "72")
    assert made.confirmation.confirmation_data.startswith("https://qr.nspk.ru/")
    assert (await sdk(yookassa.Payment.create, PAYMENT, "key-1")).id == made.id
    fake.books.pay(made.id)
    paid = await sdk(yookassa.Payment.find_one, made.id)
    assert (paid.status, str(paid.amount.value)) == ("succeeded", "490.00")
    assert str(paid.income_amount.value) == "487.61"
    assert paid.payment_method.sbp_operation_id
    assert paid.payment_method.payer_bank_details.bank_id == "100000000111"
    listed = await sdk(yookassa.Payment.list, {"limit": 1, "created_at.gte": made.created_at})
    assert [each.id for each in listed.items] == [made.id]


async def test_a_list_goes_on_by_its_cursor(sdk: Sdk) -> None:
    made = [(await sdk(yookassa.Payment.create, PAYMENT, f"key-{number}")).id for number in range(3)]
    first = await sdk(yookassa.Payment.list, {"limit": 2})
    rest = await sdk(yookassa.Payment.list, {"limit": 2, "cursor": first.next_cursor})
    assert [each.id for each in (*first.items, *rest.items)] == made[::-1]
    assert rest.next_cursor is None


async def test_a_refund_is_made_and_found_and_no_more_goes_than_came(sdk: Sdk, fake: YooKassaFake) -> None:
    made = await sdk(yookassa.Payment.create, PAYMENT, "key-1")
    refund = {"payment_id": made.id, "amount": {"value": "90.00", "currency": "RUB"}, "metadata": {"n": "1"}}
    with pytest.raises(exceptions.BadRequestError):
        await sdk(yookassa.Refund.create, refund, "ref-1")
    fake.books.pay(made.id)
    back = await sdk(yookassa.Refund.create, refund, "ref-1")
    assert (back.status, back.payment_id, back.metadata) == ("pending", made.id, {"n": "1"})
    fake.books.finish_refund(back.id)
    assert (await sdk(yookassa.Refund.find_one, back.id)).status == "succeeded"
    assert [each.id for each in (await sdk(yookassa.Refund.list, {"payment_id": made.id})).items] == [back.id]
    with pytest.raises(exceptions.BadRequestError):
        await sdk(yookassa.Refund.create, {**refund, "amount": {"value": "400.01", "currency": "RUB"}}, "ref-2")


async def test_a_method_is_saved_and_charged(sdk: Sdk, fake: YooKassaFake) -> None:
    asked = {"type": "sbp", "confirmation": {"type": "qr", "return_url": "https://shop.example/"}}
    made = await sdk(yookassa.PaymentMethod.create, asked, "bind-1")
    assert (made.status, made.saved) == ("pending", False)
    fake.books.confirm(made.id)
    found = await sdk(yookassa.PaymentMethod.find_one, made.id)
    assert (found.status, found.saved) == ("active", True)
    charge = {"amount": PAYMENT["amount"], "capture": True, "payment_method_id": made.id, "description": "x"}
    paid = await sdk(yookassa.Payment.create, charge, "charge-1")
    assert (paid.status, paid.payment_method.id) == ("succeeded", made.id)
    fake.books.lose(made.id)
    failed = await sdk(yookassa.Payment.create, charge, "charge-2")
    assert (failed.status, failed.cancellation_details.reason) == ("canceled", "permission_revoked")


async def test_a_payout_goes_by_its_own_gateway_and_key(sdk: Sdk) -> None:
    payout = {
        "amount": {"value": "1000.00", "currency": "RUB"},
        "payout_destination_data": {"type": "sbp", "phone": "79990000001", "bank_id": "100000000111"},
        "metadata": {"order_id": "1"},
    }
    with pytest.raises(exceptions.ForbiddenError):
        await sdk(yookassa.Payout.create, payout, "payout-1")
    sdk.action_as(GATEWAY, PAYOUT_KEY)
    made = await sdk(yookassa.Payout.create, payout, "payout-1")
    assert made.status == "pending"
    assert (await sdk(yookassa.Payout.find_one, made.id)).id == made.id
    assert [each.id for each in (await sdk(yookassa.Payout.list, {"limit": 10})).items] == [made.id]
    assert "100000000111" in [bank.bank_id for bank in (await sdk(yookassa.SbpBanks.list)).items]
    assert str((await sdk(yookassa.Settings.get_account_settings)).account_id) == GATEWAY


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": {"value": "0.50", "currency": "RUB"}},
        {"amount": {"value": "700000.01", "currency": "RUB"}},
        {"description": "x" * 129},
        {"metadata": {"x" * 33: "y"}},
        {"capture": False},
    ],
    ids=str,
)
async def test_fake_refuses_what_the_api_refuses(sdk: Sdk, fake: YooKassaFake, wrong: dict[str, Any]) -> None:
    """Sent past the SDK's own checks, where it has some."""
    with pytest.raises((exceptions.BadRequestError, ValueError)):
        await sdk(yookassa.Payment.create, {**PAYMENT, **wrong}, "key-1")
    assert fake.books.things == {}


async def test_a_key_is_for_one_request_and_for_a_day(sdk: Sdk, fake: YooKassaFake, clock: VirtualClock) -> None:
    made = await sdk(yookassa.Payment.create, PAYMENT, "key-1")
    with pytest.raises(exceptions.BadRequestError) as refused:
        await sdk(yookassa.Payment.create, {**PAYMENT, "description": "other"}, "key-1")
    assert refused.value.content["parameter"] == "Idempotence-Key"
    await clock.advance(24 * 3600)
    assert (await sdk(yookassa.Payment.create, PAYMENT, "key-1")).id != made.id
    with pytest.raises(exceptions.BadRequestError):
        await sdk(yookassa.Payment.create, PAYMENT, "x" * 65)


async def test_caller_is_authenticated_by_shop_and_key(sdk: Sdk) -> None:
    sdk.action_as(SHOP, "live_wrong")
    with pytest.raises(exceptions.UnauthorizedError):
        await sdk(yookassa.Payment.list, {})


async def test_sdk_reads_the_notifications_that_the_fake_posts(sdk: Sdk, fake: YooKassaFake) -> None:
    made = await sdk(yookassa.Payment.create, {**PAYMENT, "save_payment_method": True}, "key-1")
    fake.books.pay(made.id)
    read = [notification.WebhookNotificationFactory().create(told) for told in fake.told]
    assert [each.event for each in read] == ["payment_method.active", "payment.succeeded"]
    assert read[1].object.id == made.id


def test_our_networks_are_those_of_the_sdk() -> None:
    """The SDK's four IPv6 networks lie in the network that the documentation names."""
    ours = [ip_network(each) for each in NETWORKS]
    for each in security.SecurityHelper.YOOKASSA_NETWORKS:
        theirs = ip_network(each)
        assert any(theirs.version == our.version and theirs.subnet_of(our) for our in ours), each  # type: ignore[arg-type]
