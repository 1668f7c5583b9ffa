"""Writing to disk so that the data survive a machine failure."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk. Windows needs no flush of folders. Raises: OSError."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
