"""Where a test run's sandboxes are opened: one stage for all of them."""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from .runtime import Runtime
from .sandbox import Sandbox, SandboxOptions, open_on


class Stage(Runtime):
    """Opens sandboxes. Made by `open_stage`; usable from any thread but its own."""

    def open_sandbox(self, options: SandboxOptions | None = None) -> AbstractContextManager[Sandbox]:
        """A sandbox, with an account in it."""
        return open_on(self, options or SandboxOptions())


@contextmanager
def open_stage() -> Iterator[Stage]:
    """A stage, until the end of the context."""
    with tempfile.TemporaryDirectory(prefix="cambist-") as folder, start_blocking_portal() as portal:
        yield Stage(portal, Path(folder))
