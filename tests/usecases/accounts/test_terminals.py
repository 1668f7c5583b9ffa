"""Terminals made by an operator, and their effects on a payment (docs/payments.md "Terminals", "Taking one")."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.terminals import Terminal, TerminalKind, TerminalWish
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ids import canonical_uuid
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payer_contact import contact_mask
from cambist.core.domain.payments.payments import Payment, PaymentStatus, shown_metadata
from cambist.core.usecases.accounts import accounts, terminals
from cambist.core.usecases.common.encrypted import pay_tag
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.subscription_app import record, subscribe, subscribed
from tests.tables import table

PAYER = {"full_name": "Ivan Ivanov", "document_number": "4500123456"}
PHONE = "+79001234567"


async def add(app: TestApp, label: str = "Terminal", **wish: Any) -> Terminal:
    """A terminal of the merchant, whose terminals are on from then."""
    await accounts.set_settings(app.ports, app.account.account_id, {"terminals": "true"})
    return await terminals.create_terminal(app.ports, app.account.account_id, TerminalWish(label=label, **wish))


async def test_a_new_terminal_is_enabled_and_its_id_is_a_bare_uuid(app: TestApp) -> None:
    made = await add(app, "  SBP ", required_fields=("payer", "client_phone"), kind="exchange", direct_link=True)
    assert canonical_uuid(made.id) == made.id
    assert (made.label, made.kind, made.enabled) == ("SBP", TerminalKind.EXCHANGE, True)
    assert made.required_fields == ("payer", "client_phone")
    assert await terminals.list_terminals(app.ports, app.account.account_id) == [made]


async def test_terminal_has_the_options_it_was_given(app: TestApp) -> None:
    """docs/decisions.md "Terminals, links, payer data"."""
    plain = await add(app)
    assert (plain.own_lifetime, plain.direct_link, plain.credit_follows_receipt) == (True, False, False)
    other = await add(app, "Other", own_lifetime=False, direct_link=True, credit_follows_receipt=True)
    assert (other.own_lifetime, other.direct_link, other.credit_follows_receipt) == (False, True, True)


BAD: list[dict[str, Any]] = [
    {"label": " "},
    {"label": "x" * 121},
    {"label": "a\x00b"},
    {"payment_method": "card"},
    {"payment_method": ""},
    {"kind": "other"},
    {"required_fields": ("phone",)},
    {"required_fields": ("payer", "payer")},
    {"required_fields": ("",)},
    {"routes": ("nowhere",)},
    {"routes": ("simulator-test", "simulator-test")},
]


@table("fields", BAD, ids=repr)
async def test_a_wish_that_no_payment_could_follow_is_refused(app: TestApp, fields: dict[str, Any]) -> None:
    wish = TerminalWish(**{"label": "T", **fields})
    with pytest.raises(Refusal) as caught:
        await terminals.create_terminal(app.ports, app.account.account_id, wish)
    assert (caught.value.code, caught.value.status) == ("VALIDATION_ERROR", 400)
    assert await terminals.list_terminals(app.ports, app.account.account_id) == []


async def test_every_fault_of_a_wish_is_named_at_once(app: TestApp) -> None:
    wish = TerminalWish(label="T", kind="x", payment_method="y", required_fields=("z",), routes=("w",))
    with pytest.raises(Refusal) as caught:
        await terminals.create_terminal(app.ports, app.account.account_id, wish)
    for told in ("kind", "ordinary, exchange", "method", "sbp", "require", "client_phone", "route", "simulator-test"):
        assert told in caught.value.message


@pytest.mark.parametrize("account_id", ["acc_unknown", "", "\x00"])
async def test_an_unknown_account_has_no_terminals(app: TestApp, account_id: str) -> None:
    for work in (
        terminals.create_terminal(app.ports, account_id, TerminalWish(label="T")),
        terminals.list_terminals(app.ports, account_id),
    ):
        with pytest.raises(Refusal) as caught:
            await work
        assert caught.value.code == "ACCOUNT_NOT_FOUND"


async def test_disabling_and_enabling_is_all_that_changes(app: TestApp) -> None:
    made = await add(app)
    off = await terminals.disable_terminal(app.ports, made.id)
    assert (off.enabled, msgspec.structs.replace(off, enabled=True, version=made.version)) == (False, made)
    assert (await terminals.enable_terminal(app.ports, made.id)).enabled
    for unknown in (str(UUID(int=0)), "", "\x00"):
        with pytest.raises(Refusal) as caught:
            await terminals.disable_terminal(app.ports, unknown)
        assert caught.value.code == "TERMINAL_NOT_FOUND"


async def test_a_payment_names_the_terminal_it_went_by(app: TestApp) -> None:
    outside = await app.created()
    terminal = await add(app)
    inside = await app.created({"method_id": terminal.id.upper()})
    assert ("method_id" in outside, inside["method_id"]) == (False, terminal.id)


async def test_oldest_enabled_terminal_counts_without_method_id(app: TestApp) -> None:
    """Otherwise leaving out `method_id` would avoid a terminal's required fields."""
    oldest = await add(app, "1", required_fields=("description",))
    await app.clock.advance(1)
    second = await add(app, "2")
    assert (await app.create()).json()["error"]["code"] == "PAYER_DATA_REQUIRED"
    assert (await app.created({"description": "Tea"}))["method_id"] == oldest.id
    assert (await app.created({"method_id": second.id}))["method_id"] == second.id
    await terminals.disable_terminal(app.ports, oldest.id)
    assert (await app.created({"payment_method": "sbp"}))["method_id"] == second.id
    await terminals.disable_terminal(app.ports, second.id)
    assert "method_id" not in await app.created()


async def test_exchange_terminal_is_never_taken_by_silence(app: TestApp) -> None:
    """Without `method_id` an older exchange terminal is passed over (docs/payments.md "Terminals")."""
    exchange = await add(app, "USDT", kind="exchange")
    assert "method_id" not in await app.created(), "the way of an account without terminals"
    assert (await record(app, (await subscribed(app))["id"])).method_id is None
    await app.clock.advance(1)
    ordinary = await add(app, "SBP")
    assert (await app.created({"amount_rub": "20000.00"}))["method_id"] == ordinary.id
    assert (await app.created({"amount_rub": "20000.00", "method_id": exchange.id}))["method_id"] == exchange.id


async def test_subscription_without_method_id_meets_required_fields(app: TestApp) -> None:
    """It goes by the oldest enabled ordinary terminal, as a payment does (docs/payments.md "Terminals")."""
    terminal = await add(app, required_fields=("client_phone",))
    refused = await subscribe(app)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "PAYER_DATA_REQUIRED")
    assert refused.json()["error"]["details"]["missing_fields"] == ["client_phone"]
    made = await subscribed(app, client_phone=PHONE)
    assert (await record(app, made["id"])).method_id == terminal.id


async def test_method_id_is_refused_while_terminals_are_off(app: TestApp) -> None:
    terminal = await add(app, required_fields=("payer",))
    await accounts.set_settings(app.ports, app.account.account_id, {"terminals": "false"})
    assert "method_id" not in await app.created()
    refused = await app.create({"method_id": terminal.id})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "METHOD_SELECTION_DISABLED")


async def test_a_disabled_a_foreign_and_an_unknown_terminal_are_refused_alike(app: TestApp) -> None:
    other = (await accounts.create_account(app.ports, "Other")).account_id
    foreign = await terminals.create_terminal(app.ports, other, TerminalWish(label="Theirs"))
    disabled = await terminals.disable_terminal(app.ports, (await add(app)).id)
    answers = [await app.create({"method_id": each}) for each in (foreign.id, disabled.id, str(uuid4()))]
    assert {answer.status_code for answer in answers} == {400}
    assert {answer.json()["error"]["code"] for answer in answers} == {"METHOD_NOT_AVAILABLE"}
    assert len({answer.text for answer in answers}) == 1


async def test_a_payment_outlives_its_terminal(app: TestApp) -> None:
    terminal = await add(app)
    payment = await app.created({"method_id": terminal.id})
    await terminals.disable_terminal(app.ports, terminal.id)
    paid = (await app.simulate(payment["id"], outcome="paid")).json()
    assert (paid["status"], paid["method_id"]) == ("paid", terminal.id)


BOUNDS = [("0", 400), ("29.99", 400), ("9999.99", 400), ("10000", 201), ("80000.00", 201), ("80000.01", 400)]


@pytest.mark.parametrize(("amount", "status"), BOUNDS)
async def test_an_exchange_terminal_takes_10000_to_80000_inclusive(app: TestApp, amount: str, status: int) -> None:
    terminal = await add(app, kind="exchange")
    answer = await app.create({"amount_rub": amount, "method_id": terminal.id})
    assert answer.status_code == status
    if status != 201:
        error = answer.json()["error"]
        assert error["code"] == "VALIDATION_ERROR"
        assert "10000" in error["message"]
        assert "80000" in error["message"]


async def test_the_accounts_maximum_counts_outside_terminals_only(app: TestApp) -> None:
    await accounts.set_settings(app.ports, app.account.account_id, {"amount_rub_max": "20000"})
    assert (await app.create({"amount_rub": "20000.01"})).json()["error"]["code"] == "INVALID_AMOUNT"
    ordinary, exchange = await add(app), await add(app, kind="exchange")
    for terminal in (ordinary, exchange):
        assert (await app.create({"amount_rub": "20000.01", "method_id": terminal.id})).status_code == 201
    assert (await app.create({"amount_rub": "29.99", "method_id": ordinary.id})).json()["error"]["code"] == (
        "AMOUNT_BELOW_MINIMUM"
    )


ALL_FOUR = ("description", "payer", "client_email", "client_phone")

MISSING: list[tuple[dict[str, Any], list[str]]] = [
    ({}, list(ALL_FOUR)),
    ({"payer": PAYER, "client_phone": PHONE}, ["description", "client_email"]),
    ({"payer": None, "client_phone": None, "client_email": "", "description": ""}, list(ALL_FOUR)),
    (
        {"payer": PAYER, "client_phone": PHONE, "client_email": " ", "description": " \u3000"},
        ["description", "client_email"],
    ),
    ({"payer": PAYER, "client_phone": PHONE, "client_email": "a@b.example"}, ["description"]),
]


@pytest.mark.parametrize(("fields", "missing"), MISSING)
async def test_missing_required_fields_are_named_in_order_and_leave_the_key_free(
    app: TestApp, fields: dict[str, Any], missing: list[str]
) -> None:
    """A required field that is missing (docs/payments.md "Terminals"). A null, an empty and a blank text count as
    missing."""
    terminal, key = await add(app, required_fields=ALL_FOUR), str(uuid4())
    refused = await app.create({"method_id": terminal.id, **fields}, key=key)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (422, "PAYER_DATA_REQUIRED")
    assert error["details"] == {"missing_fields": missing}
    assert (await app.get("/payments")).json()["pagination"]["total"] == 0
    whole = {"payer": PAYER, "client_phone": PHONE, "client_email": "a@b.example", "description": "Tea"}
    assert (await app.create({"method_id": terminal.id, **whole}, key=key)).status_code == 201


async def test_an_empty_phone_is_a_bad_phone_before_it_is_a_missing_one(app: TestApp) -> None:
    """Value rules come before required fields (docs/concepts.md "What is refused first")."""
    terminal = await add(app, required_fields=("client_phone",))
    refused = await app.create({"method_id": terminal.id, "client_phone": ""})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


async def test_fields_that_are_not_required_may_be_sent(app: TestApp) -> None:
    terminal = await add(app)
    await app.created({"method_id": terminal.id, "payer": PAYER, "client_phone": PHONE})


class TestDirectLink:
    """GET /payments/{id}/sbp-link."""

    async def test_direct_link_needs_leave_of_the_account_or_the_terminal(self, app: TestApp) -> None:
        payment = await app.created()
        refused = await app.get(f"/payments/{payment['id']}/sbp-link")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "DIRECT_LINK_NOT_ALLOWED")
        await accounts.set_settings(app.ports, app.account.account_id, {"direct_links": "true"})
        allowed = await app.get(f"/payments/{payment['id']}/sbp-link")
        assert (allowed.status_code, set(allowed.json())) == (200, {"sbp_link"})
        async with app.ports.storage.unit() as unit:
            stored = await unit[Payment].get(payment["id"])
        assert stored is not None
        assert allowed.json()["sbp_link"] == stored.bank_link
        assert stored.bank_link is not None

    async def test_a_terminal_may_allow_it_by_itself(self, app: TestApp) -> None:
        closed, opened = await add(app), await add(app, direct_link=True)
        for terminal, status in ((closed, 403), (opened, 200)):
            payment = await app.created({"method_id": terminal.id})
            assert (await app.get(f"/payments/{payment['id']}/sbp-link")).status_code == status

    @pytest.mark.parametrize("direct_links", ["true", "false"])
    async def test_direct_link_of_an_exchange_terminal_is_always_null(self, app: TestApp, direct_links: str) -> None:
        terminal = await add(app, kind="exchange", direct_link=direct_links == "true")
        await accounts.set_settings(app.ports, app.account.account_id, {"direct_links": direct_links})
        payment = await app.created({"method_id": terminal.id, "amount_rub": "10000"})
        answer = await app.get(f"/payments/{payment['id']}/sbp-link")
        assert (answer.status_code, answer.json()) == (200, {"sbp_link": None})

    @pytest.mark.parametrize("outcome", ["processing", "paid", "failed", "cancelled", "expired", "amount_mismatch"])
    async def test_direct_link_is_null_once_the_payment_cannot_be_paid(self, app: TestApp, outcome: str) -> None:
        await accounts.set_settings(app.ports, app.account.account_id, {"direct_links": "true"})
        payment = await app.created()
        await app.simulate(payment["id"], outcome=outcome)
        assert (await app.get(f"/payments/{payment['id']}/sbp-link")).json() == {"sbp_link": None}

    async def test_direct_link_is_null_from_the_deadline_on_before_any_poll(self, app: TestApp) -> None:
        await accounts.set_settings(app.ports, app.account.account_id, {"direct_links": "true"})
        payment = await app.created()
        await app.clock.advance(15 * 60 - 1)
        assert (await app.get(f"/payments/{payment['id']}/sbp-link")).json()["sbp_link"] is not None
        await app.clock.advance(1)
        assert (await app.get(f"/payments/{payment['id']}")).json()["status"] == "pending"
        assert (await app.get(f"/payments/{payment['id']}/sbp-link")).json() == {"sbp_link": None}

    async def test_direct_link_is_forbidden_if_the_bank_does_not_allow_it(self) -> None:
        """`BankCapabilities.direct_link`; a bank that is no longer configured has no capabilities."""
        closed = BankCapabilities(own_lifetime=True, direct_link=False, simulated=True)
        async with open_test_app(further_banks=[FurtherBank(name="closed", capabilities=closed)]) as app:
            terminal = await add(app, routes=("closed",), direct_link=True)
            payment = await app.created({"method_id": terminal.id})
            for bank in ("closed", "gone"):
                async with beneath(app.ports).unit() as unit:
                    stored = await unit[Payment].get(payment["id"])
                    assert stored is not None
                    moved = msgspec.structs.replace(stored, bank=bank)
                    unit[Payment].save(msgspec.structs.replace(moved, pay_tag=pay_tag(app.ports.vault, moved)))
                    await unit.commit()
                answer = await app.get(f"/payments/{payment['id']}/sbp-link")
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "DIRECT_LINK_NOT_ALLOWED")

    async def test_a_payment_of_the_other_mode_or_of_none_is_not_found(self, app: TestApp) -> None:
        payment = await app.created()
        for path, mode in ((payment["id"], "live"), (f"pay_{UUID(int=1)}", "test"), ("x", "test")):
            answer = await app.get(f"/payments/{path}/sbp-link", mode=mode)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")


class TestPayerContactMasked:
    """The mask of the payer's phone is only in answers and events after the payment (docs/payments.md "Taking one")."""

    async def test_masked_contact_appears_from_settled_on_in_answers_and_events(self, app: TestApp) -> None:
        payment = await app.created({"client_phone": PHONE, "metadata": {"a": 1, "payerContactMasked": "mine"}})
        await app.simulate(payment["id"], outcome="processing")
        before = (await app.get(f"/payments/{payment['id']}")).json()
        paid = (await app.simulate(payment["id"], outcome="paid")).json()
        await settle_now(app.ports, Mode.TEST, cutoff=app.clock.now() + timedelta(days=1))
        after = (await app.get(f"/payments/{payment['id']}")).json()
        shown = {"a": 1, "payerContactMasked": "***4567"}
        assert [each["metadata"] for each in (payment, before, paid, after)] == [{"a": 1}, {"a": 1}, {"a": 1}, shown]
        assert (await app.get("/payments")).json()["data"][0]["metadata"] == shown
        events = await app.events(payment["id"])
        assert [event["metadata"] for event in events] == [{"a": 1}, {"a": 1}, shown]

    async def test_masked_contact_appears_without_the_merchants_metadata(self, app: TestApp) -> None:
        payment = await app.created({"client_phone": PHONE})
        assert payment["metadata"] is None
        await app.simulate(payment["id"], outcome="paid")
        await settle_now(app.ports, Mode.TEST, cutoff=app.clock.now() + timedelta(days=1))
        after = (await app.get(f"/payments/{payment['id']}")).json()
        assert after["metadata"] == {"payerContactMasked": "***4567"}

    async def test_a_payment_without_a_phone_never_shows_one(self, app: TestApp) -> None:
        payment = await app.created({"metadata": {"payerContactMasked": "***1111"}})
        after = (await app.simulate(payment["id"], outcome="paid")).json()
        assert after["metadata"] == {}

    @pytest.mark.parametrize("status", list(PaymentStatus))
    async def test_the_statuses_that_show_it(self, app: TestApp, status: PaymentStatus) -> None:
        payment = await app.created({"client_phone": PHONE})
        async with app.ports.storage.unit() as unit:
            stored = await unit[Payment].get(payment["id"])
        assert stored is not None
        shown = shown_metadata(msgspec.structs.replace(stored, status=status)) is not None
        assert shown == (status in ("settled", "refunded"))
        recurring = msgspec.structs.replace(stored, status=status, payment_method="recurring")
        assert shown_metadata(recurring) is None

    def test_contact_mask_keeps_four_digits_of_the_phone(self) -> None:
        assert contact_mask(PaymentOrder(amount_rub="1", client_phone=PHONE)) == "***4567"
        assert contact_mask(PaymentOrder(amount_rub="1")) is None
