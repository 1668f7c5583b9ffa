"""The gate before a new payment of an account that requires KYC (docs/kyc.md "In payments")."""

from uuid import uuid4

import pytest

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common.encrypted import client_phone_aad
from cambist.core.usecases.kyc.gate import client_id
from cambist.ports.kyc import CheckStatus, Verdict
from tests.apps import TestApp
from tests.invariants import everything
from tests.subscription_app import subscribe

PHONE = "+79001234567"
GATE = "KYC_"


async def require(app: TestApp, demand: str = "required") -> None:
    await set_settings(app.ports, app.account.account_id, {"kyc": demand})


async def add_client(app: TestApp, kyc: KycStatus, *, blocked: bool = False, reference: str | None = None) -> Client:
    record_id = str(uuid4())
    client = Client(
        id=record_id,
        account_id=app.account.account_id,
        mode=Mode.LIVE,
        phone=app.ports.vault.encrypt(PHONE.encode(), client_phone_aad(record_id)),
        phone_digest=client_id(app.ports, app.account.account_id, Mode.LIVE, PHONE),
        kyc=kyc,
        created_at=app.clock.now(),
        updated_at=app.clock.now(),
        verified_at=app.clock.now() if kyc is KycStatus.VERIFIED else None,
        check_reference=reference,
        blocked=blocked,
    )
    async with app.ports.storage.unit() as unit:
        unit[Client].add(client)
        await unit.commit()
    return client


async def answer(app: TestApp, phone: str | None = PHONE, mode: str = "live") -> tuple[int, str]:
    response = await app.create({} if phone is None else {"client_phone": phone}, mode=mode)
    body = response.json()
    return response.status_code, body["error"]["code"] if "error" in body else body["status"]


@pytest.mark.parametrize("demand", ["off", "disabled"])
async def test_clients_need_no_kyc_unless_it_is_demanded(app: TestApp, demand: str) -> None:
    await require(app, demand)
    assert await answer(app, None) == (201, "pending")


async def subscription_answer(app: TestApp, phone: str | None = PHONE, mode: str = "live") -> tuple[int, str]:
    response = await subscribe(app, mode=mode, **({} if phone is None else {"client_phone": phone}))
    body = response.json()
    return response.status_code, body["error"]["code"] if "error" in body else "pending"


ROWS = [
    (KycStatus.VERIFIED, False, (201, "pending")),
    (KycStatus.REQUIRED, False, (400, "KYC_REQUIRED")),
    (KycStatus.REGISTERING, False, (400, "KYC_PROCESSING")),
    (KycStatus.PROCESSING, False, (400, "KYC_PROCESSING")),
    (KycStatus.FAILED, False, (400, "KYC_FAILED")),
    (KycStatus.VERIFIED, True, (400, "KYC_FAILED")),
]


@pytest.mark.parametrize(("kyc", "blocked", "expected"), ROWS)
async def test_the_client_s_state_decides(
    app: TestApp, kyc: KycStatus, blocked: bool, expected: tuple[int, str]
) -> None:
    await require(app)
    await add_client(app, kyc, blocked=blocked)
    assert await answer(app) == expected
    assert await subscription_answer(app) == expected


@pytest.mark.parametrize("scheme", ["window", "calendar"])
async def test_subscriptions_pass_the_gate_in_both_modes_and_schemes(app: TestApp, scheme: str) -> None:
    """A refused subscription leaves no record, asks no bank and frees its key (docs/kyc.md "In payments")."""
    await set_settings(app.ports, app.account.account_id, {"subscription_scheme": scheme})
    await require(app)
    for mode in ("live", "test"):
        for phone in (None, PHONE, "8 900 123-45-67"):
            assert await subscription_answer(app, phone, mode) == (400, "KYC_REQUIRED")
    key = str(uuid4())
    assert (await subscribe(app, key=key)).status_code == 400
    assert await everything(app.ports, Subscription) == []
    assert (await subscribe(app, key=key, client_phone="+70000000001")).status_code == 201
    await add_client(app, KycStatus.VERIFIED)
    assert await subscription_answer(app) == (201, "pending")


async def test_kyc_is_required_without_a_phone_or_a_known_client(app: TestApp) -> None:
    await require(app)
    await add_client(app, KycStatus.VERIFIED)
    assert await answer(app, None) == (400, "KYC_REQUIRED")
    assert await answer(app, "+79001234568") == (400, "KYC_REQUIRED")


async def test_live_clients_do_not_count_in_test_mode_where_some_phones_do(app: TestApp) -> None:
    await require(app)
    await add_client(app, KycStatus.VERIFIED)
    assert await answer(app, PHONE, "test") == (400, "KYC_REQUIRED")
    assert await answer(app, "+70000000005", "test") == (201, "pending")
    assert await answer(app, "+70000000005", "live") == (400, "KYC_REQUIRED")
    assert await answer(app, "+700000000055", "test") == (400, "KYC_REQUIRED")


@pytest.mark.parametrize(
    ("found", "expected", "kept"),
    [
        (CheckStatus.VERIFIED, (201, "pending"), KycStatus.VERIFIED),
        (CheckStatus.FAILED, (400, "KYC_FAILED"), KycStatus.FAILED),
        (CheckStatus.PROCESSING, (400, "KYC_PROCESSING"), KycStatus.PROCESSING),
    ],
)
async def test_a_check_in_progress_is_asked_for_anew(
    app: TestApp, found: CheckStatus, expected: tuple[int, str], kept: KycStatus
) -> None:
    await require(app)
    client = await add_client(app, KycStatus.PROCESSING, reference="simulator:check-1")
    verifier = app.ports.kyc
    assert isinstance(verifier, SimulatedVerifier)
    await verifier.simulate("check-1", Verdict(status=found))
    assert await answer(app) == expected
    async with app.ports.storage.unit() as unit:
        present = await unit[Client].get(client.id)
    assert present is not None
    assert (present.kyc, present.verified_at is not None) == (kept, kept is KycStatus.VERIFIED)


async def test_a_verifier_that_is_away_leaves_the_client_in_progress(app: TestApp) -> None:
    await require(app)
    await add_client(app, KycStatus.PROCESSING, reference="simulator:check-1")
    verifier = app.ports.kyc
    assert isinstance(verifier, SimulatedVerifier)
    verifier.away = True
    assert await answer(app) == (400, "KYC_PROCESSING")
    verifier.away = False
    assert await answer(app) == (400, "KYC_PROCESSING")


async def test_the_gate_does_not_lock_the_key(app: TestApp) -> None:
    await require(app)
    key = str(uuid4())
    assert (await app.create({"client_phone": PHONE}, key=key, mode="live")).status_code == 400
    await add_client(app, KycStatus.VERIFIED)
    assert (await app.create({"client_phone": PHONE}, key=key, mode="live")).status_code == 201
