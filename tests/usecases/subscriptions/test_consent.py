"""The payer's consent: written when a binding is confirmed, from what that binding's page showed. Also QRs and links
that are withdrawn because the amount changed (docs/subscriptions.md "How the payer binds", "Changing and ending")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.subscriptions.patches import SubscriptionPatch
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.core.usecases.subscriptions.binding_opening import TermsChanged, open_binding
from cambist.core.usecases.subscriptions.binding_withdrawal import WITHDRAW
from cambist.core.usecases.subscriptions.subscriptions import patch_subscription
from cambist.frontends.console.kinds.subscriptions import SUBSCRIPTIONS
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.subscription_app import (
    bindings,
    bound,
    call,
    choose_calendar,
    issue_links,
    open_link,
    patch,
    play,
    record,
    shown,
    simulate,
    simulator,
    statuses,
    subscribed,
)
from tests.usecases.subscriptions.test_subscription_crashes import caller

E = MandateEvent
_NEVER = 10**6


def both(amount: str) -> dict[str, str]:
    return {"amount_rub": amount, "cap_amount_rub": amount}


async def amounts(app: TestApp, made: dict[str, Any]) -> tuple[str, str, str | None]:
    """Return amount, cap and consent."""
    found = await record(app, made["id"])
    return str(found.amount), str(found.cap_amount), None if found.consent is None else str(found.consent)


async def refusal(app: TestApp, made: dict[str, Any], body: dict[str, Any]) -> tuple[int, str | None]:
    answer = await patch(app, made["id"], body)
    return answer.status_code, answer.json().get("error", {}).get("code")


async def at_bank(app: TestApp, payment: Payment) -> str:
    """Return the binding of this payment as the bank sees it."""
    found = await app.payment(payment.id)
    return (await simulator(app).mandate_state(found.bank_reference or "")).status


Path_ = Callable[[TestApp], Awaitable[dict[str, Any]]]


async def first(app: TestApp) -> dict[str, Any]:
    """The QR of 200 lapses, the amount goes down to 100, and the payer confirms the next QR."""
    made = await subscribed(app, amount_rub="200")
    await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    await app.work(16 * 60)
    await play(app, made["id"], "confirm")
    return made


async def none(app: TestApp) -> dict[str, Any]:
    made = await subscribed(app, amount_rub="200", binding_charge="none")
    await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    await play(app, made["id"], "confirm")
    return made


async def rebound(app: TestApp) -> dict[str, Any]:
    """Return a subscription bound at 200, lowered to 100, and bound again by a page that shows 100."""
    made = await bound(app, amount_rub="200")
    await patch(app, made["id"], {"amount_rub": "100"})
    await play(app, made["id"], "mandate_lost")
    await call(app, made["id"], "rebind", Idempotency_Key=str(uuid4()))
    await play(app, made["id"], "confirm")
    return made


async def calendar(app: TestApp) -> dict[str, Any]:
    await choose_calendar(app)
    made = await subscribed(app, amount_rub="200")
    await patch(app, made["id"], {"amount_rub": "100"})
    await play(app, made["id"], "confirm")
    return made


async def unopened(app: TestApp) -> dict[str, Any]:
    """Return a subscription whose amount was raised and lowered again before anybody opened the page."""
    made = await subscribed(app, amount_rub="50")
    await patch(app, made["id"], both("300"))
    await patch(app, made["id"], {"amount_rub": "100"})
    await play(app, made["id"], "confirm")
    return made


@pytest.mark.parametrize("path", [first, none, rebound, calendar, unopened])
async def test_consent_is_what_the_confirmed_bindings_page_showed(app: TestApp, path: Path_) -> None:
    """A payer who confirmed 100 is never charged 200, whatever was shown before."""
    made = await path(app)
    assert (await shown(app, made["id"]))["status"] == "active"
    assert await amounts(app, made) == ("100.00", "100.00", "100.00")
    for above in (both("200"), both("100.01"), {"cap_amount_rub": "200"}):
        assert await refusal(app, made, above) == (400, "INVALID_AMOUNT")
    assert await refusal(app, made, {"amount_rub": "60"}) == (200, None)
    assert await refusal(app, made, both("100")) == (200, None)
    await app.clock.advance(32 * 86400)
    headers = app.headers(Idempotency_Key=str(uuid4()))
    body = {"amount_rub": "200", "external_id": "x"}
    charged = await app.http.post(f"/api/v1/subscriptions/{made['id']}/charges", json=body, headers=headers)
    assert (charged.status_code, charged.json()["error"]["code"]) == (409, "CAP_EXCEEDED")


@pytest.mark.parametrize("charge", ["first", "none"])
async def test_patch_is_free_until_the_payer_confirms(app: TestApp, charge: str) -> None:
    """A patch is free even while a QR is out, because the payer has not agreed yet."""
    made = await subscribed(app, amount_rub="200", binding_charge=charge)
    for amount in ("900", "50", "400"):
        await open_link(app, made["id"])
        assert await refusal(app, made, both(amount)) == (200, None)
        assert await amounts(app, made) == (f"{amount}.00", f"{amount}.00", None)
    await play(app, made["id"], "confirm")
    assert await amounts(app, made) == ("400.00", "400.00", "400.00")


@pytest.mark.parametrize("charge", ["first", "none"])
async def test_a_qr_of_another_amount_is_ended_at_the_bank(app: TestApp, charge: str) -> None:
    made = await subscribed(app, amount_rub="200", binding_charge=charge)
    old = await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    assert await statuses(app, old.id) == [("pending", "expired")]
    assert (await record(app, made["id"])).binding is None
    await app.work(1)
    assert await at_bank(app, old) == "closed"
    assert await app.ports.storage.get(Job, WITHDRAW.id_of(old.id)) is None
    new = await open_link(app, made["id"])
    assert (new.shown_amount, new.amount) == (Rub(100_00), Rub(100_00) if charge == "first" else Rub(1_00))
    await play(app, made["id"], "confirm")
    assert await amounts(app, made) == ("100.00", "100.00", "100.00")


async def test_a_cap_alone_leaves_the_qr_as_it_is(app: TestApp) -> None:
    made = await subscribed(app)
    old = await open_link(app, made["id"])
    await patch(app, made["id"], both("500"))
    await app.work(60)
    assert (await open_link(app, made["id"])).id == old.id


@pytest.mark.parametrize(("to", "amount"), [("100", "100.00"), ("300", "200.00")])
@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("charge", ["first", "none"])
async def test_a_payer_who_confirmed_a_withdrawn_qr_first_is_bound_by_it(
    app: TestApp, charge: str, heard: bool, to: str, amount: str
) -> None:
    """The confirmation crosses the change of the amount: the payer saw 200, so 200 is the consent and the first charge,
    and the amount comes down to it."""
    made = await subscribed(app, amount_rub="200", binding_charge=charge)
    old = await open_link(app, made["id"])
    await patch(app, made["id"], both(to))
    await simulate(app, binding_operation(old.id), E.CONFIRM, silent=not heard)
    await app.work(60)
    assert await statuses(app, old.id) == [("pending", "expired"), ("expired", "paid")]
    assert (await shown(app, made["id"]))["status"] == "active"
    assert await amounts(app, made) == (amount, amount, "200.00")
    assert await at_bank(app, old) == "active"
    assert (await app.payment(old.id)).actual_amount == (Rub(200_00) if charge == "first" else Rub(0))
    assert await everything(app.ports, Suspense) == []


async def test_consent_follows_the_qr_confirmed_last(app: TestApp) -> None:
    """The QR for 200 lapsed by itself, the QR for 100 is alive. If the payer confirms the lapsed one, it binds at 200,
    and money paid by the other goes to suspense."""
    made = await subscribed(app, amount_rub="200")
    old = await open_link(app, made["id"])
    await app.work(16 * 60)
    await patch(app, made["id"], {"amount_rub": "100"})
    new = await open_link(app, made["id"])
    await simulate(app, binding_operation(old.id), E.CONFIRM)
    assert await amounts(app, made) == ("100.00", "100.00", "200.00")
    await simulate(app, binding_operation(new.id), E.CONFIRM)
    [suspense] = await everything(app.ports, Suspense)
    assert (suspense.amount, suspense.reason) == (Rub(100_00), "bound_already")
    assert await amounts(app, made) == ("100.00", "100.00", "100.00"), "the payer's last word counts"


async def test_money_on_a_withdrawn_qr_without_a_mandate_is_the_first_charge(app: TestApp) -> None:
    """The QR was ended while the payer paid: the money counts, and the next QR takes nothing."""
    made = await subscribed(app, amount_rub="200")
    old = await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    await app.work(1)
    await simulate(app, binding_operation(old.id), E.PAID)
    assert (await app.payment(old.id)).status == "paid"
    new = await open_link(app, made["id"])
    assert (new.binding, new.shown_amount) == ("none", Rub(100_00))
    await play(app, made["id"], "confirm")
    assert await amounts(app, made) == ("100.00", "100.00", "100.00")
    assert await everything(app.ports, Suspense) == []
    assert (await verify_ledger(app.ports)).holds


async def test_a_payment_between_the_look_and_the_revocation_is_found(app: TestApp) -> None:
    """No notification arrives: the bank is polled once more after it has ended the QR."""
    made = await subscribed(app, amount_rub="200")
    old = await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    bank = app.ports.banks.named("simulator-test")
    revoke = bank.revoke  # type: ignore[attr-defined]  # the simulated bank binds

    async def paid_meanwhile(reference: str) -> None:
        await simulate(app, binding_operation(old.id), E.PAID, silent=True)
        await revoke(reference)

    bank.revoke = paid_meanwhile  # type: ignore[attr-defined]  # as above
    await app.work(1)
    assert (await app.payment(old.id)).status == "paid"
    assert (await record(app, made["id"])).first_payment_id == old.id


@pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE, Ending.UNKNOWN_DONE])
@pytest.mark.parametrize("call_", ["mandate_state", "revoke"])
async def test_a_bank_that_is_away_is_asked_to_end_a_qr_until_it_answers(
    app: TestApp, call_: str, ending: Ending
) -> None:
    made = await subscribed(app, amount_rub="200")
    old = await open_link(app, made["id"])
    getattr(app.script, call_).extend([Twist(ending=ending)] * 2)
    assert await refusal(app, made, {"amount_rub": "100"}) == (200, None)
    await app.work(300)
    assert await at_bank(app, old) == "closed"
    assert await app.ports.storage.get(Job, WITHDRAW.id_of(old.id)) is None


async def test_withdrawn_binding_unknown_to_the_bank_is_not_requested_again(app: TestApp) -> None:
    """The change is faster than the bank's answer: no bank is asked for a QR of the former amount."""
    made = await subscribed(app, amount_rub="200")
    app.script.bind.append(Twist(ending=Ending.UNAVAILABLE))
    old = await open_link(app, made["id"])
    await patch(app, made["id"], {"amount_rub": "100"})
    await app.work(3600)
    assert (await app.payment(old.id)).bank_reference is None
    assert await app.ports.storage.get(Job, WITHDRAW.id_of(old.id)) is None
    assert (await open_link(app, made["id"])).shown_amount == Rub(100_00)


async def test_calendar_link_of_another_amount_is_replaced_in_the_answer(app: TestApp) -> None:
    await choose_calendar(app)
    made = await subscribed(app, amount_rub="200")
    [old] = await bindings(app, made["id"])
    changed = (await patch(app, made["id"], {"amount_rub": "100"})).json()
    assert (changed["amount_rub"], changed["binding_url_pending"]) == ("100.00", False)
    assert changed["binding_url"] not in (None, made["binding_url"])
    [_, new] = await bindings(app, made["id"])
    assert (new.amount, new.shown_amount) == (Rub(100_00), Rub(100_00))
    await app.work(1)
    assert (await at_bank(app, old), await at_bank(app, new)) == ("closed", "open")
    assert await statuses(app, made["id"]) == [], "the answer says it"
    same = (await patch(app, made["id"], both("100"))).json()
    assert same["binding_url"] == changed["binding_url"]


async def test_calendar_link_that_comes_later_makes_one_event(app: TestApp) -> None:
    await choose_calendar(app)
    issue_links(app, None)
    made = await subscribed(app, amount_rub="200")
    changed = (await patch(app, made["id"], {"amount_rub": "100"})).json()
    assert (changed["binding_url"], changed["binding_url_pending"]) == (None, True)
    await app.work(1)
    await play(app, made["id"], "link_ready")
    [event] = await app.events(made["id"])
    assert (event["status"], event["binding_url"] is not None) == ("pending_binding", True)
    await play(app, made["id"], "confirm")
    assert await amounts(app, made) == ("100.00", "100.00", "100.00")


async def test_calendar_amount_stays_where_no_bank_can_give_a_new_link(app: TestApp) -> None:
    """Nothing is written, and the issued link stays valid."""
    await choose_calendar(app)
    made = await subscribed(app, amount_rub="200")
    await set_gateway(app.ports, "simulator-test", GatewayStatus.DOWN)
    assert await refusal(app, made, {"amount_rub": "100"}) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
    await app.work(60)
    assert (await shown(app, made["id"]))["binding_url"] == made["binding_url"]
    assert [await at_bank(app, each) for each in await bindings(app, made["id"])] == ["open"]
    await play(app, made["id"], "confirm")
    assert await amounts(app, made) == ("200.00", "200.00", "200.00")


async def test_operators_see_what_the_payer_agreed_to(app: TestApp) -> None:
    """At the console, for a payer who disputes a charge."""
    made = await subscribed(app, amount_rub="200")
    told = []
    for step in (None, "confirm"):
        if step is not None:
            await play(app, made["id"], step)
            await patch(app, made["id"], {"amount_rub": "100"})
        told.append(dict(SUBSCRIPTIONS.facts(await SUBSCRIPTIONS.get(app.ports, made["id"])))["payer agreed to"])
    assert told == [None, "200.00 RUB a charge"]


async def test_a_press_names_the_amount_that_the_payer_saw(app: TestApp) -> None:
    made = await subscribed(app, amount_rub="200")
    await patch(app, made["id"], both("300"))
    with pytest.raises(TermsChanged):
        await open_binding(app.ports, made["id"], seen="200.00")
    assert await bindings(app, made["id"]) == []
    await open_binding(app.ports, made["id"], seen="300.00")
    assert len(await bindings(app, made["id"])) == 1


@pytest.fixture
async def busy(url: str, tmp_path: Path) -> AsyncIterator[TestApp]:
    async with open_test_app(database_url=url, data_dir=tmp_path) as opened:
        yield opened


async def test_change_and_press_at_once_leave_no_qr_of_the_former_amount(busy: TestApp) -> None:
    """On every storage: either the press meets the new terms, or its QR is withdrawn."""
    for _ in range(4):
        made = await subscribed(busy, amount_rub="200")

        async def press(subscription_id: str) -> None:
            with suppress(TermsChanged):
                await open_binding(busy.ports, subscription_id, seen="200.00")

        answers = await asyncio.gather(
            press(made["id"]), patch(busy, made["id"], both("300")), press(made["id"]), return_exceptions=False
        )
        assert answers[1].status_code == 200
        await busy.work(60)
        found = await bindings(busy, made["id"])
        assert {each.status for each in found} <= {"expired"}
        assert (await record(busy, made["id"])).binding is None
        known = [await at_bank(busy, each) for each in found if each.bank_reference]
        assert set(known) <= {"closed"}


async def test_change_and_confirmation_at_once_keep_the_consent_that_was_shown(busy: TestApp) -> None:
    for to in ("100", "300"):
        made = await subscribed(busy, amount_rub="200")
        old = await open_link(busy, made["id"])
        await asyncio.gather(
            simulate(busy, binding_operation(old.id), E.CONFIRM, doubled=True), patch(busy, made["id"], both(to))
        )
        await busy.work(60)
        after = await record(busy, made["id"])
        assert (after.status, after.consent) == ("active", Rub(200_00))
        assert after.amount == after.cap_amount
        assert after.amount <= Rub(200_00)
        assert await everything(busy.ports, Suspense) == []


async def change_with_crash(at: int, *, after: bool, scheme: str) -> int:
    """The amount changes while a QR or link is out, and the process dies at one of the commits."""
    async with open_test_app() as app:
        if scheme == "calendar":
            await choose_calendar(app)
        made = await subscribed(app, amount_rub="200")
        old = await open_link(app, made["id"]) if scheme == "window" else (await bindings(app, made["id"]))[0]
        whole, fuse = app.ports, CrashPoint(at, after=after)
        who = await caller(whole, app.account.account_id)
        wish = SubscriptionPatch(amount_rub="100")
        with suppress(Killed):
            app.ports = fused(whole, fuse)
            await patch_subscription(app.ports, who, made["id"], wish)
            await app.work(1)
        app.ports = whole
        await app.work(LEASE + 30)
        await patch_subscription(whole, who, made["id"], wish)
        await app.work(LEASE)
        assert await at_bank(app, old) == "closed"
        assert await statuses(app, old.id) == [("pending", "expired")]
        if scheme == "calendar":
            assert (await shown(app, made["id"]))["binding_url"] not in (None, made["binding_url"])
        await play(app, made["id"], "confirm")
        assert await amounts(app, made) == ("100.00", "100.00", "100.00")
        assert len(await bindings(app, made["id"])) == 2
        return fuse.commits


@pytest.mark.parametrize("scheme", ["window", "calendar"])
@pytest.mark.parametrize("after", [False, True])
async def test_changing_the_amount_survives_a_crash_at_every_commit(after: bool, scheme: str) -> None:
    """Between the change and the revocation nothing is lost: the job that ends the QR is written with the change."""
    commits = await change_with_crash(_NEVER, after=after, scheme=scheme)
    assert commits >= 2
    for at in range(1, commits + 1):
        await change_with_crash(at, after=after, scheme=scheme)
