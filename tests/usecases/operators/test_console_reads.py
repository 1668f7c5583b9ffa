"""Pages that operators read: action items, the service's health, lists, the history of one object, and a search by
id."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Direction, Exchange, ExchangeStatus
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.ledger import Currency
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.payments.outcomes import UnknownOutcome, unknown_outcome
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.payments.proofs import DeliveryProof, ProofNetwork, ProofStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.webhooks.breaker import Breaker, new_breaker
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.browse import browse as browse_room
from cambist.core.usecases.browse import search as search_room
from cambist.core.usecases.browse.browse import Wanted, browse
from cambist.core.usecases.browse.leaves import Way
from cambist.core.usecases.browse.search import search
from cambist.core.usecases.browse.timeline import read_timeline
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.dashboard import read_dashboard
from cambist.core.usecases.payments.tallies import add_payment
from cambist.core.usecases.refunds.refunds import reject_refund
from cambist.frontends.console.kinds.kinds import Wish
from cambist.frontends.console.kinds.payments import PAYMENTS
from cambist.frontends.console.kinds.refunds import REFUNDS
from cambist.frontends.console.kinds.statements import STATEMENTS
from cambist.frontends.console.kinds.wishes import wanted
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def mismatch(refunds: RefundApp) -> str:
    made = (await refunds.app.create(mode="live")).json()["id"]
    await refunds.app.told(made, Simulation(status=InvoiceStatus.PAID, amount_kopecks=60_00))
    return str(made)


async def test_action_items_come_oldest_first(refunds: RefundApp) -> None:
    assert (await read_action_items(refunds.ports)).found == []
    first = await mismatch(refunds)
    await refunds.app.clock.advance(60)
    refund_id = await refunds.apply(await refunds.paid(mode="live"), mode="live")
    await refunds.app.clock.advance(60)
    await set_gateway(refunds.ports, "simulator-live", GatewayStatus.DOWN)
    needs = await read_action_items(refunds.ports)
    assert needs.complete
    assert [(need.kind, need.of, need.object_id) for need in needs.found] == [
        ("mismatch", "payment", first),
        ("refund", "refund", refund_id),
        ("gateway", "gateway", "simulator-live"),
    ]
    await reject_refund(refunds.ports, refund_id, "no")
    assert [need.kind for need in (await read_action_items(refunds.ports)).found] == ["mismatch", "gateway"]


async def test_each_kind_of_trouble_is_a_need(refunds: RefundApp) -> None:
    """Plant the rows that only outages create."""
    refunds.app.made_up = True
    now = refunds.app.clock.now() + timedelta(days=3)
    made = await refunds.paid(mode="live")
    payment = await refunds.payment(made)
    account_id, mode = payment.account_id, Mode.LIVE
    async with beneath(refunds.ports).unit() as unit:
        late = {"created_at": now - timedelta(hours=7), "status": PaymentStatus.PENDING, "opening": Opening.UNKNOWN}
        fields = {name: getattr(payment, name) for name in payment.__struct_fields__} | late
        unit[UnknownOutcome].add(
            unknown_outcome(add_payment(unit, Payment(**{**fields, "id": f"{made[:-1]}0", "version": 0})))
        )
        unit[Suspense].add(
            Suspense(
                id="sus_1", account_id=account_id, mode=mode, payment_id=made, amount=Rub(1), reason="late",
                received_at=now,
            )
        )  # fmt: skip
        unit[Withdrawal].add(
            Withdrawal(
                id="wd_1", account_id=account_id, mode=mode, status=WithdrawalStatus.FAILED, amount=Usdt(1), wallet="T",
                sender="s", network="tron", created_at=now,
            )
        )  # fmt: skip
        unit[DeliveryProof].add(
            DeliveryProof(
                id=made, network=ProofNetwork.TRC20, tx_hash="ab" * 32, status=ProofStatus.IN_REVIEW,
                status_at=now - timedelta(days=2), submitted_at=now,
            )
        )  # fmt: skip
        breaker = new_breaker(account_id, mode)
        fields = {name: getattr(breaker, name) for name in breaker.__struct_fields__}
        unit[Breaker].add(Breaker(**{**fields, "opened_at": now, "next_probe_at": now, "failures": 10}))
        await unit.commit()
    await refunds.app.clock.advance_to(now)
    found = await read_action_items(refunds.ports)
    assert sorted(need.kind for need in found.found) == ["breaker", "payout", "proof", "suspense", "unknown"]


async def test_hashes_of_exchanges_are_found(refunds: RefundApp) -> None:
    """Hashes of payouts, of deposits, and of returns."""
    refunds.app.made_up = True
    now = refunds.app.clock.now()
    paid, came, went = "a" * 64, "0x" + "b" * 64, "c" * 64
    account_id, mode = refunds.app.account.account_id, Mode.LIVE
    async with refunds.ports.storage.unit() as unit:
        unit[Exchange].add(
            Exchange(
                id="exch_1", account_id=account_id, mode=mode, direction=Direction.RUB_TO_USDT,
                status=ExchangeStatus.COMPLETED, created_at=now, expires_at=now, tx_hash=paid, amount_usdt=Usdt(1),
                amount_rub=Rub(1), rate="90.00", base_rate="90", markup_percent="0", client_phone=b"", phone_digest=b"",
                active_slot=None,
            )
        )  # fmt: skip
        unit[ExchangeTransfer].add(
            ExchangeTransfer(
                id="exch_2:x:0", exchange_id="exch_2", account_id=account_id, mode=mode, currency=Currency.USDT,
                amount=1, received_at=now, came_by=came, went_by=went,
            )
        )  # fmt: skip
        await unit.commit()
    for tx_hash, kind, object_id in (
        (paid, "exchange", "exch_1"),
        (came, "suspense", "exch_2:x:0"),
        (went.upper(), "suspense", "exch_2:x:0"),
    ):
        assert [(hit.kind, hit.object_id) for hit in await search(refunds.ports, tx_hash)] == [(kind, object_id)]
    assert await search(refunds.ports, "d" * 64) == []


async def test_the_pulse_counts_by_tallies_and_what_is_new(refunds: RefundApp) -> None:
    first = await read_dashboard(refunds.ports)
    for _ in range(3):
        await refunds.paid("1000.00", mode="live")
    await refunds.app.create(mode="live")
    second = await read_dashboard(refunds.ports, first)
    assert (second.today, second.paid_today, str(second.taken_today)) == (4, 3, "3000.00")
    assert second.days[-1] == 4
    live = second.due[0]
    # Paid after 00:00 UTC of the day of the next run: it is for the one after.
    assert (live.mode, str(live.pending), str(live.expected)) == (Mode.LIVE, "3000.00", "0.00")
    await refunds.app.clock.advance(86_400)
    third = await read_dashboard(refunds.ports, second)
    assert str(third.due[0].expected) == "3000.00"
    await refunds.paid(mode="live")
    await refunds.paid(mode="live")
    assert (await read_dashboard(refunds.ports, third)).payments_since == 2


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("status", [None, "paid", "pending"])
@pytest.mark.parametrize("mode", [None, Mode.LIVE])
async def test_pages_join_without_a_gap_or_a_double(
    shared: RefundApp, newest_first: bool, status: str | None, mode: Mode | None
) -> None:
    """Also among payments of one moment, and whether or not an account is named."""
    for account_id in (None, shared.app.account.account_id):
        wanted = Wanted(account_id=account_id, mode=mode, newest_first=newest_first)
        named: dict[str, Any] = {} if status is None else {"status": PaymentStatus(status)}
        seen: list[Payment] = []
        while page := await browse(shared.ports, Payment, wanted, seen[-1] if seen else None, 3, **named):
            seen += page
        async with shared.ports.storage.unit() as unit:
            everything = await unit[Payment].find(order="-id" if newest_first else "id")
        expected = [each for each in everything if status in (None, each.status) and mode in (None, each.mode)]
        assert [each.id for each in seen] == [each.id for each in expected]
        assert len(expected) >= 2


@pytest.fixture
async def spread() -> AsyncIterator[RefundApp]:
    """Payments of both modes, two a day."""
    async with open_refund_app() as opened:
        for day in range(4):
            mode = "live" if day % 2 else "test"
            await opened.paid(
                "100.00" if day < 2 else "200.00", mode=mode, **({"external_id": "order-7"} if day < 2 else {})
            )
            await opened.app.create(mode=mode)
            await opened.app.clock.advance(86_400)
        yield opened


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("status", [None, "paid"])
@pytest.mark.parametrize("external_id", [None, "order-7"])
async def test_dates_and_orders_are_asked_for_over_one_account_and_all(
    spread: RefundApp, newest_first: bool, status: str | None, external_id: str | None
) -> None:
    """From is included and to is not; pages join at the ends, too; so does what no index has."""
    async with spread.ports.storage.unit() as unit:
        everything = await unit[Payment].find(order="created_at")
    moments = sorted({each.created_at for each in everything})
    assert len(moments) > 3
    spans = ((None, None), (moments[1], None), (None, moments[-1]), (moments[1], moments[-1]), (moments[2], moments[2]))
    for account_id in (None, spread.app.account.account_id):
        for since, until in spans:
            wish = Wish(
                filters={
                    "account": account_id or "",
                    "status": status or "",
                    "order": external_id or "",
                    "from": "" if since is None else since.isoformat(),
                    "to": "" if until is None else until.isoformat(),
                },
                order="newest" if newest_first else "oldest",
            )
            expected = [
                each
                for each in everything
                if (since is None or each.created_at >= since)
                and (until is None or each.created_at < until)
                and status in (None, each.status)
                and external_id in (None, each.external_id)
            ]
            expected.sort(key=lambda each: (each.created_at, each.id), reverse=newest_first)
            for walked in ({}, {"amount": "100.00"}):
                asked = msgspec.structs.replace(wish, filters={**wish.filters, **walked})
                fitting = [each for each in expected if not walked or each.amount == Rub(100_00)]
                assert await leafed(spread, asked) == [each.id for each in fitting], asked


async def leafed(spread: RefundApp, wish: Wish) -> list[str]:
    """Return all pages of two of the console's list of payments."""
    seen: list[Payment] = []
    while page := await PAYMENTS.read(spread.ports, wish, seen[-1] if seen else None, 2):
        seen += page
    return [each.id for each in seen]


async def test_unindexed_page_survives_records_that_move_while_it_is_read(
    spread: RefundApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two reads of a page payments may go from one status to another, and none of those counted be left."""
    monkeypatch.setattr(browse_room, "LOOKED_AT", 8)

    async def none_left(_: Any, **__: Any) -> int:
        return 0

    async with spread.ports.storage.unit() as unit:
        monkeypatch.setattr(type(unit[Payment]), "total", none_left)
        ways = [Way(Payment, {"status": each}) for each in PaymentStatus]
        reach, _ = await browse_room._reach(unit, ways, None, newest_first=True)
        assert await unit[Payment].find(created_at=reach)


async def test_unindexed_search_scans_a_bounded_number_of_records(
    spread: RefundApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse_room, "_WALK", 2)
    looked = partial(browse_room.sifted, most=2, by="id", newest_first=True)
    async with spread.ports.storage.unit() as unit:
        ways = [Way(Payment, {})]
        newest = [each.id for each in await unit[Payment].find(order="-id")]
        found = await looked(unit, ways, None, 9, lambda each: each.id == newest[2])
        assert (found, found.looked_at) == ([], 2)
        found = await looked(unit, ways, found.onward, 9, lambda each: each.id == newest[2])
        assert [each.id for each in found] == [newest[2]]
        found = await looked(unit, ways, None, 9, lambda each: each.id == newest[1])
        assert [each.id for each in found] == [newest[1]]


@pytest.mark.parametrize("order", PAYMENTS.orders)
@pytest.mark.parametrize("status", ["", "paid"])
async def test_amount_search_scans_about_the_bound_whatever_the_other_filters(
    spread: RefundApp, monkeypatch: pytest.MonkeyPatch, order: str, status: str
) -> None:
    """For any number of statuses, however unevenly they are distributed over the payments."""
    most = 2
    monkeypatch.setattr(browse_room, "LOOKED_AT", most)
    async with spread.ports.storage.unit() as unit:
        sign = "-" if order == "newest" else ""
        everything = [
            each for each in await unit[Payment].find(order=f"{sign}created_at") if status in ("", each.status)
        ]
    amounts = {each.amount for each in everything}
    assert len(amounts) > 1
    for amount in amounts:
        found = await PAYMENTS.read(
            spread.ports, Wish(filters={"amount": str(amount), "status": status}, order=order), None, 100
        )
        expected = [
            [each.id for each in everything[:seen] if each.amount == amount] for seen in range(most // 2, 2 * most + 1)
        ]
        assert [each.id for each in found] in expected, amount


@table(
    ("name", "text", "moment"),
    [
        ("from", "2026-11-21", "2026-11-21T00:00:00+00:00"),
        ("from", "2026-11-21 09:30", "2026-11-21T09:30:00+00:00"),
        ("from", "2026-11-21 09:30+03:00", "2026-11-21T06:30:00+00:00"),
        ("to", "2026-11-21", "2026-11-22T00:00:00+00:00"),
        ("to", "2026-11-21 09:30", "2026-11-21T09:30:00+00:00"),
        ("to", "9999-12-31", None),
        ("from", "yesterday", None),
        ("from", "0001-01-01 00:00+14:00", None),
    ],
)
def test_last_day_is_included_and_an_unreadable_moment_is_refused(name: str, text: str, moment: str | None) -> None:
    wish = Wish(filters={name: text})
    if moment is None:
        with pytest.raises(Refusal) as refused:
            wanted(wish)
        assert refused.value.code == "VALIDATION_ERROR"
    else:
        asked = wanted(wish)
        assert (asked.since if name == "from" else asked.until) == datetime.fromisoformat(moment)


@pytest.fixture
async def shared() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        for number in range(4):
            mode = "live" if number % 2 else "test"
            await opened.paid(mode=mode)
            await opened.app.create(mode=mode)
            if number == 1:
                await opened.app.clock.advance(1)
        yield opened


async def test_refunds_are_leafed_through_by_status_over_all_accounts(refunds: RefundApp) -> None:
    made = []
    for _ in range(3):
        made.append(await refunds.apply(await refunds.paid(mode="live"), mode="live"))
        await refunds.app.clock.advance(1)  # ids of live mode say nothing of time
    seen: list[Refund] = []
    while page := await browse(refunds.ports, Refund, Wanted(), seen[-1] if seen else None, 2, status="pending"):
        seen += page
    assert [each.id for each in seen] == made[::-1]


async def test_lists_of_live_mode_are_in_the_order_of_time_whatever_the_ids(refunds: RefundApp) -> None:
    """Ids of refunds, payouts, exchanges and charges follow from their causes, not from time."""
    payment_id = await refunds.paid(mode="live")
    made = []
    for _ in range(6):
        made.append(await refunds.apply(payment_id, "10.00", mode="live"))
        await refunds.app.clock.advance(1)
    assert made != sorted(made)
    for order, expected in (("newest", made[::-1]), ("oldest", made)):
        found = await REFUNDS.read(refunds.ports, Wish(order=order), None, 4)
        found += await REFUNDS.read(refunds.ports, Wish(order=order), found[-1], 4)
        assert [each.id for each in found] == expected
    await refunds.paid()
    await refunds.settled("500.00")
    async with refunds.ports.storage.unit() as unit:
        [statement] = await unit[Settlement].find(mode=Mode.TEST)
        later = statement.started_at + timedelta(days=1)
        last = msgspec.structs.replace(statement, id="stl_0", batch_id="another", started_at=later)
        unit[Settlement].add(last)
        await unit.commit()
    assert [each.id for each in await STATEMENTS.read(refunds.ports, Wish(), None, 9)] == ["stl_0", statement.id]
    async with refunds.ports.storage.unit() as unit:
        unit[Settlement].remove(last)  # it has no books
        await unit.commit()


async def test_timeline_shows_everything_in_order(refunds: RefundApp) -> None:
    payment_id = await refunds.paid(mode="live")
    refund_id = await refunds.apply(payment_id, mode="live")
    await refunds.app.clock.advance(5)
    action = OperatorAction(operator="olga", name="refund.reject", object_id=refund_id, reason="fraud")
    await reject_refund(acting(refunds.ports, action), refund_id, "no")
    moments = await read_timeline(refunds.ports, await refunds.payment(payment_id))
    assert {moment.source for moment in moments} >= {"object", "provider", "event", "ledger"}
    assert [moment.at for moment in moments] == sorted(moment.at for moment in moments)
    assert any(moment.text == "payment: pending → paid" for moment in moments)
    assert any(moment.detail == "bank -100.00 RUB, pending 100.00 RUB" for moment in moments)
    told = await read_timeline(refunds.ports, await refunds.refund(refund_id))
    assert [moment.text for moment in told if moment.source == "operator"] == ["olga: refund.reject"]
    assert "fraud" in next(moment.detail for moment in told if moment.source == "operator")


async def test_last_digits_are_searched_in_the_newest_payments(
    refunds: RefundApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = await refunds.paid(mode="live", client_phone="+79005551234")
    await refunds.app.clock.advance(1)
    await refunds.app.create()
    for newest, found in ((1, []), (2, [called]), (3, [called])):
        monkeypatch.setattr(search_room, "LOOKED_AT", newest)
        for text in ("1234", "+79005551234"):
            assert [each.object_id for each in await search(refunds.ports, text)] == found, newest


async def test_search_finds_by_whatever_is_known(refunds: RefundApp) -> None:
    payment_id = await refunds.paid(mode="live", external_id="order-7", client_phone="+79005551234")
    refund_id = await refunds.apply(payment_id, mode="live", external_id="back-7")
    for text, found in (
        (payment_id, [payment_id]),
        (f"  {refund_id} ", [refund_id]),
        ("order-7", [payment_id]),
        ("back-7", [refund_id]),
        ("1234", [payment_id]),
        ("***1234", [payment_id]),
        (refunds.app.account.account_id, [refunds.app.account.account_id]),
        (refunds.app.account.live.api_key, [refunds.app.account.live.api_key]),
        ("ab" * 32, []),
        ("nothing", []),
        ("", []),
        ("a\0b", []),
    ):
        assert [hit.object_id for hit in await search(refunds.ports, text)] == found, text
