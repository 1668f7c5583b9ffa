"""ATOL's behaviour beyond the contract of every register (docs/providers/atol.md)."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.receipts.atol.settings import read_callback
from cambist.adapters.receipts.atol.tills import Till, Tills, read_tills
from cambist.core.usecases.operators.provider_checks import check_providers
from cambist.frontends.conformance.receipts import EMAIL, receipt
from cambist.frontends.conformance.registers import OPERATION, OTHER, request_of
from cambist.ports.bank import Notification
from cambist.ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.notifications import InboundNotification
from cambist.ports.receipts import (
    FiscalData,
    MarkCode,
    MarkFormat,
    PaymentSubject,
    ReceiptKind,
    ReceiptState,
    ReceiptStatus,
    Vat,
)
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.apps import open_test_app
from tests.providers.atol.fake import EMAIL as SELLER
from tests.providers.atol.fake import GROUP, INN, LOGIN, PASSWORD, SITE, FakeAtol
from tests.providers.atol.harness import TILL, AtolHarness, open_harness
from tests.tables import table

PENDING = ReceiptState(status=ReceiptStatus.PROCESSING)


@pytest.fixture
async def atol() -> AsyncIterator[AtolHarness]:
    async with open_harness() as harness:
        yield harness


def is_token(request: ProviderRequest) -> bool:
    return request.path.endswith("/getToken")


def tokens(harness: AtolHarness) -> int:
    return sum(map(is_token, harness.fake.requests))


async def test_one_token_serves_all_calls_until_it_ends() -> None:
    clock = VirtualClock()
    async with open_harness(clock=clock) as atol:
        for operation in (OPERATION, OTHER):
            await atol.register.write_receipt(request_of(operation))
        await clock.advance(timedelta(hours=24).total_seconds())
        await asyncio.gather(*(atol.register.write_receipt(request_of(f"rcp_{number}")) for number in range(5)))
        assert tokens(atol) == 2
        assert len(atol.fake.documents) == 7


async def test_token_that_is_refused_again_is_a_matter_for_an_operator(atol: AtolHarness) -> None:
    atol.fake.accepts_tokens = False
    with pytest.raises(NotConfigured, match="no token"):
        await atol.register.write_receipt(request_of())
    assert not atol.fake.documents


@table(
    ("change", "word"),
    [
        ({"password": "other"}, "login and the password"),
        ({"group": "another_1"}, "not one of this login"),
    ],
)
async def test_check_says_what_atol_does_not_accept(change: dict[str, Any], word: str) -> None:
    async with open_harness() as atol:
        register = atol.another(msgspec.structs.replace(TILL, owner="acc_1", **change))
        with pytest.raises(NotConfigured, match=word) as refused:
            await register.check()
        assert PASSWORD not in str(refused.value) + repr(register)
        await atol.made.check()


async def test_check_finds_registers_of_the_other_format(atol: AtolHarness) -> None:
    atol.fake.group_version = "v4"
    with pytest.raises(NotConfigured, match="CAMBIST_ATOL_FORMAT"):
        await atol.made.check()


async def test_failed_request_for_a_token_means_that_nothing_was_sent(atol: AtolHarness) -> None:
    for fault in (ProviderFault.LOST_AFTER, ProviderFault.SERVER_ERROR, ProviderFault.HTML):
        atol.fake.next(fault, matching=is_token)
        with pytest.raises(Unavailable):
            await atol.register.write_receipt(request_of())
    assert not atol.fake.documents


async def test_lost_note_finds_the_document_by_its_repeat(atol: AtolHarness) -> None:
    """A restored database knows nothing of the document: error 33 names it."""
    await atol.register.write_receipt(request_of())
    atol.fake.write(OPERATION)
    atol.storage = type(atol.storage)(atol.clock)
    restored = atol.another()
    assert await restored.find_receipt(request_of()) is None
    assert (await restored.write_receipt(request_of())).status is ReceiptStatus.DONE
    assert len(atol.fake.named(OPERATION)) == 1
    other = request_of(kopecks=99_99)
    atol.storage = type(atol.storage)(atol.clock)
    with pytest.raises(Refused) as refused:
        await atol.another().write_receipt(other)
    assert refused.value.reason == "operation"


async def test_existing_document_whose_report_fails_is_pending(atol: AtolHarness) -> None:
    await atol.register.write_receipt(request_of())
    atol.storage = type(atol.storage)(atol.clock)
    atol.fake.next(ProviderFault.LOST_BEFORE, matching=lambda request: "/report/" in request.path, always=True)
    assert await atol.another().write_receipt(request_of()) == PENDING


async def test_document_that_atol_forgot_is_no_absence(atol: AtolHarness) -> None:
    await atol.register.write_receipt(request_of())
    atol.fake.documents.clear()
    with pytest.raises(Unavailable, match="32 days"):
        await atol.register.find_receipt(request_of())


async def test_numbers_of_a_written_document_are_complete(atol: AtolHarness) -> None:
    await atol.register.write_receipt(request_of())
    atol.fake.write(OPERATION)
    found = await atol.register.find_receipt(request_of())
    assert found == ReceiptState(
        status=ReceiptStatus.DONE,
        fiscal=FiscalData(
            storage="9999000000000001",
            document="101",
            sign="1234567891",
            register="0000000000000001",
            url="https://ofd.example/1",
            registered_at=datetime(2026, 11, 27, 7, 0, 20, tzinfo=UTC),
        ),
    )


_ERROR = {"error_id": "475d6d8d", "type": "system"}


@table(
    ("status", "body", "fault"),
    [
        (400, {"error": {**_ERROR, "code": 32, "text": "PatternMismatch: #/receipt/client/email Anna"}}, Refused),
        (400, {"error": {**_ERROR, "code": 40}}, Refused),
        (415, {"error": {**_ERROR, "code": 41}}, Refused),
        (400, {"error": {**_ERROR, "code": 1}}, OutcomeUnknown),
        (400, {"error": {**_ERROR, "code": 0, "type": "unknown"}}, OutcomeUnknown),
        (400, {"error": {**_ERROR, "code": 33}}, OutcomeUnknown),
        (400, {"error": {**_ERROR, "code": 77}}, OutcomeUnknown),
        (400, {}, OutcomeUnknown),
        (404, {}, OutcomeUnknown),
        (200, {"uuid": None, "error": None}, OutcomeUnknown),
        (200, {"uuid": "u", "error": {**_ERROR, "code": 5}}, OutcomeUnknown),
        (500, {"error": {**_ERROR, "code": 50}}, OutcomeUnknown),
        (500, {"error": {**_ERROR, "code": 32}}, OutcomeUnknown),
        (401, {"error": {**_ERROR, "code": 20}}, NotConfigured),
        (403, {"error": {**_ERROR, "code": 14}}, NotConfigured),
        (403, {}, Unavailable),
    ],
)
async def test_answer_to_a_document_has_one_of_three_outcomes(
    status: int, body: dict[str, Any], fault: type[Exception]
) -> None:
    async with open_harness() as atol:
        atol.fake.next(ProviderAnswer.of_json(body, status), matching=atol.is_write)
        with pytest.raises(fault) as raised:
            await atol.register.write_receipt(request_of())
        assert "Anna" not in str(raised.value)
        if status == 400 and fault is Refused and "text" in body["error"]:
            assert "#/receipt/client/email" in str(raised.value)
        await atol.register.write_receipt(request_of())
        assert len(atol.fake.named(OPERATION)) == 1


async def test_reports_keep_to_one_a_second_for_each_register() -> None:
    clock = VirtualClock()
    async with open_harness(clock=clock, registers=2) as atol:
        await atol.register.write_receipt(request_of())
        reads = [asyncio.ensure_future(atol.register.find_receipt(request_of())) for _ in range(20)]
        await clock.advance(6.0)
        states = await asyncio.gather(*reads, return_exceptions=True)
        refused = [each for each in states if isinstance(each, Unavailable)]
        assert [each for each in states if each not in refused] == [PENDING] * 11
        assert len(refused) == 9
        assert all(each.retry_after is not None and each.retry_after > 5 for each in refused)


async def test_merchants_own_register_gets_its_receipts(atol: AtolHarness, tmp_path: Path) -> None:
    fields = {"login": LOGIN, "password": PASSWORD, "group": GROUP, "inn": INN, "email": SELLER, "site": SITE}
    file = tmp_path / "merchants.toml"
    file.write_text("[shp_1]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
    till = read_tills(file)["shp_1"]
    assert PASSWORD not in repr(till)
    tills = Tills(TILL, {"shp_1": till})
    assert tills.of_request(request_of(account="acc_1", shop="shp_1")) is till
    assert tills.of_request(request_of(account="acc_1", shop="shp_2")) is TILL
    register = atol.another(till)
    await register.write_receipt(request_of(shop="shp_1"))
    assert len(atol.fake.named(OPERATION)) == 1
    with pytest.raises(NotConfigured):
        await register.write_receipt(request_of(OTHER, shop="shp_2"))
    file.write_text(file.read_text().replace(INN, "123"))
    with pytest.raises(NotConfigured, match="INN of 10 or 12 digits"):
        read_tills(file)


async def test_notification_names_only_ids_that_can_be_ours(atol: AtolHarness) -> None:
    async def named(external_id: object) -> tuple[Notification, ...]:
        body = json.dumps({"external_id": external_id, "status": "done"}).encode()
        heard = await atol.made.receive(InboundNotification(headers={}, body=body, query={}, address=""))
        return tuple(each for each in heard.notifications if isinstance(each, Notification))

    assert await named(OPERATION) == (Notification(operation=OPERATION),)
    assert await named("TRF10601 1") == ()


async def test_v5_document_is_as_the_published_clients_send_it() -> None:
    async with open_harness(callback_url="https://pay.example/api/v1/notices/atol/secret") as atol:
        [cup] = receipt(333_33, vat=Vat.VAT_22, subject=PaymentSubject.MARKED).items
        mark = MarkCode(format=MarkFormat.GS_1M, value="010460000000000821AbC1234567890\x1d91EE10\x1d92abcdef==")
        sold = msgspec.structs.replace(receipt(1), items=(msgspec.structs.replace(cup, mark=mark),))
        request = request_of(kopecks=333_33, receipt=sold, prepaid_kopecks=33_33, kind=ReceiptKind.REFUND)
        await atol.register.write_receipt(request)
        sent = json.loads(atol.fake.requests[-1].body, parse_float=Decimal)
        assert atol.fake.requests[-1].path == f"/v5/{GROUP}/sell_refund"
        assert sent == {
            "external_id": OPERATION,
            "timestamp": "27.11.2026 03:00:00",
            "service": {"callback_url": "https://pay.example/api/v1/notices/atol/secret"},
            "receipt": {
                "company": {"email": SELLER, "sno": "usn_income", "inn": INN, "payment_address": SITE},
                "client": {"email": EMAIL, "phone": "+79990004711"},
                "internet": True,
                "items": [
                    {
                        "name": "Order 1",
                        "price": Decimal("333.33"),
                        "quantity": 1,
                        "measure": 0,
                        "sum": Decimal("333.33"),
                        "payment_method": "full_payment",
                        "payment_object": 33,
                        "vat": {"type": "vat22", "sum": Decimal("60.11")},
                        "mark_code": {"gs1m": "MDEwNDYwMDAwMDAwMDAwODIxQWJDMTIzNDU2Nzg5MB05MUVFMTAdOTJhYmNkZWY9PQ=="},
                        "mark_processing_mode": "0",
                        "planned_status": 3,
                    }
                ],
                "payments": [{"type": 1, "sum": Decimal("300.00")}, {"type": 2, "sum": Decimal("33.33")}],
                "total": Decimal("333.33"),
            },
        }


RECORDED = {
    "done": (
        200,
        '{"uuid":"2ea26f17","error":null,"status":"done","payload":{"total":100,"fns_site":"www.nalog.ru",'
        '"fn_number":"1110000100238211","shift_number":23,"receipt_datetime":"12.04.2017 20:16:00",'
        '"fiscal_receipt_number":6,"fiscal_document_number":133,"ecr_registration_number":"0000111118041361",'
        '"fiscal_document_attribute":3449555941,"ofd_inn":"7709364346"},"timestamp":"12.04.2017 20:15:08",'
        '"group_code":" MyCompany_MyShop","external_id":"TRF10601_1","callback_url":""}',
        "done",
    ),
    "agent": (
        200,
        '{"callback_url":"https://example.com","daemon_code":"quasar","device_code":"KKT000132","warnings":null,'
        '"error":{"code":2009,"text":"ИНН, указанный в чеке, не соответствует ИНН группы касс.","type":"agent"},'
        '"external_id":"x","group_code":"g","payload":null,"status":"fail","uuid":"u"}',
        "failed",
    ),
    "not ready": (
        200,
        '{"error":{"error_id":"e","code":34,"text":"Состояние чека не найдено. Попробуйте позднее","type":"system"},'
        '"status":"wait","timestamp":"12.04.2017 18:58:38","callback_url":""}',
        "processing",
    ),
    "no uuid": (
        400,
        '{"timestamp":"12.04.2017 06:15:06","status":"fail","error":{"error_id":"e","code":30,"text":"UUID",'
        '"type":"system"}}',
        None,
    ),
    "server": (500, '{"error":{"code":50,"error_id":"e","text":"","type":"system"},"timestamp":""}', None),
    "done without numbers": (200, '{"uuid":"u","status":"done","payload":null,"error":null}', None),
}
"""Answers to a report: those of ATOL's document and of a client's tests, and one that cannot be."""


@table("name", RECORDED)
async def test_recorded_report_is_read_as_its_state(name: str) -> None:
    status, body, expected = RECORDED[name]
    async with open_harness() as atol:
        await atol.register.write_receipt(request_of())
        answer = ProviderAnswer(status=status, body=body.encode(), headers={"Content-Type": "application/json"})
        atol.fake.next(answer, matching=lambda request: "/report/" in request.path)
        if expected is None:
            with pytest.raises(Unavailable):
                await atol.register.find_receipt(request_of())
            return
        found = await atol.register.find_receipt(request_of())
        assert found is not None
        assert found.status == expected
        assert (found.failure or "").startswith("agent 2009" if expected == "failed" else "")


@table(
    ("url", "fits"),
    [
        ("https://pay.example/api/v1/notices/atol/Ab_-1", True),
        ("https://pay.example:8443/x", False),
        ("http://pay.example/x", False),
        ("https://pay.example/x?y=1", False),
        ("https://pay.example/" + "x" * 256, False),
    ],
)
def test_callback_address_must_fit_the_mask_of_atol(url: str, fits: bool) -> None:
    if fits:
        assert read_callback(url) == url
        return
    with pytest.raises(ValueError, match="https URL without port"):
        read_callback(url)


async def test_setting_wires_the_register_with_its_address_and_check() -> None:
    clock = VirtualClock()
    async with FakeAtol(clock.now) as fake:
        providers = {
            f"atol_{name}": value
            for name, value in {
                "login": LOGIN, "password": PASSWORD, "group": GROUP, "inn": INN, "email": SELLER, "site": SITE,
                "url": fake.url,
            }.items()
        }  # fmt: skip
        async with open_test_app(receipts="atol", providers=providers) as app:
            assert app.ports.register is not None
            assert app.ports.register.name == "atol"
            assert "atol" in app.ports.notification_networks
            checks = {check.name: check for check in await check_providers(app.ports)}
            assert checks["atol"].is_checkable
            assert checks["atol"].fault is None
            assert PASSWORD not in repr(app.ports.register)


def test_till_needs_a_seller_that_atol_can_know() -> None:
    with pytest.raises(NotConfigured):
        Till(login="l", password="p", group="g", inn="12", email="e", site="s")
