"""Ids of operations at providers: short, of few characters, each parsed back to its parts (docs/adapters.md "Operation
ids")."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain import ids
from cambist.core.domain.exchanges.exchanges import invoice_operation, operation_exchange
from cambist.core.domain.exchanges.payouts import part_operation, read_part
from cambist.core.domain.exchanges.returns import (
    return_number,
    returning_exchange,
    rub_return_operation,
)
from cambist.core.domain.kyc.clients import read_operation
from cambist.core.usecases.payments.recurring import binding_operation, bound_by
from tests.tables import table

PROMISED = re.compile(r"[a-z0-9_-]{1,40}\Z", re.ASCII)
UUIDS = st.uuids().map(str)
NUMBERS = st.integers(1, 10**9 - 1)
TRIES = st.integers(1, 31)
SOURCES = st.text(min_size=1, max_size=600)

KINDS: dict[str, Callable[[str, int, str], str]] = {
    "payment": lambda uuid, _, __: ids.prefixed(ids.PAYMENT, uuid),
    "refund": lambda uuid, _, __: ids.prefixed(ids.REFUND, uuid),
    "invoice of an exchange": lambda uuid, _, __: invoice_operation(ids.prefixed(ids.EXCHANGE, uuid)),
    "part of a payout": lambda uuid, number, _: part_operation(ids.prefixed(ids.EXCHANGE, uuid), number),
    "return of RUB": lambda uuid, number, source: rub_return_operation(f"exch_{uuid}:{source}", number % 31 + 1),
    "return of suspended money": lambda uuid, number, source: ids.operation(
        "sus_", uuid, ids.tail(source, number % 31 + 1)
    ),
    "binding": lambda uuid, _, __: binding_operation(ids.prefixed(ids.PAYMENT, uuid)),
    "check": lambda uuid, number, _: ids.operation("kyc_", uuid, number),
}


@given(st.sampled_from(sorted(KINDS)), UUIDS, NUMBERS, SOURCES)
def test_every_kind_is_as_short_as_promised(kind: str, uuid: str, number: int, source: str) -> None:
    assert PROMISED.match(KINDS[kind](uuid, number, source))


@given(UUIDS, NUMBERS)
def test_a_part_leads_back_to_its_exchange(uuid: str, number: int) -> None:
    exchange_id = ids.prefixed(ids.EXCHANGE, uuid)
    operation = part_operation(exchange_id, number)
    assert (read_part(operation), operation_exchange(operation)) == ((exchange_id, number), exchange_id)


@given(UUIDS)
def test_an_invoice_leads_back_to_its_exchange(uuid: str) -> None:
    exchange_id = ids.prefixed(ids.EXCHANGE, uuid)
    assert {operation_exchange(each) for each in (invoice_operation(exchange_id), exchange_id)} == {exchange_id}


@given(UUIDS)
def test_a_binding_leads_back_to_its_payment(payment: str) -> None:
    payment_id = ids.prefixed(ids.PAYMENT, payment)
    assert bound_by(binding_operation(payment_id)) == payment_id


@given(UUIDS, SOURCES, SOURCES, TRIES)
def test_return_names_its_own_transfer(uuid: str, source: str, other: str, number: int) -> None:
    mine, theirs = (f"exch_{uuid}:{each}" for each in (source, other))
    operation = rub_return_operation(mine, number)
    assert returning_exchange(operation) == f"exch_{uuid}"
    assert return_number(mine, operation) == number
    assert source == other or return_number(theirs, operation) is None


@table(
    ("last", "number"), [(ids.tail("t", 1)[-1], 1), (ids.tail("t", 31)[-1], 31), ("0", None), ("", None), ("w", None)]
)
def test_a_tail_ends_with_the_number_of_an_attempt(last: str, number: int | None) -> None:
    which = f"{ids.tail('t', 1)[:-1]}{last}"
    assert ids.tail_number("t", which) == number
    assert ids.tail_number("other", which) is None


@given(st.text(), UUIDS)
def test_reading_never_fails(text: str, uuid: str) -> None:
    for each in (
        text,
        f"rem_{text}",
        f"exch_{uuid}/{text}",
        f"ret_{text}",
        f"{part_operation('exch_' + uuid, 1)[:-1]}{text}",
    ):
        for read in (read_part, operation_exchange, returning_exchange, bound_by):
            read(each)
        return_number(each, each)


A = "agmmh4t5dj7exh3aaaaaaaaaae"


@table(
    ("text", "expected"),
    [
        (f"rem_{A}_1", ("exch_0198c3f2-7d1a-7e4b-9f60-000000000001", 1)),
        (f"rem_{A}_01", None),
        (f"rem_{A}_1a", None),
        (f"rem_{A}_", None),
        (f"rem_{A}_1234567890", None),
        (f"rem_{A[:-1]}f_1", None),  # bits that no UUID has
        (f"rem_{A.upper()}_1", None),
        (f"ret_{A}_1", None),
        (f"rem_{A}_1\n", None),
    ],
)
def test_one_operation_has_one_spelling(text: str, expected: tuple[str, int] | None) -> None:
    assert read_part(text) == expected


@given(UUIDS, st.integers(0, 10**9 - 1))
def test_a_check_leads_back_to_its_client(uuid: str, number: int) -> None:
    assert read_operation(ids.operation("kyc_", uuid, number)) == (uuid, number)


@table(("prefix", "which"), [("long_", "1"), ("rem_", "1234567890"), ("rem_", ""), ("rem_", "A"), ("rem_", "a-b")])
def test_operation_id_over_the_length_limit_is_not_made(prefix: str, which: str) -> None:
    with pytest.raises(ValueError, match="operation id"):
        ids.operation(prefix, "pay_0198c3f2-7d1a-7e4b-9f60-000000000001", which)


@table("number", [0, 32, -1])
def test_there_is_no_such_attempt(number: int) -> None:
    with pytest.raises(ValueError, match="attempt"):
        ids.tail("B602", number)
