"""Counts of merchants' long lists, by past days: computed once, and stored (docs/concepts.md "Lists")."""

import msgspec


class ListCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number of records of one list of an account in live mode created on one day, counted after its end."""

    id: str
    count: int
    version: int = 0


def list_count_id(account_id: str, name: str, day: str) -> str:
    """Return the id of a list's count for a day (`2026-11-21`). `name` is the list's, without a colon."""
    return f"{account_id}:{name}:{day}"


def list_count_ids(account_id: str, name: str, first: str, last: str) -> tuple[str, str]:
    """Return the range of ids of the counts from the first to the last day, both included."""
    return list_count_id(account_id, name, first), f"{list_count_id(account_id, name, last)};"
