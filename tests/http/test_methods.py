"""GET /payment-methods and the exchange rate of a method (docs/payments.md "Terminals")."""

from uuid import UUID

import pytest

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.usecases.accounts import accounts, terminals
from tests.houses import TestHouse


async def add(house: TestHouse, label: str, *required: str, kind: str = "ordinary") -> str:
    wish = TerminalWish(label=label, required_fields=required, kind=kind)
    return (await terminals.create_terminal(house.ports, house.account.account_id, wish)).id


async def test_the_list_is_forbidden_while_the_option_is_off(house: TestHouse) -> None:
    await add(house, "SBP")
    response = await house.get("/payment-methods")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "METHOD_SELECTION_DISABLED")


async def test_enabled_terminals_are_listed_oldest_first_with_every_spec_field(house: TestHouse) -> None:
    await accounts.set_settings(house.ports, house.account.account_id, {"terminals": "true"})
    assert (await house.get("/payment-methods")).json() == []
    first = await add(house, "СБП")
    await house.clock.advance(1)
    gone = await add(house, "Gone")
    await house.clock.advance(1)
    last = await add(house, "Exchange", "payer", "client_phone", kind="exchange")
    await terminals.disable_terminal(house.ports, gone)
    other = (await accounts.create_account(house.ports, "Other")).account_id
    await terminals.create_terminal(house.ports, other, TerminalWish(label="Theirs"))
    expected = [
        {"method_id": first, "payment_method": "sbp", "label": "СБП", "required_fields": []},
        {
            "method_id": last,
            "payment_method": "sbp",
            "label": "Exchange",
            "required_fields": ["payer", "client_phone"],
        },
    ]
    response = await house.get("/payment-methods")
    assert (response.status_code, response.json()) == (200, expected)
    assert (await house.get("/payment-methods", mode="live")).json() == expected
    assert (await house.get("/payment-methods/")).json() == expected


@pytest.mark.parametrize("terminals_on", ["true", "false"])
async def test_no_method_has_an_exchange_rate(house: TestHouse, terminals_on: str) -> None:
    await accounts.set_settings(house.ports, house.account.account_id, {"terminals": terminals_on})
    known = await add(house, "Exchange", kind="exchange")
    for method_id in (known, str(UUID(int=1)), "x", "%00"):
        response = await house.get(f"/payment-methods/{method_id}/exchange-rate")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "EXCHANGE_RATE_NOT_SUPPORTED")


async def test_both_need_a_key_and_sit_in_the_general_bucket(house: TestHouse) -> None:
    for path in ("/payment-methods", f"/payment-methods/{UUID(int=1)}/exchange-rate"):
        response = await house.http.get(f"/api/v1{path}")
        assert (response.status_code, response.json()["error"]["code"]) == (401, "Unauthorized")
        assert (await house.get(path)).headers["X-RateLimit-Limit"] == "60"


async def test_a_method_alone_is_no_endpoint(house: TestHouse) -> None:
    response = await house.get(f"/payment-methods/{UUID(int=1)}")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
