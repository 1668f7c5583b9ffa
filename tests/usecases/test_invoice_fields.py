"""What a bank says of an invoice beside its link: its kind (docs/adapters.md "What an invoice says")."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.compose import Adapters
from cambist.ports.bank import Invoice, InvoiceKind, InvoiceRequest
from tests.houses import TestHouse, open_test_house
from tests.usecases.test_polling import TellsNothing


class Says(TellsNothing):
    """A live bank whose invoices have what a test wants."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**capabilities)
        self.more: dict[str, Any] = {}

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        return msgspec.structs.replace(await super().create_invoice(request), **self.more)


@pytest.fixture
def bank() -> Says:
    return Says()


@pytest.fixture
async def house(bank: Says) -> AsyncIterator[TestHouse]:
    async with open_test_house(adapters=Adapters(banks={Mode.LIVE: [bank]})) as opened:
        bank.clock = opened.ports.clock
        await set_settings(opened.ports, opened.account.account_id, {"direct_links": "true"})
        yield opened


@pytest.mark.parametrize("kind", InvoiceKind)
async def test_only_a_link_of_sbp_is_handed_out_as_one(house: TestHouse, bank: Says, kind: InvoiceKind) -> None:
    if kind is not InvoiceKind.QR:
        bank.more = {"kind": kind, "payload": None}
    payment = (await house.create(mode="live")).json()
    answer = await house.get(f"/payments/{payment['id']}/sbp-link", mode="live")
    link = f"https://bank.example/{payment['id']}"
    assert answer.json() == {"sbp_link": link if kind is InvoiceKind.QR else None}
    stored = await house.payment(payment["id"])
    assert (stored.bank_link, stored.qr_payload) == (link, link if kind is InvoiceKind.QR else None)
    page = (await house.http.get(f"/p/{payment['id']}")).text
    assert ('id="qr"' in page) is (kind is InvoiceKind.QR)
    assert f'href="{link}"' in page
