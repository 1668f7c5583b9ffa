"""Moments and days as the interface writes them (SPEC "Conventions": ISO 8601, UTC)."""

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """`2026-11-21T09:00:00.123Z`: UTC to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(moment: datetime | None) -> str | None:
    """`iso`, where null is null."""
    return None if moment is None else iso(moment)
