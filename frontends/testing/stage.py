"""The stage on which all sandboxes of a test run are opened."""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from .runtime import Runtime
from .sandbox import Sandbox, SandboxOptions, open_on


class Stage(Runtime):
    """Opens sandboxes. Created by `open_stage`; usable from any thread except its own."""

    def open_sandbox(self, options: SandboxOptions | None = None) -> AbstractContextManager[Sandbox]:
        """Open a sandbox with an account."""
        return open_on(self, options or SandboxOptions())


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Open a stage until the block ends."""
    with tempfile.TemporaryDirectory(prefix="cambist-") as folder, start_blocking_portal() as portal:
        yield Stage(portal, Path(folder))
