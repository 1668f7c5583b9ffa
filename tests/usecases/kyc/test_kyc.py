"""KYC beyond one request: races, crashes, answers that are lost, late, doubled or out of order, and the stored data of
a client (docs/kyc.md "In live mode"; ARCHITECTURE.md "Three outcomes")."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.clients import Client, DocumentState, KycStatus, operation_of
from cambist.core.domain.kyc.kyc import CheckOrder, RegisterOrder
from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.kyc.clients import ClientSimulation, set_blocked, shown
from cambist.core.usecases.kyc.gate import present_client
from cambist.core.usecases.kyc.links import hosted_url, open_link
from cambist.core.usecases.kyc.register import register
from cambist.core.usecases.kyc.results import FOLLOW, look, on_notification
from cambist.core.usecases.kyc.uploads import Grant
from cambist.core.usecases.notification_intake import HEAR
from cambist.core.usecases.operators.action_items import REVOKED_FOR, read_action_items
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.kyc import Check, CheckNotification, CheckRequest, CheckStatus
from cambist.ports.searching import find_check
from tests.crash_points import CrashingStorage, CrashingUnit, CrashPoint, Killed, fused
from tests.invariants import noted
from tests.kyc_kit import FORM, OTHER, PHONE, KycApp, apply, code, open_kyc_app
from tests.refund_app import RefundApp

DAY = 24 * 3600


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def jobs(kyc: KycApp) -> list[Job]:
    async with kyc.ports.storage.unit() as unit:
        return [job for job in await unit[Job].find() if job.kind == FOLLOW.kind]


async def is_looked_at_next_day(kyc: KycApp) -> bool:
    """Return whether the decided check is polled once more the next day, and by nothing else."""
    [job] = await jobs(kyc)
    verified_at = (await kyc.client()).verified_at
    return verified_at is not None and job.due == verified_at + timedelta(days=1)


# Two at once


async def test_registrations_at_once_make_one_check(kyc: KycApp) -> None:
    bodies = [await kyc.documents() for _ in range(6)]
    kyc.verifier.script.register.extend(Twist(silence=1.0) for _ in bodies)
    calls = [asyncio.create_task(kyc.register(body)) for body in bodies]
    clock = kyc.app.clock
    while not all(call.done() for call in calls):
        wake = clock.next_wake()
        if wake is not None and wake - clock.now() <= timedelta(seconds=1):
            await clock.advance_to(wake)  # the verifier's silence, never the limit of a file's read
        else:
            await asyncio.sleep(0)  # documents are read by threads, in real time
    answers = [(await call).json() for call in calls]
    assert answers == [{"status": "processing"}] * 6
    assert await kyc.begun() == 1
    used = [key for body in bodies for key in (body["selfie_key"], body["document_key"])]
    taken = [upload for key in used if (upload := await kyc.upload(key)) is not None and upload.used_by]
    assert len(taken) == 2
    await kyc.app.work(10)
    assert await kyc.events() == [("verified", "pending")]


async def test_a_document_is_given_to_one_of_two_clients_at_once(kyc: KycApp) -> None:
    body = await kyc.documents()
    first, second = await asyncio.gather(kyc.register(body), kyc.register({**body, "phone": OTHER}))
    assert sorted([first.status_code, second.status_code]) == [200, 400]
    assert await kyc.begun() == 1


async def test_decision_learnt_by_many_at_once_makes_one_event(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.app.clock.advance(30)
    notification = CheckNotification(operation=operation_of(await kyc.client()))
    heard = (
        [kyc.check() for _ in range(4)]
        + [on_notification(kyc.ports, notification) for _ in range(4)]
        + [run_due(kyc.ports)]
    )
    await asyncio.gather(*heard)
    assert await kyc.events() == [("verified", "pending")]


# Lost answers


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_a_lost_answer_is_healed_by_the_job(kyc: KycApp, ending: Ending) -> None:
    kyc.twist("register", ending)
    assert (await kyc.register()).status_code in (502, 503)
    client = await kyc.client()
    assert (client.kyc, client.check_reference) == (KycStatus.REGISTERING, None)
    assert await kyc.check() == {"status": "processing"}
    await kyc.app.work(60)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.begun() == 1
    assert await kyc.events() == [("verified", "pending")]
    assert await is_looked_at_next_day(kyc)


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_a_repeat_after_a_lost_answer_asks_for_the_same_check(kyc: KycApp, ending: Ending) -> None:
    body = await kyc.documents()
    kyc.twist("register", ending, ending)
    for _ in range(2):
        assert (await kyc.register(body)).status_code in (502, 503)
    assert (await kyc.register(body)).json() == {"status": "processing"}
    assert await kyc.begun() == 1
    assert (await kyc.client()).checks == 1


@pytest.mark.parametrize("asked", [True, False])
async def test_check_the_verifier_never_began_is_abandoned_after_a_month(kyc: KycApp, asked: bool) -> None:
    """The documents' keys and the phone do not stay encrypted beside the client for ever. `asked`: they are kept."""
    kyc.twist("register", *[Ending.UNAVAILABLE] * 1000)
    assert (await kyc.register()).status_code == 503
    if not asked:
        async with kyc.ports.storage.unit() as unit:
            unit[Client].save(msgspec.structs.replace(await kyc.client(), request=None))
            await unit.commit()
    await kyc.app.work(29 * 86400)
    assert (await kyc.client()).kyc is KycStatus.REGISTERING
    await kyc.app.work(2 * 86400)
    client = await kyc.client()
    assert (client.kyc, client.request) == (KycStatus.REQUIRED, None)
    assert await jobs(kyc) == []
    kyc.verifier.script.register.clear()
    assert (await kyc.register()).status_code == 200
    assert (await kyc.client()).checks == 2


async def test_a_verifier_that_says_nothing_for_a_month_is_asked_no_more(kyc: KycApp) -> None:
    """It may have begun the check, so the check is not withdrawn. Registering again polls it again."""
    kyc.twist("register", Ending.UNKNOWN_DONE)
    kyc.twist("find", *[Ending.UNAVAILABLE] * 1000)
    body = await kyc.documents()
    assert (await kyc.register(body)).status_code == 502
    await kyc.app.work(31 * 86400)
    assert ((await kyc.client()).kyc, await jobs(kyc)) == (KycStatus.REGISTERING, [])
    kyc.verifier.script.find.clear()
    assert (await kyc.register(body)).status_code == 200
    assert (await kyc.client()).kyc is not KycStatus.REGISTERING
    assert await kyc.begun() == 1


class Searching:
    """A verifier that finds a check by all its search terms."""

    name = "simulator"

    def __init__(self) -> None:
        self.searched: list[tuple[CheckRequest, datetime]] = []

    async def search_check(self, request: CheckRequest, since: datetime) -> Check | None:
        self.searched.append((request, since))
        return Check(reference="applicant-7", status=CheckStatus.PROCESSING)


async def test_searching_verifier_is_given_the_request_and_its_time(kyc: KycApp) -> None:
    begun, stub = kyc.app.clock.now(), Searching()
    kyc.twist("register", Ending.UNKNOWN_DONE)
    body = await kyc.documents()
    assert (await kyc.register(body)).status_code == 502
    await kyc.app.clock.advance(5)
    verifier: Any = stub
    client = await look(msgspec.structs.replace(kyc.ports, kyc=verifier), await kyc.client())
    assert (client.kyc, client.check_reference) == (KycStatus.PROCESSING, "applicant-7")
    [(request, since)] = stub.searched
    assert (request.operation, request.phone, since) == (operation_of(client), body["phone"], begun)
    assert {document.key for document in request.documents} == {body["selfie_key"], body["document_key"]}
    with pytest.raises(Unavailable, match="which is gone"):
        await find_check(verifier, request.operation, None, since)


async def test_the_redirect_s_link_is_found_again(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    kyc.twist("register", Ending.UNKNOWN_DONE)
    assert code(await kyc.register({"phone": PHONE, **FORM})) == (502, "PROVIDER_ERROR")
    found = await kyc.check()
    assert found["status"] == "required"
    assert found["kyc_url"].startswith("https://kyc.example/form/")


@pytest.mark.parametrize("ending", [Ending.NOT_SUPPORTED, Ending.NOT_CONFIGURED])
async def test_a_verifier_that_cannot_say_says_nothing(kyc: KycApp, ending: Ending) -> None:
    await kyc.register()
    before = await kyc.client()
    kyc.twist("state", ending)
    assert code(await kyc.post("/kyc/check", {"phone": PHONE})) == (503, "KYC_UNAVAILABLE")
    kyc.twist("state", ending)
    assert await present_client(kyc.ports, await RefundApp(kyc.app).caller(Mode.LIVE), PHONE) == before


async def test_a_verifier_that_is_away_for_long_loses_nothing(kyc: KycApp) -> None:
    kyc.verifier.away = True
    assert code(await kyc.register()) == (503, "KYC_UNAVAILABLE")
    await kyc.app.work(5 * DAY)
    assert code(await kyc.post("/kyc/check", {"phone": PHONE})) == (503, "KYC_UNAVAILABLE")
    kyc.verifier.away = False
    await kyc.app.work(DAY)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.begun() == 1


async def test_a_refusal_that_the_job_meets_frees_the_client_and_the_documents(kyc: KycApp) -> None:
    kyc.twist("register", Ending.UNKNOWN_NOT_DONE, Ending.REFUSED)
    body = await kyc.documents()
    await kyc.register(body)
    await kyc.app.work(60)
    assert (await kyc.check())["status"] == "required"
    assert await jobs(kyc) == []
    assert (await kyc.register(body)).json() == {"status": "processing"}


async def test_failed_client_stays_failed_if_the_verifier_refuses_a_new_check(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    kyc.twist("register", Ending.REFUSED)
    assert code(await kyc.register()) == (502, "PROVIDER_ERROR")
    assert (await kyc.check())["status"] == "failed"
    assert await kyc.events() == [("failed", "pending")]


# Crashes between verifier and storage


class Lost(CrashingUnit):
    async def commit(self, *, durable: bool = True) -> None:
        self._fuse.commits += 1
        if self._fuse.commits == self._fuse.at:
            if self._fuse.after:
                await self._unit.commit(durable=durable)
            raise Unavailable("the storage lost its answer")
        await self._unit.commit(durable=durable)


class LosingStorage(CrashingStorage):
    """One commit ends in Unavailable, done or not."""

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[CrashingUnit]:
        async with self.inner.unit() as unit:
            yield Lost(unit, self._fuse)


async def caller_of(kyc: KycApp, ports: Ports) -> Any:
    return await authenticate(ports, kyc.account.live.api_key, kyc.account.live.api_secret)


@pytest.mark.parametrize("done", [False, True])
async def test_check_accepted_and_not_saved_is_logged_and_repaired(kyc: KycApp, done: bool) -> None:
    """`500 KYC_PERSIST_FAILED`: the verifier took the client, and the record was not saved
    (docs/kyc.md "Answers and errors")."""
    body = await kyc.documents()
    ports = msgspec.structs.replace(kyc.ports, storage=LosingStorage(kyc.ports.storage, CrashPoint(2, after=done)))
    with pytest.raises(Refusal) as caught:
        await register(ports, await caller_of(kyc, ports), lambda: RegisterOrder(**body))
    assert (caught.value.status, caught.value.code) == (500, "KYC_PERSIST_FAILED")
    assert await kyc.begun() == 1
    await kyc.app.work(60)
    assert (await kyc.client()).kyc is KycStatus.VERIFIED
    assert await kyc.events() == [("verified", "pending")]
    assert await kyc.begun() == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2])
async def test_killed_at_any_commit_of_a_registration(kyc: KycApp, at: int, after: bool) -> None:
    body = await kyc.documents()
    ports = fused(kyc.ports, CrashPoint(at, after=after))
    with pytest.raises(Killed):
        await register(ports, await caller_of(kyc, ports), lambda: RegisterOrder(**body))
    await kyc.app.work(60)
    if (at, after) == (1, False):
        # Nothing was written, so no call was made.
        assert await kyc.begun() == 0
        assert (await kyc.register(body)).json() == {"status": "processing"}
        await kyc.app.work(60)
    assert await kyc.begun() == 1
    assert await kyc.events() == [("verified", "pending")]
    assert (await kyc.check())["status"] == "verified"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_killed_at_any_commit_of_the_job(kyc: KycApp, at: int, after: bool) -> None:
    kyc.twist("register", Ending.UNKNOWN_DONE)
    await kyc.register()
    await kyc.app.clock.advance(30)
    try:
        await run_due(fused(kyc.ports, CrashPoint(at, after=after)))
    except Killed:
        await kyc.app.clock.advance(61)
    await kyc.app.work(120)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.events() == [("verified", "pending")]
    assert await is_looked_at_next_day(kyc)


# Notifications and findings: lost, late, twice, out of order


async def test_a_lost_notification_is_made_up_for(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.PROCESSING)
    await kyc.app.work(2 * DAY)
    await kyc.decide(CheckStatus.VERIFIED, told=False)
    await kyc.app.work(DAY)
    assert await kyc.events() == [("verified", "pending")]


async def test_notifications_twice_and_late_change_nothing_more(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED, doubled=True)
    await kyc.app.work(40 * DAY)
    await on_notification(kyc.ports, CheckNotification(operation=operation_of(await kyc.client())))
    assert await kyc.events() == [("verified", "pending")]


async def test_an_operation_that_a_verifier_posted_about_is_asked_about(kyc: KycApp) -> None:
    """docs/adapters.md "Notifications": the id shows whose operation it is."""
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED, told=False)
    async with kyc.ports.storage.unit() as unit:
        now = kyc.ports.clock.now()
        await HEAR.plan(unit, operation_of(await kyc.client()), now, now)
        await unit.commit()
    await run_due(kyc.ports)
    assert await kyc.events() == [("verified", "pending")]


async def test_an_answer_that_comes_out_of_order_takes_nothing_back(kyc: KycApp) -> None:
    await kyc.register()
    client = await kyc.client()
    await kyc.decide(CheckStatus.VERIFIED)
    for status in (CheckStatus.PROCESSING, CheckStatus.FORM):
        late = await apply(kyc.ports, client, Check(reference="x", status=status))
        assert late.kyc is KycStatus.VERIFIED
    assert await kyc.events() == [("verified", "pending")]


async def test_a_notification_of_an_older_check_moves_no_newer_one(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    first = await kyc.client()
    await kyc.register()
    assert await on_notification(kyc.ports, CheckNotification(operation=operation_of(first))) is None
    stale = await apply(kyc.ports, first, Check(reference="x", status=CheckStatus.VERIFIED))
    assert stale.kyc is KycStatus.PROCESSING


@pytest.mark.parametrize("operation", ["", "kyc_", "kyc_x_1", "pay_1", "kyc_x_", "kyc__", "kyc_x_1e5", "kyc_x_²"])
async def test_a_notification_about_nothing_is_nothing(kyc: KycApp, operation: str) -> None:
    assert await on_notification(kyc.ports, CheckNotification(operation=operation)) is None


async def test_a_refusal_that_is_reviewed(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    await kyc.decide(CheckStatus.VERIFIED)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.events() == [("failed", "pending"), ("verified", "failed")]


async def test_verified_and_then_refused_is_blocked_once(kyc: KycApp) -> None:
    """Verified and then refused is blocked (docs/decisions.md "Checks"); no event has a previous `verified`."""
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED)
    await kyc.decide(CheckStatus.FAILED, doubled=True)
    client = await kyc.client()
    assert (client.kyc, client.blocked) == (KycStatus.VERIFIED, True)
    assert client.passport_state is DocumentState.FAILED
    assert (await kyc.check())["status"] == "failed"
    assert await kyc.events() == [("verified", "pending")]
    [shown] = [item for item in (await read_action_items(kyc.ports)).found if item.kind == "client"]
    assert (shown.object_id, shown.since) == (client.id, client.updated_at)
    # An operator who unblocks is not overruled by the same finding.
    await set_blocked(kyc.ports, client.id, False)
    assert not [item for item in (await read_action_items(kyc.ports)).found if item.kind == "client"]
    await on_notification(kyc.ports, CheckNotification(operation=operation_of(client)))
    assert (await kyc.client()).blocked is False


async def test_client_blocked_by_an_operator_is_no_action_item(kyc: KycApp) -> None:
    """Only a client whom the verifier revoked is an action item for operators, for a month."""
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED)
    await set_blocked(kyc.ports, (await kyc.client()).id, True)
    await kyc.register(await kyc.documents(OTHER))
    await kyc.decide(CheckStatus.VERIFIED, OTHER)
    await kyc.decide(CheckStatus.FAILED, OTHER)
    [shown] = [item for item in (await read_action_items(kyc.ports)).found if item.kind == "client"]
    assert shown.object_id == (await kyc.client(OTHER)).id
    await kyc.app.clock.advance(REVOKED_FOR.total_seconds() + 1)
    assert not [item for item in (await read_action_items(kyc.ports)).found if item.kind == "client"]


async def test_the_verifier_decides_while_the_operator_blocks(kyc: KycApp) -> None:
    await kyc.register()
    await set_blocked(kyc.ports, (await kyc.client()).id, True)
    await kyc.app.work(60)
    client = await kyc.client()
    assert (client.kyc, client.blocked) == (KycStatus.VERIFIED, True)


async def test_a_form_that_nobody_fills_in_is_not_asked_for_ever(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    await kyc.register({"phone": PHONE, **FORM})
    await kyc.decide(CheckStatus.FORM)
    await kyc.app.work(31 * DAY)
    assert await jobs(kyc) == []
    await kyc.decide(CheckStatus.VERIFIED)
    assert (await kyc.check())["status"] == "verified"


async def test_every_step_of_a_long_check_is_asked_at_growing_pauses(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.PROCESSING)
    start = kyc.app.clock.now()
    dues = []
    for _ in range(8):
        [job] = await jobs(kyc)
        dues.append(round((job.due - start).total_seconds()))
        await kyc.app.work((job.due - kyc.app.clock.now()).total_seconds())
    assert dues == [10, 20, 50, 110, 410, 1310, 4910, 26510]


# Stored data, and its presentation


async def test_phones_and_requests_to_the_verifier_are_stored_encrypted(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    kyc.twist("register", Ending.UNKNOWN_NOT_DONE)
    await kyc.register({"phone": PHONE, **FORM})
    client = await kyc.client()
    assert client.request is not None
    kept = msgspec.json.encode(client)
    for secret in (PHONE, PHONE[2:], FORM["email"]):
        assert secret.encode() not in kept
        assert secret.encode() not in client.request
        assert secret.encode() not in client.phone
    await kyc.app.work(60)
    assert (await kyc.client()).request is None
    notes = [note.body for note in await noted(kyc.ports)]
    assert all(PHONE[2:].encode() not in body and b"example.com" not in body for body in notes)


async def test_nothing_of_a_person_is_logged(kyc: KycApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await kyc.set(kyc_flow="redirect")
    kyc.twist("register", Ending.REFUSED, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE)
    for _ in range(4):
        await kyc.register({"phone": PHONE, **FORM})
    await kyc.decide(CheckStatus.VERIFIED)
    await kyc.decide(CheckStatus.FAILED)
    await kyc.check()
    await kyc.app.get(f"/exchange-clients?q={PHONE[2:]}", mode="live")
    await kyc.app.work(DAY)
    ours = "\n".join(
        record.getMessage() + str(record.exc_info) for record in caplog.records if record.name.startswith("cambist")
    )
    for secret in (PHONE[2:], FORM["email"]):
        assert secret not in ours
    assert "cambist.kyc" in {record.name for record in caplog.records}


async def test_reprs_hide_who_it_is(kyc: KycApp) -> None:
    await kyc.register()
    link = open_link(kyc.ports, hosted_url(kyc.ports, "acc_1", PHONE).partition("session=")[2].replace("%3D", "="))
    request = CheckRequest(operation="kyc_1", phone=PHONE, redirect=True, email=FORM["email"])
    grant = Grant(upload_url="https://x/secret", file_key="secret", expires_at=kyc.app.clock.now())
    orders = (
        CheckOrder(phone=PHONE),
        RegisterOrder(phone=PHONE, email=FORM["email"], selfie_key="secret"),
        ClientSimulation(phone=PHONE, kyc_status="verified"),
    )
    for each in (shown(kyc.ports, await kyc.client()), request, link, grant, *orders):
        assert PHONE[2:] not in repr(each)
        assert "secret" not in repr(each)
        assert FORM["email"] not in repr(each)
    assert repr(link) == "KycLink(account_id='acc_1', ***)"


# Links to the hosted page


async def test_a_link_opens_for_an_hour_and_only_unaltered(kyc: KycApp) -> None:
    url = hosted_url(kyc.ports, kyc.account.account_id, PHONE)
    [session] = parse_qs(urlsplit(url).query)["session"]
    link = open_link(kyc.ports, session)
    assert link is not None
    assert (link.account_id, link.phone) == (kyc.account.account_id, PHONE)
    for wrong in ("", "x", session[:-4], session[:20] + "A" * 8 + session[28:], "é", "=" * 40, "A" * 5000):
        assert open_link(kyc.ports, wrong) is None
    await kyc.app.clock.advance(3599)
    assert open_link(kyc.ports, session) is not None
    await kyc.app.clock.advance(1)
    assert open_link(kyc.ports, session) is None


async def test_modes_have_their_own_clients(kyc: KycApp) -> None:
    await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": "rejected"}, "test")
    assert (await kyc.check())["status"] == "required"
    await kyc.register()
    assert isinstance(await kyc.client(PHONE, Mode.TEST), Client)
    assert (await kyc.client(PHONE, Mode.TEST)).id != (await kyc.client()).id
