"""Raiffeisenbank signs its notifications with an HMAC over values as the JSON spells them."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator

import pytest

from cambist.adapters.bank.raiffeisen.adapter import RaiffeisenBank
from cambist.adapters.bank.raiffeisen.merchants import Merchants, Pair
from cambist.adapters.clock import SystemClock
from cambist.ports import (
    BindingRequest,
    Forged,
    InboundNotification,
    Notification,
    Received,
    RemittanceRequest,
    tiny_operation,
)
from cambist.ports.operations import short_operation
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import MERCHANT, posted
from tests.providers.raiffeisen.harness import RaiffeisenHarness, arrived, new_tools

# From the tests of the bank's own SDK for Java (docs/providers/raiffeisen.md "Where the wire facts are from").
SDK_KEY = (
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJNQTAwMDAwMDA1NTIiLCJqdGkiOiIwZTRhODI2ZC0zMTk3LTQ5YWUtYjRlYS0zZDll"
    "OGRkODIyOGEifQ.Q-AVaDBzvfkz6I8ZCVgvGIWpWTUgotRDmTcs4ysR0Qc"
)
SDK_ORDER = "dfe0ff08-4796-46bb-a9fb-93fcd99ce748"
SDK_SIGNED = f"101.01|MA0000000552|{SDK_ORDER}|SUCCESS|2020-07-24T17:20:00.999232+03:00"
SDK_SIGNATURE = "1eca6a084ff8a5b4f5740e0eeab2a72d8ff981bce5b5dea75a53bf44944a8c8d"
SDK_BODY = (
    '{"transactionId":17998,"qrId":"AS1000408BSPMRDI8IHBGO4DFQAISU9O","sbpMerchantId":"MA0000000552","merchantId":123,'
    '"amount":101.01,"currency":"RUB","transactionDate":"2020-07-24T17:20:00.999232+03:00","paymentStatus":"SUCCESS",'
    f'"additionalInfo":null,"order":"{SDK_ORDER}","createDate":"2020-07-24T17:19:58+03:00"}}'
)


@pytest.fixture
async def harness() -> AsyncIterator[RaiffeisenHarness]:
    async with Raiffeisen() as books:
        made = RaiffeisenHarness(new_tools(SystemClock()), books)
        yield made
        for bank in made.banks:
            await bank.close()


def notification(body: str, signature: str) -> InboundNotification:
    return arrived((body.encode(), {"X-Api-Signature-SHA256": signature}))


class TestVector:
    """A notification of the bank's own SDK, with its signature."""

    @pytest.fixture
    def bank(self, harness: RaiffeisenHarness) -> RaiffeisenBank:
        return RaiffeisenBank(harness.tools, merchants=Merchants(None, {"acc_1": Pair(MERCHANT, SDK_KEY)}))

    async def test_is_genuine(self, bank: RaiffeisenBank) -> None:
        assert (await bank.receive(notification(SDK_BODY, SDK_SIGNATURE))).status == 200
        assert (await bank.receive(notification(SDK_BODY, SDK_SIGNATURE.upper()))).status == 200

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("101.01", "101.010"),
            ("101.01", "101.02"),
            ("SUCCESS", "DECLINED"),
            ("999232", "999233"),
            ("dfe0ff08", "dfe0ff09"),
        ],
    )
    async def test_is_forged_when_changed(self, bank: RaiffeisenBank, old: str, new: str) -> None:
        with pytest.raises(Forged):
            await bank.receive(notification(SDK_BODY.replace(old, new, 1), SDK_SIGNATURE))

    async def test_is_forged_with_half_a_signature(self, bank: RaiffeisenBank) -> None:
        for signature in (SDK_SIGNATURE[5:], "", "я" * 64, "\ud800"):
            with pytest.raises(Forged):
                await bank.receive(notification(SDK_BODY, signature))

    def test_is_what_the_fake_would_have_signed(self) -> None:
        _, headers = posted({"amount": "AMOUNT"}, "101.01", SDK_SIGNED, SDK_KEY)
        assert headers["X-Api-Signature-SHA256"] == SDK_SIGNATURE


def test_our_own_vector() -> None:
    """Its amount ends in zeros, which the SDK's own check loses."""
    signed = b"490.00|MA0000000552|o-1|SUCCESS|2026-11-22T14:00:00+03:00"
    expected = "e7907a66dbf378dbffdb4073fe8335708a3a0f9556133f8c1214e069e172c512"
    assert hmac.new(b"test_secret_key", signed, hashlib.sha256).hexdigest() == expected


class TestPayments:
    @pytest.mark.parametrize("spelt", ["490.00", "490", "490.0", "4.9E+2", "0.01", "1e1"])
    async def test_the_amount_counts_as_it_is_spelt(self, harness: RaiffeisenHarness, spelt: str) -> None:
        heard = await harness.banks[0].receive(arrived(harness.books.notification("pay_1", spelt)))
        assert heard == Received(notifications=(Notification(operation="pay_1"),))

    async def test_another_merchant_s_is_forged(self, harness: RaiffeisenHarness) -> None:
        body, headers = harness.books.notification("pay_1", "1.00")
        with pytest.raises(Forged):
            await harness.banks[0].receive(arrived((body.replace(MERCHANT.encode(), b"MA0000000553"), headers)))

    async def test_a_long_id_comes_back_from_its_digest(self, harness: RaiffeisenHarness) -> None:
        """The bank does not accept the ids of exchanges and bindings as they are."""
        operation = "exch_0198c3f2-7d1a-7e4b-9f60-000000000001"
        await harness.bank.create_invoice(harness.request(operation))
        heard = await harness.banks[0].receive(await harness.notification(operation))
        assert heard.notifications == (Notification(operation=operation),)

    async def test_a_digest_of_nothing_of_ours_names_nothing(self, harness: RaiffeisenHarness) -> None:
        order = short_operation("another system's")
        assert await harness.banks[0].receive(arrived(harness.books.notification(order, "1.00"))) == Received()


class TestOthers:
    async def test_a_payout_comes_back_from_its_number(self, harness: RaiffeisenHarness) -> None:
        operation = "exch_0198c3f2-7d1a-7e4b-9f60-000000000001/1"
        bank = harness.banks[0]
        request = RemittanceRequest(
            operation=operation, phone=harness.phone, bank_id=harness.bank_id, amount_kopecks=100_00
        )
        await bank.remit(request)
        body, headers = harness.books.payout_notification(tiny_operation(operation))
        assert (await bank.receive(arrived((body, headers)))).notifications == (Notification(operation=operation),)
        with pytest.raises(Forged):
            await bank.receive(arrived((body.replace(b"0.01", b"0.02"), headers)))

    async def test_a_first_charge_and_its_subscription_name_the_binding(self, harness: RaiffeisenHarness) -> None:
        operation = "sub_0198c3f2-7d1a-7e4b-9f60-000000000001:0198c3f2-7d1a-7e4b-9f60-000000000002"
        bank, number = harness.banks[0], short_operation(operation)
        await bank.bind(
            BindingRequest(
                operation=operation,
                first_charge_kopecks=100_00,
                purpose="Coffee club",
                expires_at=harness.request("x").expires_at,
            )
        )
        expected = Received(notifications=(Notification(operation=operation),))
        assert await bank.receive(arrived(harness.books.notification(f"1-{number}"))) == expected
        assert await bank.receive(arrived(harness.books.subscription_notification(number))) == expected

    @pytest.mark.parametrize(
        "told",
        [
            {"event": "subscription", "subscription": {"id": "another-system-s"}},
            {"event": "subscription", "subscription": {"id": "pay_1"}},
            {"event": "something else"},
        ],
    )
    async def test_unsigned_foreign_notification_names_nothing(
        self, harness: RaiffeisenHarness, told: dict[str, object]
    ) -> None:
        assert await harness.banks[0].receive(arrived((json.dumps(told).encode(), {}))) == Received()
