"""Operation ids for providers that take short ones (docs/adapters.md "Operation ids")."""

import re

from hypothesis import given
from hypothesis import strategies as st

from cambist.frontends.conformance.operation_ids import (
    LONGEST,
    binding_id,
    check_id,
    exchange_invoice_id,
    operation_id,
    part_id,
    return_ids,
    suspense_ids,
)
from cambist.ports import short_operation, tiny_operation

SHORT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
TINY = re.compile(r"[a-z2-7]{20}\Z")

FORMS = st.one_of(
    st.builds(operation_id, st.sampled_from(["pay", "ref", "exch"]), st.integers(0, 9)),
    st.builds(binding_id, st.integers(0, 9)),
    st.builds(part_id, st.integers(0, 9)),
    st.builds(check_id, st.integers(0, 9)),
    st.sampled_from([*suspense_ids(), *return_ids(), exchange_invoice_id()]),
    st.text(max_size=200).filter(lambda text: text.isprintable()),
)
"""Ids that differ in their prefix or their last character alone, and any other text."""


@given(FORMS)
def test_the_short_ones_have_the_length_and_characters_that_are_promised(operation: str) -> None:
    assert SHORT.match(short_operation(operation))
    assert TINY.match(tiny_operation(operation))


@given(st.sets(FORMS, min_size=2, max_size=30))
def test_no_two_operations_share_one_whatever_their_ids_have_in_common(operations: set[str]) -> None:
    for made in (short_operation, tiny_operation):
        assert len({made(operation) for operation in operations}) == len(operations)


def test_operation_ids_are_distinct() -> None:
    """Every character varies: none of the 100 bits is constant."""
    many = [tiny_operation(operation_id("pay", number)) for number in range(20_000)]
    assert len(set(many)) == len(many)
    assert all(len({each[place] for each in many}) == 32 for place in range(20))


def test_operation_ids_keep_their_form() -> None:
    """Providers know operations by them: another form would be another operation."""
    payment = operation_id("pay")
    assert (short_operation(payment), tiny_operation(payment)) == (
        "5237ea1c-4f7a-8558-9b96-276b11637206",
        "ki36uhcppikvqg4we5vr",
    )


def test_the_suites_send_every_kind_at_its_full_length() -> None:
    """Ids from UUIDs and ids with a number are as long as the longest that the app makes."""
    ids = [
        operation_id("pay"),
        exchange_invoice_id(),
        binding_id(),
        part_id(),
        check_id(),
        *return_ids(),
        *suspense_ids(),
    ]
    assert {len(each) for each in ids} == {LONGEST}
    assert all(re.fullmatch(r"[a-z0-9_-]+", each) for each in ids)
    assert len(set(ids)) == len(ids)
