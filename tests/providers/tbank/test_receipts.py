"""Receipts in T-Bank's two formats."""

from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.tbank.receipts import ReceiptFormat, receipt_fields
from cambist.adapters.countries import COUNTRIES
from cambist.frontends.conformance.receipts import AGENTS, SUPPLIER, receipt
from cambist.ports.faults import Refused
from cambist.ports.receipts import AgentType, MarkCode, MarkFormat, Measure, PaymentSubject, Receipt, UserAttribute
from tests.tables import table


def told(sent: Receipt, version: ReceiptFormat = ReceiptFormat.V1_2) -> dict[str, Any]:
    found: dict[str, Any] = receipt_fields(sent, sent.total_kopecks, version)["Receipt"]
    return found


def test_item_in_full_has_the_fields_of_format_1_2() -> None:
    sent = receipt(
        1000_00,
        subject=PaymentSubject.MARKED,
        mark=MarkCode(format=MarkFormat.GS_1M, value="01\x1d91"),
        agent=AGENTS[list(AgentType).index(AgentType.PAYMENT_AGENT)],
        supplier=SUPPLIER,
        country="RU",
        customs_declaration="10702030",
        excise_kopecks=10_05,
        additional="shelf 5",
    )
    attribute = UserAttribute(name="Order", value="17")
    found = told(msgspec.structs.replace(sent, name="Anna", inn="500100732259", attribute=attribute))
    assert (found["FfdVersion"], found["Customer"], found["CustomerInn"]) == ("1.2", "Anna", "500100732259")
    assert found["AddUserProp"] == {"Name": "Order", "Value": "17"}
    assert found["Items"] == [
        {
            "Name": "Order 1",
            "Price": 1000_00,
            "Quantity": 1,
            "Amount": 1000_00,
            "Tax": "none",
            "PaymentMethod": "full_payment",
            "AgentData": {
                "AgentSign": "paying_agent",
                "Phones": ("+79000000001",),
                "ReceiverPhones": ("+79000000001",),
            },
            "SupplierInfo": {"Phones": ["+79000000000"], "Name": "OOO Sample", "Inn": "5544332219"},
            "PaymentObject": "goods_with_marking_code",
            "MeasurementUnit": "шт",
            "Excise": "10.05",
            "CountryCode": "643",
            "DeclarationNumber": "10702030",
            "UserData": "shelf 5",
            "MarkProcessingMode": "0",
            "MarkCode": {"MarkCodeType": "GS1M", "Value": "01\x1d91"},
        }
    ]


def test_quantity_is_a_number_and_the_amount_is_rounded() -> None:
    [item] = told(receipt(149_99, thousandths=333, measure=Measure.KILOGRAM))["Items"]
    assert (item["Quantity"], item["Amount"], item["MeasurementUnit"]) == (0.333, 49_95, "кг")


@table(
    "fields",
    [
        {"subject": PaymentSubject.MARKED, "mark": MarkCode(format=MarkFormat.SHORT, value="1")},
        {"country": "RU"},
        {"customs_declaration": "1"},
        {"excise_kopecks": 1},
        {"additional": "1"},
    ],
)
def test_former_format_has_no_field_for_what_is_new(fields: dict[str, Any]) -> None:
    plain = told(receipt(100_00), ReceiptFormat.V1_05)
    assert plain["FfdVersion"] == "1.05"
    assert "MeasurementUnit" not in plain["Items"][0]
    with pytest.raises(Refused, match=r"1\.05") as refused:
        told(receipt(100_00, **fields), ReceiptFormat.V1_05)
    assert refused.value.reason == "receipt"


@table("fields", [{"subject": PaymentSubject.COMPOSITE}, {"country": "ZZ"}])
def test_format_1_2_refuses_what_it_has_no_code_for(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"1\.2"):
        told(receipt(100_00, **fields))


def test_countries_have_one_code_each() -> None:
    assert len(COUNTRIES) == len(set(COUNTRIES.values())) == 249
    assert (COUNTRIES["RU"], COUNTRIES["CN"], COUNTRIES["BY"]) == ("643", "156", "112")
