"""GET /exchange-clients and POST /sandbox/exchange-clients (docs/exchanges.md "Finding exchanges and clients";
docs/sandbox.md "The calls")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.kyc.clients import every_client, set_blocked
from tests.kyc_kit import PHONE, KycApp, code, open_kyc_app
from tests.tables import table

FIELDS = {
    "id",
    "phone",
    "nickname",
    "messenger_user_id",
    "kyc_status",
    "kyc_verified_at",
    "kyc_details",
    "client_ref",
    "created_at",
    "updated_at",
}


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def play(kyc: KycApp, phone: str = PHONE, status: str = "verified", mode: str = "test") -> Any:
    return await kyc.post("/sandbox/exchange-clients", {"phone": phone, "kyc_status": status}, mode)


async def phones(kyc: KycApp, query: str = "", mode: str = "test") -> list[str]:
    response = await kyc.app.get(f"/exchange-clients{query}", mode=mode)
    assert response.status_code == 200, response.text
    return [client["phone"] for client in response.json()["data"]]


async def test_an_element_has_the_fields_of_the_interface(kyc: KycApp) -> None:
    made = (await play(kyc)).json()
    assert set(made) == FIELDS
    assert (made["phone"], made["kyc_status"]) == (PHONE, "verified")
    assert (made["nickname"], made["messenger_user_id"], made["client_ref"]) == (None, None, None)
    assert made["kyc_details"] == {"level": 1, "passport_state": "passed", "address_state": None}
    assert made["kyc_verified_at"].endswith("Z")
    page = (await kyc.app.get("/exchange-clients")).json()
    assert page["data"] == [made]
    assert page["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}


async def test_every_status_is_listed_and_filtered_the_newest_first(kyc: KycApp) -> None:
    statuses = ("pending", "verified", "rejected", "blocked")
    for number, status in enumerate(statuses):
        await play(kyc, f"+7900000000{number}", status)
        await kyc.app.work(1)
    assert await phones(kyc) == [f"+7900000000{number}" for number in (3, 2, 1, 0)]
    for number, status in enumerate(statuses):
        assert await phones(kyc, f"?kyc_status={status}") == [f"+7900000000{number}"]
        assert await phones(kyc, f"?kyc_status={status.upper()}") == [f"+7900000000{number}"]
    assert code(await kyc.app.get("/exchange-clients?kyc_status=x")) == (400, "VALIDATION_ERROR")


@table(
    ("q", "found"),
    [
        ("123", ["+79001234567"]),
        ("900", ["+79007654321", "+79001234567"]),
        ("%2B7 (900) 765-43", ["+79007654321"]),
        ("phone 4321", ["+79007654321"]),
        ("79001234567", ["+79001234567"]),
        ("790012345678", []),
        ("12", []),
        ("", []),
        ("abc", []),
        ("1 2", []),
        ("٩٠٠", []),
        ("555", []),
    ],
)
async def test_search_keeps_the_digits_only_and_needs_three(kyc: KycApp, q: str, found: list[str]) -> None:
    """Only digits count, anywhere in the phone; fewer than 3 find nobody
    (docs/exchanges.md "Finding exchanges and clients")."""
    for phone in ("+79001234567", "+79007654321"):
        await play(kyc, phone)
        await kyc.app.work(1)
    assert await phones(kyc, f"?q={q}") == found
    assert (await kyc.app.get(f"/exchange-clients?q={q}")).json()["pagination"]["total"] == len(found)


async def test_a_search_is_paged_and_goes_with_the_status(kyc: KycApp) -> None:
    for number in range(7):
        await play(kyc, f"+7900000000{number}", "verified" if number % 2 else "pending")
        await kyc.app.work(1)
    first = (await kyc.app.get("/exchange-clients?q=7900&per_page=3")).json()
    last = (await kyc.app.get("/exchange-clients?q=7900&per_page=3&page=3")).json()
    assert [client["phone"][-1] for client in first["data"]] == ["6", "5", "4"]
    assert [client["phone"][-1] for client in last["data"]] == ["0"]
    assert first["pagination"]["total"] == last["pagination"]["total"] == 7
    assert [phone[-1] for phone in await phones(kyc, "?q=7900&kyc_status=verified")] == ["5", "3", "1"]
    assert code(await kyc.app.get("/exchange-clients?page=0")) == (400, "VALIDATION_ERROR")


async def test_modes_and_accounts_do_not_see_one_another(kyc: KycApp) -> None:
    await play(kyc)
    assert await phones(kyc, mode="live") == []
    await kyc.other_account()
    assert await phones(kyc) == []
    assert await phones(kyc, "?q=900") == []


async def test_live_keys_have_no_sandbox(kyc: KycApp) -> None:
    assert code(await play(kyc, mode="live")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"phone": PHONE},
        {"phone": "79001234567", "kyc_status": "verified"},
        {"phone": PHONE, "kyc_status": "new"},
        {"phone": PHONE, "kyc_status": "verified", "more": 1},
    ],
)
async def test_a_wrong_wish_is_refused(kyc: KycApp, body: dict[str, str]) -> None:
    assert code(await kyc.post("/sandbox/exchange-clients", body, "test")) == (400, "VALIDATION_ERROR")
    assert await phones(kyc) == []


async def test_simulation_is_of_one_client_and_makes_its_event(kyc: KycApp) -> None:
    ids = set()
    for status in ("pending", "rejected", "verified", "verified", "blocked", "verified", "rejected"):
        made = (await play(kyc, status=status)).json()
        assert made["kyc_status"] == status
        ids.add(made["id"])
    [client_id] = ids
    told = [(event["status"], event["previous_status"]) for event in await kyc.app.events(client_id)]
    # A verified client that is refused later has no event, which knows no previous status for it.
    assert told == [("failed", "pending"), ("verified", "failed")]


async def gate(kyc: KycApp, phone: str, mode: str = "test") -> str:
    """Return the answer of POST /exchanges for the client."""
    await kyc.set(exchange="true")
    body = {"amount_usdt": "100", "client_phone": phone, "client_bank_id": "bank100000000004"}
    headers = kyc.app.headers(mode, Idempotency_Key=str(uuid4()))
    response = await kyc.app.http.post("/api/v1/exchanges", json=body, headers=headers)
    return "passed" if response.status_code == 201 else "{} {}".format(*code(response))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pending", "422 CLIENT_NOT_REGISTERED"),
        ("verified", "passed"),
        ("rejected", "422 CLIENT_NOT_REGISTERED"),
        ("blocked", "403 CLIENT_BLOCKED"),
    ],
)
@pytest.mark.parametrize("demand", ["required", "off"])
async def test_the_gate_before_exchanges(kyc: KycApp, status: str, expected: str, demand: str) -> None:
    """A client must have passed KYC, whatever payments need (docs/exchanges.md "Making one")."""
    await kyc.set(kyc=demand)
    await play(kyc, status=status)
    assert await gate(kyc, PHONE) == expected
    assert await gate(kyc, "+79990000000") == "422 CLIENT_NOT_REGISTERED"
    assert await gate(kyc, PHONE, "live") == "422 CLIENT_NOT_REGISTERED"


async def test_certain_phones_are_verified_in_test_mode_unless_blocked(kyc: KycApp) -> None:
    """In test mode `+7000000000N` are verified (docs/exchanges.md "Making one")."""
    for number in range(10):
        assert await gate(kyc, f"+7000000000{number}") == "passed"
    assert await gate(kyc, "+70000000005", "live") == "422 CLIENT_NOT_REGISTERED"
    await play(kyc, "+70000000005", "blocked")
    assert await gate(kyc, "+70000000005") == "403 CLIENT_BLOCKED"


async def test_the_gate_asks_for_a_check_in_progress_anew(kyc: KycApp) -> None:
    await kyc.register()
    assert await gate(kyc, PHONE, "live") == "422 CLIENT_NOT_REGISTERED"
    await kyc.app.clock.advance(6)
    assert await gate(kyc, PHONE, "live") == "passed"
    await set_blocked(kyc.ports, (await kyc.client(PHONE, Mode.LIVE)).id, True)
    assert await gate(kyc, PHONE, "live") == "403 CLIENT_BLOCKED"


async def test_operators_see_the_newest_of_both_modes_first_and_so_many_at_most(kyc: KycApp) -> None:
    account_id, made = kyc.account.account_id, list[str]()
    for number in range(4):
        phone = f"+7900000000{number}"
        if number % 2:
            await kyc.register(await kyc.documents(phone))
        else:
            await play(kyc, phone)
        made.insert(0, (await kyc.client(phone, Mode.LIVE if number % 2 else Mode.TEST)).id)
        await kyc.app.work(1)
    assert [each.id for each in await every_client(kyc.ports, account_id)] == made
    assert [each.id for each in await every_client(kyc.ports, account_id, Mode.LIVE)] == made[::2]
    assert [each.id for each in await every_client(kyc.ports, account_id, limit=3)] == made[:3]
    with pytest.raises(Refusal) as caught:
        await every_client(kyc.ports, "acc_none")
    assert caught.value.code == "ACCOUNT_NOT_FOUND"


@table("client_id", ["", "nobody", "x\0"], ids=ascii)
async def test_unknown_client_cannot_be_blocked(kyc: KycApp, client_id: str) -> None:
    with pytest.raises(Refusal) as caught:
        await set_blocked(kyc.ports, client_id, True)
    assert caught.value.code == "CLIENT_NOT_FOUND"
