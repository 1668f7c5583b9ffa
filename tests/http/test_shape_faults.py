"""Messages about a body that does not have the documented shape (docs/concepts.md "Requests in general")."""

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.frontends.http.edge.bodies import read_body
from cambist.frontends.http.operations import OPERATIONS
from tests.tables import table

BODIES: list[Any] = [row.body for row in OPERATIONS if row.body is not None and row.body is not bytes]
PYTHON = ("Expected `", "got `", "str |", "NoneType")


class Kind(Enum):
    """Some words."""

    ONE = "one"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    amount: str


class AnyShape(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of all kinds that a body may come to have."""

    text: str | None = None
    short: Annotated[str, msgspec.Meta(max_length=2, pattern="^a")] | None = None
    count: int | None = None
    few: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None
    ratio: float | None = None
    is_on: bool | None = None
    kind: Kind | None = None
    day: date | None = None
    moment: datetime | None = None
    id: UUID | None = None
    raw: bytes | None = None
    names: Annotated[list[str], msgspec.Meta(max_length=2)] | None = None
    pair: tuple[int, int] | None = None
    inner: Inner | None = None
    inners: list[Inner] = []
    by_name: dict[str, int] | None = None


def faults(body: Any, shape: type[Any]) -> list[FieldFault]:
    """Return the faults of a body, or an empty list for a valid one."""
    try:
        read_body(msgspec.json.encode(body), "application/json", shape)
    except Refusal as refusal:
        return [each for each in refusal.details or () if isinstance(each, FieldFault)]
    return []


def fault(body: Any, shape: type[Any] = PaymentOrder) -> tuple[str, str]:
    (found,) = faults(body, shape)
    return found.path, found.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@given(data=st.data())
def test_no_message_speaks_of_pythons_types(data: st.DataObject) -> None:
    """This holds for every body, and for any kind of field that a body may get."""
    shape: Any = data.draw(st.sampled_from([*BODIES, AnyShape]))
    names = [each.encode_name for each in msgspec.structs.fields(shape)]
    body = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=4) | JSON)
    for each in faults(body, shape):
        assert each.message.startswith(("must be ", "is ", "the body is ", "nested ", "NUL "))
        assert not [word for word in PYTHON if word in each.message]


@table(
    ("body", "path", "message"),
    [
        ({"amount_rub": 490}, "amount_rub", 'must be a string such as "490.00"'),
        ({"amount_rub": None}, "amount_rub", 'must be a string such as "490.00"'),
        ({"amount_rub": "1", "external_id": 7}, "external_id", "must be a string or null"),
        ({"amount_rub": "1", "ttl_minutes": "7"}, "ttl_minutes", "must be a whole number or null"),
        ({"amount_rub": "1", "auto_return": 1}, "auto_return", "must be true or false or null"),
        ({"amount_rub": "1", "metadata": []}, "metadata", "must be an object or null"),
        ({"amount_rub": "1", "payer": {"full_name": 1}}, "payer.full_name", "must be a string"),
        ({"amount_rub": "1", "payer": {"full_name": "A"}}, "payer.document_number", "is required"),
        ([], "$", "must be an object"),
        ({}, "amount_rub", "is required"),
    ],
)
def test_fault_names_the_expected_json_type(body: Any, path: str, message: str) -> None:
    assert fault(body) == (path, message)


@table(
    ("body", "shape", "path", "message"),
    [
        ({"externl_id": "7"}, PaymentOrder, "externl_id", "is not a known field; did you mean external_id?"),
        ({"amount": "7"}, PaymentOrder, "amount", "is not a known field; did you mean amount_rub?"),
        ({"amountUsdt": "7"}, ExchangeOrder, "amountUsdt", "is not a known field; did you mean amount_usdt?"),
        ({"intervall": "day"}, SubscriptionOrder, "intervall", "is not a known field; did you mean interval?"),
        ({"payer": {"fullname": "A"}}, PaymentOrder, "payer.fullname", "is not a known field; did you mean full_name?"),
        ({"zebra": 1}, PaymentOrder, "zebra", "is not a known field"),
        ({"inners": [{"amont": 1}]}, AnyShape, "inners[0].amont", "is not a known field"),
        ({"x" * 50_000: 1}, PaymentOrder, "x" * 50_000, "is not a known field"),
    ],
)
def test_fault_of_an_unknown_field_suggests_the_nearest_one(
    body: Any, shape: type[Any], path: str, message: str
) -> None:
    found = fault(body, shape)
    assert found[1] == message
    assert found[0].replace("[...]", "[0]") == path
