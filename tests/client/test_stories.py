"""Every operation of the client against the real service, by both faces."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.client import (
    BindingCharge,
    CambistError,
    ExchangeStatus,
    FailureReason,
    GatewayStatus,
    Interval,
    KycStatus,
    Payer,
    PaymentStatus,
    ProofStatus,
    RefundStatus,
    SubscriptionStatus,
    TransferStatus,
    WithdrawalStatus,
)
from cambist.frontends.client.kyc import Kyc, UploadGrant
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from tests.client.conftest import Merchant, every, now

PHONE = "+70000000001"
"""Verified in test mode."""
RUSSIAN = "+79001234567"
JPEG = b"\xff\xd8\xff\xe0" + bytes(100)
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


async def test_a_payment_from_creation_to_refund(merchant: Merchant) -> None:
    client = merchant.client
    key = uuid4()
    made = await now(
        client.payments.create(
            amount_rub=Decimal("150.5"), external_id="order-1", metadata={"cart": 7}, idempotency_key=key
        )
    )
    assert (made.status, made.amount_rub, made.sandbox) == (PaymentStatus.PENDING, Decimal("150.50"), True)
    assert await now(client.payments.create(amount_rub="1", idempotency_key=key)) == made
    link = await now(client.payments.sbp_link(made.id))
    assert link.sbp_link is not None
    assert link.sbp_link not in repr(link)
    paid = await now(client.sandbox.simulate_payment(made.id, "paid", payer_name="Ivan I."))
    assert (paid.status, paid.payer_name, paid.paid_at) == (PaymentStatus.PAID, "Ivan I.", merchant.sandbox.clock.now())
    assert "Ivan" not in repr(paid)
    [came] = (await now(client.payments.transfers(made.id))).data
    assert (came.status, came.amount_rub) == (TransferStatus.CREDITED, Decimal("150.50"))
    refund = await now(client.refunds.create(payment_id=made.id, amount_rub="50", reason="half"))
    assert (refund.status, refund.amount_rub) == (RefundStatus.PENDING, Decimal("50.00"))
    cancelled = await now(client.refunds.cancel(refund.id))
    assert cancelled.status is RefundStatus.CANCELLED
    refund = await now(client.refunds.create(payment_id=made.id))
    done = await now(client.sandbox.simulate_refund(refund.id, "completed"))
    assert done == await now(client.refunds.get(refund.id))
    assert [each.id for each in (await now(client.refunds.list(payment_id=made.id, status="completed"))).data] == [
        refund.id
    ]
    assert len(await every(client.refunds.iterate())) == 2
    assert (await now(client.payments.get(made.id))).status is PaymentStatus.REFUNDED


async def test_a_mismatch_is_reviewed(merchant: Merchant) -> None:
    client = merchant.client
    made = await now(client.payments.create(amount_rub=100))
    merchant.sandbox.pay(made.id, amount_rub="90.00")
    assert (await now(client.payments.get(made.id))).status is PaymentStatus.AMOUNT_MISMATCH
    assert (await now(client.sandbox.resolve_payment(made.id, "paid"))).actual_amount_rub == Decimal("90.00")


async def test_lists_are_filtered_and_walked(merchant: Merchant) -> None:
    client, clock = merchant.client, merchant.sandbox.clock
    made = [await now(client.payments.create(amount_rub=40 + number)) for number in range(5)]
    start = clock.now()
    page = await now(client.payments.list(page=2, per_page=2))
    assert ([each.id for each in page.data], page.pagination.total) == ([made[2].id, made[1].id], 5)
    walked = await every(client.payments.iterate(status=PaymentStatus.PENDING, per_page=2))
    assert [each.id for each in walked] == [each.id for each in reversed(made)]
    clock.advance(minutes=1)
    late = await now(client.payments.create(amount_rub=99))
    found = await every(client.payments.iterate(created_from=start + timedelta(seconds=1)))
    assert [each.id for each in found] == [late.id]


async def test_a_subscription_and_its_charges(merchant: Merchant) -> None:
    client, sandbox = merchant.client, merchant.sandbox
    made = await now(client.subscriptions.create(amount_rub="300", interval=Interval.WEEK, description="Plan"))
    assert (made.status, made.binding_charge) == (SubscriptionStatus.PENDING_BINDING, BindingCharge.FIRST)
    active = await now(client.sandbox.simulate_subscription(made.id, "confirm"))
    assert active.status is SubscriptionStatus.ACTIVE
    window = await now(client.subscriptions.charge_window(made.id))
    assert (window.can_charge, window.reason) == (False, "CHARGE_BEFORE_WINDOW")
    with pytest.raises(CambistError) as early:
        await now(client.subscriptions.charge(made.id, amount_rub="300", external_id="second"))
    assert early.value.code == "CHARGE_BEFORE_WINDOW"
    sandbox.clock.advance(days=8)
    wish = await now(client.sandbox.next_charge(made.id, FailureReason.INSUFFICIENT_FUNDS))
    assert wish.result == "insufficient_funds"
    with pytest.raises(CambistError) as refused:
        await now(client.subscriptions.charge(made.id, amount_rub="300", external_id="second"))
    assert (refused.value.code, refused.value.status) == ("PROVIDER_ERROR", 502)
    charge = await now(client.subscriptions.charge(made.id, amount_rub="300", external_id="third"))
    assert charge.subscription_id == made.id
    charges = await now(client.subscriptions.charges(made.id))
    assert [each.external_id for each in charges.data] == ["third", "second", None]
    assert charges.data[1].failure_reason is FailureReason.INSUFFICIENT_FUNDS
    assert await every(client.subscriptions.iterate_charges(made.id, per_page=1)) == charges.data
    assert (await now(client.subscriptions.update(made.id, amount_rub=200, cap_window_rub=None))).amount_rub == 200
    lost = await now(client.sandbox.simulate_subscription(made.id, "mandate_lost"))
    assert (lost.status, lost.rebind_required) == (SubscriptionStatus.PAUSED, True)
    assert (await now(client.subscriptions.rebind(made.id))).binding_url
    assert (await now(client.subscriptions.cancel(made.id))).status is SubscriptionStatus.CANCELLED
    [listed] = (await now(client.subscriptions.list(status="cancelled"))).data
    assert listed == await now(client.subscriptions.get(made.id))
    assert await every(client.subscriptions.iterate()) == [listed]


async def test_an_exchange_and_its_client(merchant: Merchant) -> None:
    client = merchant.client
    known = await now(client.sandbox.put_client(PHONE, "verified"))
    assert PHONE not in repr(known)
    assert [each.id for each in (await now(client.exchanges.clients(q="0000001"))).data] == [known.id]
    assert await every(client.exchanges.iterate_clients(kyc_status="verified")) == [known]
    order = {"client_phone": PHONE, "client_bank_id": "bank100000000004"}
    made = await now(client.exchanges.create(amount_usdt=Decimal("100.5"), **order))
    assert (made.status, made.amount_usdt) == (ExchangeStatus.AWAITING_USDT, Decimal("100.50000000"))
    assert (await now(client.exchanges.cancel(made.id))).status is ExchangeStatus.CANCELLED
    made = await now(client.exchanges.create(amount_usdt="100", **order))
    done = await now(client.sandbox.simulate_exchange(made.id, "completed"))
    assert done.status is ExchangeStatus.COMPLETED
    assert PHONE not in repr(done)
    assert (await now(client.exchanges.list(status="completed"))).data == [await now(client.exchanges.get(made.id))]
    assert len(await every(client.exchanges.iterate())) == 2


async def test_settlement_payout_and_money(merchant: Merchant) -> None:
    client, sandbox = merchant.client, merchant.sandbox
    sandbox.run(set_settings, sandbox.account_id, {"payout_wallet": WALLET})
    sandbox.pay((await now(client.payments.create(amount_rub="1000"))).id)
    assert (await now(client.money.balance())).pending_rub == Decimal("1000.00")
    assert (await now(client.money.rates(shop_id=sandbox.shop_id))).pair == "RUB/USDT"
    settled = await now(client.sandbox.settle())
    assert (settled.payments, settled.amount_rub) == (1, Decimal("1000.00"))
    [item] = (await now(client.settlements.items(settled.id))).data
    assert item.credit_usdt == settled.credit_usdt
    assert await every(client.settlements.iterate_items(settled.id)) == [item]
    header, line = (await now(client.settlements.csv(settled.id))).splitlines()
    assert header.startswith("payment_id,")
    assert item.payment_id in line
    [waiting] = (await now(client.withdrawals.list())).data
    sent = await now(client.sandbox.simulate_withdrawal(waiting.id, "completed"))
    assert (sent.status, bool(sent.tx_hash)) == (WithdrawalStatus.COMPLETED, True)
    [listed] = (await now(client.settlements.list())).data
    assert await every(client.settlements.iterate()) == [listed]
    assert await now(client.settlements.get(settled.id)) == listed
    [payout] = (await now(client.withdrawals.list())).data
    assert listed.withdrawal_id == payout.id
    assert await every(client.withdrawals.iterate()) == [await now(client.withdrawals.get(payout.id))]
    day = sandbox.clock.now().date()
    turnover = await now(client.money.turnover(since=day, until=day))
    assert (turnover.data[0].date, turnover.total.amount_rub) == (day, Decimal("1000.00"))


async def test_gateways_events_and_the_receiver(merchant: Merchant) -> None:
    client, sandbox = merchant.client, merchant.sandbox
    [gateway] = await now(client.money.gateways())
    simulated = await now(client.sandbox.simulate_gateway(gateway.gateway_id, GatewayStatus.DEGRADED))
    assert simulated.status is GatewayStatus.DEGRADED
    sandbox.fail((await now(client.payments.create(amount_rub=100))).id)
    page = await now(client.events.list(type="payment.status_changed", delivery_status="delivered"))
    [event] = page.data
    assert len(await every(client.events.iterate())) == 2
    whole = await now(client.events.get(event.id))
    assert (whole.payload["status"], whole.attempts[0].status) == ("failed", 200)
    assert (await now(client.events.resend(event.id))).id == event.id
    sandbox.clock.advance(minutes=1)
    since, until = sandbox.clock.now() - timedelta(hours=1), sandbox.clock.now()
    assert (await now(client.events.resend_range(since=since, until=until))).events == 2
    assert [each.id for each in sandbox.webhooks].count(event.id) == 3
    assert (await now(client.events.test_endpoint())).delivered is True
    assert (await now(client.events.endpoint())).breaker.state == "closed"
    letters = await now(client.sandbox.letters(types="payment.status_changed"))
    assert letters.data[0].id == event.id


async def test_documents_from_check_to_verified(merchant: Merchant) -> None:
    sandbox, client = merchant.sandbox, merchant.live()
    sandbox.run(set_settings, sandbox.account_id, {"kyc": "required"})
    check = await now(client.kyc.check(RUSSIAN))
    assert check.status is KycStatus.REQUIRED
    assert check.kyc_url not in repr(check)
    keys = []
    for _ in range(2):
        grant = await now(client.kyc.upload_url("image/jpeg"))
        assert grant.upload_url not in repr(grant)
        assert (await now(client.kyc.upload(grant, JPEG, "image/jpeg"))).status == "uploaded"
        keys.append(grant.file_key)
    begun = await now(client.kyc.register(RUSSIAN, selfie_key=keys[0], document_key=keys[1]))
    assert begun.status is KycStatus.PROCESSING
    sandbox.clock.advance(seconds=10)
    verified = await now(client.kyc.check(RUSSIAN))
    assert (verified.status, bool(verified.account_number)) == (KycStatus.VERIFIED, True)


def test_a_document_goes_to_a_bucket_as_well() -> None:
    """The bucket answers with nothing, and may want a header (docs/providers/s3.md "Once")."""
    grant = UploadGrant(upload_url="https://bucket.example/key?signed", file_key="key")
    request = Kyc.upload.request(grant, JPEG, "image/jpeg")
    assert request.headers["If-None-Match"] == "*"
    assert request.read(b"").status == "uploaded"


async def test_terminals_and_delivery_proofs(merchant: Merchant) -> None:
    sandbox, client = merchant.sandbox, merchant.live()
    sandbox.run(set_settings, sandbox.account_id, {"terminals": "true"})
    sandbox.run(
        create_terminal, sandbox.account_id, TerminalWish(label="Out", kind="exchange", required_fields=("payer",))
    )
    [method] = await now(client.payments.methods())
    with pytest.raises(CambistError) as missing:
        await now(client.payments.create(amount_rub="10000", method_id=method.method_id))
    assert missing.value.details == {"missing_fields": ["payer"]}
    payer = Payer(full_name="Ivan Ivanov", document_number="AB12345", kyc_completed_at=sandbox.clock.now())
    assert "Ivan" not in repr(payer)
    assert "AB12345" not in repr(payer)
    made = await now(client.payments.create(amount_rub="10000", method_id=method.method_id, payer=payer))

    async def pay(ports: Ports) -> None:
        async with ports.storage.unit() as unit:
            payment = await unit[Payment].get(made.id)
        assert payment is not None
        await simulate_payment(ports, payment, Simulation(status=InvoiceStatus.PAID))

    sandbox.run(pay)
    proof = await now(client.payments.submit_delivery_proof(made.id, network="TRC20", tx_hash="a" * 64))
    assert proof.status is ProofStatus.ACCEPTED
    assert (await now(client.payments.delivery_proof(made.id))).tx_hash == "a" * 64


async def test_the_accounts_clock_and_forgetting(merchant: Merchant) -> None:
    client = merchant.client
    await now(client.payments.create(amount_rub=100))
    before = await now(client.sandbox.clock())
    moved = await now(client.sandbox.advance_clock(seconds=3600))
    assert moved.now >= before.now + timedelta(hours=1)
    forgotten = await now(client.sandbox.forget())
    assert (forgotten.complete, (await now(client.payments.list())).data) == (True, [])
    assert (await now(client.health())).status == "ok"
