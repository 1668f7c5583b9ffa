"""Group commit for SQLite: the writes of many units in one transaction, and so in one fsync.

Whoever waits while a commit is under way joins the next one. A batch is carried out in one go; when a unit of it is
refused (it lost a race, or broke a rule) all of it is taken back and carried out again, now with a savepoint for each
unit, so that the refused one takes back its own writes only. Refusals are rare, and savepoints are nearly half of all
statements. Nobody hears of success before COMMIT returned, nor once the file is not where its path leads
(open_file.py). Other processes that wait have their turn between two batches (turnstile.py).

Units that need not be on disk (ports/storage.py: Unit.commit) have transactions of their own, before the others: they
wait for no fsync, and are on disk with the next one, because the log is one sequence.

Statements run on the event loop and only what may block runs in the one thread: COMMIT with its fsync, and BEGIN
IMMEDIATE, but that only once it was refused because another process writes. Measured beside a busy HTTP loop this
gives a third more commits, at a sixth less CPU, than a thread that runs all statements: a statement takes some
microseconds, less than handing it over. After some units the loop has a turn, so that a large batch does not hold up
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
"""Units in one transaction at most, so that the first of them need not wait for ever more."""
QUEUE = 10_000
"""Units that may wait; beyond it the storage is taken to be stuck, and refuses."""
_IN_A_ROW = 8
"""Batches that wait for no fsync, one after the other, until one does whatever waits: so nobody who needs the disk is
kept from it, and no more than this is ever lost."""
_AGAIN = 0.002
"""Seconds between two tries to begin while another process writes."""
_UNITS_A_TICK = 16
"""Units after which the loop has a turn: about a millisecond."""


class Committer:
    """Owns the one connection that writes. For one event loop.

    `begin` is called before the quick ways of a batch, and `end` after them: what they leave for all of them together
    is written there. It raises Doubtful where that is refused, and then each unit does its own work. Another process
    that writes is waited for `busy` seconds.
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
        # One for all statements: to make one costs as much as a small one, and the connection keeps a trace of 200.
        self._cursor = connection.cursor()
        self._turnstile = turnstile
        self._opened_file = open_file
        self._begin_batch, self._end_batch = begin, end
        self._busy = busy
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cambist-sqlite-commit")
        self._waiting: deque[WaitingUnit] = deque()
        self._light: deque[WaitingUnit] = deque()
        """Those that need not be on disk."""
        self._in_a_row = 0
        self._is_durable = True
        """How the connection commits."""
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
        """Do the work in the next transaction, and return what it returned once that is on disk, or, where it need not
        be `durable`, committed.

        `quick` does the same where nothing is refused; it raises Doubtful elsewhere, and then `work` is done.
        When the caller is cancelled before its transaction began, the work is not done; later, it is, and `late` is
        called in the caller's stead. Raises what `work` raised; Unavailable when the file could not be written.
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
        """A number that stands still for as long as nobody but this committer writes to the file; None where it
        cannot be told just now. While our transaction is open nobody else can."""
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
        """A cursor that is left open keeps the file open behind a connection that is closed."""
        self._cursor.close()
        self._connection.close()

    async def close(self) -> None:
        """Write what waits, then close the connection."""
        self._closed = True
        if self._flushing is not None:
            await asyncio.wait([self._flushing])
        await self._in_thread(self._let_go)
        self._thread.shutdown()
        self._turnstile.close()

    async def _flush(self) -> None:
        try:
            while self._waiting or self._light:
                if self._light and self._in_a_row < _IN_A_ROW:
                    self._in_a_row += 1
                    await self._write(_taken(self._light), durable=False)
                else:
                    self._in_a_row = 0
                    await self._write(_taken(self._waiting, self._light), durable=True)
        finally:
            self._flushing = None
            # Only when this task was cancelled (the loop is being closed) somebody still waits.
            for waiting in (*self._light, *self._waiting):
                waiting.fail(Unavailable("the event loop was closed"))
            self._light.clear()
            self._waiting.clear()

    async def _write(self, batch: list[WaitingUnit], *, durable: bool) -> None:
        try:
            self._commit_as(durable=durable)
            await self._begin()
            taken = await self._carry_out(batch)
            if durable:
                await self._in_thread(self._cursor.execute, "COMMIT")
            else:
                self._cursor.execute("COMMIT")
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
            for waiting in taken:
                waiting.succeed()

    def _commit_as(self, *, durable: bool) -> None:
        """Have transactions that begin from now on wait for the disk, or not. As a script, because a statement that is
        kept prepared would set nothing the second time."""
        if durable is not self._is_durable:
            self._cursor.executescript(DURABLE if durable else NOT_DURABLE)
            self._is_durable = durable

    async def _begin(self) -> None:
        if not (self._turnstile.is_free() and self._begun_at_once()):
            await self._in_thread(self._begin_patiently)
        self._begun = self._data_version()

    def _begun_at_once(self) -> bool:
        """Begin; False where another process writes."""
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
            taken = await self._each(batch, self._hope)
            self._end_batch(self._cursor)
        except Doubtful:
            await self._roll_back()
            await self._begin()
            return await self._each(batch, self._attempt)
        return taken

    async def _each(self, batch: list[WaitingUnit], carry_out: Callable[[WaitingUnit], None]) -> list[WaitingUnit]:
        taken = []
        for number, waiting in enumerate(batch, start=1):
            if not waiting.future.done():  # cancelled while it waited: nobody asks for it any more
                carry_out(waiting)
                taken.append(waiting)
            if number % _UNITS_A_TICK == 0:
                await asyncio.sleep(0)
        return taken

    def _hope(self, waiting: WaitingUnit) -> None:
        """Raises: Doubtful, and with it goes the batch."""
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
        except Exception as fault:  # noqa: BLE001 - handed to the one who waits for this unit
            execute("ROLLBACK TO unit")
            waiting.outcome = fault
        execute("RELEASE unit")

    async def _roll_back(self) -> None:
        self._begun = None
        if self._connection.in_transaction:  # a full disk ends it by itself
            await self._in_thread(self._connection.rollback)

    async def _in_thread(self, call: Callable[..., object], *arguments: object) -> None:
        """Run a call in the thread, and stay until it is over even when cancelled: the connection is in its hands."""
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
    """The next batch of these queues, the first before the second."""
    batch: list[WaitingUnit] = []
    for queue in queues:
        while queue and len(batch) < BATCH:
            batch.append(queue.popleft())
    return batch
