"""Common frame of every command: settings, an open app, one answer, and an exit status (0 done, 1 refused, 2 wrong
usage, 3 waits for a second operator, 130 interrupted)."""

import asyncio
import functools
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ...core.domain.days import iso
from ...core.domain.errors import Refusal, doc_url
from ...core.domain.operators.audit import OperatorAction
from ...core.domain.operators.pending_actions import PendingAction
from ...core.usecases.actions.audit import acting
from ...core.usecases.actions.decisions import Waits
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.vault import VaultError
from ..operations.signing_in import signed_in
from ..settings.settings import SettingsError
from ..settings.sources import Loaded, load
from .output import Answer, complain, give, reader_is_gone, warn
from .views import action_document, action_text

T = TypeVar("T")

REFUSED = 1
WAITS = 3
"""Not done yet: another operator must confirm it (docs/operations.md "Two pairs of eyes")."""
INTERRUPTED = 130
"""Status that a shell reports for a program ended by SIGINT."""


def loaded_settings(**flags: Any) -> Loaded:
    """Load the settings of this call. `flags` are the command's own options, by name. Raises: SettingsError."""
    everywhere = click.get_current_context().find_root().params
    loaded = load(os.environ, {**everywhere, **flags}, Path.cwd())
    for warning in loaded.warnings:
        warn(warning)
    return loaded


def run_in_app(work: Callable[[Ports], Awaitable[T]], *, fitting: bool = True) -> T:
    """Open the app, run the work there, and close it. Its writes are audited as the operator's action.

    `fitting`: refuse vault keys that do not match the database.
    """
    settings = loaded_settings().settings
    context = click.get_current_context()
    from ..app.compose import open_app

    async def inside() -> T:
        async with open_app(settings, patient=True, fitting=fitting) as app:
            return await work(acting(app.ports, _action(context, await signed_in(app.ports, settings))))

    return asyncio.run(inside())


def present_action() -> OperatorAction:
    """Return the operator action of the present command, by nobody yet."""
    return _action(click.get_current_context(), "")


def _action(context: click.Context, operator: str) -> OperatorAction:
    """Return the operator action of a command: `cambist refund approve ref_…` is `refund.approve` on the object of its
    first id."""
    given = context.params
    names = sorted((name for name in given if name.endswith("_id")), key=lambda name: name == "account_id")
    reason = given.get("reason")
    return OperatorAction(
        operator=operator,
        name=".".join(context.command_path.split()[1:]),
        object_id=next((given[name] for name in names if given[name]), None),
        reason=reason if isinstance(reason, str) else "",
    )


def reasoned(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add `--reason` to a command. Only the audit log stores it."""

    @click.option("--reason", default="", help="Reason; stored in the audit log.")
    @functools.wraps(command)
    def given_a_reason(*, reason: str, **given: Any) -> Answer:  # noqa: ARG001 - read from the context
        return command(**given)

    return given_a_reason


def _code(fault: Fault) -> str:
    """Return a fault's class name as a code: `SchemaMismatch` is SCHEMA_MISMATCH."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(fault).__name__).upper()


def _doc_url(code: str) -> str | None:
    """Return the address at which this service explains a refusal, if its base URL is known."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    try:
        address = (
            context.params.get("base_url") or load(os.environ, context.find_root().params, Path.cwd()).settings.base_url
        )
    except SettingsError:
        return None
    return doc_url(address, code)


_WRONG_ENCODING = (
    f"an argument has letters that are no {sys.getfilesystemencoding()}, the encoding that the terminal names: set a "
    "locale of UTF-8, as in LC_ALL=C.UTF-8"
)


def _is_misread() -> bool:
    """Return whether an argument of this command has another encoding than the terminal's."""
    context = click.get_current_context(silent=True)
    values = () if context is None else context.params.values()
    texts = (text for value in values for text in (value if isinstance(value, tuple) else (value,)))
    return any("\udc80" <= char <= "\udcff" for text in texts if isinstance(text, str) for char in text)


def guarded(run: Callable[[], T], *, as_json: bool = False) -> T:
    """Run the function, and turn its refusals and faults into a message and an exit status. A bug keeps its
    traceback."""
    try:
        return run()
    except Waits as waiting:
        give(_waits(waiting.action), as_json=as_json)
        raise click.exceptions.Exit(WAITS) from None
    except Refusal as refusal:
        complain(
            refusal.code,
            [_WRONG_ENCODING if refusal.code == "VALIDATION_ERROR" and _is_misread() else refusal.message],
            as_json=as_json,
            details=refusal.details,
            doc_url=_doc_url(refusal.code),
        )
    except SettingsError as error:
        lines = [f"{fault.origin}: {fault.message}" for fault in error.faults]
        complain("SETTINGS_INVALID", lines, as_json=as_json, details=list(error.faults))
    except VaultError as error:
        complain("VAULT_ERROR", [str(error)], as_json=as_json)
    except Fault as fault:
        complain(_code(fault), [str(fault)], as_json=as_json)
    except BrokenPipeError:
        if reader_is_gone():
            raise  # click then ends the program silently, as `head` expects
        complain("UNAVAILABLE", ["a connection broke off"], as_json=as_json)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        complain("UNAVAILABLE", [f"{named}{error.strerror or error}"], as_json=as_json)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    raise click.exceptions.Exit(REFUSED)


def _waits(action: PendingAction) -> Answer:
    document = action_document(action, action.created_at)
    asks = f"Nothing was done yet: it waits until {iso(action.expires_at)} for a second operator."
    how = f"  cambist action confirm {action.id}\n  cambist action reject {action.id}"
    return Answer(document=document, text=f"{asks}\n\n{action_text(document)}\n\n{how}")


def answering(command: Callable[..., Answer]) -> Callable[..., None]:
    """Turn a function that returns an Answer into a command with `--json`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(command)
    def answered(*, as_json: bool, **given: Any) -> None:
        give(guarded(lambda: command(**given), as_json=as_json), as_json=as_json)

    return answered
