"""Moments as requests write them (docs/concepts.md "Amounts and times")."""

from datetime import UTC, datetime

import pytest

from cambist.core.domain.days import parse_moment, read_moment
from cambist.core.domain.errors import Refusal
from tests.tables import table

NINE = datetime(2026, 11, 26, 9, tzinfo=UTC)


@table(
    "text",
    [
        "2026-11-26T09:00:00Z", "2026-11-26t09:00:00z", "2026-11-26T09:00Z", "2026-11-26 09:00:00+00:00",
        "2026-11-26T12:00:00+03:00", "2026-11-26T12:00:00+0300", "2026-11-26T09:00:00.000000000Z",
    ],
)  # fmt: skip
def test_rfc_3339_moments_are_read_in_any_case(text: str) -> None:
    assert parse_moment(text) == NINE


@table(
    "text",
    [
        "", "2026-11-26", "2026-11-26T09:00:00", "2026-W48-4T09:00Z", "20261126T090000Z", "2026-11-26T09Z",
        "2026-11-26T09:00:00,5Z", "2026-11-26T24:00:00Z", "2026-11-26T09:00:60Z", "2026-13-01T00:00Z",
        "٢٠٢٦-11-26T09:00Z",
        "0001-01-01T00:00:00+03:00", "9999-12-31T23:59:59-01:00", "2026-11-26T09:00:00Z ", "now",
    ],
)  # fmt: skip
def test_invalid_text_is_no_moment(text: str) -> None:
    assert parse_moment(text) is None
    with pytest.raises(Refusal, match="ISO 8601"):
        read_moment("from", text)
