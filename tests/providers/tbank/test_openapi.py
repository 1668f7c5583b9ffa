"""The adapter's requests and the fake's answers conform to T-Bank's own OpenAPI file. We may not ship that file: name
it in TBANK_OPENAPI (docs/providers/tbank.md "Tested and untested")."""

import json
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from cambist.frontends.conformance.operation_ids import binding_id, operation_id
from cambist.ports.bank import RefundRequest
from cambist.ports.mandates import BindingRequest, ChargeRequest
from tests.providers.tbank.harness import TBankHarness, open_harness

FILE = os.environ.get("TBANK_OPENAPI")
pytestmark = pytest.mark.skipif(FILE is None, reason="TBANK_OPENAPI names no file")

LOOSE = {"PaymentId", "RequestKey", "Amount", "OriginalAmount", "NewAmount"}
"""Called numbers here and texts there, by examples that disagree with their types."""


def _read(schema: Any) -> Any:
    """Return OpenAPI's schema as JSON Schema. Types whose examples disagree with them accept both, and formats are
    ignored."""
    if isinstance(schema, list):
        return [_read(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    read = {name: _read(value) for name, value in schema.items() if name not in ("example", "examples", "format")}
    if "oneOf" in read:
        read["anyOf"] = read.pop("oneOf")  # its alternatives overlap
    properties = read.get("properties")
    if isinstance(properties, dict):
        for name in LOOSE & properties.keys():
            properties[name] = {"type": ["number", "string"]}
    return read


@pytest.fixture(scope="module")
def official() -> Any:
    return _read(json.loads(Path(FILE or "").read_text("utf-8")))


@pytest.fixture
async def harness() -> AsyncIterator[TBankHarness]:
    async with open_harness() as opened:
        yield opened


def _check(official: Any, schema: Any, value: Any, where: str) -> None:
    whole = {**schema, "components": official["components"]}
    if where == "/v2/GetQr answer":
        value = {"RequestKey": 0, **value}  # the file has this field only for payments that bind
    try:
        Draft202012Validator(whole).validate(value)
    except ValidationError as wrong:
        raise AssertionError(f"{where}: {wrong.json_path}: {wrong.message}") from None


def _content(told: Any) -> Any:
    return next(iter(told["content"].values()))["schema"]


async def test_every_request_and_answer_is_of_the_official_schema(harness: TBankHarness, official: Any) -> None:
    await _live(harness)
    methods = set()
    for path, asked, answered in harness.fake.exchanged:
        operation = official["paths"][path]["post"]
        _check(official, _content(operation["requestBody"]), asked, f"{path} request")
        if answered["Success"]:
            _check(official, _content(operation["responses"]["200"]), answered, f"{path} answer")
        methods.add(path)
    assert len(methods) == 9, methods


async def _live(harness: TBankHarness) -> None:
    """A payment, its refunds, a mandate of each kind, a charge."""
    harness.books.charges_at_once = True  # the schema lacks FORM_SHOWED, which its text has
    bank, pay, charge = harness.tbank, operation_id("pay", 1), operation_id("pay", 7)
    invoice = await bank.create_invoice(harness.request(pay))
    await harness.pay(pay, invoice, 100_00)
    await bank.invoice_state(invoice.reference)
    for number in (1, 2):
        back = RefundRequest(
            operation=operation_id("ref", number), reference=invoice.reference, amount_kopecks=30_00 * number
        )
        await bank.refund(back)
    due = harness.clock.now() + timedelta(hours=1)
    for number, first in ((1, 100_00), (2, None)):
        plan = BindingRequest(
            operation=binding_id(number), first_charge_kopecks=first, purpose="Coffee club", expires_at=due
        )
        bound = await bank.bind(plan)
        await harness.confirm(binding_id(number))
        mandate = await bank.mandate_state(bound.reference)
    await bank.charge(
        ChargeRequest(
            operation=charge,
            reference=mandate.reference,
            token=mandate.token or "",
            amount_kopecks=250_00,
            purpose="Coffee club",
        )
    )
    await bank.check()
