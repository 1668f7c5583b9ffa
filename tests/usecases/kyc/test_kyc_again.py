"""Checks after their decision, checks whose verifier is no longer active, and a verifier that begins nothing
(docs/kyc.md "Another verifier"; docs/decisions.md "Checks")."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.adapters.script import Ending
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.domain.kyc.kyc import UPLOAD_MAX, RegisterOrder
from cambist.core.usecases.alarms.problems import look as problems
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.kyc.gate import present_client
from cambist.core.usecases.kyc.register import register_client
from cambist.core.usecases.kyc.results import CHECKS, FOLLOWED, look
from cambist.core.usecases.kyc.uploads import missing_files
from cambist.core.usecases.notification_intake import take_notification
from cambist.core.usecases.operations.operation import Looked
from cambist.core.usecases.operators.action_items import CHECK_LATE, read_action_items
from cambist.core.usecases.operators.client_forgetting import forget_client
from cambist.core.usecases.operators.provider_checks import providers_of
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.plugins import PluginError
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Forged, NotConfigured
from cambist.ports.files import StoredFile
from cambist.ports.kyc import Check, CheckStatus
from cambist.ports.notifications import InboundNotification
from tests.kyc_kit import OTHER, PHONE, KycApp, open_kyc_app
from tests.refund_app import RefundApp
from tests.tables import table

DAY = 24 * 3600
GONE = "elsewhere"


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def changed(app: KycApp, **fields: Any) -> Client:
    client = await app.client()
    async with app.ports.storage.unit() as unit:
        unit[Client].save(msgspec.structs.replace(client, **fields))
        await unit.commit()
    return await app.client()


# GREEN that turns RED


@pytest.mark.parametrize("days", [0, 2, 10])
async def test_revoked_client_is_blocked_even_without_a_notification(kyc: KycApp, days: int) -> None:
    """Looks a day, a week and a month after the decision find it."""
    await kyc.register()
    await kyc.app.work(60)
    assert (await kyc.client()).kyc is KycStatus.VERIFIED
    await kyc.app.work(days * DAY)
    await kyc.decide(CheckStatus.FAILED, told=False)
    await kyc.app.work(3600)
    assert not (await kyc.client()).blocked
    await kyc.app.work(21 * DAY)
    client = await kyc.client()
    assert (client.kyc, client.blocked) == (KycStatus.VERIFIED, True)
    assert await kyc.events() == [("verified", "pending")]


async def test_a_decided_check_is_asked_for_three_times_more(kyc: KycApp, monkeypatch: pytest.MonkeyPatch) -> None:
    await kyc.register()
    await kyc.app.work(60)
    verified_at = (await kyc.client()).verified_at
    assert verified_at is not None
    asked: list[int] = []
    state = kyc.verifier.check_state

    async def counted(reference: str) -> Any:
        asked.append((kyc.app.clock.now() - verified_at).days)
        return await state(reference)

    monkeypatch.setattr(kyc.verifier, "check_state", counted)
    await kyc.app.work(90 * DAY)
    assert asked == [1, 7, 30]
    assert (await kyc.check())["status"] == "verified"


@table(
    ("asked", "check_after", "quiet", "pause"),
    [
        (1, None, timedelta(0), 10),
        (1, 5.0, timedelta(0), 5),
        (1, 0.0, timedelta(0), 1),
        (1, 1e6, timedelta(0), 10),
        (7, 1e6, timedelta(0), 21_600),
        (9, None, FOLLOWED - timedelta(microseconds=1), 21_600),
        (9, None, FOLLOWED, None),
    ],
)
async def test_check_is_polled_when_its_verifier_says_or_by_our_backoff(
    kyc: KycApp, asked: int, check_after: float | None, quiet: timedelta, pause: int | None
) -> None:
    """Until nothing moved it for a month."""
    await kyc.register()
    now = kyc.ports.clock.now()
    client = msgspec.structs.replace(await kyc.client(), updated_at=now - quiet)
    word = Check(reference="x", status=CheckStatus.PROCESSING, check_after=check_after)
    due = CHECKS.next_status_poll(kyc.ports, client, Looked(began=client, word=word, asked=asked))
    assert due == (None if pause is None else now + timedelta(seconds=pause))


@table(("size", "is_missing"), [(None, True), (0, True), (1, False), (UPLOAD_MAX, False), (UPLOAD_MAX + 1, True)])
async def test_a_file_that_is_empty_or_larger_than_granted_is_none(
    kyc: KycApp, size: int | None, is_missing: bool
) -> None:
    """A store in a cloud may hold anything by then."""
    key = "0" * 64
    stored: Any = None if size is None else StoredFile(key=key, size=size)

    class Files:
        async def stat(self, _: str) -> StoredFile | None:
            return stored  # type: ignore[no-any-return]

    files: Any = Files()
    order = RegisterOrder(phone=PHONE, selfie_key=key)
    missing = await missing_files(msgspec.structs.replace(kyc.ports, files=files), order)
    assert missing == ({"selfie_key"} if is_missing else set())


# Another verifier


async def test_a_check_at_a_verifier_that_is_not_set_any_more_counts_as_none(kyc: KycApp) -> None:
    """No other verifier is queried about it; registering again begins another check."""
    await kyc.register()
    caller = await RefundApp(kyc.app).caller(Mode.LIVE)
    for status in (KycStatus.PROCESSING, KycStatus.REGISTERING, KycStatus.REQUIRED):
        form = "https://form.example" if status is KycStatus.REQUIRED else None
        before = await changed(kyc, verifier=GONE, kyc=status, form_url=form)
        with pytest.raises(NotConfigured, match="not set any more"):
            await look(kyc.ports, before)
        said = await kyc.check()
        assert said["status"] == "required"
        assert said["kyc_url"].startswith(kyc.ports.urls.app_url)
        assert await present_client(kyc.ports, caller, PHONE) is None, "the gate knows nobody"
        assert (await kyc.register()).json()["status"] == "processing"
        after = await kyc.client()
        assert (after.verifier, after.checks) == ("simulator", before.checks + 1)
    await kyc.app.work(60)
    assert (await kyc.check())["status"] == "verified"


async def test_check_goes_on_if_its_verifier_is_wired_again_in_time(kyc: KycApp) -> None:
    await kyc.register()
    await changed(kyc, verifier=GONE)
    await kyc.app.work(2 * DAY)
    before = await changed(kyc, verifier="simulator")
    await kyc.app.work(DAY)
    after = await kyc.client()
    assert (after.kyc, after.checks) == (KycStatus.VERIFIED, before.checks)


async def test_an_intent_whose_verifier_is_gone_is_taken_back_after_a_month(kyc: KycApp) -> None:
    """With its request. It goes to no other verifier, because its own one may have begun the check."""
    kyc.twist("register", Ending.UNAVAILABLE)
    body = await kyc.documents()
    assert (await kyc.register(body)).status_code == 503
    await changed(kyc, verifier=GONE)
    await kyc.app.work(29 * DAY)
    assert (await kyc.client()).kyc is KycStatus.REGISTERING
    await kyc.app.work(3 * DAY)
    client = await kyc.client()
    assert (client.kyc, client.request, await kyc.begun()) == (KycStatus.REQUIRED, None, 0)
    assert await kyc.upload(body["selfie_key"]) is None, "its documents are gone, too"


async def test_former_verifier_is_still_polled_for_its_own_checks(kyc: KycApp) -> None:
    await kyc.register()
    now = SimulatedVerifier("of-now", kyc.ports.storage, kyc.ports.clock)
    ports = msgspec.structs.replace(kyc.ports, kyc=now, former_kyc={"simulator": kyc.verifier})
    account = await ports.storage.get(Account, kyc.account.account_id)
    assert account is not None
    order = RegisterOrder(**await kyc.documents(OTHER))
    assert (await register_client(ports, account, Mode.LIVE, order)).status == "processing"
    assert (await register_client(ports, account, Mode.LIVE, RegisterOrder(phone=PHONE))).status == "processing"
    assert [(await kyc.client(phone)).verifier for phone in (PHONE, OTHER)] == ["simulator", "of-now"]
    with pytest.raises(Refusal, match="under way"):
        await forget_client(ports, (await kyc.client()).id)
    await kyc.app.clock.advance(60)
    await run_due(ports)
    assert [(await kyc.client(phone)).kyc for phone in (PHONE, OTHER)] == [KycStatus.VERIFIED] * 2


async def test_former_verifier_stays_wired_and_its_notifications_count(tmp_path: Path) -> None:
    def settings(**more: Any) -> Settings:
        providers = {f"sumsub_{name}": "prd:of-tests" for name in ("token", "secret", "notification_secret", "level")}
        return Settings(database_url="memory://", data_dir=tmp_path, providers=providers, **more)

    async with open_app(settings(kyc="simulator", kyc_former=("sumsub",))) as app:
        ports = app.ports
        assert (ports.kyc.name, list(ports.former_kyc)) == ("simulator", ["sumsub"])
        assert "sumsub" in ports.notification_networks
        assert "sumsub" in {each.name for each in providers_of(ports, Mode.LIVE)}
        forged = InboundNotification(headers={}, body=b"", query={}, address="203.0.113.7")
        with pytest.raises(Forged):
            await take_notification(ports, "sumsub", forged)
    for former in (("simulator",), ("sumsub", "sumsub")):
        with pytest.raises(PluginError, match="kyc_former"):
            async with open_app(settings(kyc="simulator", kyc_former=former)):
                pass


# A verifier that begins nothing


async def test_checks_that_no_verifier_begins_are_reported_to_operators(kyc: KycApp) -> None:
    """One alarm line for all of them, an hour after the first: a rejected token, a missing level."""
    kyc.twist("register", *[Ending.NOT_CONFIGURED] * 100)
    for phone in (PHONE, OTHER):
        await kyc.register(await kyc.documents(phone))
    assert await told(kyc) == []
    await kyc.app.work(CHECK_LATE.total_seconds() + 1)
    [(text, since)] = await told(kyc)
    assert text == "2 clients wait for simulator to begin their checks; see the log and `cambist doctor`"
    assert since == (await kyc.client()).updated_at
    assert [each.text for each in (await problems(kyc.ports)).problems if each.kind == "check"] == [
        f"verifier simulator: {text}"
    ]
    kyc.verifier.script.register.clear()
    await kyc.app.work(DAY)
    assert await told(kyc) == []


async def test_unbegun_checks_are_reported_while_the_verifier_is_polled(kyc: KycApp) -> None:
    kyc.twist("register", Ending.UNKNOWN_DONE)
    kyc.twist("find", *[Ending.UNAVAILABLE] * 1000)
    await kyc.register()
    await kyc.app.work(29 * DAY)
    assert len(await told(kyc)) == 1
    await kyc.app.work(2 * DAY)
    assert ((await kyc.client()).kyc, await told(kyc)) == (KycStatus.REGISTERING, [])


async def told(kyc: KycApp) -> list[tuple[str, datetime | None]]:
    return [(each.text, each.since) for each in (await read_action_items(kyc.ports)).found if each.kind == "check"]


async def test_documents_of_a_check_that_never_moves_go_after_a_month(kyc: KycApp) -> None:
    """They were handed in, and wait for a verifier that decides nothing."""
    body = await kyc.documents()
    await kyc.register(body)
    await kyc.decide(CheckStatus.PROCESSING)
    kyc.twist("state", *[Ending.UNAVAILABLE] * 1000)
    await kyc.app.work(29 * DAY)
    assert await kyc.upload(body["selfie_key"]) is not None
    await kyc.app.work(3 * DAY)
    assert (await kyc.client()).kyc is KycStatus.PROCESSING
    assert await kyc.upload(body["selfie_key"]) is None
    assert await kyc.ports.files.stat(body["selfie_key"]) is None
