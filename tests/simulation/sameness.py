"""The same seed is the same world: the same trace, and the same rows in the database at its end, whatever order the
process keeps its sets in. `python -m tests.simulation --same 20` lets each world live in three processes."""

import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

HASH_SEEDS = ("0", "1", "3")


def database_digest(database: Any) -> str:
    """Digest of all rows of a storage in memory, by table and id.

    The row of the installation is left out: its mark is random in every process, so that copies can be recognised."""
    digest = sha256()
    for name, table in sorted(database._tables.items()):
        if name == "installations":
            continue
        digest.update(name.encode())
        for record_id in sorted(table.rows):
            digest.update(repr(tuple(table.rows[record_id])).encode())
    return digest.hexdigest()[:16]


def unlike(seed: int) -> set[str]:
    """Return the differing results of a seed's world in processes with different hash seeds; empty if they agree."""
    told = {_told(seed, hash_seed) for hash_seed in HASH_SEEDS}
    return told if len(told) > 1 else set()


def _told(seed: int, hash_seed: str) -> str:
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed}
    lived = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--no-shrink"]
    return subprocess.run(lived, env=environ, check=False, capture_output=True, text=True, timeout=1800).stdout
