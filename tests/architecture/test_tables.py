"""A rule that is a table is held against every row (tests/tables.py)."""

from typing import Any

import pytest

from tests.tables import table


def test_every_row_is_tried_and_each_failure_reported() -> None:
    tried = []

    @table("left, right", [(1, 1), pytest.param(1, 2, id="wrong"), (3, 3), (4, 5)])
    def equal(left: int, right: int) -> None:
        tried.append(left)
        assert left == right

    check: Any = equal
    with pytest.raises(ExceptionGroup, match="2 rows of equal") as caught:
        check()
    assert tried == [1, 1, 3, 4]
    assert [each.__notes__ for each in caught.value.exceptions] == [
        ["in the row {'left': 1, 'right': 2}"],
        ["in the row {'left': 4, 'right': 5}"],
    ]


async def test_two_tables_try_every_pair_and_raise_a_single_failure_as_it_is() -> None:
    tried = []

    @table("left", [1, 2])
    @table("right", [(3,), None])
    async def pair(left: int, right: Any, fixture: str) -> None:
        tried.append((left, right, fixture))
        if (left, right) == (2, None):
            pytest.fail("this one")

    check: Any = pair
    with pytest.raises(pytest.fail.Exception, match="this one"):
        await check(fixture="there")
    assert tried == [(1, (3,), "there"), (1, None, "there"), (2, (3,), "there"), (2, None, "there")]


def test_no_row_is_skipped_and_no_table_is_empty() -> None:
    @table("value", [1, 2])
    def skipped(value: int) -> None:
        pytest.skip("not today")

    check: Any = skipped
    with pytest.raises(BaseExceptionGroup, match="2 rows of skipped"):
        check()
    with pytest.raises(ValueError, match="without rows"):
        table("value", [])
    with pytest.raises(TypeError, match="does not take"):
        table("other", [1])(skipped)
