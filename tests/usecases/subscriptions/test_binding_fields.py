"""A binding's link as the bank states it, and the first charges that a bank accepts (docs/adapters.md "Fields of an
invoice")."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.subscriptions.binding_progress import look
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import BankCapabilities, InvoiceKind
from cambist.ports.mandates import Binding, BindingRequest, MandateState
from tests.apps import TestApp, open_test_app
from tests.subscription_app import bindings, press, subscribe
from tests.tables import table
from tests.windows import Page

PAGE = "https://bank.example/bind/1"
APP = "bankapp://bind/1"


class Binder(SimulatedBank):
    """A live bank whose bindings lead where a test wants."""

    more: dict[str, Any]
    late = False
    """The link comes after the answer."""
    asked: list[BindingRequest]

    def __init__(self, name: str = "binder", clock: Any = None, **can: Any) -> None:
        capabilities = BankCapabilities(mandates=True, mandate_charges=True, sends_notifications=True, **can)
        super().__init__(name, MemoryStorage(clock), clock, SeededIds(7), capabilities=capabilities)
        self.more, self.asked = {}, []

    def at(self, clock: Any) -> None:
        self._clock = clock
        self._pages._clock = self._pages._storage._clock = clock  # type: ignore[attr-defined]

    async def bind(self, request: BindingRequest) -> Binding:
        self.asked.append(request)
        made = msgspec.structs.replace(await super().bind(request), **self.more)
        return msgspec.structs.replace(made, link=None, payload=None) if self.late else made

    async def mandate_state(self, reference: str) -> MandateState:
        state = await super().mandate_state(reference)
        return state if state.link is None else msgspec.structs.replace(state, **self.more)


@pytest.fixture
def bank() -> Binder:
    return Binder()


@pytest.fixture
async def app(bank: Binder) -> AsyncIterator[TestApp]:
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as opened:
        bank.at(opened.clock)
        yield opened


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("kind", "link"), [(InvoiceKind.PAGE, PAGE), (InvoiceKind.DEEPLINK, APP)])
async def test_a_link_that_is_no_qr_is_a_button(
    app: TestApp, bank: Binder, kind: InvoiceKind, link: str, late: bool
) -> None:
    bank.more, bank.late = {"kind": kind, "link": link, "payload": None}, late
    made = (await subscribe(app, mode="live", binding_charge="none")).json()
    await press(app, made["id"])
    [payment] = await bindings(app, made["id"])
    if late:
        payment = await look(app.ports, payment)
    assert (payment.bank_link, payment.qr_payload, str(payment.link_kind)) == (link, None, kind.value)
    answer = (await app.http.get(f"/s/{made['id']}?lang=en")).text
    drawn = Page(answer)
    assert link in [tag["href"] for tag in drawn.all("a")]
    assert 'id="qr"' not in answer
    assert "QR" not in drawn.text


async def test_a_qr_is_a_qr(app: TestApp, bank: Binder) -> None:
    made = (await subscribe(app, mode="live")).json()
    answer = (await press(app, made["id"])).text
    [payment] = await bindings(app, made["id"])
    assert (payment.link_kind, payment.qr_payload) == (None, payment.bank_link)
    assert bank.asked[-1].return_url == f"https://pay.example/s/{made['id']}"
    assert 'id="qr"' in answer


@table(("amount", "taken"), [("99.99", False), ("100.00", True), ("500.00", True), ("500.01", False)])
async def test_a_first_charge_is_within_the_bank_s_limits(amount: str, taken: bool) -> None:
    bank = Binder(min_kopecks=100_00, max_kopecks=500_00)
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
        bank.at(app.clock)
        answer = await subscribe(app, mode="live", amount_rub=amount)
        if taken:
            assert answer.status_code == 201
            return
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_AMOUNT")
        assert "100.00 to 500.00" in answer.json()["error"]["message"]
        free = await subscribe(app, mode="live", amount_rub=amount, binding_charge="none")
        assert free.status_code == 201, "a binding that takes nothing has no amount"


async def test_a_bank_that_does_not_take_it_is_passed_over(app: TestApp) -> None:
    small, large = Binder("small", max_kopecks=100_00), Binder("large")
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [small, large]})) as opened:
        for bank in (small, large):
            bank.at(opened.clock)
        made = (await subscribe(opened, mode="live", amount_rub="500")).json()
        await press(opened, made["id"])
        assert (len(small.asked), len(large.asked)) == (0, 1)
