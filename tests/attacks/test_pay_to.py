"""Edits of the database, made without the vault's keys, show no payer another QR, link or address (SECURITY.md)."""

import logging
from collections.abc import Mapping

import pytest

from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker
from tests.attacks.test_money_rows import differing
from tests.subscription_app import call, open_link, subscribed

THEIRS = "https://thief.example/pay"

EDITS: Mapping[str, str] = {
    "the QR": f"qr_payload = '{THEIRS}'",
    "the link": f"bank_link = '{THEIRS}'",
    "both, without a tag": f"qr_payload = '{THEIRS}', bank_link = '{THEIRS}', pay_tag = NULL",
    "where the link leads": "link_kind = 'page'",
    "the account": "account_id = '{account}', shop_id = '{shop}'",
    "another's values": "qr_payload = (SELECT qr_payload FROM payments WHERE id = '{other}'), "
    "bank_link = (SELECT bank_link FROM payments WHERE id = '{other}')",
    "another's values and tag": "qr_payload = (SELECT qr_payload FROM payments WHERE id = '{other}'), "
    "bank_link = (SELECT bank_link FROM payments WHERE id = '{other}'), "
    "pay_tag = (SELECT pay_tag FROM payments WHERE id = '{other}')",
    "another's invoice": "bank_reference = (SELECT bank_reference FROM payments WHERE id = '{other}')",
}


@pytest.mark.parametrize("case", EDITS)
async def test_altered_place_to_pay_is_never_shown(
    attacked: TestApp, attacker: Attacker, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    await set_settings(attacked.ports, attacked.account.account_id, {"direct_links": "true"})
    payment, other = await attacked.created(), await attacked.created()
    assert (await attacked.http.get(f"/p/{payment['id']}")).status_code == 200
    link = f"/payments/{payment['id']}/sbp-link"
    assert (await attacked.get(link)).json()["sbp_link"] is not None
    assert await differing(attacked) == []
    thief = await create_account(attacked.ports, "Thief")
    edit = EDITS[case].format(other=other["id"], account=thief.account_id, shop=thief.default_shop_id)
    await attacker.run(f"UPDATE payments SET {edit} WHERE id = '{payment['id']}'")

    with caplog.at_level(logging.ERROR, "cambist.tags"):
        page = await attacked.http.get(f"/p/{payment['id']}")
    assert page.status_code == 503
    assert "thief.example" not in page.text
    assert 'id="qr"' not in page.text
    assert [payment["id"] in record.getMessage() for record in caplog.records if record.name == "cambist.tags"] == [
        True
    ]
    answer = await attacked.get(link)
    refusals = {"the account": 404, "where the link leads": 200}  # no link of SBP is there to be handed out
    assert answer.status_code == refusals.get(case, 503)
    assert answer.json().get("sbp_link") is None
    assert await differing(attacked) == [(payment["id"], "payments.qr_payload")]
    assert (await attacked.http.get(f"/p/{other['id']}")).status_code == 200, "other payments go on"


async def test_tag_by_other_keys_leads_no_payer(attacked: TestApp, attacker: Attacker) -> None:
    payment = await attacked.created()
    found = await attacked.ports.storage.get(Payment, payment["id"])
    assert found is not None
    tag = OWN.tag(b"x", f"payments.pay_tag:{found.id}")
    statement = "UPDATE payments SET qr_payload = :qr, pay_tag = :tag WHERE id = :id"
    await attacker.run(statement, {"qr": THEIRS, "tag": tag, "id": found.id})
    assert (await attacked.http.get(f"/p/{found.id}")).status_code == 503


async def test_altered_binding_is_never_shown(attacked: TestApp, attacker: Attacker) -> None:
    made = await subscribed(attacked)
    page = f"/s/{made['id']}"
    await open_link(attacked, made["id"])
    assert 'id="qr"' in (await attacked.http.get(page)).text
    await attacker.run(f"UPDATE payments SET qr_payload = '{THEIRS}' WHERE subscription_id = '{made['id']}'")
    answer = await attacked.http.get(page)
    assert (answer.status_code, 'id="qr"' in answer.text) == (503, False)
    assert [field for _, field in await differing(attacked)] == ["payments.qr_payload"]


@pytest.mark.parametrize("tag", ["", ", link_tag = NULL"])
async def test_altered_binding_url_is_never_shown(attacked: TestApp, attacker: Attacker, tag: str) -> None:
    made = await subscribed(attacked)
    assert made["binding_url"] is not None
    assert await differing(attacked) == []
    await attacker.run(f"UPDATE subscriptions SET binding_url = '{THEIRS}'{tag} WHERE id = '{made['id']}'")
    assert (await attacked.get(f"/subscriptions/{made['id']}")).json()["binding_url"] is None
    assert await differing(attacked) == [(made["id"], "subscriptions.binding_url")]
    assert (await call(attacked, made["id"], "cancel")).json()["binding_url"] is None
    [*_, event] = await attacked.events(made["id"])
    assert event["binding_url"] is None


async def test_link_that_a_bank_gave_later_is_tagged(attacked: TestApp) -> None:
    await set_settings(attacked.ports, attacked.account.account_id, {"subscription_scheme": "calendar"})
    made = await subscribed(attacked)
    await attacked.work(60)
    found = (await attacked.get(f"/subscriptions/{made['id']}")).json()
    assert found["binding_url"] is not None
    assert await differing(attacked) == []
