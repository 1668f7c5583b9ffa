"""The move of an account between two cells (docs/cells.md "Moving an account")."""

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.fence import FRESH
from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.cells import AccountMove, Stage
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.people.people import Membership, User
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.cells.moving import undo_move
from cambist.core.usecases.cells.plan import ROWS
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.frontends.settings.settings import VaultKeys
from cambist.ports.faults import Conflict, Unavailable
from cambist.ports.forwarding import ForwardingRepository, ForwardingStorage
from cambist.ports.storage import Storage
from tests.apps import TestApp, open_test_app
from tests.cell_kit import Killed, Mortal, cell_of, cells, fill, level, move, raw
from tests.exchange_app import BANK_ID
from tests.invariants import everything
from tests.openapi_tour import CLIENT
from tests.people_kit import joined
from tests.tables import table

STEP = 3
"""Commits between two kills that are tried."""


async def present(app: TestApp) -> dict[str, int]:
    """How many rows of the first cell's account each moved table has."""
    found: dict[str, int] = {}
    for rows in ROWS:
        records = await everything(app.ports, rows.record)
        found[rows.record.__name__] = len(records)
    return found


async def test_account_moves_with_all_its_rows_and_returns() -> None:
    async with cells() as (one, two):
        await fill(one)
        await level(one, two)
        account_id = one.account.account_id
        before = await answers(one)
        rows = await present(one)
        moved = await move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)
        assert {name: count for name, count in rows.items() if count} == {
            name: count for name, count in moved.rows.items() if count
        }
        two.account, other = one.account, two.account
        assert await answers(two) == before
        left = await present(one)
        assert {name for name, count in left.items() if count} <= {"Movement", "AuditEntry"}
        for app in (one, two):
            report = await verify_ledger(app.ports)
            assert report.holds, report
        late = await one.get("/payments")
        assert (late.status_code, late.json()["error"]["code"]) == (503, "ACCOUNT_MOVING")
        opened = (await two.get("/payments?per_page=1")).json()["data"][0]["id"]
        led = await one.http.get(f"/p/{opened}?lang=en")
        assert (led.status_code, led.headers["Location"]) == (307, f"https://c2.pay.example/p/{opened}?lang=en")
        assert (await two.http.get(f"/p/{opened}?lang=en")).status_code == 200
        assert (await one.http.get("/p/pay_unknown")).status_code == 404
        # The account takes a payment there, and comes back with it.
        made = await two.created()
        await two.simulate(made["id"], outcome="paid")
        await move(cell_of(two, "c2"), cell_of(one, "c1"), account_id)
        assert (await one.get(f"/payments/{made['id']}")).json()["status"] == "paid"
        for app in (one, two):
            report = await verify_ledger(app.ports)
            assert report.holds, report
        two.account = other


async def answers(app: TestApp) -> list[str]:
    """The answers to a merchant who reads everything."""
    paths = ("/payments", "/refunds", "/subscriptions", "/settlements", "/withdrawals", "/balance", "/events")
    further = ("/balance/movements", "/payment-links", "/shops", "/shops/turnover", "/webhook-endpoints")
    texts = [(await app.get(path)).text for path in (*paths, *further)]
    return [text.replace("https://c2.pay.example", "https://c1.pay.example") for text in texts]


@table("written", [True, False], ids=["written", "lost"])
async def test_move_killed_at_any_commit_is_finished_by_the_next_call(written: bool) -> None:
    killed_at, seen = 0, set[str]()
    while True:
        async with cells() as (one, two):
            paid = await one.created()
            await one.simulate(paid["id"], outcome="paid")
            waiting = await one.created({"external_id": "waiting"})
            account_id, commits = one.account.account_id, [killed_at]
            source, target = (
                cell_of(app, name, Mortal(raw(app.ports.storage), commits, written=written))
                for app, name in ((one, "c1"), (two, "c2"))
            )
            try:
                await move(source, target, account_id)
            except Killed:
                seen.add(await state(one, two))
                await move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)
            assert await state(one, two) == "there"
            for app in (one, two):
                report = await verify_ledger(app.ports)
                assert report.holds, (killed_at, report)
            two.account, other = one.account, two.account
            assert (await two.get(f"/payments/{paid['id']}")).json()["status"] == "paid"
            await two.simulate(waiting["id"], outcome="paid")
            assert (await two.get("/balance")).json()["pending_rub"] == "200.00"
            two.account = other
        if commits[0] >= 0:
            break
        killed_at += STEP
    assert seen == {"here", "held", "both", "there"}


async def state(one: TestApp, two: TestApp) -> str:
    """Where the account is."""
    account_id = one.account.account_id
    here = await raw(one.ports.storage).get(Account, account_id)
    there = await raw(two.ports.storage).get(Account, account_id)
    if here is not None and there is None:
        return "here" if here.moving_to is None else "held"
    return "both" if here is not None else "there"


@table("fault", [(Payment, Unavailable("the disk is full")), (Account, Conflict("accounts_id"))])
async def test_failed_move_is_undone(fault: tuple[type[Any], Exception]) -> None:
    async with cells() as (one, two):
        payment = await one.created()
        account_id, before = one.account.account_id, await answers(one)
        target = cell_of(two, "c2", Refusing(raw(two.ports.storage), *fault))
        with pytest.raises(type(fault[1])):
            await move(cell_of(one, "c1"), target, account_id)
        assert await state(one, two) == "here"
        assert await answers(one) == before
        assert await raw(two.ports.storage).get(Payment, payment["id"]) is None
        await one.clock.advance(FRESH)
        assert (await one.create()).status_code == 201
        await undo_move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)  # changes nothing
        await move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)
        with pytest.raises(Refusal, match="finish the move"):
            await undo_move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)


class Refusing(ForwardingStorage):
    """A storage that writes no rows of one table."""

    def __init__(self, inner: Storage, kind: type[Any], fault: Exception) -> None:
        super().__init__(inner)
        self.kind, self.fault = kind, fault

    def unit(self) -> Any:
        return RefusingUnit(self.inner.unit(), self)


class RefusingUnit:
    def __init__(self, opening: Any, storage: Refusing) -> None:
        self._opening, self._storage = opening, storage
        self._is_refused = False

    async def __aenter__(self) -> Any:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *fault: object) -> Any:
        return await self._opening.__aexit__(*fault)

    def __getitem__(self, kind: Any) -> Any:
        repository = self._unit[kind]
        return RefusedTable(repository, self) if kind is self._storage.kind else repository

    def refuse(self) -> None:
        self._is_refused = True

    async def commit(self, *, durable: bool = True) -> None:
        if self._is_refused:
            raise self._storage.fault
        await self._unit.commit(durable=durable)


class RefusedTable(ForwardingRepository[Any], eq=False):
    unit: Any

    def add(self, record: Any, /) -> Any:
        self.unit.refuse()
        return record


async def test_person_known_to_both_cells_keeps_the_other_cells_id() -> None:
    async with cells() as (one, two):
        here = await joined(one.ports, one.account.account_id, email="olga@shop.example")
        there = await joined(two.ports, two.account.account_id, email="olga@shop.example")
        await move(cell_of(one, "c1"), cell_of(two, "c2"), one.account.account_id)
        members = [each.user_id for each in await everything(two.ports, Membership)]
        assert members == [there.id, there.id]
        assert await everything(one.ports, User) == []
        assert here.id != there.id


async def test_open_exchange_or_unfinished_payout_keeps_the_account() -> None:
    async with cells() as (one, two):
        await accounts.set_settings(one.ports, one.account.account_id, {"exchange": "true"})
        order = {"amount_usdt": "100", "client_phone": CLIENT, "client_bank_id": BANK_ID}
        for path, body in (
            ("/sandbox/exchange-clients", {"phone": CLIENT, "kyc_status": "verified"}),
            ("/exchanges", order),
        ):
            made = await one.http.post(f"/api/v1{path}", json=body, headers=one.headers(Idempotency_Key=str(uuid4())))
            assert made.is_success, made.text
        with pytest.raises(Refusal, match=r"cannot move yet: exchange exch_.* is awaiting_usdt"):
            await move(cell_of(one, "c1"), cell_of(two, "c2"), one.account.account_id)
        with pytest.raises(Refusal, match="is in c1 already"):
            await move(cell_of(one, "c1"), cell_of(one, "c1"), one.account.account_id)


async def test_cells_with_different_peppers_exchange_no_accounts() -> None:
    async with cells() as (one, _):
        vault = VaultKeys(keys={1: b"a" * 32}, current=1, pepper=b"q" * 32)
        async with open_test_app(cell="c3", vault=vault, ids=SeededIds(3)) as three:
            with pytest.raises(Refusal, match="different peppers"):
                await move(cell_of(one, "c1"), cell_of(three, "c3"), one.account.account_id)


async def test_leaving_account_takes_no_changes_whatever_was_under_way() -> None:
    async with cells() as (one, two):
        made = await one.created()
        account_id, storage = one.account.account_id, one.ports.storage
        async with storage.unit() as begun:
            payment = await begun[Payment].get(made["id"])
            assert payment is not None
            begun[Payment].save(payment)
            async with raw(storage).unit() as unit:
                account = await unit[Account].get(account_id)
                assert account is not None
                unit[Account].save(msgspec.structs.replace(account, moving_to="c2"))
                unit[AccountMove].add(
                    AccountMove(
                        id=account_id, stage=Stage.LEAVING, cell="c2", pay_url="https://x", held_at=one.clock.now()
                    )
                )
                await unit.commit()
            await one.clock.advance(FRESH)
            with pytest.raises(Refusal, match="being moved"):
                await begun.commit()
        answer = await one.create()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "ACCOUNT_MOVING")
        assert answer.headers["Retry-After"] == "2"
        assert (await one.get(f"/payments/{made['id']}")).status_code == 200
        other = await accounts.create_account(one.ports, "Other")
        held, one.account = one.account, other
        assert (await one.create()).status_code == 201
        one.account = held
        await undo_move(cell_of(one, "c1"), cell_of(two, "c2"), account_id)
        await one.clock.advance(FRESH)
        assert (await one.create()).status_code == 201
