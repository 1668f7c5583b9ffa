"""Cells: installations of which each has some of the accounts, and the move of an account from one to another
(docs/cells.md)."""

import re
from datetime import datetime
from enum import StrEnum

import msgspec

CELL_NAME = re.compile(r"[a-z0-9]{1,16}\Z", re.ASCII)
"""Names of cells. They are part of API keys, host names and files of proxies."""


class Stage(StrEnum):
    """How far an account's move is, as this cell sees it."""

    LEAVING = "leaving"
    """The account is here and takes no changes, while its rows are copied to the other cell."""
    ARRIVING = "arriving"
    """Rows of the account are being copied into this cell; it is still in the other one."""
    LEFT = "left"
    """The account is in the other cell."""


class AccountMove(msgspec.Struct, frozen=True, kw_only=True):
    """The move of an account out of this cell, or into it until it has arrived. Its id is the account's."""

    id: str
    stage: Stage
    cell: str
    """Name of the other cell."""
    pay_url: str
    """Public address of the other cell's payment window, for links that were given out before the move."""
    held_at: datetime
    """When changes began to be refused; for an arriving account, when the copy began."""
    left_at: datetime | None = None
    version: int = 0


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, or an object with a hosted page, whose account left this cell. This cell sends its requests on. It
    has the id of the key or object."""

    id: str
    account_id: str
    version: int = 0
