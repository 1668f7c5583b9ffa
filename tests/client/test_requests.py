"""Requests as values: amounts, paths, pages; none of it needs a network."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.frontends.client import Page, Pagination, Payments
from cambist.frontends.client.errors import Answer, refusal
from cambist.frontends.client.operations import Walker
from tests.tables import table


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


class Shrinking:
    """A list of which elements go while it is walked, two a page."""

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)
        self.asked: list[str] = []

    def walk(self, goes: dict[int, list[str]], row: Callable[[str], Any]) -> list[str]:
        """Return the items of a walk. `goes` names the items that leave the list before each page, counted from 1."""
        walker: Walker[Any] = Walker(Payments.list.request(per_page=2))
        found: list[str] = []
        while walker.request is not None:
            self.asked.append(walker.request.query.get("page", "1"))
            for gone in goes.get(len(self.asked), []):
                self.ids.remove(gone)
            number = int(self.asked[-1])
            data = [row(each) for each in self.ids[2 * number - 2 : 2 * number]]
            page = Page(data=data, pagination=Pagination(page=number, per_page=2, total=len(self.ids)))
            found += [each.id if isinstance(each, Row) else each["name"] for each in walker.take(page)]
        return found


def test_a_walk_goes_back_for_what_was_pulled_onto_pages_that_it_has_read() -> None:
    """Two payments of the first page are no longer pending at the second request, so the next two have moved to the
    first page."""
    listed = Shrinking("7", "6", "5", "4", "3", "2", "1")
    assert listed.walk({2: ["7", "6"]}, Row) == ["7", "6", "3", "2", "5", "4", "1"]
    assert listed.asked == ["1", "2", "1", "2", "3"]


def test_a_walk_ends_when_everything_goes() -> None:
    listed = Shrinking("5", "4", "3", "2", "1")
    assert listed.walk({2: ["5", "4", "3", "2", "1"]}, Row) == ["5", "4"]
    assert listed.asked == ["1", "2", "1"]


def test_records_without_an_id_are_not_read_twice() -> None:
    """Lines of a statement have no id by which known and new ones differ."""
    listed = Shrinking("5", "4", "3", "2", "1")
    assert listed.walk({2: ["5"]}, lambda name: {"name": name}) == ["5", "4", "2", "1"]


@table("wrong", [0.1, True, None])
def test_an_amount_is_never_a_float(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Payments.create.request(amount_rub=wrong)


@table(("given", "sent"), [(Decimal("1E+3"), "1000"), (Decimal("0.10"), "0.10"), (7, "7"), ("7.5", "7.5")])
def test_amounts_are_decimal_strings_on_the_wire(given: Any, sent: str) -> None:
    body = Payments.create.request(amount_rub=given).body
    assert body is not None
    assert msgspec.json.decode(body) == {"amount_rub": sent}


@table("wrong", ["", ".", ".."])
def test_an_id_cannot_lead_to_another_path(wrong: str) -> None:
    with pytest.raises(ValueError, match="id"):
        Payments.get.request(wrong)
    assert Payments.get.request("a/../b?c").path == "/payments/a%2F..%2Fb%3Fc"


@table(
    ("link", "found"),
    [
        ('<https://pay.example/docs/errors#NOT_FOUND>; rel="help"', "https://pay.example/docs/errors#NOT_FOUND"),
        ("<https://pay.example/a>; rel=next, <http://pay.example/b>; rel=help", "http://pay.example/b"),
        ('<https://pay.example/a>; rel="next"', None),
        ("<javascript:alert(1)>; rel=help", None),
        (None, None),
    ],
)
def test_a_refusal_has_the_page_that_its_answer_links_to(link: str | None, found: str | None) -> None:
    headers = {} if link is None else {"link": link}
    body = b'{"error": {"code": "NOT_FOUND", "message": "Endpoint not found"}}'
    error = refusal(Payments.list.request(), Answer(status=404, headers=headers, body=body))
    assert error.doc_url == found
