"""The adapter's requests and the fake's answers conform to YooKassa's OpenAPI file. We may not ship that file: name it
in YOOKASSA_OPENAPI (docs/providers/yookassa.md "Tested and untested")."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from cambist.frontends.conformance.operation_ids import binding_id, operation_id, part_id
from cambist.ports.bank import RefundRequest
from cambist.ports.mandates import BindingRequest, ChargeRequest
from cambist.ports.remittances import RemittanceRequest

from .harness import YooKassaHarness

FILE = os.environ.get("YOOKASSA_OPENAPI")
pytestmark = pytest.mark.skipif(FILE is None, reason="YOOKASSA_OPENAPI names no file")

_TOLD_ELSEWHERE = {
    ("POST", "/payment_methods"),  # of SBP: its documentation has them, its file knows cards alone
    ("GET", "/payment_methods/{id}"),
    ("GET", "/payouts"),  # its SDK has the list
}


def _read(schema: Any) -> Any:
    """Return the schema of OpenAPI 3.0 as JSON Schema. Formats are ignored, and alternatives may overlap."""
    if isinstance(schema, list):
        return [_read(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("example", "examples", "format", "discriminator", "xml")
    read = {name: _read(value) for name, value in schema.items() if name not in left_out}
    if isinstance(read.get("oneOf"), list):
        read["anyOf"] = read.pop("oneOf")
    if read.pop("nullable", False) is True and isinstance(read.get("type"), str):
        read["type"] = [read["type"], "null"]
    return read


@pytest.fixture(scope="module")
def official() -> Any:
    return _read(yaml.safe_load(Path(FILE or "").read_text("utf-8")))


def _wrong(official: Any, schema: Any, value: Any, where: str) -> list[str]:
    found = Draft202012Validator({**schema, "components": official["components"]}).iter_errors(value)
    return [f"{where}: {each.json_path}: {each.message[:300]}" for each in found]


async def test_every_request_and_answer_is_of_the_official_schema(harness: YooKassaHarness, official: Any) -> None:
    await _live(harness)
    paths = {path.partition("{")[0]: told for path, told in official["paths"].items() if path.count("/") <= 2}
    seen, wrong = set(), []
    for method, path, request, said in harness.fake.exchanged:
        if (method, path) in _TOLD_ELSEWHERE:
            continue
        operation = paths[path.partition("{")[0]][method.lower()]
        if method == "POST":
            asked = operation["requestBody"]["content"]["application/json"]["schema"]
            wrong += _wrong(official, asked, json.loads(request.body), f"{method} {path} request")
            assert request.headers["idempotence-key"]
        else:
            known = {_resolved(official, each)["name"] for each in operation.get("parameters", ())}
            wrong += [f"{method} {path}: no such parameter: {name}" for name in request.query.keys() - known]
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
        wrong += _wrong(official, answer, json.loads(json.dumps(said)), f"{method} {path} answer")
        seen.add((method, path))
    assert not wrong, "\n".join(sorted(set(wrong)))
    assert len(seen) == 8, seen


def _resolved(official: Any, parameter: Any) -> Any:
    name = parameter.get("$ref", "").rpartition("/")[2]
    return official["components"]["parameters"][name] if name else parameter


async def _live(harness: YooKassaHarness) -> None:
    """Run a payment, its refunds, a mandate, a charge, a payout, and the searches for them."""
    bank = harness.banks[0]
    pay, charge = operation_id("pay", 1), operation_id("pay", 7)
    invoice = await bank.create_invoice(harness.request(pay))
    await harness.pay(pay, invoice, 100_00)
    await bank.invoice_state(invoice.reference)
    await harness.forget()
    assert await harness.bank.find_invoice(pay) is not None
    for number in (1, 2):
        back = RefundRequest(
            operation=operation_id("ref", number), reference=invoice.reference, amount_kopecks=30_00 * number
        )
        await harness.bank.refund(back)
        await harness.finish_refunds()
        assert await harness.bank.find_refund(back.operation) is not None
    plan = BindingRequest(
        operation=binding_id(),
        first_charge_kopecks=100_00,
        purpose="Coffee club",
        expires_at=harness.clock.now() + harness.LIFETIME,
        return_url="https://pay.example/s/1",
    )
    bound = await bank.bind(plan)
    await harness.confirm(binding_id())
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
    await bank.remit(
        RemittanceRequest(operation=part_id(), phone="+79990000001", bank_id=harness.bank_id, amount_kopecks=1000_00)
    )
    await bank.banks()
    await bank.check()
