"""GET /withdrawals, GET /withdrawals/{id}, and the discontinued POST /withdrawals (docs/settlement.md "Payouts")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from cambist.adapters.payouts.simulator import FINALITY
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Usdt
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.settlement.withdrawals import pay_out
from cambist.frontends.http.openapi.openapi import openapi_document
from tests.http.documents import Document
from tests.payout_kit import CREDIT, OTHER_WALLET, PAID, WALLET, Payouts, open_payouts

NOTHING = "wd_00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def document() -> Document:
    return Document(openapi_document("https://pay.example"))


@pytest.fixture
async def payouts() -> AsyncIterator[Payouts]:
    async with open_payouts(receiver=True) as opened:
        yield opened


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def iso(payouts: Payouts, seconds: float = 0) -> str:
    return (payouts.ports.clock.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


async def test_a_payout_has_these_fields_and_no_others(payouts: Payouts, document: Document) -> None:
    settlement_id = await payouts.credit()
    created = iso(payouts)
    made = await payouts.pay_out(settlement_id=settlement_id)
    assert made is not None
    response = await payouts.app.get(f"/withdrawals/{made.id}")
    document.check(response)
    pending = {
        "id": made.id,
        "withdrawal_id": made.id,
        "status": "pending",
        "amount_usdt": "100.00000100",
        "wallet_address": WALLET,
        "tx_hash": None,
        "network": "tron",
        "settlement_id": settlement_id,
        "created_at": created,
        "sent_at": None,
        "completed_at": None,
        "sandbox": True,
    }
    assert response.json() == pending
    await payouts.app.work(60)
    [tx_hash] = payouts.sender.hashes("sign")
    final = (payouts.ports.clock.now() - timedelta(seconds=60) + FINALITY).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    done = {"status": "completed", "tx_hash": tx_hash, "sent_at": created, "completed_at": final}
    assert (await payouts.app.get(f"/withdrawals/{made.id}")).json() == {**pending, **done}


async def test_the_hash_is_not_shown_while_nothing_is_known_to_be_sent(payouts: Payouts) -> None:
    payouts.script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 100)
    made = await payouts.made()
    await payouts.app.work(30)
    shown = (await payouts.app.get(f"/withdrawals/{made.id}")).json()
    assert (shown["status"], shown["tx_hash"]) == ("processing", None)
    assert (await payouts.record(made.id)).tx_hash is not None
    await payouts.app.work(60)
    shown = (await payouts.app.get(f"/withdrawals/{made.id}")).json()
    assert (shown["status"], shown["tx_hash"], shown["sent_at"]) == ("failed", None, None)


async def test_live_payouts_have_no_sandbox_field(document: Document) -> None:
    async with open_payouts(mode=Mode.LIVE) as payouts:
        made = await payouts.made()
        response = await payouts.app.get(f"/withdrawals/{made.id}", mode="live")
        document.check(response)
        assert "sandbox" not in response.json()


async def test_pages_are_newest_first_and_counted(payouts: Payouts, document: Document) -> None:
    made = []
    for _ in range(3):
        made.append((await payouts.made()).id)
        await payouts.app.work(60)
    first = await payouts.app.get("/withdrawals?per_page=2")
    document.check(first)
    assert [each["id"] for each in first.json()["data"]] == [made[2], made[1]]
    assert first.json()["pagination"] == {"page": 1, "per_page": 2, "total": 3, "total_pages": 2}
    second = (await payouts.app.get("/withdrawals?per_page=2&page=2")).json()
    assert [each["id"] for each in second["data"]] == [made[0]]
    one = (await payouts.app.get(f"/withdrawals/{made[0]}")).json()
    assert second["data"] == [one]
    refused(await payouts.app.get("/withdrawals?page=0"), 400, "VALIDATION_ERROR")


async def test_modes_cannot_see_each_other(payouts: Payouts) -> None:
    made = await payouts.made()
    refused(await payouts.app.get(f"/withdrawals/{made.id}", mode="live"), 404, "WITHDRAWAL_NOT_FOUND")
    assert (await payouts.app.get("/withdrawals", mode="live")).json()["data"] == []
    assert len((await payouts.app.get("/withdrawals")).json()["data"]) == 1


async def test_accounts_cannot_see_each_other(payouts: Payouts) -> None:
    other = await create_account(payouts.ports, "Another")
    await set_settings(payouts.ports, other.account_id, {"payout_wallet": OTHER_WALLET})
    await payouts.credit(account_id=other.account_id)
    theirs = await pay_out(payouts.ports, other.account_id, Mode.TEST)
    assert theirs is not None
    refused(await payouts.app.get(f"/withdrawals/{theirs.id}"), 404, "WITHDRAWAL_NOT_FOUND")
    assert (await payouts.app.get("/withdrawals")).json()["data"] == []


@pytest.mark.parametrize("withdrawal_id", [NOTHING, "wd_1", "pay_1", "%00", NOTHING.upper()])
async def test_unknown_withdrawal_is_not_found(payouts: Payouts, document: Document, withdrawal_id: str) -> None:
    response = await payouts.app.get(f"/withdrawals/{withdrawal_id}")
    refused(response, 404, "WITHDRAWAL_NOT_FOUND")
    document.check(response)


@pytest.mark.parametrize("mode", ["test", "live"])
@pytest.mark.parametrize("body", [None, {"amount_usdt": "10", "wallet_address": WALLET}], ids=["empty", "full"])
async def test_manual_withdrawals_are_discontinued(payouts: Payouts, mode: str, body: dict[str, str] | None) -> None:
    headers = payouts.app.headers(mode, Idempotency_Key=str(uuid4()))
    response = await payouts.app.http.post("/api/v1/withdrawals", json=body, headers=headers)
    refused(response, 410, "WITHDRAWAL_DISCONTINUED")
    assert await payouts.every() == []


async def test_withdrawals_are_not_readable_without_a_key(payouts: Payouts) -> None:
    for path in ("/withdrawals", f"/withdrawals/{NOTHING}"):
        refused(await payouts.app.http.get(f"/api/v1{path}"), 401, "Unauthorized")


async def test_every_move_is_delivered_as_the_payload_of_the_contract(payouts: Payouts) -> None:
    made = await payouts.made()
    await payouts.app.work(60)
    webhooks = [body for body in payouts.app.postman.bodies if body.get("withdrawal_id") == made.id]
    assert sorted(each["status"] for each in webhooks) == ["completed", "pending", "processing", "sent"]
    assert {tuple(sorted(each)) for each in webhooks} == {
        (
            "amount_usdt",
            "event",
            "previous_status",
            "status",
            "timestamp",
            "tx_hash",
            "wallet_address",
            "withdrawal_id",
        )
    }
    assert {each["event"] for each in webhooks} == {"withdrawal.status_changed"}
    headers = [webhook.headers for webhook in payouts.app.postman.webhooks]
    assert [each["X-Webhook-Sequence"] for each in headers] == ["1", "2", "3", "4"]
    payouts.app.check_signatures()


async def test_the_balance_follows_the_payout(payouts: Payouts) -> None:
    async def balance() -> tuple[str, ...]:
        body = (await payouts.app.get("/balance")).json()
        names = ("available_usdt", "reserved_usdt", "total_withdrawn_usdt", "total_settled_usdt")
        return tuple(body[name] for name in names)

    zero, rest = str(Usdt(0)), str(CREDIT - PAID)
    await payouts.credit()
    assert await balance() == (str(CREDIT), zero, zero, str(CREDIT))
    await payouts.pay_out()
    assert await balance() == (rest, str(PAID), zero, str(CREDIT))
    await payouts.app.work(60)
    assert await balance() == (rest, zero, str(PAID), str(CREDIT))
