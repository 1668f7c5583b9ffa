"""Random histories over a Raiffeisenbank of which every eighth call goes wrong in some way, and whose notices are lost
or doubled: in the end merchants, books, bank and cash register agree to the kopeck."""

import random
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.usecases.accounts import accounts
from cambist.testing import ProviderFault
from tests.providers.raiffeisen.test_house import Shop, open_shop

PAYMENTS = 24
FAULTS = (
    ProviderFault.LOST_BEFORE,
    ProviderFault.LOST_AFTER,
    ProviderFault.CUT_IN_BODY,
    ProviderFault.BUSY,
    ProviderFault.SERVER_ERROR,
    ProviderFault.BAD_GATEWAY,
    ProviderFault.HTML,
    ProviderFault.JSON_WITHOUT_FIELDS,
)
RECEIPTS = {"raiffeisen_receipts": "required", "raiffeisen_receipt_email": "receipts@shop.example"}
TERMS = {
    "receipt_tax_system": "usn_income",
    "receipt_vat": "none",
    "receipt_subject": "service",
    "receipt_mode": "full_payment",
    "receipt_email": "shop@shop.example",
}


def spoil(shop: Shop, chance: random.Random) -> None:
    """From now on one call of sixty-four meets each of these."""
    for fault in FAULTS:
        shop.bank.next(fault, matching=lambda _: chance.random() < 1 / 64, always=True)


async def told(shop: Shop, chance: random.Random, order: str) -> None:
    """The bank's notice comes, twice, or not at all."""
    for _ in range(chance.choice((0, 1, 1, 2))):
        assert await shop.tell(shop.bank.notice(order)) == 200


async def asked(shop: Shop, path: str, body: dict[str, Any]) -> Any:
    """What was made; None where the service could not say."""
    headers = shop.house.headers("live", Idempotency_Key=str(uuid4()))
    answer = await shop.house.http.post(f"/api/v1{path}", json=body, headers=headers)
    assert answer.status_code in (201, 502, 503), answer.text
    return answer.json() if answer.status_code == 201 else None


async def status_of(shop: Shop, path: str) -> str:
    return str((await shop.ask("GET", path))["status"])


@pytest.mark.parametrize("seed", range(2))
async def test_books_and_bank_agree(seed: int) -> None:
    chance = random.Random(seed)
    async with open_shop(own=RECEIPTS) as shop:
        await accounts.set_settings(shop.house.ports, shop.house.account.account_id, TERMS)
        spoil(shop, chance)
        paid, back = await _history(shop, chance)
        shop.bank.recover()
        await shop.house.work(30 * 3600)
        for payment_id in paid:
            assert await status_of(shop, f"/payments/{payment_id}") in ("paid", "partially_refunded", "refunded")
        for refund_id in back:
            assert await status_of(shop, f"/refunds/{refund_id}") == "completed"
        came = [each for each in shop.bank.qrs.values() if each["payment"] == "SUCCESS"]
        assert sorted(each["order"] for each in came) == sorted(paid), "an order is paid once, and is one of ours"
        assert sorted(each for each in shop.bank.refunds) == sorted(back), "a refund goes once"
        written = {key: each["registered"] for key, each in shop.bank.receipts.items()}
        moved = [*(("sell", each) for each in paid), *(("refund", each) for each in back)]
        assert written == dict.fromkeys(moved, 1), "each has one receipt"
        left = sum(each["amount"] for each in came) - sum(each["amount"] for each in shop.bank.refunds.values())
        assert Decimal((await shop.ask("GET", "/balance"))["pending_rub"]) == left


async def _history(shop: Shop, chance: random.Random) -> tuple[list[str], list[str]]:
    """The ids of payments that payers paid, and of refunds."""
    paid, back = [], []
    for _ in range(PAYMENTS):
        amount = f"{chance.randrange(30_00, 900_00) / 100:.2f}"
        payment = await asked(shop, "/payments", {"amount_rub": amount, "ttl_minutes": 15})
        if payment is None or chance.random() < 0.2:
            continue
        qrs = [each for each in shop.bank.qrs.values() if each["order"] == payment["id"]]
        shown = [each for each in qrs if each["payload"] == await _payload(shop, payment["id"])]
        if not shown or shop.bank.shown(shown[0]) != "NEW":
            continue
        shop.bank.pay(shown[0]["qrId"])
        paid.append(payment["id"])
        await told(shop, chance, payment["id"])
        if chance.random() < 0.4 and await status_of(shop, f"/payments/{payment['id']}") == "paid":
            refund = await asked(shop, "/refunds", {"payment_id": payment["id"], "amount_rub": "0.50"})
            if refund is not None:
                back.append(refund["id"])
        await shop.house.work(chance.randrange(60))
    return paid, back


async def _payload(shop: Shop, payment_id: str) -> str | None:
    """What the payer's window shows."""
    return (await shop.house.payment(payment_id)).qr_payload
