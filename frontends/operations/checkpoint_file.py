"""Verification of the ledger from a checkpoint in a file (docs/operations.md "The proof of the books")."""

import asyncio
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from ...adapters.durable import sync
from ...core.domain.chains import Head
from ...core.domain.errors import Refusal
from ...core.usecases.ledger.check import LedgerReport, Progress, nobody, verify_ledger
from ...core.usecases.ledger.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ...ports.bundle import Ports

COMPLETE_AFTER = timedelta(days=7)
"""After this time a verification reads every row again."""


async def verify_since(
    ports: Ports, path: Path | None, *, progress: Progress = nobody, against: Iterable[Head] = ()
) -> LedgerReport:
    """Verify the ledger from the checkpoint in the file, and replace it by the one that was proved.

    Every row is read if there is no file, or if that was last done COMPLETE_AFTER ago. A verification that finds a
    fault leaves the file as it is. Raises: Refusal INVALID_STATE for an altered checkpoint; OSError.
    """
    since = None if path is None else await _read(ports, path)
    if since is not None and ports.clock.real() - since.complete_at >= COMPLETE_AFTER:
        since = None
    report = await verify_ledger(ports, progress=progress, against=against, since=since)
    if path is not None and report.checkpoint is not None:
        await asyncio.to_thread(_write, path, write_checkpoint(ports.vault, report.checkpoint))
    return report


async def _read(ports: Ports, path: Path) -> Checkpoint | None:
    try:
        return read_checkpoint(ports.vault, await asyncio.to_thread(path.read_bytes))
    except FileNotFoundError:
        return None
    except Refusal as refusal:
        raise Refusal(refusal.code, f"{path}: {refusal.message}") from None


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(content)
        draft.chmod(0o600)
        sync(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)
