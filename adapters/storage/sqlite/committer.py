"""Group commit for SQLite: the writes of many units share one transaction, and so one fsync.

Units that arrive during a commit join the next batch. A batch is first written without savepoints. When a unit in
it is refused (it lost a race, or broke a rule), the committer rolls the batch back and writes it again with a
savepoint for each unit, so that a refused unit loses only its own writes. Refusals are rare, and savepoints are
nearly half of all statements.

A caller learns of success only after COMMIT returned, and only while the file is still where its path leads
(open_file.py). Other processes get their turn between two batches (turnstile.py).

Units that need not be on disk (ports/storage.py: Unit.commit) run in their own transactions, before the others.
They wait for no fsync, and reach the disk with the next one, because the log is one sequence.

Statements run on the event loop. Only calls that may block run in the one thread: COMMIT with its fsync, and BEGIN
IMMEDIATE after a first try failed because another process writes. Measured beside a busy HTTP loop, this gives a
third more commits at a sixth less CPU than running all statements in a thread: a statement takes some microseconds,
less than the handover. The committer yields to the loop after every few units, so that a large batch does not delay
requests. While the thread works, nothing else touches the connection.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ....ports.faults import Unavailable
from .file import BUSY, DURABLE, NOT_DURABLE
from .open_file import OpenFile
from .turnstile import Turnstile
from .waiting import Doubtful, WaitingUnit

T = TypeVar("T")

BATCH = 256
"""Units in one transaction at most, to limit how long the first of them waits."""
QUEUE = 10_000
"""Units that may wait. Beyond that the storage counts as stuck and refuses new ones."""
_IN_A_ROW = 8
"""Batches without fsync in a row.

The next batch then writes every waiting unit durably. This keeps durable units from starving, and limits how much a
crash can lose.
"""
_AGAIN = 0.002
"""Seconds between two attempts to begin while another process writes."""
_UNITS_A_TICK = 16
"""Units between two yields to the event loop: about a millisecond of work."""


class Committer:
    """Owner of the only connection that writes. For one event loop.

    The committer calls `begin` before the quick functions of a batch, and `end` after them. `end` writes what the
    quick functions left for the whole batch. It raises Doubtful when that is refused, and then each unit runs its
    own `work`. The committer waits `busy` seconds for another process that writes.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        turnstile: Turnstile,
        open_file: OpenFile,
        *,
        begin: Callable[[], None],
        end: Callable[[sqlite3.Cursor], None],
        busy: float = BUSY,
    ) -> None:
        self._connection = connection
        # One cursor for all statements: creating one costs as much as a small statement, and the connection tracks up
        # to 200.
        self._cursor = connection.cursor()
        self._turnstile = turnstile
        self._opened_file = open_file
        self._begin_batch, self._end_batch = begin, end
        self._busy = busy
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cambist-sqlite-commit")
        self._waiting: deque[WaitingUnit] = deque()
        self._light: deque[WaitingUnit] = deque()
        """Units that need not be on disk."""
        self._in_a_row = 0
        self._is_durable = True
        """Whether the connection waits for the disk at COMMIT."""
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False
        self._begun: int | None = None
        self._away = False
        connection.execute("PRAGMA busy_timeout=0")

    def run(
        self,
        work: Callable[[sqlite3.Cursor], T],
        *,
        quick: Callable[[sqlite3.Cursor], T] | None = None,
        late: Callable[[], None] | None = None,
        durable: bool = True,
    ) -> "asyncio.Future[T]":
        """Run `work` in the next transaction, and return its result once that is on disk, or only committed if not
        `durable`.

        `quick` does the same as `work` for the case that nothing is refused. It raises Doubtful otherwise, and then
        `work` runs. If the caller is cancelled before its transaction began, the work is skipped. If it is
        cancelled later, the work is done, and `late` is called because no caller is left to get the result. Raises
        what `work` raised; Unavailable when the file could not be written.
        """
        if self._closed:
            raise Unavailable("the storage is closed")
        self._opened_file.require()
        queue = self._waiting if durable else self._light
        if len(queue) >= QUEUE:
            raise Unavailable("too many units wait to be written")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        queue.append(WaitingUnit(work, quick or work, future, late))
        if self._flushing is None:
            self._flushing = loop.create_task(self._flush())
        return future

    def others_wrote(self) -> int | None:
        """Return a number that changes only when another connection writes to the file; None when it cannot be read
        now. While our transaction is open no other process can write.
        """
        if self._begun is not None:
            return self._begun
        if self._away:
            return None
        try:
            return self._data_version()
        except sqlite3.Error:
            return None

    def _data_version(self) -> int:
        ((number,),) = self._cursor.execute("PRAGMA data_version").fetchall()
        return int(number)

    def _let_go(self) -> None:
        """Close the cursor first: an open cursor keeps the file open behind a closed connection."""
        self._cursor.close()
        self._connection.close()

    async def close(self) -> None:
        """Write the waiting units, then close the connection."""
        self._closed = True
        if self._flushing is not None:
            await asyncio.wait([self._flushing])
        await self._in_thread(self._let_go)
        self._thread.shutdown()
        self._turnstile.close()

    async def _flush(self) -> None:
        try:
            # Up to _IN_A_ROW batches skip the fsync; the next one takes both queues and waits for the disk.
            while self._waiting or self._light:
                if self._light and self._in_a_row < _IN_A_ROW:
                    self._in_a_row += 1
                    await self._write(_taken(self._light), durable=False)
                else:
                    self._in_a_row = 0
                    await self._write(_taken(self._waiting, self._light), durable=True)
        finally:
            self._flushing = None
            # Units still wait only if this task was cancelled (the loop is closing).
            for waiting in (*self._light, *self._waiting):
                waiting.fail(Unavailable("the event loop was closed"))
            self._light.clear()
            self._waiting.clear()

    async def _write(self, batch: list[WaitingUnit], *, durable: bool) -> None:
        try:
            # Step 1: begin. Step 2: write every unit. Step 3: commit, in the thread if the commit waits for the disk.
            self._commit_as(durable=durable)
            await self._begin()
            taken = await self._carry_out(batch)
            if durable:
                await self._in_thread(self._cursor.execute, "COMMIT")
            else:
                self._cursor.execute("COMMIT")
            # Step 4: a file that was deleted or replaced meanwhile lost this commit, so check before reporting success.
            self._opened_file.look()
            self._opened_file.require()
        except Unavailable as lost:
            self._begun = None
            for waiting in batch:
                waiting.fail(Unavailable(str(lost)))
        except sqlite3.Error as fault:
            await self._roll_back()
            for waiting in batch:
                cause = Unavailable(f"SQLite could not write: {fault}")
                cause.__cause__ = fault
                waiting.fail(cause)
        except BaseException:
            await self._roll_back()
            for waiting in batch:
                waiting.fail(Unavailable("the commit was broken off"))
            raise
        else:
            self._begun = None
            # Step 5: only now let the callers know.
            for waiting in taken:
                waiting.succeed()

    def _commit_as(self, *, durable: bool) -> None:
        """Make transactions that begin from now on wait for the disk, or not.

        This uses a script because a cached prepared statement would have no effect the second time.
        """
        if durable is not self._is_durable:
            self._cursor.executescript(DURABLE if durable else NOT_DURABLE)
            self._is_durable = durable

    async def _begin(self) -> None:
        if not (self._turnstile.is_free() and self._begun_at_once()):
            # Another process writes or waits for its turn, so begin in the thread, which may block.
            await self._in_thread(self._begin_patiently)
        self._begun = self._data_version()

    def _begun_at_once(self) -> bool:
        """Begin a transaction. Return False if another process writes."""
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _begin_patiently(self) -> None:
        deadline = time.monotonic() + self._busy
        with self._turnstile.held():
            while time.monotonic() < deadline:
                if self._begun_at_once():
                    return
                time.sleep(_AGAIN)
            self._cursor.execute("BEGIN IMMEDIATE")

    async def _carry_out(self, batch: list[WaitingUnit]) -> list[WaitingUnit]:
        self._begin_batch()
        try:
            # First pass: the quick functions, without savepoints. `end` then writes what they share.
            taken = await self._each(batch, self._hope)
            self._end_batch(self._cursor)
        except Doubtful:
            # Something was refused. Start over with a savepoint for each unit, to find out which unit it was.
            await self._roll_back()
            await self._begin()
            return await self._each(batch, self._attempt)
        return taken

    async def _each(self, batch: list[WaitingUnit], carry_out: Callable[[WaitingUnit], None]) -> list[WaitingUnit]:
        taken = []
        for number, waiting in enumerate(batch, start=1):
            if not waiting.future.done():  # the caller was cancelled while the unit waited
                carry_out(waiting)
                taken.append(waiting)
            if number % _UNITS_A_TICK == 0:
                await asyncio.sleep(0)
        return taken

    def _hope(self, waiting: WaitingUnit) -> None:
        """Run the quick function of a unit. Raises: Doubtful, which sends the whole batch to the second pass."""
        try:
            waiting.outcome = waiting.quick(self._cursor)
        except sqlite3.Error:
            raise
        except Exception as fault:
            raise Doubtful from fault

    def _attempt(self, waiting: WaitingUnit) -> None:
        execute = self._cursor.execute
        execute("SAVEPOINT unit")
        try:
            waiting.outcome = waiting.work(self._cursor)
        except sqlite3.Error:
            raise
        except Exception as fault:  # noqa: BLE001 - passed to the caller of this unit
            execute("ROLLBACK TO unit")
            waiting.outcome = fault
        execute("RELEASE unit")

    async def _roll_back(self) -> None:
        self._begun = None
        if self._connection.in_transaction:  # SQLite has rolled back by itself when the disk is full
            await self._in_thread(self._connection.rollback)

    async def _in_thread(self, call: Callable[..., object], *arguments: object) -> None:
        """Run a call in the thread, and wait until it ends even when cancelled, because the thread uses the
        connection.
        """
        future = asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        self._away = True
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as broken_off:
                cancelled = broken_off
        self._away = False
        future.result()
        if cancelled is not None:
            raise cancelled


def _taken(*queues: deque[WaitingUnit]) -> list[WaitingUnit]:
    """Return the next batch of these queues, taking from the first queue first."""
    batch: list[WaitingUnit] = []
    for queue in queues:
        while queue and len(batch) < BATCH:
            batch.append(queue.popleft())
    return batch
