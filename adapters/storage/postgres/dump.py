"""Dump and restore of a Postgres database by Postgres' own programs: one snapshot, one transaction."""

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ....ports.faults import NotConfigured, Unavailable
from ...postgres_sessions import asking

_LOCK_WAIT = "30s"
"""Time that pg_dump waits for a table that a migration has locked."""
_GRACE = 10.0
"""Seconds that a program has to end after SIGTERM."""
_TOLD = 5
"""Lines of a failed program's output in our error message. The last lines say why it failed."""
_COPIED = re.compile(r' table "(?:[^."]+\.)?([^"]+)"')
"""Line of both programs about the rows of a table. Lines about its definition have `TABLE`."""
_TABLES = """
SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg_toast%'
"""

Tell = Callable[[str], None]


async def dump(url: str, target: Path, tell: Tell) -> None:
    """Write the database, as of one moment, into the new file `target`, while others use it.

    Raises: NotConfigured without pg_dump; Unavailable with the program's output.
    """
    given = ("--format=custom", "--no-owner", "--no-privileges", "--verbose", f"--lock-wait-timeout={_LOCK_WAIT}")
    await _run("pg_dump", (*given, f"--file={target}"), url, tell)


async def check(source: Path) -> None:
    """Check that a file is a dump with a readable table of contents. Raises: NotConfigured; Unavailable."""
    await _run("pg_restore", ("--list", "--file=/dev/null", str(source)), None, lambda _: None)


async def load(url: str, source: Path, tell: Tell, *, replace: bool) -> None:
    """Fill the database from a dump, in one transaction, which leaves nothing behind when it is interrupted.

    With `replace`, the same transaction first drops the tables that the dump contains. Raises: NotConfigured
    without pg_restore; Unavailable with the program's output.
    """
    given = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--verbose"]
    given += ["--clean", "--if-exists"] if replace else []
    await _run("pg_restore", (*given, str(source)), url, tell)


async def is_empty(url: str) -> bool:
    """Return whether the database has no table. Raises: Unavailable."""
    async with asking(url) as connection:
        count: int = await connection.fetchval(_TABLES)
    return count == 0


async def _run(program: str, arguments: Sequence[str], url: str | None, tell: Tell) -> None:
    """Run a program to its end, without a time limit, and report its progress to `tell`."""
    environ = dict(os.environ)
    if url is not None:
        shown, password = _without_password(url)
        arguments = (*arguments, f"--dbname={shown}")
        if password is not None:
            environ["PGPASSWORD"] = password
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise NotConfigured(
            f"{program} is not installed: it comes with Postgres' client programs (postgresql-client), of the server's "
            "version"
        ) from None
    try:
        last = await _listen(process, tell)
        status = await process.wait()
    except BaseException:
        await _end(process)
        raise
    if status:
        raise Unavailable(f"{program} failed: {'; '.join(last) or f'exit status {status}'}")


async def _listen(process: asyncio.subprocess.Process, tell: Tell) -> Sequence[str]:
    """Return the last lines of a program's output. Report each table that it copies."""
    last: deque[str] = deque(maxlen=_TOLD)
    tables = 0
    while process.stderr is not None and (line := await process.stderr.readline()):
        text = line.decode("utf-8", "replace").strip()
        last.append(text)
        if found := _COPIED.search(text):
            tables += 1
            tell(f"table {tables}: {found[1]}")
    return last


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        process.kill()


def _without_password(url: str) -> tuple[str, str | None]:
    """Return the URL without its password, and the password.

    Every user of the machine can see the URL in the process list.
    """
    parts = urlsplit(url)
    before, at, host = parts.netloc.rpartition("@")
    user, colon, password = before.partition(":")
    given = parse_qsl(parts.query)
    secrets = [unquote(password)] if colon else [value for name, value in given if name == "password"]
    query = urlencode([(name, value) for name, value in given if name != "password"])
    shown = f"{parts.scheme}://{user}{at}{host}{parts.path}{'?' if query else ''}{query}"
    return shown, secrets[-1] if secrets else None
