"""What a version before sent under longer ids is found and taken over, and nothing goes a second time
(docs/adapters.md "Operation ids")."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain import ids
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation
from cambist.core.domain.exchanges.funds import ExchangeTransfer, transfer_source
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.exchanges.returns import rub_return_operation, usdt_return_operation
from cambist.core.domain.kyc.clients import Client, KycStatus, former_operation_of, operation_of
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.refunds.suspense_returns import former_operation, return_operation
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.core.usecases.browse.search import search
from cambist.core.usecases.exchanges import opening
from cambist.core.usecases.exchanges.creation import create_rub_usdt
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.kyc import register
from cambist.core.usecases.kyc.results import on_notice as on_check_notice
from cambist.core.usecases.notices import on_notice
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.payments.recurring import binding_operation, former_binding
from cambist.core.usecases.refunds.suspense_progress import RETURN
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.refunds.suspense_takeover import FORMER_RETURN
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.core.usecases.subscriptions.subscriptions import create_subscription
from cambist.ports.bank import InvoiceStatus, Notice, RefundRequest
from cambist.ports.bank_simulator import Pretence
from cambist.ports.jobs import Job
from cambist.ports.kyc import CheckNotice
from cambist.ports.mandates import BindingRequest
from cambist.ports.remittances import RemittanceRequest
from tests.exchange_house import PHONE, open_exchange_house
from tests.invariants import everything
from tests.kyc_kit import KycHouse, open_kyc_house
from tests.payout_kit import WALLET
from tests.restored import House, World
from tests.usecases.test_restored import exchange, paid

ORDER = SubscriptionOrder(
    amount_rub="100.00",
    interval="month",
    interval_count=1,
    description="Tea",
    external_id="tea-club",
    binding_charge="none",
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World("memory", tmp_path)


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycHouse]:
    async with open_kyc_house(tmp_path) as opened:
        yield opened


async def funded(world: World, house: House) -> Exchange:
    """An exchange whose USDT are there and not seen yet."""
    await house.know_client(PHONE)
    made = await exchange(house, str(uuid4()))
    assert made.crypto_deposit_address is not None
    await world.deposits.pretend_deposit(made.crypto_deposit_address, made.amount_usdt.units)
    return made


def part_of(made: Exchange, operation: str) -> RemittanceRequest:
    return RemittanceRequest(
        operation=operation, phone=PHONE, bank_id="bank100000000111", amount_kopecks=made.amount_rub.kopecks
    )


async def test_a_part_that_was_sent_and_forgotten_is_taken_over(world: World) -> None:
    async with world.opened() as house:
        made = await funded(world, house)
        copy = world.copy()
        await world.bank.remit(part_of(made, f"{made.id}/1"))
    await world.clock.advance(60)
    async with world.opened(copy) as house:
        await house.work(60)
        done = await house.ports.storage.get(Exchange, made.id)
        assert (done and done.status) == "completed"
        await house.check()
    assert await world.remitted() == [f"{made.id}/1"]


async def test_of_several_banks_the_one_that_knows_it_keeps_it(world: World) -> None:
    async with world.opened() as house:
        made = await funded(world, house)
        copy = world.copy()
        await world.banks[1].remit(part_of(made, f"{made.id}/1"))
    await world.clock.advance(60)
    async with world.opened(copy) as house:
        await house.work(60)
        done = await house.ports.storage.get(Exchange, made.id)
        assert (done and done.status, done and done.bank) == ("completed", "other")
    assert await world.remitted() == [f"{made.id}/1"]


async def test_a_part_keeps_the_id_that_it_was_written_down_with(world: World) -> None:
    """Its bank is asked for that one, and a notice of it is heard."""
    async with world.opened() as house:
        made = await funded(world, house)
        world.script.remit.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
        await house.work(60)
        world.script.remit.clear()
        async with house.ports.storage.unit() as unit:
            present = await unit[Exchange].get(made.id)
            assert present is not None
            [part] = present.parts
            assert part.operation == part_operation(made.id, 1)
            former = msgspec.structs.replace(part, operation=f"{made.id}/1")
            unit[Exchange].save(msgspec.structs.replace(present, parts=(former,)))
            await unit.commit()
        await world.bank.remit(part_of(made, f"{made.id}/1"))
        await on_notice(house.ports, Notice(operation=f"{made.id}/1"))
        await house.work(600)
        done = await house.ports.storage.get(Exchange, made.id)
        assert (done and done.status) == "completed"
    assert await world.remitted() == [f"{made.id}/1"]


async def suspended_rub(world: World, house: House) -> tuple[Exchange, ExchangeTransfer]:
    """RUB that came after the end of their exchange."""
    await house.know_client(PHONE)
    made = await create_rub_usdt(
        house.ports, world.account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET
    )
    await house.work(1000)
    for notice in await world.bank.pretend(invoice_operation(made.id), Pretence(status=InvoiceStatus.PAID)):
        await on_notice(house.ports, notice)
    [transfer] = await list_suspended(house.ports)
    present = await house.ports.storage.get(Exchange, made.id)
    assert present is not None
    return present, transfer


async def test_rub_that_went_back_and_were_forgotten_do_not_go_again(world: World) -> None:
    async with world.opened() as house:
        made, transfer = await suspended_rub(world, house)
        copy = world.copy()
        former = usdt_return_operation(transfer.id, 1)
        await world.bank.refund(
            RefundRequest(
                operation=former,
                reference=made.invoice_reference or "",
                amount_kopecks=transfer.amount,
                transfer=transfer_source(transfer),
            )
        )
    await world.clock.advance(60)
    async with world.opened(copy) as house:
        [planned] = await return_money(house.ports, made.id)
        assert planned.sent_back is not None
        assert planned.sent_back.operation != former
        await house.work(60)
        assert await list_suspended(house.ports) == []
        await on_notice(house.ports, Notice(operation=former))
        await house.check()
    assert await world.refunded() == [(former, transfer.amount)]


async def paid_twice(house: House) -> tuple[Payment, Suspense]:
    """A payment, and money in suspense that came for it."""
    payment = await paid(house)
    await house.pay(payment, again=True)
    [money] = await list_suspense(house.ports)
    present = await house.ports.storage.get(Payment, payment.id)
    assert present is not None
    return present, money


def back(payment: Payment, money: Suspense, operation: str) -> RefundRequest:
    return RefundRequest(
        operation=operation,
        reference=payment.bank_reference or "",
        amount_kopecks=money.amount.kopecks,
        transfer=money.transfer_id,
    )


async def test_suspended_money_that_went_back_and_was_forgotten_does_not_go_again(world: World) -> None:
    async with world.opened() as house:
        payment, money = await paid_twice(house)
        copy = world.copy()
        await world.bank.refund(back(payment, money, money.id))
    await world.clock.advance(60)
    async with world.opened(copy) as house:
        await return_suspense(house.ports, money.id)
        await house.work(60)
        assert await list_suspense(house.ports) == []
        await on_notice(house.ports, Notice(operation=money.id))
        await house.check()
    assert await world.refunded() == [(money.id, money.amount.kopecks)]


async def of_an_earlier_version(world: World, house: House) -> tuple[Payment, Suspense]:
    """Money on its way back, as a version before wrote it down; its job waits."""
    payment, money = await paid_twice(house)
    async with house.ports.storage.unit() as unit:
        marked = msgspec.structs.replace(money, sending_since=world.clock.now())
        unit[Suspense].save(marked)
        unit[Job].add(FORMER_RETURN.first(money.id, world.clock.now(), world.clock.now()))
        await unit.commit()
    return payment, marked


@pytest.mark.parametrize("knows", [True, False])
async def test_what_an_earlier_version_sends_back_keeps_its_id(world: World, knows: bool) -> None:
    async with world.opened() as house:
        payment, money = await of_an_earlier_version(world, house)
        if knows:
            await world.bank.refund(back(payment, money, money.id))
        await house.work(60)
        assert await list_suspense(house.ports) == []
        kinds = {job.kind for job in await everything(house.ports, Job) if job.argument == money.id}
        assert kinds == {RETURN.kind}, "its job is one that earlier versions leave alone"
        await house.check()
    assert await world.refunded() == [(money.id, money.amount.kopecks)]


async def test_a_further_attempt_has_an_id_of_this_version(world: World) -> None:
    """And the word of the earlier one moves it no more."""
    async with world.opened() as house:
        _, money = await of_an_earlier_version(world, house)
        world.script.refund.append(Twist(ending=Ending.REFUSED))
        await house.work(5)
        await return_suspense(house.ports, money.id)
        await house.work(60)
        [now] = await everything(house.ports, Suspense)
        assert isinstance(now, Suspense)
        assert (now.attempt, now.operation) == (2, return_operation(money, 2))
        await house.check()
    assert [operation for operation, _ in await world.refunded()][-1] == return_operation(money, 2)


async def test_a_binding_whose_answer_was_lost_is_found(world: World) -> None:
    """By the former id, once the process that asked is gone; a notice of it is heard."""
    async with world.opened() as house:
        world.script.bind.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        made = await create_subscription(
            house.ports, await house.caller(), house.ports.ids.uuid(), lambda: ORDER, lambda: None
        )
        await open_binding(house.ports, made.resource.id)
        asked = await only_payment(house)
        copy = world.copy()
        former = former_binding(made.resource.id, asked.id)
        there = await world.bank.bind(
            BindingRequest(operation=former, first_charge_kopecks=None, purpose="Tea", expires_at=asked.expires_at)
        )
    await world.clock.advance(5)
    async with world.opened(copy) as house:
        await on_notice(house.ports, Notice(operation=former))
        assert (await only_payment(house)).bank_reference == there.reference


async def only_payment(house: House) -> Payment:
    async with house.ports.storage.unit() as unit:
        [payment] = await unit[Payment].find(order="created_at")
    return payment


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_check_keeps_the_id_that_it_was_begun_with(
    kyc: KycHouse, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """Where what the verifier was asked is not kept, it is looked for by either."""
    with monkeypatch.context() as before:
        before.setattr(register, "operation_of", former_operation_of)
        kyc.twist("register", Ending.UNKNOWN_DONE)
        assert (await kyc.register()).status_code == 502
    client = await kyc.client()
    assert client.kyc is KycStatus.REGISTERING
    if not is_kept:
        async with kyc.ports.storage.unit() as unit:
            unit[Client].save(msgspec.structs.replace(client, request=None))
            await unit.commit()
    heard = await on_check_notice(kyc.ports, CheckNotice(operation=former_operation_of(client)))
    assert heard is not None
    assert heard.kyc is not KycStatus.REGISTERING
    assert await kyc.begun() == 1
    again = await on_check_notice(kyc.ports, CheckNotice(operation=operation_of(client)))
    assert again is not None, "either id means the client's present check"


async def finds(house: House, operation: str) -> list[tuple[str, str]]:
    return [(hit.kind, hit.object_id) for hit in await search(house.ports, operation)]


async def test_the_console_finds_by_an_operation_of_either_form(world: World) -> None:
    """As the bank's own pages and lists show it."""
    async with world.opened() as house:
        payment, money = await paid_twice(house)
        made, transfer = await suspended_rub(world, house)
        uuid = made.id.removeprefix(ids.EXCHANGE)
        subscription = ids.prefixed(ids.SUBSCRIPTION, uuid)
        for operations, found in (
            ((return_operation(money, 1), former_operation(money.id, 1)), ("suspense", money.id)),
            ((return_operation(money, 2), former_operation(money.id, 2)), ("suspense", money.id)),
            ((rub_return_operation(transfer.id, 1), usdt_return_operation(transfer.id, 1)), ("suspense", transfer.id)),
            ((invoice_operation(made.id), made.id), ("exchange", made.id)),
            ((part_operation(made.id, 1), f"{made.id}/1"), ("exchange", made.id)),
            ((binding_operation(payment.id), former_binding(subscription, payment.id)), ("payment", payment.id)),
        ):
            assert [await finds(house, each) for each in operations] == [[found], [found]], operations
        assert await finds(house, part_operation(payment.id, 1)) == [], "it has the form of one, and is nobody's"


async def test_the_console_finds_a_client_by_a_check(kyc: KycHouse) -> None:
    await kyc.register()
    client = await kyc.client()
    for operation in (operation_of(client), former_operation_of(client)):
        assert [hit.object_id for hit in await search(kyc.ports, operation)] == [client.id]


@pytest.mark.parametrize(("prefix", "expected"), [("exch_", (200, "rub_received")), ("inv_x", (503, "awaiting_rub"))])
async def test_the_simulation_pays_an_invoice_of_an_earlier_version(
    monkeypatch: pytest.MonkeyPatch, prefix: str, expected: tuple[int, str]
) -> None:
    """Its exchange was made in test mode before the upgrade. One that the bank has under no id is a clear error."""
    async with open_exchange_house() as house:
        with monkeypatch.context() as before:
            before.setattr(opening, "invoice_operation", lambda exchange_id: exchange_id.replace("exch_", prefix))
            made = await house.bought()
            await house.run_due()
        assert (await house.exchange(made.id)).invoice_reference is not None
        answer = await house.simulate(made.id, "rub_received")
        assert (answer.status_code, await house.status(made.id)) == expected
