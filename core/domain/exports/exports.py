"""Exports: files of a list that a background job writes for one person (docs/dashboard.md "Exports",
docs/concepts.md "Exports").

The content is in the storage, as chunks that the vault encrypts. The port of files does not fit: it takes uploads from
browsers and has no operation to write, and its S3 adapter leaves encryption to the bucket. A chunk is written in the
unit that counts its rows, so a crash repeats and loses nothing, and a backup contains either both or none.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from ..accounts.accounts import Mode
from ..machine import Move, Moves

EXPORT: Final = "exp_"
BY_API: Final = "api"

KEPT = timedelta(hours=24)
"""How long a file can be downloaded, from its completion. A failed export is listed as long."""
UNFINISHED_KEPT = timedelta(days=2)
"""Retention period of an export that never ends, from its creation."""
OPEN_MOST = 3
"""Exports of one account that are written at the same time."""
KEPT_MOST = 50
"""Exports of one person, or of all programs, in an account and mode that are kept at the same time."""
LINK_LIVES = timedelta(minutes=15)
"""Lifetime of a download link for programs."""


class ExportKind(StrEnum):
    """The list that the file contains."""

    PAYMENTS = "payments"
    REFUNDS = "refunds"
    STATEMENT = "statement"
    """Every movement of the balance."""


class ExportFormat(StrEnum):
    CSV = "csv"
    XLSX = "xlsx"


ROWS_MOST: Mapping[ExportFormat, int] = {ExportFormat.CSV: 1_000_000, ExportFormat.XLSX: 100_000}
"""Rows of one file. A sheet is built in memory; spreadsheets open no more than about a million rows."""


class ExportStatus(StrEnum):
    COLLECTING = "collecting"
    """Rows are read and stored."""
    PACKING = "packing"
    """All rows are stored, and a workbook is built of them."""
    READY = "ready"
    FAILED = "failed"


class ExportTrigger(StrEnum):
    """Cause of an export's move."""

    COLLECTED = "all rows are stored"
    WRITTEN = "the file is complete"
    FAILED = "it cannot be written"


class ExportFailure(StrEnum):
    """Reason why an export failed."""

    RIGHTS = "rights"
    """The person lost the right, or may see other shops than when the export began."""
    TOO_MANY = "too_many"
    """More rows than ROWS_MOST."""
    FILTER = "filter"
    """The filter is not valid any more: a shop is gone."""
    CANCELLED = "cancelled"
    ERROR = "error"
    """It failed too often for another reason."""


_S = ExportStatus
_T = ExportTrigger

EXPORT_MOVES: Moves[ExportStatus, ExportTrigger] = Moves(
    (
        Move(_S.COLLECTING, _S.PACKING, _T.COLLECTED),
        Move(_S.COLLECTING, _S.READY, _T.WRITTEN),
        Move(_S.PACKING, _S.READY, _T.WRITTEN),
        Move(_S.COLLECTING, _S.FAILED, _T.FAILED),
        Move(_S.PACKING, _S.FAILED, _T.FAILED),
    )
)


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """One export of one person or program, in an account and mode. Moments are those of the machine, also in test mode:
    a file lives as long as its person waits."""

    id: str
    account_id: str
    mode: Mode
    owner_id: str
    """The person; BY_API for exports that programs ordered, which all keys of the account and mode share."""
    kind: ExportKind
    format: ExportFormat
    status: ExportStatus
    filter: dict[str, str]
    """Values of the list's filter, by name."""
    shops: tuple[str, ...] | None
    """Shops that the file covers; None: the whole account."""
    total: int | None
    """Rows expected, as counted at the beginning; None: no index counts them."""
    created_at: datetime
    expires_at: datetime
    rows: int = 0
    """Rows stored so far."""
    position_at: datetime | None = None
    """Position behind the last stored row: its moment and its id. None: nothing was read yet."""
    position_id: str | None = None
    row_chunks: int = 0
    """Chunks of rows of a workbook; they are deleted once it is built."""
    file_chunks: int = 0
    size: int = 0
    """Bytes of the file."""
    failure: ExportFailure | None = None
    slot: str | None = None
    """Which of the account's OPEN_MOST places it takes; None once it has ended."""
    version: int = 0

    @property
    def is_by_api(self) -> bool:
        return self.owner_id == BY_API

    @property
    def is_open(self) -> bool:
        """Return whether it is still being written."""
        return not EXPORT_MOVES.is_final(self.status)

    @property
    def file_name(self) -> str:
        return f"{self.kind}-{self.created_at:%Y-%m-%d}.{self.format}"


class ExportChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an export's rows or of its file."""

    id: str
    body: bytes
    """Encrypted, and compressed if it is text."""
    version: int = 0

    def __repr__(self) -> str:
        return f"ExportChunk({self.id!r}, ***)"


def moved_to(export: Export, trigger: ExportTrigger, now: datetime, **changes: Any) -> Export:
    """Return the export after the trigger, with the other changes of the move. Nothing else writes an export's status.
    An ended one frees its slot and is kept for KEPT. Raises: IllegalMove."""
    status = EXPORT_MOVES.move(export.status, trigger)
    if EXPORT_MOVES.is_final(status):
        changes |= {"slot": None, "expires_at": now + KEPT}
    return msgspec.structs.replace(export, status=status, **changes)


def slots_of(account_id: str) -> tuple[str, ...]:
    """Return the slots of an account, of which each is taken by one open export."""
    return tuple(f"{account_id}:{number}" for number in range(OPEN_MOST))


def row_chunk_id(export_id: str, number: int) -> str:
    return f"{export_id}:rows:{number:06}"


def file_chunk_id(export_id: str, number: int) -> str:
    return f"{export_id}:file:{number:06}"


def chunk_range(export_id: str) -> tuple[str, str]:
    """Return the bounds of the ids of all chunks of an export: from the first to below the second."""
    return f"{export_id}:", f"{export_id};"
