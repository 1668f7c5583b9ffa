"""Processes of the program at a quarter of the cost. They are forked from a process that has imported it, and
otherwise start as in a shell: each has a process group, a folder, an environment and files of its own, and runs the
program's own `main`. Tests of imports and memory need a newly loaded program instead. Linux only."""

import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Lock

_MOST = 1 << 18
"""Bytes of one order, with its arguments and environment."""
_NOT_LOADED = (
    *("cambist.django", "cambist.frontends.django"),  # they need Django's settings
    *("cambist.adapters.storage.migrations.versions", "cambist.adapters.storage.migrations.env"),
    *("cambist.client", "cambist.conformance", "cambist.testing"),
    *(f"cambist.frontends.{each}" for each in ("client", "conformance", "console", "embedding", "testing")),
)
"""Modules that commands and services do without."""


class Forked:
    """A forked process, with the part of `subprocess.Popen` that the tests need."""

    def __init__(self, pid: int, ends: socket.socket) -> None:
        self.pid = pid
        self._ends = ends
        self._lock = Lock()
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status, or minus the signal, once it has ended."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        """The same, waited for. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("cambist", timeout)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Signal a process that may have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, within: float) -> int | None:
        looking = select.poll()
        looking.register(self._ends, select.POLLIN)
        if self._status is None and looking.poll(within * 1000):
            with self._lock:  # one thread may wait while another checks
                if self._status is None:
                    self._status = _number(self._ends)
        return self._status


class Template:
    """The process that they are forked from."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def start(self, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], out: Path, err: Path) -> Forked:
        """Start the program with these arguments in `folder`; its output goes to `out` and `err`."""
        order = json.dumps([arguments, str(folder), dict(environ), str(out), str(err)]).encode()
        assert len(order) <= _MOST
        for file in (out, err):
            file.write_bytes(b"")
        ends, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._orders, [order], [theirs.fileno()])
        return Forked(_number(ends), ends)

    def stop(self) -> None:
        """Stop the template process, but no fork of it."""
        self._orders.close()
        self._process.wait()


def _number(said: socket.socket) -> int:
    number = said.recv(16)
    assert number, "what processes are forked from is gone"
    return int(number)


_templates: list[Template] = []
_making = Lock()


def template() -> Template:
    """Return the template of this process, created on first use."""
    with _making:
        if not _templates:
            _templates.append(Template())
        return _templates[0]


def stop_template() -> None:
    """Stop it, if there is one."""
    while _templates:
        _templates.pop().stop()


def _fork_as_ordered(orders: socket.socket) -> list[str] | None:
    """Tell each starter the process's number, and how it ended. The arguments, in a process that was forked; None, in
    that which it was forked from, when nobody can order any more."""
    waiting = selectors.DefaultSelector()
    waiting.register(orders, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                order, received, _, _ = socket.recv_fds(orders, _MOST, 1)
                if not order:
                    return None
                ends = socket.socket(fileno=received[0])
                pid = os.fork()
                if pid == 0:
                    os.setsid()
                    with ends:  # from here on the starter may kill its group
                        ends.send(str(os.getpid()).encode())
                    for other in [*waiting.get_map().values()]:
                        if other.data is not None:
                            os.close(other.fd)
                            other.data[1].close()
                    orders.close()
                    waiting.close()
                    return _settled(*json.loads(order))
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, ends))
            else:
                pid, ends = key.data
                waiting.unregister(key.fd)
                os.close(key.fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with ends, suppress(BrokenPipeError):  # the starter may have gone
                    ends.send(str(status).encode())


def _settled(arguments: list[str], folder: str, environ: dict[str, str], out: str, err: str) -> list[str]:
    """Prepare the process as the starter wants it, and return the arguments."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    packages = environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [each for each in packages if each and each not in sys.path]
    for number, name in ((1, out), (2, err)):
        file = os.open(name, os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    return arguments


def _main() -> None:
    import cambist

    for found in walk_packages(cambist.__path__, "cambist."):
        if not found.name.startswith(_NOT_LOADED):
            import_module(found.name)
    from cambist.frontends.cli.main import main

    gc.freeze()

    arguments = _fork_as_ordered(socket.socket(fileno=int(sys.argv[1])))
    if arguments is not None:
        sys.argv = ["cambist", *arguments]
        main()


if __name__ == "__main__":
    _main()
