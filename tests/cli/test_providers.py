"""`cambist provider …` (docs/providers/index.md)."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.frontends.settings import plugins
from cambist.ports import Invoice, InvoiceRequest, InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from examples.own_bank.bank import NAME
from tests.cli.conftest import Call


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's bank is live mode's, and nobody is at its address."""
    point = EntryPoint(NAME, "examples.own_bank.bank:example", "cambist.banks")

    def installed(*, group: str) -> Sequence[EntryPoint]:
        return [point] if group == point.group else []

    monkeypatch.setattr(plugins, "entry_points", installed)
    monkeypatch.setenv("CAMBIST_BANKS", NAME)
    monkeypatch.setenv("CAMBIST_EXAMPLE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CAMBIST_EXAMPLE_TOKEN", "hunter2")


def test_every_provider_of_live_mode_is_shown_with_what_it_can_do(call: Call) -> None:
    done = call("provider", "check", "--json")
    assert done.status == 0
    rows = {row["name"]: row for row in done.document["data"]}
    bank = rows["simulator-live"]
    assert (bank["port"], bank["credentials"], bank["fault"]) == ("bank", "not_checked", None)
    assert "refunds" in bank["can"]
    assert "cancels_invoices" in bank["cannot"]
    assert bank["limits"]["remittance_max_kopecks"] == "50000000"
    assert {row["port"] for row in rows.values()} == {"bank", "payouts", "deposits", "rates", "kyc", "chain"}
    text = call("provider", "check", "simulator-live").out
    assert "credentials  not_checked" in text
    assert "None" not in text


@pytest.mark.usefixtures("unreachable")
def test_a_provider_that_does_not_answer_is_a_failure(call: Call) -> None:
    done = call("provider", "check", NAME, "--json")
    assert done.status == 1
    [row] = done.document["data"]
    assert row["credentials"] == "no_answer"
    assert "hunter2" not in done.out + done.err


@pytest.mark.parametrize("command", [("check", "nobody"), ("trial", "nobody", "--yes")])
def test_unknown_gateway_is_refused(call: Call, command: Sequence[str]) -> None:
    done = call("provider", *command, "--json")
    assert (done.status, done.document["error"]["code"]) == (1, "GATEWAY_NOT_FOUND")
    assert "simulator-live" in done.document["error"]["message"]


def test_a_trial_is_asked_for_first(call: Call) -> None:
    """It is real money."""
    done = call("provider", "trial", "simulator-live")
    assert done.status == 1
    assert "10.00 RUB of real money" in done.err


@pytest.mark.parametrize("amount", ["ten", "1e3", "10.001"])
def test_an_amount_is_roubles(call: Call, amount: str) -> None:
    assert call("provider", "trial", "simulator-live", "--yes", "--amount", amount).status == 2


@pytest.fixture
def paid_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pay every invoice of the simulator as soon as it is shown."""
    create = SimulatedBank.create_invoice

    async def created(self: SimulatedBank, request: InvoiceRequest) -> Invoice:
        invoice = await create(self, request)
        await self.simulate(request.operation, Simulation(status=InvoiceStatus.PAID), reference=invoice.reference)
        return invoice

    monkeypatch.setattr(SimulatedBank, "create_invoice", created)


@pytest.mark.usefixtures("paid_at_once")
def test_a_trial_shows_where_to_pay_and_how_it_ended(call: Call) -> None:
    done = call("provider", "trial", "simulator-live", "--yes", "--json")
    assert done.status == 0
    assert done.document["outcome"] == "returned"
    operation = done.document["operation"]
    assert f"trial {operation}: --operation with this id goes on" in done.err
    assert "pay here: https://qr.nspk.example/" in done.err
    assert "█" in done.err
    again = call("provider", "trial", "simulator-live", "--yes", "--operation", operation)
    assert (again.status, again.out.splitlines()[-1].split()) == (0, ["outcome", "returned"])
