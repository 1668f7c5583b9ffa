"""Accounts, books, payouts and the audit log in the console: few sittings, because to open one takes longest."""

from datetime import timedelta
from typing import Any

from textual.widgets import Input, Select

from cambist.core.domain.ledger import LedgerAccount
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.usecases.actions.audit import note
from cambist.frontends.console.action_dialog import ActionDialog
from cambist.frontends.console.catalogue import kind_of
from cambist.frontends.console.detail import DetailScreen
from cambist.frontends.console.kinds.kinds import Wish
from cambist.frontends.console.kinds.movements import MOVEMENTS
from cambist.frontends.console.listing import ListScreen
from cambist.ports.bundle import Ports
from tests.console.kit import SIZES, Sitting, sitting
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


async def seed(refunds: RefundApp) -> None:
    await refunds.paid("1000.00")
    await refunds.app.clock.advance(1)


def front(shared: Sitting) -> ListScreen:
    screen = shared.app.screen
    assert isinstance(screen, ListScreen)
    return screen


async def confirm(shared: Sitting, key: str, *, reason: str = "why not", secret: bool = False, **values: str) -> str:
    """Fill in and confirm the dialog of an action, and return its outcome. A dialog with secrets stays open."""
    await shared.pilot.press(key)
    await shared.pilot.pause()
    dialog = shared.app.screen
    assert isinstance(dialog, ActionDialog)
    for name, value in {**values, "reason": reason}.items():
        field = dialog.query_one(f"#{name}" if name == "reason" else f"#entry-{name}")
        assert isinstance(field, Input | Select)
        field.value = value
    await shared.press("ctrl+s")
    said = shared.shown()
    if not secret:
        await shared.press("escape")
    return said


async def settlement_and_payouts(shared: Sitting) -> None:
    await shared.press("4")
    said = await confirm(shared, "s", mode="both", what="all paid by now")
    assert "test:" in said
    assert "live:" in said
    await shared.press("T")
    [statement] = front(shared).records
    await shared.press("enter", "l")
    assert [each.settlement_id for each in front(shared).records] == [statement.id]
    await shared.press("enter")
    screen = shared.app.screen
    assert isinstance(screen, DetailScreen)
    assert [moment.of for moment in screen.moments] == ["payment", "settlement"]
    await shared.press("3", "enter")
    await shared.pilot.press("t")
    await shared.pilot.pause()
    shared.app.screen.query_one("#reason", Input).value = "it waits"
    await shared.pilot.press("ctrl+s")
    for _ in range(3):
        await shared.pilot.pause()
    assert "is pending…" in shared.shown()
    await shared.refunds.app.work(3)
    await shared.settle()
    assert "is sent" in shared.shown()
    await shared.press("escape", "escape")
    assert "nothing to pay out" in await confirm(
        shared, "n", account=shared.refunds.app.account.account_id, mode="test"
    )


async def ledger_and_audit(shared: Sitting) -> None:
    await shared.press("L")
    assert "no alarm" in shared.shown()
    assert "The books hold: " in await confirm(shared, "v", reason="")
    await shared.press("J")
    assert {each.kind for each in front(shared).records} >= {"receipt", "settlement", "payout_reserved"}
    front(shared).ask_for("kind", "settlement")
    await shared.settle()
    assert [each.kind for each in front(shared).records] == ["settlement"]
    await shared.press("enter", "enter")
    assert "Payments" in shared.shown()
    await shared.press("9")
    await shared.press("f", "down", "enter", *"settle", "enter")
    assert sorted(each.object_id[:4] for each in front(shared).records) == ["live", "test"]
    await shared.press("enter", "enter")
    assert "Settlements" in shared.shown()
    await shared.press("9")
    front(shared).ask_for("from", "yesterday")
    await shared.settle()
    assert "must be a moment" in shared.shown()


async def test_settlement_payouts_and_books() -> None:
    async def with_wallet(refunds: RefundApp) -> None:
        await seed(refunds)
        await refunds.set(payout_wallet=WALLET)

    async with sitting(SIZES[1], with_wallet) as shared:
        await settlement_and_payouts(shared)
        await ledger_and_audit(shared)
        assert await actions(shared.ports) == {"settle", "payout.retry", "ledger.verify"}


async def actions(ports: Ports) -> set[str]:
    return {row.action for row in await everything(ports, AuditEntry)}


async def test_balance_types_statements_and_actions_are_read_page_by_page() -> None:
    """Pages join without a gap or a duplicate, for any filter."""
    async with open_refund_app() as refunds:
        for _ in range(3):
            await refunds.settled()
            await refunds.app.work(1)
        ports, account_id = refunds.ports, refunds.app.account.account_id
        for number in range(5):
            await note(ports, OperatorAction(operator="olga", name="look", object_id=f"pay_{number % 2}"))
        since = str(refunds.app.clock.now() - timedelta(days=1))
        wishes: list[tuple[str, dict[str, str], int]] = [
            ("ledger", {}, 7), ("ledger", {"account": account_id}, 2), ("ledger", {"mode": "live"}, 0),
            ("entry", {}, 6), ("entry", {"kind": "receipt"}, 3), ("settlement", {}, 3),
            ("settlement", {"account": account_id, "mode": "test"}, 3), ("audit", {}, 5),
            ("audit", {"from": since}, 5), ("audit", {"to": since}, 0),
            ("audit", {"object": "pay_1", "from": since}, 2),
            ("audit", {"action": "look"}, 5), ("audit", {"operator": "ivan"}, 0), ("shop", {"account": account_id}, 1),
            ("key", {}, 2), ("account", {}, 1), ("terminal", {}, 0), ("correction", {}, 0),
        ]  # fmt: skip
        for name, filters, fewest in wishes:
            kind = kind_of(name)
            assert kind is not None
            for order in kind.orders:
                wish = Wish(filters=filters, order=order)
                whole = await kind.read(ports, wish, None, 100)
                seen: list[Any] = []
                while page := await kind.read(ports, wish, seen[-1] if seen else None, 2):
                    seen += page
                assert [each.id for each in seen] == [each.id for each in whole], (name, filters)
                assert len(whole) >= fewest, (name, filters)
                for each in whole:
                    assert kind.facts(await kind.get(ports, each.id))
        kept = {f"{row.owner}:{row.mode}:{row.balance_type}": 0 for row in await everything(ports, LedgerAccount)}
        for row in await everything(ports, LedgerAccount):
            kept[f"{row.owner}:{row.mode}:{row.balance_type}"] += row.balance
        ledger = kind_of("ledger")
        assert ledger is not None
        assert {each.id: each.balance for each in await ledger.read(ports, Wish(), None, 100)} == kept


async def test_movements_of_both_modes_in_the_order_of_time() -> None:
    """The pages together equal one long read, newest first, and show one mode if the filter names it."""
    async with open_refund_app() as refunds:
        for mode in ("test", "live", "live", "test", "test"):
            await refunds.paid(mode=mode)
            await refunds.app.clock.advance(1)
        await refunds.settled()
        filters = {"account": refunds.app.account.account_id}
        whole = await MOVEMENTS.read(refunds.ports, Wish(filters=filters), None, 100)
        assert [each.at for each in whole] == sorted((each.at for each in whole), reverse=True)
        pages: list[Any] = []
        while found := await MOVEMENTS.read(refunds.ports, Wish(filters=filters), pages[-1] if pages else None, 2):
            pages += found
        assert pages == whole
        live = await MOVEMENTS.read(refunds.ports, Wish(filters={**filters, "mode": "live"}), None, 100)
        assert live == [each for each in whole if ":live:" in each.id]
        assert len(live) == 2
        assert await MOVEMENTS.read(refunds.ports, Wish(), None, 100) == []
