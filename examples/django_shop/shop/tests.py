"""Tests of the shop, with a sandbox in place of the service."""

from io import StringIO
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command

from cambist.django import payment_paid
from cambist.django.testing import CambistTestCase

from .models import Order


class ShopTest(CambistTestCase):
    """One order from the button to the refund."""

    def order(self) -> Order:
        """Buy some tea."""
        page = self.client.post("/buy")
        order = Order.objects.latest("pk")
        self.assertRedirects(page, order.payment_url, fetch_redirect_response=False)
        return order

    def test_paid_order_is_shipped_once(self) -> None:
        sent: list[Any] = []
        payment_paid.connect(lambda **given: sent.append(given["instance"].pk), weak=False, dispatch_uid="test")
        self.addCleanup(payment_paid.disconnect, dispatch_uid="test")
        order = self.order()
        assert order.payment_status == "pending"
        self.pay(order)
        assert (order.payment_status, order.is_paid, order.shipped) == ("paid", True, True)
        self.sandbox.repeat_webhooks()
        assert set(self.deliver()) == {200}, "repeats are accepted"
        self.sandbox.clock.advance(days=2)
        self.deliver()
        order.refresh_from_db()
        assert (order.payment_status, sent) == ("settled", [order.pk])

    def test_second_click_is_the_same_payment_and_a_failed_one_is_replaced(self) -> None:
        order = self.order()
        assert order.pay() == order.payment_url
        assert len(list(self.sandbox.client.payments.iterate())) == 1
        first = order.payment_id
        self.decline(order)
        assert order.payment_status == "failed"
        order.pay()
        assert order.payment_id not in ("", first)
        self.pay(order)
        assert order.shipped

    def test_event_before_the_answer_finds_the_order_by_its_metadata(self) -> None:
        order = self.order()
        first = order.payment_id
        Order.objects.filter(pk=order.pk).update(payment_id="", payment_url="", payment_status="")
        self.pay(order)
        assert (order.payment_status, order.payment_id) == ("paid", first)
        assert order.pay() == order.payment_url != ""
        assert order.payment_status == "paid"

    def test_money_for_a_former_payment_pays_the_order(self) -> None:
        order = self.order()
        former = order.payment_id
        self.sandbox.expire(former)
        self.deliver()
        order.refresh_from_db()
        order.pay()
        second = order.payment_id
        assert second not in ("", former)
        self.sandbox.pay(former)
        self.deliver()
        order.refresh_from_db()
        assert (order.payment_id, order.payment_status, order.shipped) == (former, "paid", True)
        with self.assertLogs("cambist.django", "ERROR") as logged:
            self.sandbox.pay(second)
            self.deliver()
        assert f"paid twice, by {former} and {second}" in logged.output[0]

    def test_order_is_not_shipped_again_when_its_refund_comes_back(self) -> None:
        order = self.order()
        Order.objects.filter(pk=order.pk).update(payment_status="refunded")
        self.pay(order)
        assert (order.payment_status, order.shipped) == ("paid", False)

    def test_failing_receiver_leaves_nothing_and_the_event_comes_again(self) -> None:
        order = self.order()

        def fails(**_: Any) -> None:
            raise RuntimeError("no stock")

        payment_paid.connect(fails, weak=False, dispatch_uid="test")
        self.addCleanup(payment_paid.disconnect, dispatch_uid="test")
        with self.assertRaisesMessage(RuntimeError, "no stock"):
            self.pay(order)
        payment_paid.disconnect(dispatch_uid="test")
        order.refresh_from_db()
        assert order.payment_status == "pending"
        self.sandbox.repeat_webhooks()
        self.deliver()
        order.refresh_from_db()
        assert order.shipped

    def test_refund_in_the_admin_is_asked_for_once_and_noted(self) -> None:
        order = self.order()
        self.pay(order)
        self.client.force_login(User.objects.create_superuser("olga"))
        chosen = {"action": "refund_payments", "_selected_action": [order.pk]}
        page = self.client.post("/admin/shop/order/", chosen)
        assert page.status_code == 200
        key = page.context["form"].initial["key"]
        for _ in range(2):
            self.client.post("/admin/shop/order/", {**chosen, "key": str(key), "amount": "90.00"})
        [refund] = self.sandbox.client.refunds.iterate()
        assert str(refund.amount_rub) == "90.00"
        self.complete_refund(refund.id)
        order.refresh_from_db()
        assert order.refunded

    def test_admin_shows_a_refusal(self) -> None:
        order = self.order()
        self.client.force_login(User.objects.create_superuser("olga"))
        key = "6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11"
        chosen = {"action": "refund_payments", "_selected_action": [order.pk], "key": key}
        page = self.client.post("/admin/shop/order/", chosen, follow=True)
        [told] = map(str, page.context["messages"])
        assert "only paid and settled ones are refunded" in told

    def test_missed_event_is_made_up_for(self) -> None:
        order = self.order()
        self.sandbox.pay(order.payment_id)
        told = StringIO()
        call_command("cambist_reconcile", stdout=told)
        assert told.getvalue() == f"{order}: pending -> paid\n"
        order.refresh_from_db()
        assert (order.payment_status, order.shipped) == ("paid", True)
        self.deliver()
        assert Order.objects.filter(shipped=True).count() == 1

    def test_forged_webhook_is_refused(self) -> None:
        assert self.client.post("/cambist/hook", data=b"{}", content_type="application/json").status_code == 400
        assert self.client.get("/cambist/hook").status_code == 405
