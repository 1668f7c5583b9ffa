"""An operation is asked for by both its ids, and never sent again where one of them is known
(docs/adapters.md "Operation ids")."""

import pytest

from cambist.core.usecases.operations.former import find_either
from cambist.ports.faults import Refused, Unavailable

NEW, FORMER = "out_new", "former:new"


@pytest.mark.parametrize(
    ("known", "former", "found", "asked"),
    [
        ({NEW}, FORMER, NEW, [NEW]),
        ({NEW, FORMER}, FORMER, NEW, [NEW]),
        ({NEW}, None, NEW, [NEW]),
        ({FORMER}, FORMER, FORMER, [NEW, FORMER]),
        ({FORMER}, None, None, [NEW]),
        (set(), FORMER, None, [NEW, FORMER]),
        (set(), None, None, [NEW]),
    ],
)
async def test_the_present_id_counts_and_then_the_former_one(
    known: set[str], former: str | None, found: str | None, asked: list[str]
) -> None:
    heard: list[str] = []

    async def find(operation: str) -> str | None:
        heard.append(operation)
        return operation if operation in known else None

    assert await find_either(find, NEW, former) == found
    assert heard == asked


@pytest.mark.parametrize(
    ("refuses", "fault", "is_raised"),
    [(FORMER, Refused("no such form"), False), (NEW, Refused("no"), True), (FORMER, Unavailable("away"), True)],
)
async def test_a_provider_that_takes_no_ids_of_the_former_form_never_took_this_one(
    refuses: str, fault: Exception, is_raised: bool
) -> None:
    """All else says nothing."""

    async def find(operation: str) -> str | None:
        if operation == refuses:
            raise fault
        return None

    if is_raised:
        with pytest.raises(type(fault)):
            await find_either(find, NEW, FORMER)
    else:
        assert await find_either(find, NEW, FORMER) is None
