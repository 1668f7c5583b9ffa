"""DELETE /sandbox/data: the account's test objects are deleted, and nothing else (docs/sandbox.md "Forgetting")."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import SERVICE, EntryKind, JournalEntry, LedgerAccount
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.jobs import HANDLERS
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.payments.tallies import check_tallies
from cambist.core.usecases.sandbox import data as sandbox_data
from cambist.core.usecases.sandbox.data import FORGOTTEN, GOES_WITH, STAYS, forget_test_data
from cambist.core.usecases.sandbox.forgetting import ENTRIES, JOBS
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.ports.bank import InvoiceStatus, Notification
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from cambist.ports.notifier import DeliveryResult, WebhookRequest
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import balances, check_books, everything
from tests.payout_kit import WALLET
from tests.refund_app import RefundApp
from tests.subscription_app import play, subscribed

RECURRING_JOBS = {"ledger.seal", "settlement.daily", "webhook.retain", "feed.tidy"}


@pytest.fixture
async def merchant(url: str) -> AsyncIterator[RefundApp]:
    """Yield a merchant with all permissions, on each storage."""
    async with open_test_app(database_url=url) as app:
        await ready(app)
        yield RefundApp(app)


async def ready(app: TestApp) -> None:
    wish = {"refunds": "true", "payout_wallet": WALLET, "refund_overdraft_usdt": "50"}
    wish |= {"exchange": "true"}
    await accounts.set_settings(app.ports, app.account.account_id, wish)


async def another(first: RefundApp) -> RefundApp:
    """A second merchant in the same app."""
    app = first.app
    account = await accounts.create_account(app.ports, "Another")
    second = TestApp(app.ports, app.clock, app.postman, app.script, app.http, account)
    await ready(second)
    return RefundApp(second)


async def action(merchant: RefundApp, path: str, **body: Any) -> dict[str, Any]:
    response = await merchant.action(path, body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def fill(merchant: RefundApp) -> None:
    """Make one object of every kind in test mode, in as many states as there are."""
    app = merchant.app
    await merchant.paid()
    await app.work(1)
    # Refunded before its settlement. A later partial refund fails, and its money returns as a correction.
    first = await merchant.paid("300.00")
    early, late = await merchant.apply(first, "50.00"), await merchant.apply(first, "70.00")
    await action(merchant, f"/sandbox/refunds/{early}/simulate", outcome="completed")
    await app.work(0)
    await merchant.settle()
    await action(merchant, f"/sandbox/refunds/{late}/simulate", outcome="completed")
    await action(merchant, f"/sandbox/refunds/{early}/simulate", outcome="reversed")
    after = await merchant.apply(first, "20.00")
    await app.work(1)
    await merchant.paid("500.00")
    await app.work(1)
    await merchant.settle()
    await action(merchant, f"/sandbox/refunds/{after}/simulate", outcome="completed")
    await app.work(60)
    await merchant.apply(await merchant.paid("90.00"), "40.00")
    # A second transfer for one payment, and wrong amounts.
    twice = await merchant.paid("100.00")
    await app.told(twice, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    for outcome in (None, "paid", "failed"):
        wrong = (await app.created())["id"]
        await app.simulate(wrong, outcome="amount_mismatch")
        if outcome is not None:
            await action(merchant, f"/sandbox/payments/{wrong}/resolve", outcome=outcome)
    for status in ("processing", "failed", "cancelled", "expired"):
        await app.simulate((await app.created())["id"], outcome=status)
    await app.created()
    await subscribed(app)
    await app.work(61)
    bound = await subscribed(app, interval="day")
    await play(app, bound["id"], "confirm")
    await app.work(1.5 * 86_400)
    charged = await app.http.post(
        f"/api/v1/subscriptions/{bound['id']}/charges",
        json={"amount_rub": "500.00"},
        headers=app.headers(Idempotency_Key=str(uuid4())),
    )
    assert charged.status_code == 201, charged.text
    for number, outcome in enumerate(("usdt_received", "completed", "failed", None)):
        made = await app.http.post(
            "/api/v1/exchanges",
            json={"amount_usdt": "50", "client_phone": f"+7000000000{number}", "client_bank_id": "bank100000000004"},
            headers=app.headers(Idempotency_Key=str(uuid4())),
        )
        assert made.status_code == 201, made.text
        path = f"/sandbox/exchanges/{made.json()['id']}/simulate"
        if outcome is not None:
            await action(merchant, path, outcome="usdt_received", amount_usdt="60" if outcome == "completed" else "20")
        if outcome in ("completed", "failed"):
            await action(merchant, path, outcome=outcome)
    await action(
        merchant, "/sandbox/exchange-clients", phone=f"+7999{uuid4().int % 10_000_000:07}", kyc_status="verified"
    )
    await action(merchant, "/sandbox/gateways/simulator-test/simulate", status="down")
    await action(merchant, "/sandbox/gateways/simulator-test/simulate", status="operational")


async def forget(merchant: RefundApp) -> dict[str, Any]:
    response = await merchant.app.http.delete("/api/v1/sandbox/data", headers=merchant.app.headers())
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def owned(merchant: RefundApp) -> Counter[str]:
    """Count the account's stored records in test mode, without the kinds that stay."""
    account_id = merchant.app.account.account_id
    found: Counter[str] = Counter()
    for table in CATALOGUE:
        if table.kind in STAYS:
            continue
        for record in await everything(merchant.ports, table.kind):
            text = msgspec.json.encode(record).decode()
            if account_id in text and getattr(record, "mode", Mode.TEST) is Mode.TEST and ":live:" not in record.id:
                found[table.name] += 1
    return found


async def balance_types(merchant: RefundApp) -> dict[Any, int]:
    """The balances of the account in test mode that are not zero."""
    owner = merchant.app.account.account_id
    return {
        balance_type: sum_
        for (who, mode, balance_type), sum_ in (await balances(merchant.ports)).items()
        if who == owner and mode is Mode.TEST and sum_
    }


def test_every_record_is_forgotten_or_stays_for_a_reason() -> None:
    forgotten = [kind.record for kind in FORGOTTEN]
    told = [*forgotten, *GOES_WITH, *STAYS]
    assert Counter(told) == Counter(table.kind for table in CATALOGUE), (
        "say in sandbox/data.py how the rows of the new record are forgotten, with what they go, or why they stay"
    )
    assert set(GOES_WITH.values()) <= set(forgotten)
    assert len({kind.name for kind in FORGOTTEN}) == len(FORGOTTEN)


def test_every_kind_of_entry_belongs_to_an_object_that_is_forgotten() -> None:
    told = {kind for kinds in ENTRIES.values() for kind in kinds}
    of_no_object = {EntryKind.SANDBOX_CLEARED, EntryKind.MOVED_OUT, EntryKind.MOVED_IN}
    assert told | of_no_object == set(EntryKind)


def test_every_kind_of_job_follows_an_object_or_ends_by_itself() -> None:
    followed = {kind for kinds in JOBS.values() for kind in kinds}
    by_themselves = {
        "webhook.deliver", "webhook.timer", "webhook.release", "webhook.resend", "webhook.resend_to",
        "webhook.release_to", "webhook.drop", "webhook.retain",
        "feed.tidy",
        "gateway.hold", "gateway.tell", "ledger.seal", "settlement.daily", "settlement.run", "kyc.upload",
        "settlement.own", "sandbox.clock", "sandbox.dues", "notification.heard", "bank.members",
        "alarm.tell", "reconcile.nightly", "reconcile.day",
        "requests.prune", "sandbox.expire", "person.letter", "person.reset", "export.write",
            "report.daily", "report.heads", "report.close", "report.write",
        "person.event", "person.notify", "person.daily", "person.telegram",
    }  # fmt: skip
    assert set(HANDLERS) <= followed | by_themselves, "a new job: does it follow an object that is forgotten?"


async def test_all_of_the_account_in_test_mode_goes_and_nothing_else(merchant: RefundApp) -> None:
    other = await another(merchant)
    live = (await merchant.app.create(mode="live")).json()["id"]
    await fill(merchant)
    await fill(other)
    theirs, their_money = await owned(other), await balance_types(other)
    assert {
        "payments",
        "refunds",
        "suspense",
        "corrections",
        "withdrawals",
        "settlements",
        "subscriptions",
        "exchanges",
        "exchange_transfers",
    } <= set(theirs)
    settings = (await merchant.caller()).account
    answer = await forget(merchant)
    assert answer["complete"] is True
    assert answer["removed"]["payments"] == 15
    assert await owned(merchant) == Counter()
    assert await balance_types(merchant) == {}
    assert (await owned(other), await balance_types(other)) == (theirs, their_money)
    assert (await merchant.app.get(f"/payments/{live}", mode="live")).status_code == 200
    assert (await merchant.caller()).account == settings
    kinds = {job.kind for job in await everything(merchant.ports, Job) if merchant.app.account.account_id in job.id}
    assert kinds <= {"webhook.deliver", "webhook.timer", "webhook.release"}
    await check_books(merchant.ports)
    assert await check_tallies(merchant.ports) == []
    assert await forget(merchant) == {"removed": dict.fromkeys(answer["removed"], 0), "complete": True}


async def test_the_journal_keeps_its_entries_and_their_chain(merchant: RefundApp) -> None:
    await fill(merchant)
    before = {entry.id: entry.postings for entry in await everything(merchant.ports, JournalEntry)}
    await forget(merchant)
    after = {entry.id: entry for entry in await everything(merchant.ports, JournalEntry)}
    assert {entry_id: after[entry_id].postings for entry_id in before} == before
    assert {after[entry_id].kind for entry_id in after.keys() - before.keys()} == {EntryKind.SANDBOX_CLEARED}
    assert (await verify_ledger(merchant.ports)).holds
    assert [
        row for row in await everything(merchant.ports, LedgerAccount) if row.mode is Mode.TEST and row.balance
    ] == []
    assert {row.owner for row in await everything(merchant.ports, LedgerAccount)} > {SERVICE}


async def test_the_merchant_begins_anew_with_the_same_keys(merchant: RefundApp) -> None:
    key = str(uuid4())
    first = await merchant.app.create(key=key)
    await forget(merchant)
    assert (await merchant.app.get(f"/payments/{first.json()['id']}")).status_code == 404
    again = await merchant.app.create(key=key)
    assert again.status_code == 201
    assert again.json()["id"] != first.json()["id"]
    await fill(merchant)
    await check_books(merchant.ports)


async def test_live_keys_find_nothing_there(merchant: RefundApp) -> None:
    app = merchant.app
    response = await app.http.delete("/api/v1/sandbox/data", headers=app.headers("live"))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
    with pytest.raises(Refusal, match="Endpoint not found"):
        await forget_test_data(app.ports, await merchant.caller(Mode.LIVE))


async def test_a_banks_late_word_brings_nothing_back(merchant: RefundApp) -> None:
    app = merchant.app
    open_, refunded = (await app.created())["id"], await merchant.paid()
    refund = await merchant.apply(refunded)
    await app.work(2)
    forgotten = await app.payment(open_)
    await forget(merchant)
    await app.told(forgotten, Simulation(status=InvoiceStatus.PAID))
    for operation in (open_, refunded, refund, f"sus_simulator-test:{uuid4()}"):
        await on_notification(app.ports, Notification(operation=operation))
    await app.work(86_400)
    assert await owned(merchant) == Counter()
    assert {job.kind for job in await everything(app.ports, Job)} <= RECURRING_JOBS


@pytest.mark.parametrize("kind", sorted({kind for kinds in JOBS.values() for kind in kinds}))
async def test_a_job_whose_object_is_gone_ends_quietly(
    app: TestApp, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = next(record.__name__ for record, kinds in JOBS.items() if kind in kinds)[:3].lower()
    gone = f"{prefix}_{uuid4()}"
    now = app.clock.now()
    async with app.ports.storage.unit() as unit:
        unit[Job].add(Job(id=f"{kind}:{gone}", kind=kind, argument=gone, due=now, created_at=now))
        await unit.commit()
    await app.work(86_400)
    assert await everything(app.ports, Job) == []
    assert [line for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []


@pytest.mark.parametrize("call", ["create_invoice", "invoice_state", "refund", "find_refund", "charge", "find_charge"])
async def test_bank_answer_for_deleted_data_leaves_nothing(
    app: TestApp, call: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await ready(app)
    merchant = RefundApp(app)
    bound = await subscribed(app, interval="day")
    await play(app, bound["id"], "confirm")
    await app.work(1.5 * 86_400)
    bank = merchant.bank()
    asked: list[Any] = []
    kept = getattr(bank, call)

    async def answered_too_late(*arguments: Any) -> Any:
        answer = await kept(*arguments)
        if not asked:
            asked.append(arguments)
            await forget_test_data(app.ports, await merchant.caller())
        return answer

    monkeypatch.setattr(bank, call, answered_too_late)
    if call == "create_invoice":
        monkeypatch.setattr(bank, "draw_invoice", lambda _: None)
    key = app.headers(Idempotency_Key=str(uuid4()))
    charge = await app.http.post(
        f"/api/v1/subscriptions/{bound['id']}/charges", json={"amount_rub": "500.00"}, headers=key
    )
    assert charge.status_code in (200, 201, 404, 502, 503), charge.text
    payment = await app.create()
    assert payment.status_code in (201, 503), payment.text
    if payment.status_code == 201:
        paid = await app.simulate(payment.json()["id"], outcome="paid")
        if paid.status_code == 200:
            await merchant.post({"payment_id": payment.json()["id"]})
    await app.work(86_400)
    await app.work(11 * 86_400)
    assert asked, "the bank was never asked"
    await forget(merchant)
    assert await owned(merchant) == Counter()
    assert {job.kind for job in await everything(app.ports, Job)} <= RECURRING_JOBS
    await check_books(app.ports)
    assert [line for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []


@pytest.mark.parametrize("outcome", ["completed", None])
async def test_an_exchange_whose_payout_is_at_the_bank(
    app: TestApp, outcome: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The payout runs once by the sandbox's call, and once by the worker."""
    await ready(app)
    merchant = RefundApp(app)
    bank = merchant.bank()
    asked: list[Any] = []
    kept = bank.remit

    async def remit(*arguments: Any) -> Any:
        answer = await kept(*arguments)
        asked.append(arguments)
        await forget_test_data(app.ports, await merchant.caller())
        return answer

    monkeypatch.setattr(bank, "remit", remit)
    body = {"amount_usdt": "50", "client_phone": "+70000000001", "client_bank_id": "bank100000000004"}
    key = app.headers(Idempotency_Key=str(uuid4()))
    made = await app.http.post("/api/v1/exchanges", json=body, headers=key)
    path = f"/sandbox/exchanges/{made.json()['id']}/simulate"
    await action(merchant, path, outcome="usdt_received")
    if outcome is not None:
        response = await merchant.action(path, {"outcome": outcome})
        assert response.status_code in (404, 503), response.text
    await app.work(86_400)
    assert asked
    assert await owned(merchant) == Counter()
    assert await everything(app.ports, Job) == []
    assert [line for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []


async def test_webhook_in_flight_is_recorded_nowhere(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = RefundApp(app)
    kept = app.postman.send

    async def post(webhook: WebhookRequest) -> DeliveryResult:
        await forget_test_data(app.ports, await merchant.caller())
        return await kept(webhook)

    monkeypatch.setattr(app.postman, "send", post)
    for _ in range(3):
        await merchant.paid()
    await app.work(86_400)
    assert len(app.postman.webhooks) >= 1
    await forget(merchant)
    assert await owned(merchant) == Counter()
    assert await everything(app.ports, Job) == []


async def test_a_payout_that_is_being_signed_is_left(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await ready(app)
    merchant = RefundApp(app)
    sender = app.ports.senders.of_mode(Mode.TEST)
    kept = sender.sign

    async def sign(*arguments: Any) -> Any:
        await forget_test_data(app.ports, await merchant.caller())
        return await kept(*arguments)

    monkeypatch.setattr(sender, "sign", sign)
    await merchant.settled()
    await app.work(86_400)
    assert await owned(merchant) == Counter()
    assert await everything(app.ports, Job) == []
    assert [line for line in caplog.records if line.levelname in ("ERROR", "CRITICAL")] == []


async def test_killed_at_any_commit_it_stays_whole_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    small = tuple(msgspec.structs.replace(kind, batch=12) for kind in FORGOTTEN)
    monkeypatch.setattr(sandbox_data, "FORGOTTEN", small)
    commits = 0
    for at in range(1, 200):
        async with open_test_app() as app:
            await ready(app)
            merchant = RefundApp(app)
            await fill(merchant)
            fuse = CrashPoint(at, after=at % 2 == 0)
            with suppress(Killed):
                await forget_test_data(fused(app.ports, fuse), await merchant.caller())
            await check_books(app.ports)
            assert (await forget(merchant))["complete"] is True
            assert await owned(merchant) == Counter()
            commits = fuse.commits
        if commits < at:
            return


async def test_two_calls_at_once_forget_everything_once(merchant: RefundApp) -> None:
    await fill(merchant)
    await asyncio.gather(forget(merchant), forget(merchant))
    await forget(merchant)
    assert await owned(merchant) == Counter()
    assert await balance_types(merchant) == {}


async def test_payments_and_a_settlement_at_the_same_time(merchant: RefundApp) -> None:
    app = merchant.app
    await asyncio.gather(*(merchant.paid(f"{100 + number}.00") for number in range(8)))
    await app.clock.advance(1)
    caller = await merchant.caller()

    async def settle() -> None:
        response = await merchant.action("/sandbox/settlements")
        assert response.status_code in (200, 409), response.text

    async def pay() -> str | None:
        made = await app.create()
        assert made.status_code in (201, 404, 503), made.text
        if made.status_code == 201:
            assert (await app.simulate(made.json()["id"], outcome="paid")).status_code in (200, 404, 503)
        return None

    await asyncio.gather(settle(), forget_test_data(app.ports, caller), pay(), pay(), settle())
    await app.work(120)
    await check_books(app.ports)
    assert await check_tallies(app.ports) == []
    await forget(merchant)
    await app.work(120)
    assert (await forget(merchant))["complete"] is True
    assert await owned(merchant) == Counter()
    assert await balance_types(merchant) == {}


async def test_a_call_has_a_limit_and_the_next_goes_on(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_data, "AT_ONCE", 10)
    merchant = RefundApp(app)
    for _ in range(7):
        await merchant.paid()
    assert (await forget(merchant))["complete"] is False
    await check_books(app.ports)
    for _ in range(10):
        if (await forget(merchant))["complete"]:
            break
    assert await owned(merchant) == Counter()


async def test_a_statement_of_all_accounts_loses_only_this_ones_part(merchant: RefundApp) -> None:
    other = await another(merchant)
    await merchant.paid()
    await other.paid()
    async with merchant.ports.storage.unit() as unit:
        account = await unit[Account].get(other.app.account.account_id)
    assert account is not None
    await merchant.app.clock.advance(1)
    await settle_now(merchant.ports, Mode.TEST, cutoff=merchant.app.clock.now())
    await forget(merchant)
    [statement] = await everything(merchant.ports, Settlement)
    assert statement.account_id == account.id
    assert len(await everything(merchant.ports, Payment)) == 1
    await check_books(merchant.ports)
