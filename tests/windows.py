"""Looking at the payer window's pages, and payments in each state it draws."""

from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec

from cambist.core.domain.payments.payments import Opening, Payment
from cambist.core.usecases.common.encrypted import pay_tag
from tests.apps import TestApp
from tests.planting import beneath


class Page(HTMLParser):
    """Parsed page: its tags, and its text without the parts that a payer does not see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def main(self) -> dict[str, str | None]:
        return self.all("main")[0]


async def store(app: TestApp, payment_id: str, **changes: Any) -> None:
    """Change a stored payment as no request could, and tag where it is paid."""
    app.made_up = True
    async with beneath(app.ports).unit() as unit:
        payment = await unit[Payment].get(payment_id)
        assert payment is not None
        changed = msgspec.structs.replace(payment, **changes)
        unit[Payment].save(msgspec.structs.replace(changed, pay_tag=pay_tag(app.ports.vault, changed)))
        await unit.commit()


async def page_of(app: TestApp, payment: dict[str, Any] | str, query: str = "", **headers: str) -> httpx.Response:
    payment_id = payment if isinstance(payment, str) else payment["id"]
    return await app.http.get(f"/p/{payment_id}{query}", headers=headers)


async def with_face(app: TestApp, face: str) -> dict[str, Any]:
    """Create a payment whose page shows this face, by real payment events where possible."""
    payment = await app.created({"amount_rub": "1234.56", "description": "Order 7"})
    outcomes = {"paid": "paid", "failed": "failed", "cancelled": "cancelled", "processing": "processing"}
    if face in outcomes:
        await app.simulate(payment["id"], outcome=outcomes[face])
    elif face == "review":
        await app.simulate(payment["id"], outcome="amount_mismatch", actual_amount_rub="1000.00")
    elif face == "expired":
        await app.work(15 * 60)
    elif face == "checking":
        await app.clock.advance(15 * 60)
    elif face == "preparing":
        await store(app, payment["id"], qr_payload=None, bank_link=None, bank_reference=None, opening=Opening.ASKING)
    return payment


FACES = ("preparing", "waiting", "checking", "processing", "paid", "failed", "cancelled", "expired", "review")
