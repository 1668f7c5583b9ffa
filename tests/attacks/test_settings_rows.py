"""Edits of an account's settings, made without the vault's keys, let no money out (SECURITY.md)."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, RefundApproval
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub, Usdt
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.settlement.settlement import settle_own
from tests.apps import TestApp
from tests.attacks.kit import Attacker
from tests.attacks.test_money_rows import differing
from tests.usecases.settlement.test_settlement import caller, paid

EDITS: Mapping[str, Mapping[str, Any]] = {
    "refunds need no approval": {"refund_approval": RefundApproval.AUTO},
    "a large overdraft": {"refund_overdraft_usdt": Usdt(10**14)},
    "refunds off": {"refunds": False},
    "no reserve": {"refund_reserve": False},
    "exchanges on": {"exchange": True},
    "no markup": {"exchange_markup_percent": "0"},
    "a large payment": {"amount_rub_max": Rub(10**10)},
}

AS_SET = {"refunds": "true", "refund_approval": "manual", "refund_reserve": "true"}
AS_BEGUN = {
    "refund_overdraft_usdt": "0",
    "exchange": "false",
    "exchange_markup_percent": "2",
    "amount_rub_max": "1000000",
}


async def edited(app: TestApp, attacker: Attacker, **changes: Any) -> None:
    """Write other settings, and leave the tag."""
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    settings = msgspec.structs.replace(account.settings, **changes)
    await attacker.write(msgspec.structs.replace(account, settings=settings))
    await app.work(60)  # the API reads accounts anew


async def post(app: TestApp, path: str, body: Mapping[str, str]) -> httpx.Response:
    """Ask for something new with a key of its own."""
    headers = app.headers("test", Idempotency_Key=str(uuid4()))
    return await app.http.post(f"/api/v1{path}", json=body, headers=headers)


async def with_refunds(app: TestApp) -> None:
    """Let an operator turn refunds on, each to be approved."""
    await set_settings(app.ports, app.account.account_id, AS_SET)


@pytest.mark.parametrize("case", EDITS)
async def test_altered_setting_is_named_until_an_operator_sets_all(
    attacked: TestApp, attacker: Attacker, case: str
) -> None:
    await with_refunds(attacked)
    assert await differing(attacked) == []
    await edited(attacked, attacker, **EDITS[case])
    account_id = attacked.account.account_id
    assert await differing(attacked) == [(account_id, "accounts.settings")]
    with pytest.raises(Refusal) as refused:
        await set_settings(attacked.ports, account_id, {"auto_return": "false"})
    assert refused.value.code == "INVALID_STATE"
    await set_settings(attacked.ports, account_id, {**AS_SET, **AS_BEGUN})
    assert await differing(attacked) == []


async def test_altered_approval_lets_no_refund_out(attacked: TestApp, attacker: Attacker) -> None:
    await with_refunds(attacked)
    payment_id = await paid(attacked, "500.00")
    await edited(attacked, attacker, refund_approval=RefundApproval.AUTO)
    refund = (await post(attacked, "/refunds", {"payment_id": payment_id})).json()
    assert (refund["status"], refund["pending_reason"]) == ("pending", "awaiting_approval")


async def test_altered_overdraft_lets_no_refund_out(attacked: TestApp, attacker: Attacker) -> None:
    texts = {"refunds": "true", "refund_approval": "auto"}
    await set_settings(attacked.ports, attacked.account.account_id, texts)
    payment_id = await paid(attacked, "500.00")
    await settle_own(attacked.ports, await caller(attacked))
    refund = (await post(attacked, "/refunds", {"payment_id": payment_id})).json()
    await edited(attacked, attacker, refund_overdraft_usdt=Usdt(10**14))
    await attacked.work(60)
    found = (await attacked.get(f"/refunds/{refund['id']}")).json()
    assert (found["status"], found["pending_reason"]) == ("pending", "insufficient_balance")


async def test_altered_exchange_setting_opens_none(attacked: TestApp, attacker: Attacker) -> None:
    await edited(attacked, attacker, exchange=True)
    body = {"amount_usdt": "100", "client_phone": "+79990000001", "client_bank_id": "bank1"}
    answer = await post(attacked, "/exchanges", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "FEATURE_NOT_ENABLED")
