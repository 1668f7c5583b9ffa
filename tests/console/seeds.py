"""Objects that operators see on the screens: one of each, made as merchants, payers and banks make them."""

import msgspec
import pytest

from cambist.adapters.receipts.simulator import SimulatedRegister
from cambist.core.domain.accounts.accounts import ApiKey, Mode
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.ledger import JournalEntry
from cambist.core.domain.movements import Movement
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.operators.pending_actions import PendingAction
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.receipts.receipts import FiscalReceipt, ReceiptTrigger, moved_to
from cambist.core.domain.reconciliation.comparing import Counted, Difference, Standing, Subject
from cambist.core.domain.reconciliation.reconciliation import Discrepancy, discrepancy, started
from cambist.core.domain.settlement.settlement import Settlement, SettlementBatch, SettlementItem
from cambist.core.domain.webhooks.delivery import given_up
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.keys import create_key
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.core.usecases.actions.audit import acting, note
from cambist.core.usecases.actions.decisions import Waits
from cambist.core.usecases.common.encrypted import tag_action
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.settlement.withdrawals import cancel_withdrawal, pay_out_now
from cambist.ports.bank import InvoiceStatus, RefundState, RefundStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import FourEyes
from cambist.ports.notifier import Answer, DeliveryResult
from tests.console.kit import mismatch, waiting
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.refund_app import RefundApp, conclude
from tests.subscription_app import bound

PHONE = "+70000000002"
"""Verified in test mode."""
BAD = DeliveryResult(answer=Answer.RESPONDED, status=500, note="Internal Server Error", took_ms=12)


class Seeded(msgspec.Struct, frozen=True):
    """The ids of what there is."""

    subscription: str
    open_exchange: str
    late_exchange: str
    client: str
    failed_event: str
    suspense: str


async def seed(refunds: RefundApp) -> Seeded:
    """Make a subscription with a charge; an exchange that awaits USDT, and one that was paid after its cancellation; a
    client; a failed webhook; and a payment with 30 RUB too much."""
    app = refunds.app
    exchanges = ExchangeApp(app)
    await exchanges.set(exchange="true")
    payment = await refunds.paid(client_phone="+79005551234", external_id="order-7")
    await app.work()
    subscription = (await bound(app, external_id="club-1"))["id"]
    await app.work()
    app.postman.answers.append(BAD)
    late = await exchanges.made()
    await exchanges.cancel(late.id)
    await app.work()
    async with app.ports.storage.unit() as unit:
        for delivery in await unit[Delivery].find(status=DeliveryStatus.PENDING):
            unit[Delivery].save(given_up(delivery))
        await unit.commit()
    await app.work(600)
    await exchanges.send(late.id, "7")
    await exchanges.look(late.id)
    awaiting = await exchanges.made(phone=PHONE)
    body = {"phone": "+79005557788", "kyc_status": "verified"}
    made = await app.http.post("/api/v1/sandbox/exchange-clients", json=body, headers=app.headers())
    assert made.status_code in (200, 201), made.text
    await app.told(payment, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    await app.work()
    [failed] = [each for each in await everything(refunds.ports, Delivery) if each.status is DeliveryStatus.FAILED]
    [client] = await everything(refunds.ports, Client)
    [money] = await list_suspense(refunds.ports)
    assert isinstance(client, Client)
    assert isinstance(money, Suspense)
    return Seeded(subscription, awaiting.id, late.id, client.id, failed.id, money.id)


async def asked(refunds: RefundApp) -> tuple[str, str]:
    """Two acts that wait for a second operator: another wallet, and the same again."""
    ports, account_id = refunds.ports, refunds.app.account.account_id
    told = OperatorAction(operator="vera", name="account.set", object_id=account_id, reason="they moved")
    strict = msgspec.structs.replace(ports, four_eyes=FourEyes(actions=frozenset(["payout_wallet"])))
    with pytest.raises(Waits) as waiting:
        await set_settings(acting(strict, told), account_id, {"payout_wallet": OTHER})
    action = waiting.value.action
    second = msgspec.structs.replace(action, id=f"action_{ports.ids.uuid()}", slot=None, version=0)
    async with ports.storage.unit() as unit:
        unit[PendingAction].add(tag_action(ports.vault, second))
        await unit.commit()
    return action.id, second.id


async def differing(refunds: RefundApp, payment_id: str) -> str:
    """A payment that a bank's list lacks; the id of the difference."""
    now, account_id = refunds.app.clock.now(), refunds.app.account.account_id
    day = started(None, "bank", now.date(), "", now)
    mine = Counted(
        operation=payment_id,
        subject=Subject.PAYMENT,
        standing=Standing.DONE,
        began=now,
        kopecks=100_00,
        of="payment",
        object_id=payment_id,
        account_id=account_id,
    )
    async with refunds.ports.storage.unit() as unit:
        made = unit[Discrepancy].add(discrepancy(day, Difference.MISSING, mine, None, now))
        await unit.commit()
    return made.id


OTHER = "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH"
TRON = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


async def receipted(refunds: RefundApp) -> tuple[str, str]:
    """Return a live payment, and its receipt, which the register has rejected."""
    register = SimulatedRegister("till", refunds.ports.storage, refunds.ports.clock)
    refunds.app.connect(register=register)
    item = {"name": "Tea", "price": "100.00", "vat": "22", "subject": "commodity", "method": "full_payment"}
    receipt = {"items": [item], "tax_system": "osn", "customer": {"email": "b@c.ru"}}
    payment = await refunds.paid("100.00", mode="live", receipt=receipt)
    now = refunds.app.clock.now()
    async with refunds.ports.storage.unit() as unit:
        [made] = await unit[FiscalReceipt].find(payment_id=payment)
        failed = moved_to(made, ReceiptTrigger.REJECTED, now, failed_at=now, failure_reason="the drive is full")
        unit[FiscalReceipt].save(failed)
        await unit.commit()
    return payment, made.id


async def everything_there_is(refunds: RefundApp) -> dict[str, str]:
    """Make one object of every kind and of every state that actions depend on, and return the ids by name.
    `payment.sent` is the payment to send back."""
    app, ports, account_id = refunds.app, refunds.ports, refunds.app.account.account_id
    made = await seed(refunds)
    live, failed = await receipted(refunds), await receipted(refunds)
    there = {
        "payment.receipted": live[0],
        "receipt": live[1],
        "receipt.second": failed[1],
        "subscription": made.subscription,
        "exchange": made.late_exchange,
        "exchange.open": made.open_exchange,
        "client": made.client,
        "event": made.failed_event,
        "suspense": made.suspense,
        "gateway": "simulator-test",
        "receiver": f"{account_id}:test",
        "account": account_id,
    }
    there["refund.done"] = (await refunds.completed())[1]
    there["refund.contradicted"] = (await refunds.processing())[1]
    await conclude(ports, there["refund.contradicted"], RefundState(status=RefundStatus.FAILED))
    await refunds.tell(there["refund.contradicted"], RefundStatus.DONE)
    there["correction"] = (await refunds.processing("40.00"))[1]
    await refunds.settled("500.00")
    await conclude(ports, there["correction"], RefundState(status=RefundStatus.FAILED))
    await app.work(30)
    there["payment"], there["payment.sent"] = await mismatch(refunds), await mismatch(refunds)
    there["refund"], there["refund.second"] = await waiting(refunds), await waiting(refunds)
    there["shop"] = (await create_shop(ports, account_id, "Corner", "0.02")).id
    there["terminal"] = (await create_terminal(ports, account_id, TerminalWish(label="Till", payment_method="sbp"))).id
    await refunds.set(payout_wallet=TRON)
    there["withdrawal.cancelled"] = (await pay_out_now(ports, account_id, Mode.TEST)).id
    await cancel_withdrawal(ports, there["withdrawal.cancelled"], "the wrong wallet")
    there["withdrawal"] = (await pay_out_now(ports, account_id, Mode.TEST)).id
    await note(ports, OperatorAction(operator="ivan", name="look", object_id=there["payment"], reason="as an example"))
    firsts = {
        "batch": SettlementBatch, "settlement": Settlement, "line": SettlementItem, "key": ApiKey,
        "entry": JournalEntry, "audit": AuditEntry, "movement": Movement,
    }  # fmt: skip
    await list_all(ports)
    for name, kind in firsts.items():
        there[name] = (await everything(ports, kind))[0].id
    there["payout line"] = f"{there['withdrawal']}:0"
    there["key.named"] = (await create_key(ports, account_id, Mode.TEST, "till")).pair.api_key
    there["action"], there["action.second"] = await asked(refunds)
    there["difference"] = await differing(refunds, there["payment"])
    there["ledger"] = f"{account_id}:test:available"
    return there
