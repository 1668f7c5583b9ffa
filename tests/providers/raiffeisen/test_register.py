"""Items of receipts in the words of Raiffeisenbank's cash registers."""

from base64 import b64decode
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.raiffeisen.register import Register
from cambist.frontends.conformance.receipts import AGENTS, SUPPLIER, receipt
from cambist.ports.faults import Refused
from cambist.ports.receipts import AgentType, MarkCode, MarkFormat, Measure, PaymentSubject, UserAttribute
from tests.tables import table

VALUE = "0104600000000008215AbC\x1d91EE10\x1d92abcdef=="


def test_marked_item_of_an_agent_has_its_fields() -> None:
    sent = receipt(
        100_00,
        subject=PaymentSubject.MARKED,
        mark=MarkCode(format=MarkFormat.GS_1M, value=VALUE),
        agent=AGENTS[list(AgentType).index(AgentType.COMMISSIONER)],
        supplier=SUPPLIER,
    )
    [item] = Register().told(sent, "pay_1")["items"]
    assert (item["paymentObject"], item["measurementUnit"]) == ("COMMODITY_MARKING_WITH_CODE", "PIECE")
    assert (item["agentType"], item["supplierInfo"]) == (
        "COMMISSION_AGENT",
        {"inn": "5544332219", "name": "OOO Sample", "phone": "+79000000000"},
    )
    code = item["marking"]["code"]
    assert (code["format"], b64decode(code["value"]).decode()) == ("GS1M", VALUE)


@table(("measure", "word"), [(Measure.SQUARE_METER, "SQUARE_METER"), (Measure.ANOTHER, "OTHER")])
def test_measure_is_the_word_in_capitals(measure: Measure, word: str) -> None:
    [item] = Register().told(receipt(100_00, measure=measure, thousandths=1500), "pay_1")["items"]
    assert (item["measurementUnit"], str(item["quantity"]), str(item["amount"])) == (word, "1.5", "150.00")


@table(
    "fields",
    [
        {"country": "RU"},
        {"customs_declaration": "1"},
        {"excise_kopecks": 1},
        {"additional": "1"},
        {"subject": PaymentSubject.PROPERTY_RIGHT},
        {"agent": AGENTS[-1], "supplier": msgspec.structs.replace(SUPPLIER, phone="+4412345678")},
    ],
)
def test_item_without_a_field_at_the_bank_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        Register().told(receipt(100_00, **fields), "pay_1")
    assert refused.value.reason == "receipt"


def test_receipt_attribute_and_agents_of_the_former_words_are_refused() -> None:
    sent = msgspec.structs.replace(receipt(100_00), attribute=UserAttribute(name="a", value="b"))
    with pytest.raises(Refused):
        Register().told(sent, "pay_1")
    with pytest.raises(Refused):
        Register(is_former=True).told(receipt(100_00, agent=AGENTS[-1], supplier=SUPPLIER), "pay_1")
