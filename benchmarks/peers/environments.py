"""Virtual environments of peers. Each peer installs its packages once into its own folder, never into ours.

CAMBIST_BENCH_PEERS names the parent folder (default `.benchmarks/peers`).
"""

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path


class NotToBeHad(Exception):
    """A peer cannot be installed or started here. The message says why."""


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Return the Python of a peer's environment, creating the environment if needed. Raises: NotToBeHad."""
    folder = Path(os.environ.get("CAMBIST_BENCH_PEERS", ".benchmarks/peers")).absolute() / name
    python, done = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if done.exists() and done.read_text() == wanted:
        return python
    venv.create(folder, clear=True, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    try:
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
    except (subprocess.SubprocessError, OSError) as fault:
        print(getattr(fault, "stderr", ""), file=sys.stderr)
        raise NotToBeHad(f"{', '.join(requirements)} cannot be installed here") from fault
    done.write_text(wanted)
    return python
