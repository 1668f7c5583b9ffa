"""Requests as values: amounts, paths, pages; none of it needs a network."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.frontends.client import Page, Pagination, Payments
from cambist.frontends.client.operations import Walker


class Row(msgspec.Struct):
    id: str


def test_a_walk_leaves_out_what_new_elements_pushed_onto_later_pages() -> None:
    def page(number: int, *ids: str) -> Page[Any]:
        return Page(data=[Row(each) for each in ids], pagination=Pagination(page=number, per_page=2, total=5))

    walker: Walker[Any] = Walker(Payments.list.request(per_page=2))
    asked, found = [], []
    for rows in (("5", "4"), ("4", "3"), ("2", "1")):
        assert walker.request is not None
        asked.append(walker.request.query.get("page", "1"))
        found += [each.id for each in walker.take(page(len(asked), *rows))]
    assert (asked, found, walker.request) == (["1", "2", "3"], ["5", "4", "3", "2", "1"], None)


@pytest.mark.parametrize("wrong", [0.1, True, None])
def test_an_amount_is_never_a_float(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Payments.create.request(amount_rub=wrong)


@pytest.mark.parametrize(
    ("given", "sent"), [(Decimal("1E+3"), "1000"), (Decimal("0.10"), "0.10"), (7, "7"), ("7.5", "7.5")]
)
def test_amounts_are_decimal_strings_on_the_wire(given: Any, sent: str) -> None:
    body = Payments.create.request(amount_rub=given).body
    assert body is not None
    assert msgspec.json.decode(body) == {"amount_rub": sent}


@pytest.mark.parametrize("wrong", ["", ".", ".."])
def test_an_id_cannot_lead_to_another_path(wrong: str) -> None:
    with pytest.raises(ValueError, match="id"):
        Payments.get.request(wrong)
    assert Payments.get.request("a/../b?c").path == "/payments/a%2F..%2Fb%3Fc"
