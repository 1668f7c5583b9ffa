"""`cambist trigger` over real sockets: every event happens by its calls (docs/cli.md "Events by one command")."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.ids import SystemIds
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.common.encrypted import open_event_body
from cambist.frontends.cli.recipes import RECIPES
from cambist.frontends.cli.triggering import Caller, Told, perform
from cambist.ports.faults import Unavailable
from tests.apps import TestApp
from tests.cli.conftest import Call
from tests.cli.test_listen import Served
from tests.invariants import everything
from tests.payout_kit import WALLET

GIVEN = {"amount": "490.00", "phone": "+79001112233", "gateway": "simulator-test"}
SAYS = {
    "payment": "payment.status_changed",
    "subscription": "subscription.status_changed",
    "exchange": "exchange.status_changed",
    "withdrawal": "withdrawal.status_changed",
    "kyc": "kyc.status_changed",
    "gateway": "gateway.status_changed",
}
"""Event types by the object's kind; refunds have one for each outcome."""
OWN_EVENT = {"subscription.charge_exhausted"}
WITHOUT_STATUS = {"webhook.test", "subscription.charged", "subscription.past_due"}


@pytest.fixture
async def served(app: TestApp) -> AsyncIterator[Served]:
    wanted = dict.fromkeys(("refunds", "exchange", "recurring"), "true") | {"payout_wallet": WALLET}
    await accounts.set_settings(app.ports, app.account.account_id, wanted)
    made = Served(app)
    await made.start()
    yield made
    await made.stop()


def caller(served: Served, secret: str | None = None) -> Caller:
    pair = served.app.account.test
    return Caller(base_url=served.base_url, api_key=pair.api_key, api_secret=secret or pair.api_secret, ids=SystemIds())


@pytest.mark.parametrize("name", RECIPES)
async def test_every_event_happens(served: Served, name: str) -> None:
    told: list[Told] = []
    if name == "gateway.operational":
        await perform(caller(served), RECIPES["gateway.down"], GIVEN, told.append)
    await perform(caller(served), RECIPES[name], GIVEN, told.append)
    refused = [each.status for each in told if each.status >= 400]
    assert refused == ([502] if name == "subscription.charge_exhausted" else [])
    if name in WITHOUT_STATUS:
        return
    kind, _, status = name.partition(".")
    wanted = name if name in OWN_EVENT or kind == "refund" else SAYS[kind]
    ports = served.app.ports
    bodies = [open_event_body(ports.vault, each) for each in await everything(ports, Event) if each.type == wanted]
    assert bodies
    assert wanted == name or any(f'"status":"{status}"'.encode() in body for body in bodies), bodies


@pytest.mark.parametrize(
    ("name", "says"),
    [("subscription.past_due", b'"past_due":true'), ("subscription.charged", b'"event":"payment.status_changed"')],
)
async def test_recipe_without_a_status_of_its_own_makes_its_event(served: Served, name: str, says: bytes) -> None:
    await perform(caller(served), RECIPES[name], GIVEN, lambda _: None)
    await served.app.work(5)
    ports = served.app.ports
    assert any(says in open_event_body(ports.vault, event) for event in await everything(ports, Event))


async def test_a_refusal_is_the_apis_own(served: Served) -> None:
    with pytest.raises(Refusal) as refused:
        await perform(caller(served, secret="wrong"), RECIPES["payment.paid"], GIVEN, lambda _: None)
    assert refused.value.code == "Unauthorized"


async def test_only_the_refusal_that_is_meant_is_passed_over(served: Served) -> None:
    meant = msgspec.structs.replace(RECIPES["payment.paid"][0], refused="AMOUNT_BELOW_MINIMUM", keeps=None)
    told: list[Told] = []
    await perform(caller(served), [meant], {"amount": "1.00"}, told.append)
    assert [each.status for each in told] == [400]
    with pytest.raises(Refusal) as refused:
        await perform(caller(served), [meant], {"amount": "1.001"}, told.append)
    assert refused.value.code == "VALIDATION_ERROR"


def test_every_event_that_test_mode_knows_can_be_triggered() -> None:
    told = {SAYS.get(name.partition(".")[0], name) for name in RECIPES} | OWN_EVENT
    assert {each.value for each in EventType} - told == {"payment.delivery_proof_reminder"}


async def test_a_service_that_is_away_is_named(served: Served) -> None:
    await served.stop()
    with pytest.raises(Unavailable, match=served.base_url):
        await perform(caller(served), RECIPES["payment.paid"], GIVEN, lambda _: None)


def test_no_secret_shows(served: Served) -> None:
    assert served.app.account.test.api_secret not in repr(caller(served))


KEYS = ("--api-key", "svc_test_1", "--api-secret", "s")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("payment.pad", *KEYS), "did you mean payment.paid?"),
        (("garbage", *KEYS), "there are: payment.processing"),
        (("payment.paid", "--amount", "x", *KEYS), "must be a number of roubles"),
        (("payment.paid", "--amount", "1.005", *KEYS), "must be a number of roubles"),
        (("payment.paid", "--amount", "NaN", *KEYS), "must be a number of roubles"),
        (("payment.paid", "--api-key", "svc_live_1", "--api-secret", "s"), "must be a test key"),
        (("payment.paid",), "--api-key"),
    ],
)
def test_impossible_trigger_is_wrong_usage(call: Call, arguments: tuple[str, ...], message: str) -> None:
    outcome = call("trigger", *arguments)
    assert outcome.status == 2
    assert message in " ".join(outcome.err.split())


def test_help_of_trigger_names_every_event(call: Call) -> None:
    said = " ".join(call("trigger", "--help").out.split())
    assert all(name in said for name in RECIPES)
