"""What is written to files is on disk, also when the machine stops."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have what was written to a file, or the names in a folder, on disk. Folders take care of themselves on Windows.
    Raises: OSError."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
