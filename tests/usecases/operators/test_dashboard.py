"""The dashboard: the state of the service, and changes since it was read before (docs/console.md)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.webhooks.events import Attempt
from cambist.core.usecases.operators.dashboard import DAYS, WEBHOOKS_OF, about_usdt, read_dashboard
from tests.event_factory import happen
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table
from tests.usecases.operators.test_reencrypt import blank

DAY = 86_400


@pytest.fixture
async def app() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def test_everything_is_zero_before_the_first_payment(app: RefundApp) -> None:
    first = await read_dashboard(app.ports)
    for look in (first, await read_dashboard(app.ports, first)):
        assert (look.by_status, look.taken_today, look.days) == ({}, Rub(0), [0] * DAYS)
        assert (look.payments_since, look.events_since, look.delivered_since, look.refused_since) == (0, 0, 0, 0)
        assert [(each.pending, each.expected, each.about_usdt) for each in look.due] == [(Rub(0), Rub(0), None)] * 2
    await app.app.created()
    assert (await read_dashboard(app.ports, first)).payments_since == 1


async def test_payments_are_counted_by_days_the_last_one_today(app: RefundApp) -> None:
    for count in (1, 0, 3, 2):
        for _ in range(count):
            await app.paid()
        look = await read_dashboard(app.ports)
        await app.app.clock.advance(DAY)
    assert look.days == [*[0] * (DAYS - 4), 1, 0, 3, 2]
    assert look.taken_today == Rub(200_00)
    await app.app.clock.advance((DAYS - 4) * DAY)
    assert (await read_dashboard(app.ports)).days == [0, 3, 2, *[0] * (DAYS - 3)]


async def test_past_days_are_read_once_a_day(app: RefundApp) -> None:
    """A second reading on the same day costs the tallies of one day, whatever the number of merchants."""
    await app.paid()
    first = replace(await read_dashboard(app.ports), days=[7] * DAYS)
    await app.paid()
    second = await read_dashboard(app.ports, first)
    assert second.days == [*[7] * (DAYS - 1), 2]
    await app.app.clock.advance(DAY)
    assert (await read_dashboard(app.ports, second)).days == [*[0] * (DAYS - 2), 2, 0]


async def test_the_next_settlement_takes_what_was_paid_before_its_cutoff(app: RefundApp) -> None:
    """Payments paid on the day of the run are left for the next settlement."""
    await app.settled()
    await app.paid("925.00")
    await app.app.clock.advance(2 * DAY)
    await app.paid("70.00")
    [due] = [each for each in (await read_dashboard(app.ports)).due if each.mode is Mode.TEST]
    assert (due.pending, due.expected, due.about_usdt) == (Rub(995_00), Rub(925_00), Decimal("10.00"))


@table(("kopecks", "rate", "usdt"), [(9250_00, "92.50", "100.00"), (1, "0.01", "1.00"), (1, "2", "0.00")])
def test_about_how_many_usdt_rub_come_to(kopecks: int, rate: str, usdt: str) -> None:
    assert str(about_usdt(Rub(kopecks), rate)) == usdt


async def test_new_payments_and_events_are_counted_from_poll_to_poll(app: RefundApp) -> None:
    await app.app.created()
    await happen(app.ports, app.app.account.account_id)
    first = await read_dashboard(app.ports)
    assert (first.payments_since, first.events_since) == (0, 0)
    look = first
    for count in (1, 3, 0):
        for _ in range(count):
            await app.app.created()
        await happen(app.ports, app.app.account.account_id, 2 * count)
        look = await read_dashboard(app.ports, look)
        assert (look.payments_since, look.events_since) == (count, 2 * count)
    app.app.made_up = True


async def test_webhooks_are_counted_by_whether_receivers_took_them(app: RefundApp) -> None:
    app.app.made_up = True
    [event] = await happen(app.ports, app.app.account.account_id)
    look = await read_dashboard(app.ports)
    await happen(app.ports, app.app.account.account_id)
    look = await read_dashboard(app.ports, look)
    now = app.app.clock.now()
    answers = (199, 200, 299, 300, 500, None)
    async with app.ports.storage.unit() as unit:
        for number, status in enumerate(answers):
            unit[Attempt].add(blank(Attempt, f"{event}:{number}", status=status, sent_at=now))
        unit[Attempt].add(blank(Attempt, f"{event}:9", status=200, sent_at=now - timedelta(microseconds=1)))
        await unit.commit()
    await app.app.clock.advance(1)
    second = await read_dashboard(app.ports, look)
    assert (second.delivered_since, second.refused_since) == (2, 4)
    third = await read_dashboard(app.ports, second)
    assert (third.delivered_since, third.refused_since) == (0, 0)


async def test_newest_event_is_kept_for_a_fixed_number_of_polls(app: RefundApp) -> None:
    look = await read_dashboard(app.ports)
    for _ in range(WEBHOOKS_OF):
        look = await read_dashboard(app.ports, look)
    assert look.marks == ("",) * WEBHOOKS_OF
    [event] = await happen(app.ports, app.app.account.account_id)
    look = await read_dashboard(app.ports, look)
    assert look.marks == (*("",) * (WEBHOOKS_OF - 1), event)
    app.app.made_up = True
