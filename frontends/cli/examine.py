"""Runs the checks of `cambist doctor` in order, each with a time limit. Importing it loads the whole app."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import click

from ...core.usecases.operators import doctor, thorough
from ...core.usecases.operators.findings import Finding, Level, failed, ok, warning
from ...ports.faults import Fault
from ...ports.vault import VaultError, VaultMisfit
from ..app.compose import open_app
from ..app.maintenance import key_file
from ..app.notification_addresses import judge_notifications
from ..app.simulators import judge_simulators
from ..operations import doctor as around
from ..operations.alarms import judge_alarms
from ..settings.settings import SettingsError
from .session import loaded_settings

LIMIT = 10.0
"""Time limit of a check, in seconds."""
_MARGIN = 5.0
"""Seconds after the limit until a check that cannot be cancelled is abandoned."""

Told = tuple[str, Finding]
_SIMULATORS, _NOTIFICATIONS, _ALARMS = "simulators", "notifications", "alarms"
_LOOKED_AT_FIRST = ("database", "schema", "secrets")
"""Checks that must pass before an app is opened: opening would create files or upgrade the schema."""


def examine(*, full: bool, limit: float = LIMIT) -> Iterator[Told]:
    """Yield each check's finding as it is made. Invalid settings are findings too."""
    try:
        loaded = loaded_settings()
    except SettingsError as error:
        for fault in error.faults:
            yield "settings", failed(f"{fault.origin}: {fault.message}", "correct it; `cambist config check` explains")
        return
    examined = around.Examined(loaded=loaded, environ=os.environ)
    patience = None if full else limit + _MARGIN
    yield from _from_a_thread(lambda: _checks(examined, limit, full=full), patience)


def _from_a_thread(checks: Callable[[], AsyncIterator[Told]], patience: float | None) -> Iterator[Told]:
    """Yield findings made by an event loop in another thread. A disk or driver that hangs blocks only that thread, and
    the program can still end."""
    found: queue.Queue[Told | BaseException | None] = queue.Queue()

    async def work() -> None:
        async for each in checks():
            found.put(each)

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:  # noqa: BLE001  (handed over, and raised where it is waited for)
            found.put(error)
        else:
            found.put(None)

    threading.Thread(target=run, daemon=True, name="cambist-doctor").start()
    while True:
        try:
            each = found.get(timeout=patience)
        except queue.Empty:
            yield "doctor", failed("the next check hangs and cannot be stopped", "look at the disks and mounts")
            return
        if each is None:
            return
        if isinstance(each, BaseException):
            raise each
        yield each


async def _checks(examined: around.Examined, limit: float, *, full: bool) -> AsyncIterator[Told]:
    well: dict[str, bool] = {}
    for name, check in around.CHECKS.items():
        finding = await _bounded(name, check(examined), limit)
        well[name] = finding.level is not Level.FAILED
        yield name, finding
    for name, look in around.THOROUGH.items() if full and well["database"] else ():
        yield name, await _bounded(name, look(examined, _each_progress), None)
    missing = [name for name in _LOOKED_AT_FIRST if not well[name]]
    own = key_file(examined.settings)
    if not missing and own is not None and not own.exists():
        missing = ["secrets"]
    if missing:
        for name in (*doctor.CHECKS, _SIMULATORS, _NOTIFICATIONS, _ALARMS):
            yield name, warning(f"not looked at, because of {missing[0]}", f"see {missing[0]}")
        return
    async for each in _checks_inside(examined, limit, full=full):
        yield each


async def _checks_inside(examined: around.Examined, limit: float, *, full: bool) -> AsyncIterator[Told]:
    """Run the checks that need an open app."""
    app = open_app(examined.settings, patient=True)
    opening = asyncio.ensure_future(app.__aenter__())
    finding = await _bounded("app", _opened(opening), limit)
    if finding.level is Level.FAILED:
        misfits = opening.done() and not opening.cancelled() and isinstance(opening.exception(), VaultMisfit)
        yield "vault" if misfits else "app", finding
        return
    opened = opening.result()
    ports = opened.ports
    try:
        for name, check in doctor.CHECKS.items():
            if full and name in thorough.THOROUGH:
                yield name, await _bounded(name, thorough.THOROUGH[name](ports, _progress), None)
            else:
                yield name, await _bounded(name, check(ports), limit)
        yield _SIMULATORS, judge_simulators(opened)
        yield _NOTIFICATIONS, await _bounded(_NOTIFICATIONS, judge_notifications(ports), limit)
        yield _ALARMS, await _bounded(_ALARMS, judge_alarms(ports), limit)
    finally:
        await _bounded("app", _closed(app.__aexit__(None, None, None)), limit)


async def _opened(opening: Awaitable[Any]) -> Finding:
    await opening
    return ok("the app is open")


async def _closed(closing: Awaitable[Any]) -> Finding:
    await closing
    return ok("the app is closed")


_DAMAGED = "the file is damaged: `cambist doctor --full` names the places; restore the last sound backup"


async def _bounded(name: str, check: Awaitable[Finding], limit: float | None) -> Finding:
    """Return a check's finding, or a failure if it raised or exceeded its limit. A check that does not stop in time is
    abandoned."""
    task = asyncio.ensure_future(check)
    done, _ = await asyncio.wait([task], timeout=limit)
    if not done:
        task.cancel()
        return failed(
            f"no answer within {limit:.0f} s", around.REMEDIES.get(name, "look at the database and the disks")
        )
    try:
        return task.result()
    except (Fault, OSError, VaultError) as fault:
        usual = _DAMAGED if "malformed" in str(fault) else "see the message"
        return failed(str(fault), around.REMEDIES.get(name, usual))
    except Exception as error:  # noqa: BLE001  (one check that breaks must not keep the others from being made)
        return failed(f"the check broke: {type(error).__name__}", "report it, with the version of cambist")


def _each_progress(text: str) -> None:
    click.echo(text, err=True)


def _progress(text: str) -> None:
    if text.partition(" ")[0].endswith("0000"):
        click.echo(f"{text} checked", err=True)
