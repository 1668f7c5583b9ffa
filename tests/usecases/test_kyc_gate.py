"""The gate before a new payment of an account that requires KYC (docs/kyc.md "In payments")."""

from uuid import uuid4

import pytest

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.kyc.gate import client_id
from cambist.core.usecases.sealed import client_phone_place
from cambist.ports.kyc import CheckStatus, Verdict
from tests.houses import TestHouse
from tests.invariants import everything
from tests.subscription_house import subscribe

PHONE = "+79001234567"
GATE = "KYC_"


async def require(house: TestHouse, demand: str = "required") -> None:
    await set_settings(house.ports, house.account.account_id, {"kyc": demand})


async def add_client(
    house: TestHouse, kyc: KycStatus, *, blocked: bool = False, reference: str | None = None
) -> Client:
    record_id = str(uuid4())
    client = Client(
        id=record_id,
        account_id=house.account.account_id,
        mode=Mode.LIVE,
        phone=house.ports.vault.seal(PHONE.encode(), client_phone_place(record_id)),
        phone_digest=client_id(house.ports, house.account.account_id, Mode.LIVE, PHONE),
        kyc=kyc,
        created_at=house.clock.now(),
        updated_at=house.clock.now(),
        verified_at=house.clock.now() if kyc is KycStatus.VERIFIED else None,
        check_reference=reference,
        blocked=blocked,
    )
    async with house.ports.storage.unit() as unit:
        unit[Client].add(client)
        await unit.commit()
    return client


async def answer(house: TestHouse, phone: str | None = PHONE, mode: str = "live") -> tuple[int, str]:
    response = await house.create({} if phone is None else {"client_phone": phone}, mode=mode)
    body = response.json()
    return response.status_code, body["error"]["code"] if "error" in body else body["status"]


@pytest.mark.parametrize("demand", ["off", "disabled"])
async def test_without_the_demand_nobody_is_asked(house: TestHouse, demand: str) -> None:
    await require(house, demand)
    assert await answer(house, None) == (201, "pending")


async def subscription_answer(house: TestHouse, phone: str | None = PHONE, mode: str = "live") -> tuple[int, str]:
    response = await subscribe(house, mode=mode, **({} if phone is None else {"client_phone": phone}))
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
    house: TestHouse, kyc: KycStatus, blocked: bool, expected: tuple[int, str]
) -> None:
    await require(house)
    await add_client(house, kyc, blocked=blocked)
    assert await answer(house) == expected
    assert await subscription_answer(house) == expected


@pytest.mark.parametrize("scheme", ["window", "calendar"])
async def test_subscriptions_pass_the_gate_in_both_modes_and_schemes(house: TestHouse, scheme: str) -> None:
    """A refused subscription leaves no record, asks no bank and frees its key (docs/kyc.md "In payments")."""
    await set_settings(house.ports, house.account.account_id, {"subscription_scheme": scheme})
    await require(house)
    for mode in ("live", "test"):
        for phone in (None, PHONE, "8 900 123-45-67"):
            assert await subscription_answer(house, phone, mode) == (400, "KYC_REQUIRED")
    key = str(uuid4())
    assert (await subscribe(house, key=key)).status_code == 400
    assert await everything(house.ports, Subscription) == []
    assert (await subscribe(house, key=key, client_phone="+70000000001")).status_code == 201
    await add_client(house, KycStatus.VERIFIED)
    assert await subscription_answer(house) == (201, "pending")


async def test_without_a_phone_or_an_account_s_client_kyc_is_required(house: TestHouse) -> None:
    await require(house)
    await add_client(house, KycStatus.VERIFIED)
    assert await answer(house, None) == (400, "KYC_REQUIRED")
    assert await answer(house, "+79001234568") == (400, "KYC_REQUIRED")


async def test_a_client_of_live_mode_is_none_of_test_mode_where_certain_phones_are_verified(house: TestHouse) -> None:
    await require(house)
    await add_client(house, KycStatus.VERIFIED)
    assert await answer(house, PHONE, "test") == (400, "KYC_REQUIRED")
    assert await answer(house, "+70000000005", "test") == (201, "pending")
    assert await answer(house, "+70000000005", "live") == (400, "KYC_REQUIRED")
    assert await answer(house, "+700000000055", "test") == (400, "KYC_REQUIRED")


@pytest.mark.parametrize(
    ("found", "expected", "kept"),
    [
        (CheckStatus.VERIFIED, (201, "pending"), KycStatus.VERIFIED),
        (CheckStatus.FAILED, (400, "KYC_FAILED"), KycStatus.FAILED),
        (CheckStatus.PROCESSING, (400, "KYC_PROCESSING"), KycStatus.PROCESSING),
    ],
)
async def test_a_check_in_progress_is_asked_for_anew(
    house: TestHouse, found: CheckStatus, expected: tuple[int, str], kept: KycStatus
) -> None:
    await require(house)
    client = await add_client(house, KycStatus.PROCESSING, reference="simulator:check-1")
    verifier = house.ports.kyc
    assert isinstance(verifier, SimulatedVerifier)
    await verifier.pretend("check-1", Verdict(status=found))
    assert await answer(house) == expected
    async with house.ports.storage.unit() as unit:
        present = await unit[Client].get(client.id)
    assert present is not None
    assert (present.kyc, present.verified_at is not None) == (kept, kept is KycStatus.VERIFIED)


async def test_a_verifier_that_is_away_leaves_the_client_in_progress(house: TestHouse) -> None:
    await require(house)
    await add_client(house, KycStatus.PROCESSING, reference="simulator:check-1")
    verifier = house.ports.kyc
    assert isinstance(verifier, SimulatedVerifier)
    verifier.away = True
    assert await answer(house) == (400, "KYC_PROCESSING")
    verifier.away = False
    assert await answer(house) == (400, "KYC_PROCESSING")


async def test_the_gate_does_not_lock_the_key(house: TestHouse) -> None:
    await require(house)
    key = str(uuid4())
    assert (await house.create({"client_phone": PHONE}, key=key, mode="live")).status_code == 400
    await add_client(house, KycStatus.VERIFIED)
    assert (await house.create({"client_phone": PHONE}, key=key, mode="live")).status_code == 201
