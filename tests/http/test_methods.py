"""GET /payment-methods and the exchange rate of a method (docs/payments.md "Terminals")."""

from uuid import UUID

import pytest

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.usecases.accounts import accounts, terminals
from tests.apps import TestApp


async def add(app: TestApp, label: str, *required: str, kind: str = "ordinary") -> str:
    wish = TerminalWish(label=label, required_fields=required, kind=kind)
    return (await terminals.create_terminal(app.ports, app.account.account_id, wish)).id


async def test_the_list_is_forbidden_while_the_option_is_off(app: TestApp) -> None:
    await add(app, "SBP")
    response = await app.get("/payment-methods")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "METHOD_SELECTION_DISABLED")


async def test_enabled_terminals_are_listed_oldest_first_with_every_spec_field(app: TestApp) -> None:
    await accounts.set_settings(app.ports, app.account.account_id, {"terminals": "true"})
    assert (await app.get("/payment-methods")).json() == []
    first = await add(app, "СБП")
    await app.clock.advance(1)
    gone = await add(app, "Gone")
    await app.clock.advance(1)
    last = await add(app, "Exchange", "payer", "client_phone", kind="exchange")
    await terminals.disable_terminal(app.ports, gone)
    other = (await accounts.create_account(app.ports, "Other")).account_id
    await terminals.create_terminal(app.ports, other, TerminalWish(label="Theirs"))
    expected = [
        {"method_id": first, "payment_method": "sbp", "label": "СБП", "required_fields": []},
        {
            "method_id": last,
            "payment_method": "sbp",
            "label": "Exchange",
            "required_fields": ["payer", "client_phone"],
        },
    ]
    response = await app.get("/payment-methods")
    assert (response.status_code, response.json()) == (200, expected)
    assert (await app.get("/payment-methods", mode="live")).json() == expected
    assert (await app.get("/payment-methods/")).json() == expected


@pytest.mark.parametrize("terminals_on", ["true", "false"])
async def test_no_method_has_an_exchange_rate(app: TestApp, terminals_on: str) -> None:
    await accounts.set_settings(app.ports, app.account.account_id, {"terminals": terminals_on})
    known = await add(app, "Exchange", kind="exchange")
    for method_id in (known, str(UUID(int=1)), "x", "%00"):
        response = await app.get(f"/payment-methods/{method_id}/exchange-rate")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "EXCHANGE_RATE_NOT_SUPPORTED")


async def test_both_need_a_key_and_sit_in_the_general_bucket(app: TestApp) -> None:
    for path in ("/payment-methods", f"/payment-methods/{UUID(int=1)}/exchange-rate"):
        response = await app.http.get(f"/api/v1{path}")
        assert (response.status_code, response.json()["error"]["code"]) == (401, "Unauthorized")
        assert (await app.get(path)).headers["X-RateLimit-Limit"] == "60"


async def test_a_method_alone_is_no_endpoint(app: TestApp) -> None:
    response = await app.get(f"/payment-methods/{UUID(int=1)}")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
