"""An operator forgets a client (docs/kyc.md "Forgetting a client")."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.clients import Client, operation_of
from cambist.core.domain.kyc.kyc import Upload
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.webhooks.events import Attempt, Delivery, Event
from cambist.core.usecases.actions.audit import acting, list_audit
from cambist.core.usecases.common.encrypted import open_exchange_phone
from cambist.core.usecases.kyc.clients import set_blocked
from cambist.core.usecases.kyc.results import on_notification
from cambist.core.usecases.operators.client_forgetting import ForgottenClient, forget_client, remains
from cambist.core.usecases.sandbox.forgetting import forget_clients
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.kyc import CheckNotification, CheckStatus
from cambist.ports.storage import Unit
from tests.apps import TestApp
from tests.event_factory import happen
from tests.exchange_app import ExchangeApp, open_exchange_app
from tests.kyc_kit import FORM, OTHER, PHONE, KycApp, open_kyc_app
from tests.tables import table


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def anywhere(url: str, tmp_path: Path) -> AsyncIterator[KycApp]:
    """The same on each database."""
    async with open_kyc_app(tmp_path, database_url=url) as opened:
        yield opened


async def forget(kyc: KycApp, client: Client) -> ForgottenClient:
    """As the command line does."""
    action = OperatorAction(operator="olga", name="client.forget", object_id=client.id, reason="asked by letter")
    return await forget_client(acting(kyc.ports, action), client.id)


async def refused(kyc: KycApp, client: Client) -> tuple[str, str]:
    with pytest.raises(Refusal) as refusal:
        await forget(kyc, client)
    assert await list_audit(kyc.ports, object_id=client.id, limit=9) == []
    return refusal.value.code, refusal.value.message


async def rows(kyc: KycApp, *kinds: type[Any]) -> str:
    """Return all stored records of these kinds as text."""
    found = [each for kind in kinds async for batch in kyc.ports.storage.scan(kind) for each in batch]
    return " ".join(str(msgspec.structs.asdict(each)) for each in found)


async def test_forgetting_deletes_all_personal_data_and_is_audited(anywhere: KycApp) -> None:
    kyc = anywhere
    body = await kyc.documents()
    await kyc.register(body)
    await kyc.decide(CheckStatus.FAILED)
    await kyc.register(await kyc.documents())
    await kyc.decide(CheckStatus.VERIFIED)
    stays = await kyc.documents(OTHER)
    await kyc.register(stays)
    client, other = await kyc.client(), await kyc.client(OTHER)
    done = await forget(kyc, client)
    assert (done.client_id, done.uploads, done.events, done.verifier) == (client.id, 4, 2, "simulator")
    both = tuple(msgspec.structs.replace(client, checks=number) for number in (1, 2))
    assert done.checks == tuple(operation_of(each) for each in both)
    assert all(check in remains(done) for check in done.checks)
    left = await rows(kyc, Client, Upload, Event, Delivery, Attempt, Job)
    for trace in (client.id, PHONE, str(client.phone_digest), body["selfie_key"], body["document_key"]):
        assert trace not in left
    for key in (body["selfie_key"], body["document_key"]):
        assert await kyc.ports.files.stat(key) is None
    assert other.id in left
    assert await kyc.ports.files.stat(stays["selfie_key"]) is not None, "another client's"
    [row] = await list_audit(kyc.ports, object_id=client.id, limit=9)
    assert (row.action, row.operator, row.reason) == ("client.forget", "olga", "asked by letter")
    assert PHONE not in str(row)


async def test_forgotten_client_is_unknown(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED)
    client = await kyc.client()
    await forget(kyc, client)
    assert await on_notification(kyc.ports, CheckNotification(operation=operation_of(client))) is None
    assert (await kyc.check())["status"] == "required"
    assert (await kyc.app.get("/exchange-clients", mode="live")).json()["data"] == []
    await kyc.register()
    assert (await kyc.client()).id != client.id
    with pytest.raises(Refusal) as again:
        await forget_client(kyc.ports, client.id)
    assert again.value.code == "CLIENT_NOT_FOUND"


async def test_client_with_a_check_under_way_is_not_forgotten(kyc: KycApp) -> None:
    await kyc.register()
    code, message = await refused(kyc, await kyc.client())
    assert code == "INVALID_STATE"
    assert "check" in message
    await kyc.decide(CheckStatus.FAILED)
    await forget(kyc, await kyc.client())


async def test_a_check_at_a_verifier_that_is_not_set_any_more_keeps_nobody(kyc: KycApp) -> None:
    """No verifier remains that could decide it."""
    await kyc.register()
    client = await kyc.client()
    async with kyc.ports.storage.unit() as unit:
        unit[Client].save(msgspec.structs.replace(client, verifier="former"))
        await unit.commit()
    assert (await forget(kyc, client)).verifier == "former"


async def test_a_form_that_nobody_fills_in_keeps_nobody(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    await kyc.register({"phone": PHONE, **FORM})
    await forget(kyc, await kyc.client())
    assert (await kyc.check())["status"] == "required"


async def test_a_block_is_not_lost_by_forgetting(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    client = await kyc.client()
    await set_blocked(kyc.ports, client.id, True)
    code, message = await refused(kyc, client)
    assert code == "INVALID_STATE"
    assert "block" in message
    await set_blocked(kyc.ports, client.id, False)
    await forget(kyc, client)


async def test_a_client_of_test_mode_is_forgotten_too(kyc: KycApp) -> None:
    await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": "verified"}, "test")
    done = await forget(kyc, await kyc.client(mode=Mode.TEST))
    assert (done.verifier, done.checks, done.events) == (None, (), 1)
    assert "No verifier" in remains(done)


async def test_interrupted_it_is_done_by_the_next_call(kyc: KycApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client record is deleted last, so that the next call finds the rest."""
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED)
    client = await kyc.client()

    async def breaks(*_: Any) -> int:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr("cambist.core.usecases.operators.client_forgetting.forget_clients", breaks)
        with pytest.raises(ConnectionError):
            await forget(kyc, client)
    await forget(kyc, client)
    assert client.id not in await rows(kyc, Client, Upload, Event, Delivery, Job)


async def test_event_written_while_a_client_is_forgotten_goes_too(kyc: KycApp, monkeypatch: pytest.MonkeyPatch) -> None:
    await kyc.register(await kyc.documents())
    await kyc.decide(CheckStatus.VERIFIED)
    client = await kyc.client()
    before = len(await kyc.events())

    async def meanwhile(ports: Ports, unit: Unit, clients: Sequence[Client]) -> int:
        await happen(ports, client.account_id, mode=client.mode, object_id=client.id)
        return await forget_clients(ports, unit, clients)

    monkeypatch.setattr("cambist.core.usecases.operators.client_forgetting.forget_clients", meanwhile)
    assert (await forget(kyc, client)).events == before + 1
    assert client.id not in await rows(kyc, Event)


async def paid_by(app: TestApp, phone: str) -> str:
    """Make a payment with the phone, and have it paid. Returns its id."""
    headers = app.headers(Idempotency_Key=str(uuid4()))
    body = {"amount_rub": "100.00", "client_phone": phone}
    made = await app.http.post("/api/v1/payments", json=body, headers=headers)
    payment_id: str = made.json()["id"]
    await app.simulate(payment_id, outcome="paid", payer_name="Ivan P.")
    return payment_id


class TestMoneyUnderWay:
    """A client of test mode with an exchange."""

    @pytest.fixture
    async def app(self) -> AsyncIterator[ExchangeApp]:
        async with open_exchange_app() as opened:
            body = {"phone": PHONE, "kyc_status": "verified"}
            made = await opened.action("/sandbox/exchange-clients", body)
            assert made.status_code == 200, made.text
            yield opened

    async def test_an_exchange_under_way_keeps_its_client(self, app: ExchangeApp) -> None:
        made = await app.made(phone=PHONE)
        assert made.client_id is not None
        with pytest.raises(Refusal, match="under way"):
            await forget_client(app.ports, made.client_id)
        await app.cancel(made.id)
        await forget_client(app.ports, made.client_id)
        kept = await app.exchange(made.id)
        assert open_exchange_phone(app.ports.vault, kept) == PHONE, "the exchange is a record of money"

    async def test_events_of_exchanges_and_payments_go_with_their_client(self, app: ExchangeApp) -> None:
        test_app = app.app
        await app.action("/sandbox/exchange-clients", {"phone": OTHER, "kyc_status": "verified"})
        others = await app.made(phone=OTHER)
        mine = await app.made(phone=PHONE)
        for made in (mine, others):
            await app.cancel(made.id)
        payments = [await paid_by(test_app, phone) for phone in (PHONE, OTHER)]
        await test_app.work(5)
        done = await forget_client(app.ports, str(mine.client_id))
        gone = [await test_app.events(object_id) for object_id in (mine.id, payments[0])]
        kept = [len(await test_app.events(object_id)) for object_id in (others.id, payments[1])]
        assert (gone, kept, done.events) == ([[], []], [1, 1], 3), "the third is of the verification"

    async def test_money_in_suspense_keeps_its_client(self, app: ExchangeApp) -> None:
        made = await app.made(phone=PHONE)
        for amount in ("60", "50"):
            await app.send(made.id, amount)
        await app.app.work(15)
        assert await app.status(made.id) == "completed"
        with pytest.raises(Refusal, match="suspense"):
            await forget_client(app.ports, str(made.client_id))

    async def test_suspense_is_searched_to_its_end(self, app: ExchangeApp, monkeypatch: pytest.MonkeyPatch) -> None:
        """However much of others' waits before it."""
        monkeypatch.setattr("cambist.core.usecases.operators.client_forgetting._AT_ONCE", 1)
        phones = (PHONE, OTHER, "+79001234569")
        clients = []
        for phone in phones:
            await app.action("/sandbox/exchange-clients", {"phone": phone, "kyc_status": "verified"})
            made = await app.made(phone=phone)
            clients.append(str(made.client_id))
            for amount in ("60", "50") if phone != phones[2] else ("100",):
                await app.send(made.id, amount)
            await app.app.work(15)
        for each in clients[:2]:
            with pytest.raises(Refusal, match="suspense"):
                await forget_client(app.ports, each)
        await forget_client(app.ports, clients[2])


@table(
    ("verifier", "checks", "told"),
    [
        (None, ("chk_1",), "No verifier was asked about the client."),
        ("v", (), "No verifier was asked about the client."),
        ("v", ("chk_1", "chk_2"), "What was handed in remains at v: have it deleted there, under chk_1, chk_2."),
    ],
)
def test_result_names_what_remains_elsewhere(verifier: str | None, checks: tuple[str, ...], told: str) -> None:
    done = ForgottenClient(client_id="cl_1", account_id="acc_1", uploads=0, events=0, verifier=verifier, checks=checks)
    assert remains(done) == told
