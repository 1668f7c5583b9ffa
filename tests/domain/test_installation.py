"""When a database is taken for a copy, and what its hold says (docs/operations.md "A held copy")."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from cambist.core.domain.installation import TOLD, Because, Installation, held, let_go, marked, recognised
from tests.tables import table

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def row(**more: Any) -> Installation:
    return Installation(mark="m2", marked_at=NOW - HOUR, **{"place": "here", **more})


BESIDE = ("m2", "m3")
HELD = {"held_since": NOW, "held_because": Because.BY_HAND}


@table(
    ("installation", "place", "marks", "begun", "because"),
    [
        (row(), "here", BESIDE, False, None),
        # The database lies elsewhere; an unknown location raises no alarm.
        (row(), "there", BESIDE, False, Because.COPIED),
        (row(), "there", BESIDE, True, Because.COPIED),
        (row(), None, BESIDE, False, None),
        (row(place=None), "there", BESIDE, False, None),
        # Its mark is gone, or another one.
        (row(), "here", None, False, Because.COPIED),
        (row(), "here", None, True, Because.COPIED),
        (row(), "here", ("m3",), False, Because.OLDER),
        (row(), "here", ("m3",), True, None),
        (row(), "here", (), False, Because.OLDER),
        # It is held already.
        (row(**HELD), "there", None, False, None),
        (row(**HELD), "here", ("m3",), False, None),
        # It has no row: new, or of a version without marks, unless it was marked before.
        (None, "here", None, False, None),
        (None, "here", BESIDE, False, Because.OLDER),
        (None, "here", BESIDE, True, None),
    ],
)
def test_copy_is_distinguished_from_its_original(
    installation: Installation | None, place: str | None, marks: Collection[str] | None, begun: bool, because: Because
) -> None:
    assert recognised(installation, place, marks, begun=begun) is because


@table(
    ("before", "as_of", "since", "older"),
    [
        (row(), NOW - HOUR, NOW, NOW - HOUR),
        (row(), None, NOW, None),
        (row(held_since=NOW - HOUR, as_of=NOW - HOUR), NOW, NOW - HOUR, NOW - HOUR),
        (row(held_since=NOW - HOUR, as_of=NOW), NOW - HOUR, NOW - HOUR, NOW - HOUR),
        (row(held_since=NOW - HOUR, as_of=NOW), None, NOW - HOUR, NOW),
    ],
)
def test_quarantined_copy_stays_so_as_of_the_older_moment(
    before: Installation, as_of: datetime | None, since: datetime, older: datetime | None
) -> None:
    after = held(before, Because.COPIED, NOW, as_of)
    assert (after.is_held, after.held_since, after.held_because, after.as_of) == (True, since, Because.COPIED, older)
    assert after.told == TOLD[Because.COPIED]


def test_released_copy_is_as_before_and_a_new_fingerprint_releases_none() -> None:
    free = let_go(held(row(), Because.OLDER, NOW, NOW))
    assert free == msgspec.structs.replace(row(), lacks_since=NOW)
    assert (free.is_held, free.told) == (False, "it is not held")
    after = marked(held(row(), Because.OLDER, NOW, NOW), "m4", "there", NOW)
    assert (after.mark, after.place, after.marked_at, after.is_held) == ("m4", "there", NOW, True)
    assert msgspec.structs.replace(after, mark="m2", place="here", marked_at=NOW - HOUR) == held(
        row(), Because.OLDER, NOW, NOW
    )
