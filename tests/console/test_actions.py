"""Every operator action through its screen, on the smallest terminal, and some on a wide one: the state before and
after, a reason, the outcome, the audit row, and a second operator who is too late."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from textual.widgets import Button

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.operators.pending_actions import PendingAction
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.usecases.actions.audit import list_audit
from cambist.core.usecases.browse.search import kind_of_id
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.settlement.withdrawals import pay_out_now
from cambist.frontends.console.action_dialog import ActionDialog
from cambist.frontends.console.catalogue import KINDS, kind_of
from cambist.frontends.console.context import ConsoleContext
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.kinds.kinds import ConsoleAction
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import FourEyes
from tests.console.kit import SIZES, Sitting, mismatch, sitting
from tests.console.seeds import OTHER, PHONE, TRON, everything_there_is
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.providers_kit import inside
from tests.refund_app import RefundApp

CHANGED = "Not done. INVALID_STATE: The object was changed meanwhile"
REFUSED = "Not done. INVALID_STAT"
"""The use case itself refuses and reports the present state."""


class Row(msgspec.Struct, frozen=True):
    """One act."""

    of: str
    key: str
    shows: tuple[str, ...]
    """Texts of the confirmation: the state before, and after."""
    says: str
    on: str = ""
    """Name of the object in `everything_there_is`; empty: the list."""
    late: str | None = CHANGED
    """Message to a second operator; None: a colleague cannot make the action impossible."""
    given: dict[str, str] = {}
    before: Callable[[RefundApp], Awaitable[Any]] | None = None
    """Preparation; an id that it returns is the object's."""
    meanwhile: Callable[[RefundApp], Awaitable[Any]] | None = None
    """Work of the service before the second operator confirms."""


async def money(refunds: RefundApp) -> None:
    """Create money for a payout, without a payout that takes it."""
    await refunds.set(payout_wallet="")
    await refunds.settled("700.00")
    await refunds.set(payout_wallet=TRON)


async def bill(refunds: RefundApp) -> None:
    """Something to be settled."""
    await refunds.paid("300.00")
    await refunds.app.clock.advance(1)


async def told(refunds: RefundApp) -> None:
    """Deliver all webhooks."""
    await refunds.app.work()


async def silent(refunds: RefundApp) -> None:
    """A receiver that does not answer, and something that waits for it."""
    await refunds.paid()
    later = refunds.app.clock.now() + timedelta(hours=1)
    async with refunds.ports.storage.unit() as unit:
        for each in await unit[Breaker].find():
            unit[Breaker].save(msgspec.structs.replace(each, failures=10, opened_at=later, next_probe_at=later))
        await unit.commit()


LOST = Twist(ending=Ending.UNKNOWN_NOT_DONE)


async def forget(refunds: RefundApp) -> None:
    """Let the bank forget the last operation, whose answer was lost."""
    bank = inside(refunds.bank())
    bank._capabilities = msgspec.structs.replace(bank.capabilities, repeat_window=timedelta(minutes=1))
    await refunds.app.clock.advance(120)


async def forgotten_refund(refunds: RefundApp) -> str:
    await refunds.app.work()
    refunds.app.script.refund.append(LOST)
    refund_id = await refunds.apply(await refunds.paid())
    await refunds.app.work(2)
    await forget(refunds)
    return refund_id


async def forgotten_return(refunds: RefundApp) -> str:
    payment = await refunds.paid()
    await refunds.app.told(payment, Simulation(status=InvoiceStatus.PAID, amount_kopecks=50_00, again=True))
    money = next(each for each in await list_suspense(refunds.ports) if each.payment_id == payment)
    await refunds.app.work()
    refunds.app.script.refund.append(LOST)
    await return_suspense(refunds.ports, money.id)
    await refunds.app.work()
    await forget(refunds)
    return money.id


async def forgotten_payout(refunds: RefundApp) -> str:
    exchanges = ExchangeApp(refunds.app)
    made = await exchanges.made(phone="+70000000005")
    await exchanges.send(made.id)
    refunds.app.script.remit.append(LOST)
    await exchanges.look(made.id)
    await forget(refunds)
    return made.id


ROWS = (
    Row("payment", "a", ("amount_mismatch", "60.00 RUB of 100.00 RUB", "order-7", "waits for settlement"),
        "60.00 RUB are credited", "payment", late=REFUSED),
    Row("payment", "b", ("back to the payer", "60.00 RUB of", "as before"), "is sent back", "payment.sent",
        late=REFUSED),
    Row("payment", "c", ("a correction of the same items",), "the cash register gets it", "payment.receipted",
        late=None, given={"kind": "sale_correction", "order": "4711"}),
    Row("receipt", "t", ("attempt", "2"), "gets it again", "receipt", late=None),
    Row("receipt", "h", ("needs an operator", "no"), "needs nobody", "receipt.second", late=REFUSED),
    Row("refund", "a", ("pending", "processing", "of the payment", "RUB stay"), "Approved", "refund"),
    Row("refund", "j", ("pending", "rejected"), "Rejected: no money moves", "refund.second", late=REFUSED),
    Row("refund", "v", ("completed", "reversed"), "Reversed", "refund.done", late=REFUSED),
    Row("refund", "s", ("it failed, but was", "no"), "Noted", "refund.contradicted", late=REFUSED),
    Row("withdrawal", "c", ("pending", "does not go to", "cancelled"), "Called off", "withdrawal", late=REFUSED),
    Row("withdrawal", "n", ("merchant ", "0, in a new payout"), "USDT. wd_", late="nothing to pay out",
        given={"account": "", "mode": "test"}),
    Row("withdrawal", "a", ("stays cancelled", "goes to", " USDT → 0.0"), "USDT. wd_", "withdrawal.cancelled",
        late="nothing to pay out", before=money),
    Row("withdrawal", "t", ("as signer and network say", "never signed twice"), "is ", "withdrawal.newest",
        late=None),
    Row("account", "u", ("goes to", TRON, " USDT → 0.0"), "USDT. wd_", "account", late="nothing to pay out",
        given={"mode": "test"}, before=money),
    Row("batch", "s", ("1 payment of 1 merchant, 300.00 RUB", "settled, at one market rate"),
        "1 payment, 300.00 RUB", late=None, given={"mode": "test", "what": "all paid by now"}, before=bill),
    Row("exchange", "c", ("awaiting_usdt", "cancelled"), "may begin another", "exchange.open", late=REFUSED),
    Row("exchange", "t", ("merchant ", "7.00000000 USDT → 0.00000000 USDT"), "7.00000000 USDT go back",
        "exchange", late=REFUSED, given={"address": TRON}),
    Row("exchange", "n", ("awaits RUB by SBP", "of this moment"), "awaiting_rub: 1,000.00 RUB", late="Not done. ",
        given={"account": "", "mode": "test", "amount": "1000.00", "phone": PHONE, "address": TRON}),
    Row("client", "b", ("verified", "blocked"), "Blocked: no exchange", "client", late="Nothing was done: it is so"),
    Row("client", "e", ("yes", "no"), "verified as before", "client", late="Nothing was done: it is so"),
    Row("receiver", "s", ("1 webhook", "none"), "Sent again: 1", "receiver", late="Nothing is given up there",
        meanwhile=told),
    Row("receiver", "a", ("next probe", "now, with the oldest"), "It is asked now", "receiver", late=None,
        before=silent),
    Row("event", "s", ("delivered", "pending, at once"), "It is sent again", "event", before=told),
    Row("suspense", "t", ("30.00 RUB → 0.00 RUB", "on its way back"), "30.00 RUB go back", "suspense"),
    Row("difference", "s", ("open", "settled by an operator"), "No money was moved", "difference", late=REFUSED),
    Row("gateway", "s", ("operational", "degraded"), "It is degraded", "gateway",
        given={"status": "degraded", "why": "maintenance"}),
    Row("account", "n", ("takes payments at once", "shown once"), "shown this once", late=None,
        given={"name": "Bakery"}),
    Row("account", "j", ("acceptance", "true", "false"), "acceptance is false now", "account",
        given={"name": "acceptance", "value": "false"}),
    Row("account", "c", ("set", "a new one, shown once"), "shown this once", "account", given={"how": "make one"}),
    Row("shop", "c", ("Corner", "Cafe"), "It is named Cafe", "shop", given={"name": "Cafe"}),
    Row("shop", "k", ("0.02", "0.04"), "Its markup is 0.04", "shop", given={"markup": "0.04"}),
    Row("shop", "t", ("return_url", "https://x.example/"), "https://x.example/", "shop",
        given={"url": "https://x.example/"}),
    Row("shop", "d", ("yes", "no new payments"), "Disabled", "shop"),
    Row("shop", "e", ("no", "yes"), "Enabled", "shop"),
    Row("terminal", "d", ("yes", "no new payments"), "Disabled", "terminal"),
    Row("terminal", "e", ("no", "yes"), "Enabled", "terminal"),
    Row("key", "i", ("rights", "all", "refunds"), "Every process goes by it", "key.named", given={"rights": "refunds"}),
    Row("key", "e", ("this pair", "ends after 1 hour"), "It ends at", "key.named", given={"overlap": "after 1 hour"}),
    Row("key", "t", ("in force", "ends after 1 hour"), "copy it now", "key", given={"overlap": "after 1 hour"}),
    Row("ledger", "v", ("as they are", "computed anew"), "The books hold: ", late=None),
    Row("entry", "v", ("as they are", "computed anew"), "The books hold: ", late=None),
    Row("action", "c", ("asked by", "vera", OTHER), "Done: account.set, as vera asked", "action", late=REFUSED),
    Row("action", "j", ("waiting", "withdrawn"), "It is rejected", "action.second", late=REFUSED),
    Row("payment", "p", ("masked", "your name and reason are kept"), "none", "payment", late=None),
    Row("client", "p", ("masked", "your name and reason are kept"), "+79005557788", "client", late=None),
    Row("exchange", "p", ("masked", "your name and reason are kept"), "+7000000000", "exchange", late=None),
    Row("event", "p", ("masked", "your name and reason are kept"), '"client_phone": "+7', "event", late=None),
    Row("refund", "e", ("knows nothing of it", "is asked once more first", "never goes", "100.00 RUB"),
        "never goes: the money is where it was", "refund.forgotten", given={"outcome": "failed"},
        before=forgotten_refund, late=REFUSED),
    Row("exchange", "e", ("knows nothing of it", "RUB", "it went"), "it went: the money is where it was sent",
        "exchange.forgotten", given={"outcome": "done"}, before=forgotten_payout, late=REFUSED),
    Row("suspense", "e", ("knows nothing of it", "50.00 RUB", "it went"), "it went: the money is where it was sent",
        "suspense.forgotten", given={"outcome": "done"}, before=forgotten_return, late=REFUSED),
    # The last row, because its object is deleted.
    Row("client", "d", ("taken away", "gone"), "Forgotten.", "client", late="There is no client of this id"),
)  # fmt: skip
ADDED = (
    Row("account", "h", ("shop", "a new one, enabled"), "is there", "account", late="of this name already",
        given={"name": "Kiosk", "markup": "0.02"}),
    Row("account", "i", ("terminal", "it never changes"), "is there", "account", late=None, given={"label": "Phone"}),
)  # fmt: skip
"""An account's detail, whose list has the letter `n`, too."""
PARTS = [(SIZES[0], (*ROWS, *ADDED)[first : first + 12]) for first in range(0, len(ROWS) + len(ADDED), 12)]
"""Each at an app of its own, so that no test takes long; rows of one part come after one another."""
WIDE = [(SIZES[1], tuple(row for row in ROWS if row.of == "exchange" and row.before is None))]
"""All kinds have one dialog, and what fits on the smallest terminal is not cut on a wide one."""


def test_each_action_has_a_row() -> None:
    actions = [
        (kind.name, bool(each in kind.actions), each.key)
        for kind in KINDS
        for each in (*kind.actions, *kind.list_actions)
    ]
    rows = [(row.of, bool(row.on), row.key) for row in (*ROWS, *ADDED) if row.key != "p"]
    assert sorted(rows) == sorted(actions)
    assert {row.of for row in ROWS if row.key == "p"} == {kind.name for kind in KINDS if kind.private is not None}


@pytest.mark.parametrize(("size", "rows"), [*PARTS, *WIDE])
async def test_every_action_confirms_is_audited_and_refuses_a_late_operator(
    size: tuple[int, int], rows: tuple[Row, ...]
) -> None:
    there: dict[str, str] = {}

    async def seed(refunds: RefundApp) -> None:
        there.update(await everything_there_is(refunds))

    async with sitting(size, seed, receipts="simulator") as shared:
        for row in rows:
            await begin(shared, row, there)
            action, seen = shared.front()._action, shared.front()._record
            given = {name: value or there["account"] for name, value in row.given.items()}
            await done(shared, row, action, given)
            # The second operator sees the same dialog. test_console.py shows it at both sizes.
            if row.late is not None and size == SIZES[0]:
                await too_late(shared, row, action, seen, given)
            await shared.press("0")


async def begin(shared: Sitting, row: Row, there: dict[str, str]) -> None:
    """To the confirmation, by the keys."""
    if row.before is not None:
        made = await row.before(shared.refunds)
        if isinstance(made, str):
            there[row.on] = made
    if row.on == "withdrawal.newest":
        there[row.on] = await fresh_payout(shared)
    kind = kind_of(row.of)
    assert kind is not None
    if row.on:
        await shared.open(row.of, there[row.on])
    else:
        await shared.press(kind.key)
    bar = shared.shown().splitlines()
    if row.key != "p":
        assert any(f"[{row.key}]" in line for line in bar[:3]), "the action is offered above, for the mouse"
    await shared.pilot.press(row.key)
    await shared.pilot.pause()
    assert isinstance(shared.front(), ActionDialog), row


async def fresh_payout(shared: Sitting) -> str:
    await money(shared.refunds)
    return (await pay_out_now(shared.ports, shared.refunds.app.account.account_id, Mode.TEST)).id


async def done(shared: Sitting, row: Row, action: ConsoleAction, given: dict[str, str]) -> None:
    before = await everything(shared.ports, AuditEntry)
    reason = f"because of {row.of}" if action.reason_needed else ""
    if action.reason_needed and row is ROWS[0]:  # all actions have one dialog
        shared.fill("", given)
        await shared.press("ctrl+s")
        assert "Still needed: Reason" in shared.shown()
        assert await everything(shared.ports, AuditEntry) == before
    shared.fill(reason, given)
    await shared.settle()
    asked = shared.shown()
    for words in (action.title, "→", f"{action.title} ^s", *row.shows):
        assert words in asked, (row, asked)
    assert row.says in await shared.confirm(reason, given), row
    [newest] = await list_audit(shared.ports, limit=1)
    assert (newest.operator, newest.action, newest.reason) == ("olga", action.name, reason)
    record = shared.front()._record
    # A confirmation reports the executed action, not the waiting one.
    assert record is None or newest.object_id in (record.id, getattr(record, "object_id", None))
    if row.key == "n":
        assert kind_of_id(newest.object_id or "") == row.of or record is not None
    assert len(await everything(shared.ports, AuditEntry)) > len(before)
    copy = shared.front().query("#secrets Button")
    if copy:
        copy.last(Button).press()
        await shared.settle()
        assert shared.app.clipboard in shared.shown().replace("\n", "")
        assert not any(shared.app.clipboard in msgspec.json.encode(each).decode() for each in [newest])
    await shared.press("escape")
    if action.name == "client.forget":
        assert "There is no such object (any more)." in shared.shown()
        assert "masked; p shows it" not in shared.shown()
    elif isinstance(shared.front(), DetailScreen):
        assert f"olga: {action.name}" in [moment.text for moment in shared.front().moments]


async def too_late(shared: Sitting, row: Row, action: ConsoleAction, seen: Any, given: dict[str, str]) -> None:
    """A colleague, whose console still shows what the first one saw."""
    if row.meanwhile is not None:
        await row.meanwhile(shared.refunds)
    before = await everything(shared.ports, AuditEntry)
    shared.app.push_screen(ActionDialog(ConsoleContext(ports=shared.ports, operator="ivan"), action, seen))
    await shared.settle()
    said = await shared.confirm("so do I", given)
    assert row.late is not None
    assert row.late in said, (row, said)
    assert await everything(shared.ports, AuditEntry) == before
    await shared.press("escape")
    assert not row.on or isinstance(shared.front(), DetailScreen)


@pytest.mark.parametrize("size", SIZES)
async def test_the_dialog_says_that_an_action_waits_before_and_after(size: tuple[int, int]) -> None:
    async def seed(refunds: RefundApp) -> None:
        await refunds.paid()

    async with sitting(size, seed, receipts="simulator") as shared:
        account_id = shared.refunds.app.account.account_id
        strict = msgspec.structs.replace(shared.ports, four_eyes=FourEyes(actions=frozenset(["payout_wallet"])))
        screen = await shared.open("account", account_id)
        action = next(each for each in screen.actions() if each.title == "Adjust a setting")
        shared.app.push_screen(ActionDialog(ConsoleContext(ports=strict, operator="olga"), action, screen.record))
        await shared.settle()
        assert "takes effect" not in shared.shown(), "another setting needs one operator"
        given = {"name": "payout_wallet", "value": OTHER}
        shared.fill("by mail", given)
        await shared.pilot.pause()
        assert "once another operator confirms it" in " ".join(shared.shown().split())
        said = await shared.confirm("by mail", given)
        assert "Not done yet: it waits until" in said
        [waiting] = await everything(shared.ports, PendingAction)
        assert waiting.arguments == {"payout_wallet": OTHER}


@pytest.mark.parametrize("size", SIZES)
async def test_refund_dialog_shows_amount_owner_and_remainder(
    size: tuple[int, int],
) -> None:
    async with sitting(size) as shared:
        refunds = shared.refunds
        refund_id = await refunds.apply(await refunds.paid("490.00", mode="live", external_id="order-9"), mode="live")
        await shared.open("refund", refund_id)
        await shared.press("a")
        asked = " ".join(shared.shown().replace("│", " ").split())
        for words in ("490.00 RUB", "order order-9", "0.00 RUB stay", "490.00 RUB → 0.00 RUB", "· live"):
            assert words in asked, (words, asked)


@pytest.mark.parametrize("size", SIZES)
async def test_settlement_dialog_shows_merchants_sum_and_rate_of_each_mode(
    size: tuple[int, int],
) -> None:
    async with sitting(size) as shared:
        await shared.refunds.paid("300.00")
        await shared.refunds.app.clock.advance(1)
        await shared.press("4")
        await shared.press("s")
        assert "0 payments of 0 merchants, 0.00 RUB" in shared.shown(), "it was paid today, after the last cutoff"
        shared.fill("", {"mode": "both", "what": "all paid by now"})
        await shared.settle()
        shown = shared.shown()
        assert "1 payment of 1 merchant, 300.00 RUB" in shown
        assert "live rate" in shown


async def test_a_dialog_whose_sums_cannot_be_read_says_so_and_stays() -> None:
    async with sitting(SIZES[0]) as shared:
        payment_id = await mismatch(shared.refunds)
        await shared.open("payment", payment_id)
        shared.storage.gone = True
        await shared.press("b")
        assert isinstance(shared.front(), ActionDialog)
        assert "how much could not be read: the database does not answer" in shared.shown()
        shared.storage.gone = False
        assert "is sent back" in await shared.confirm("wrong amount", {})


def test_every_action_that_moves_money_shows_how_much() -> None:
    actions = {
        action.name for kind in KINDS for action in (*kind.actions, *kind.list_actions) if action.tells is not None
    }
    moving = {"payment.resolve", "refund.approve", "refund.reverse", "settle", "suspense.return", "exchange.return"}
    assert moving | {"payout.now", "payout.cancel", "payout.retry"} <= actions


async def test_dialog_of_an_uncovered_refund_says_that_it_waits_for_money() -> None:
    async with sitting(SIZES[0]) as shared:
        refunds = shared.refunds
        await refunds.set(payout_wallet=TRON)
        payment_id = await refunds.settled("490.00")
        refund_id = await refunds.apply(payment_id)
        await shared.open("refund", refund_id)
        await shared.press("a")
        assert " of 5.29729729 USDT: it waits for money" in shared.shown()
