"""The shop's own tests with cambist's pytest plugin. Nothing has to be started, and the tests do not wait.
In this folder:

pip install 'cambist[testing]'
pytest
"""

from decimal import Decimal

import pytest

from cambist.testing import Sandbox
from examples.merchant_tests.shop import Shop


@pytest.fixture
def shop(cambist_sandbox: Sandbox) -> Shop:
    made = Shop(cambist_sandbox.client, [cambist_sandbox.webhook_secret])
    cambist_sandbox.deliver_to(made.on_webhook)
    return made


def test_a_paid_order_is_paid(shop: Shop, cambist_sandbox: Sandbox) -> None:
    shop.checkout("order-1", Decimal("990.00"))
    [payment] = cambist_sandbox.client.payments.iterate(external_id="order-1")
    assert shop.orders["order-1"] == "unpaid"
    cambist_sandbox.pay(payment.id)
    assert shop.orders["order-1"] == "paid"


def test_checking_out_twice_makes_one_payment(shop: Shop, cambist_sandbox: Sandbox) -> None:
    assert shop.checkout("order-1", Decimal(990)) == shop.checkout("order-1", Decimal(990))
    assert len(list(cambist_sandbox.client.payments.iterate())) == 1


def test_an_order_that_nobody_pays_expires(shop: Shop, cambist_sandbox: Sandbox) -> None:
    shop.checkout("order-1", Decimal(990))
    cambist_sandbox.clock.advance(minutes=16)
    assert shop.orders["order-1"] == "expired"


def test_a_refund_is_done_some_days_after_settlement(shop: Shop, cambist_sandbox: Sandbox) -> None:
    for order in ("order-1", "order-2"):
        shop.checkout(order, Decimal(990))
    for payment in cambist_sandbox.client.payments.iterate():
        cambist_sandbox.pay(payment.id)
    cambist_sandbox.clock.advance(days=2)
    shop.give_back("order-1")
    cambist_sandbox.clock.advance(minutes=1)
    assert shop.orders == {"order-1": "given back", "order-2": "paid"}


def test_webhooks_that_failed_come_again(shop: Shop, cambist_sandbox: Sandbox) -> None:
    cambist_sandbox.deliver_to(lambda _headers, _body: 503)
    shop.checkout("order-1", Decimal(990))
    [payment] = cambist_sandbox.client.payments.iterate()
    cambist_sandbox.pay(payment.id)
    assert shop.orders["order-1"] == "unpaid"
    cambist_sandbox.deliver_to(shop.on_webhook)
    cambist_sandbox.clock.advance(minutes=5)
    assert shop.orders["order-1"] == "paid"
