"""Counts of merchants' long lists, by days that are over: counted once, and kept (docs/concepts.md "Lists")."""

import msgspec


class ListCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many records of one list of an account in live mode were made on one day, counted when it was over."""

    id: str
    count: int
    version: int = 0


def list_count_id(account_id: str, name: str, day: str) -> str:
    """The id of a list's count of a day (`2026-11-21`). `name`: the list's, without a colon."""
    return f"{account_id}:{name}:{day}"


def list_count_ids(account_id: str, name: str, first: str, last: str) -> tuple[str, str]:
    """The range of ids of the counts from one day to another, both with them."""
    return list_count_id(account_id, name, first), f"{list_count_id(account_id, name, last)};"
