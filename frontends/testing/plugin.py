"""The pytest plugin (entry point `pytest11`). It costs nothing until a test requests a fixture; the first sandbox then
takes less than half a second."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..client import AsyncClient, Client
    from .sandbox import Sandbox, SandboxOptions
    from .stage import Stage


def _open_stage(config: pytest.Config) -> "AbstractContextManager[Stage]":
    try:
        with _asserts_left_alone(config):
            from . import open_stage
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "cambist"):
            raise
    else:
        return open_stage()
    pytest.fail(f"the sandbox needs {missing!r}: pip install 'cambist[testing]'", pytrace=False)


@contextmanager
def _asserts_left_alone(config: pytest.Config) -> Iterator[None]:
    """Disable pytest's assertion rewriting while our modules are imported. pytest rewrites every package with a plugin,
    and would recompile all our modules once per installation, or in every run on a read-only file system; that takes
    longer than everything else."""
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    if hook not in sys.meta_path:
        yield
        return
    place = sys.meta_path.index(hook)
    del sys.meta_path[place]
    try:
        yield
    finally:
        sys.meta_path.insert(place, hook)


@pytest.fixture(scope="session")
def cambist_stage(pytestconfig: pytest.Config) -> "Iterator[Stage]":
    """Shared parts of a run's sandboxes: an event loop in a thread, and the HTTP application."""
    with _open_stage(pytestconfig) as stage:
        yield stage


@pytest.fixture
def cambist_options(cambist_stage: "Stage") -> "SandboxOptions":  # noqa: ARG001 - tells first what is not installed
    """Options of the sandbox. Override this fixture in a conftest.py, a module or a class."""
    from .sandbox import SandboxOptions

    return SandboxOptions()


@pytest.fixture
def cambist_sandbox(cambist_stage: "Stage", cambist_options: "SandboxOptions") -> "Iterator[Sandbox]":
    """A separate service for one test: in memory, with its own clock and a merchant's test account."""
    with cambist_stage.open_sandbox(cambist_options) as sandbox:
        yield sandbox


@pytest.fixture
def cambist_client(cambist_sandbox: "Sandbox") -> "Client":
    """The merchant's client, bound to the sandbox."""
    return cambist_sandbox.client


@pytest.fixture
def cambist_async_client(cambist_sandbox: "Sandbox") -> "AsyncClient":
    """The merchant's async client, bound to the sandbox. It works on any event loop."""
    return cambist_sandbox.async_client
